#!/usr/bin/env bash
# Time to quality beside Mitsuba 3 (llvm_ad_rgb) and Cycles, in one run, on three scenes of the shared folder.
#
#   benches/peers/run.sh VENV RIG SCENES [compare.py options]
#
# VENV has the peers installed, RIG is the folder of compare.py, SCENES that of the shared scenes. Settings are equal: size, depth, samples, box
# filter, camera, light, threads. `eff` is 1/(time x relMSE), the best of each scene being 1, medians of rounds; `eff cpu`, by CPU
# seconds, holds on a machine that does other things too. The rig puts the centre of a map towards +X, hence --env-rotate.
set -euo pipefail
venv=$1 rig=$2 scenes=$3
shift 3
cd "$(dirname "$0")/../.."
cargo build --release --locked
ours="tessera=$PWD/target/release/tessera render {scene} --env={env} --size {width}x{height} --depth {depth} --spp {spp} --seed {seed}"
ours+=" --threads {threads} --device cpu --filter box --env-rotate 90 --eye={eye} --target={target} --up={up} --vfov {vfov} -o {out} -q --json"

compare() {
    echo
    "$venv/bin/python" "$rig/compare.py" --ours "$ours" --peers mitsuba-llvm,cycles --threads 2 --rounds 3 "$@"
}
compare --scene "$scenes/DamagedHelmet.glb" --env "$scenes/env/studio_small_05_1k.hdr" "$@"
compare --scene "$scenes/generated/cornell_box.glb" --env none "$@"
compare --scene "$scenes/Sponza.glb" --env "$scenes/env/qwantani_afternoon_puresky_1k.hdr" --camera='-5,2,0;5,2.5,0;60' "$@"
