#!/usr/bin/env bash
# Time to quality beside Mitsuba 3 (llvm_ad_rgb), Cycles and LuxCore, in one run, on seven scenes of
# the shared folder, one of the library's and one of glass that is made here.
#
#   benches/peers/run.sh VENV RIG SCENES [compare.py options]
#   ONLY=Sponza benches/peers/run.sh ...       # one of them
#
# VENV has the peers installed, RIG is the folder of compare.py, SCENES that of the shared scenes.
# Settings are equal: size, depth, samples, box filter, camera, light, threads. `eff` is 1/(time x
# relMSE), the best of each scene being 1, medians of rounds; `eff cpu`, by CPU seconds, holds on a
# machine that does other things too. The rig puts the centre of a map towards +X, hence
# --env-rotate.
set -euo pipefail
venv=$1 rig=$2 scenes=$3
shift 3
cd "$(dirname "$0")/../.."
cargo build --release --locked
ours="tessera=$PWD/target/release/tessera render {scene} --env={env} --size {width}x{height}"
ours+=" --depth {depth} --spp {spp} --seed {seed}"
ours+=" --threads {threads} --device cpu --filter box --env-rotate 90"
ours+=" --eye={eye} --target={target} --up={up} --vfov {vfov} -o {out} -q --json"

compare() {
    local scene=$1
    shift
    [[ ${ONLY:-$scene} == "$scene" ]] || return 0
    echo
    # A peer that cannot read a scene leaves the others theirs.
    "$venv/bin/python" benches/peers/glass_compare.py "$rig" --ours "$ours" \
        --peers "${PEERS:-mitsuba-llvm,cycles,luxcore}" --threads 2 --rounds 3 "$@" ||
        echo "$scene could not be compared"
}
studio=$scenes/env/studio_small_05_1k.hdr sky=$scenes/env/qwantani_afternoon_puresky_1k.hdr
compare DamagedHelmet --scene "$scenes/DamagedHelmet.glb" --env "$studio" "$@"
compare Cornell --scene "$scenes/generated/cornell_box.glb" --env none "$@"
compare Sponza --scene "$scenes/Sponza.glb" --env "$sky" --camera='-5,2,0;5,2.5,0;60' "$@"
compare DreamApartment --scene "$scenes/DreamApartment.glb" --env "$sky" "$@"
compare PineTree --scene "$scenes/PineTree.glb" --env "$sky" "$@"
compare Spheres --scene "$scenes/MetalRoughSpheresNoTextures.glb" --env "$studio" "$@"

# Glass, of which the rig knows nothing and glass_worker.py does.
compare CandleHolder --scene "$scenes/GlassHurricaneCandleHolder.glb" --env "$studio" "$@"

kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
"$venv/bin/python" benches/peers/glass_scene.py "$rig" "$kept/glassware.glb"
compare Glassware --scene "$kept/glassware.glb" --env "$studio" "$@"

# The library's room of 400 panels without its point lights, of which the rig knows nothing.
"$venv/bin/python" - scenes/library/many-lights.gltf "$kept/many-lights.gltf" << 'END'
import json, sys
scene = json.load(open(sys.argv[1]))
for node in scene["nodes"]:
    node.get("extensions", {}).pop("KHR_lights_punctual", None)
json.dump(scene, open(sys.argv[2], "w"))
END
compare ManyLights --scene "$kept/many-lights.gltf" --env none "$@"
