#!/usr/bin/env bash
# What sampling to a noise saves: frames by `--noise`, beside uniform ones of 32 to 512 samples, all against references.
#
#   benches/adaptive/run.sh VENV SCENES FOLDER
#   ONLY=Cornell benches/adaptive/run.sh ...              # one of them
#   NOISE=0.03 MOST=1024 REFERENCE_SPP=2048 SIZE=192x144  # what is rendered
#
# VENV has OpenEXR and numpy; SCENES is the folder of the shared scenes. FOLDER gets all pictures; references that lie there are kept.
set -euo pipefail
venv=$1 scenes=$2 folder=$3
cd "$(dirname "$0")/../.."
cargo build --release --locked
mkdir -p "$folder"
studio=$scenes/env/studio_small_05_1k.hdr sky=$scenes/env/qwantani_afternoon_puresky_1k.hdr
names=()

frame() {
    local out=$1
    shift
    target/release/tessera render "$@" --size "${SIZE:-192x144}" --device cpu -q --json -o "$out.exr" > "$out.json"
}

scene() {
    local name=$1
    shift
    [[ ${ONLY:-$name} == "$name" ]] || return 0
    names+=("$name")
    # Another seed than the others': nothing is compared with itself.
    [[ -f $folder/$name-reference.exr ]] ||
        frame "$folder/$name-reference" "$@" --seed 1000 --spp "${REFERENCE_SPP:-2048}"
    for spp in 32 64 128 256 512; do frame "$folder/$name-$spp" "$@" --spp "$spp"; done
    frame "$folder/$name-noise" "$@" --noise "${NOISE:-0.03}" --spp "${MOST:-1024}"
}

scene Cornell scenes/library/cornell-box.gltf
scene ManyLights scenes/library/many-lights.gltf
scene MaterialRow scenes/library/material-row.gltf
scene DamagedHelmet "$scenes/DamagedHelmet.glb" --env "$studio" --eye=1.2,0.5,2.4 --target=0,0,0.1 --vfov 28
scene Sponza "$scenes/Sponza.glb" --env "$sky" --env-intensity 12 --eye=-5,2,0 --target=5,2.5,0 --vfov 60
scene DreamApartment "$scenes/DreamApartment.glb" --env "$sky" --eye=6.6,7,1.5 --target=7.5,0,-4.5 --vfov 32
scene Spheres "$scenes/MetalRoughSpheresNoTextures.glb" --env "$studio" \
    --eye=0.0032,0.0032,0.0105 --target=0.0026,0.0036,0 --vfov 16
"$venv/bin/python" benches/adaptive/compare.py "$folder" "${names[@]}"
