#!/usr/bin/env bash
# Compares what Blender exports with what Cycles renders of it, by compare.py. Needs Python 3.11 and
# a network: Blender's module is installed below target/.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=$PWD/target/blender
if [ ! -x "$venv/bin/python" ]; then
    python3.11 -m venv "$venv"
    "$venv/bin/pip" install --quiet bpy==4.5.15 numpy
fi
cargo build --release --bin tessera
# Cycles says every sample that it takes.
"$venv/bin/python" tests/blender/compare.py target/release/tessera |
    grep --line-buffered -E 'Cycles|^test result'

# The Python client and its examples, in Blender's own Python.
TESSERA_PYTHON=$venv/bin/python cargo test --release --test integration python -- --nocapture
