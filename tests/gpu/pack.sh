#!/usr/bin/env bash
# Puts into a folder what tests/gpu/run.sh needs on a machine without cargo: the program, the test
# of single functions, the script, scenes.
#
#   tests/gpu/pack.sh FOLDER [MAX_MIB]
#
# Scenes are those of scenes/library and of $TESSERA_SCENES (../shared/scenes), smallest first, up
# to MAX_MIB (48) in all.
set -euo pipefail
folder=${1:?usage: tests/gpu/pack.sh FOLDER [MAX_MIB]}
room=$((${2:-48} << 20))
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/../.."
cargo build --release --locked --offline --bin tessera
mkdir -p "$folder/scenes/env"
cp target/release/tessera tests/gpu/run.sh "$folder/"
units=$(cargo test --release --locked --offline --test gpu --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | grep '/gpu-' | tail -n 1)
cp "$units" "$folder/units"
cp scenes/library/*.gltf "$folder/scenes/"
scenes=${TESSERA_SCENES:-../shared/scenes}
if [ -d "$scenes" ]; then
    while read -r bytes path; do
        [ $((room -= bytes)) -ge 0 ] || break
        cp "$path" "$folder/scenes/"
    done < <(find "$scenes" "$scenes/generated" -maxdepth 1 -name '*.glb' -printf '%s %p\n' 2>/dev/null | sort -nu)
    # Sponza is what the claim is about: it goes along whatever its size.
    [ ! -f "$scenes/Sponza.glb" ] || cp "$scenes/Sponza.glb" "$folder/scenes/"
fi
du -sh "$folder"
