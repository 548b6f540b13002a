#!/usr/bin/env bash
# FLIP of noisy and denoised frames against references, beside Open Image Denoise, on six scenes of the shared folder.
#
#   benches/denoise/run.sh VENV SCENES FOLDER
#   ONLY=Cornell benches/denoise/run.sh ...      # one of them
#   SPP=64 REFERENCE_SPP=2048 SIZE=320x240       # what is rendered
#
# VENV has pyoidn, flip-evaluator, OpenEXR and numpy; SCENES is the folder of the shared scenes. FOLDER gets all pictures; references
# that lie there are kept, since they take most of the time.
set -euo pipefail
venv=$1 scenes=$2 folder=$3
cd "$(dirname "$0")/../.."
cargo build --release --locked
mkdir -p "$folder"
studio=$scenes/env/studio_small_05_1k.hdr sky=$scenes/env/qwantani_afternoon_puresky_1k.hdr
names=()

frame() {
    target/release/tessera render "$@" --size "${SIZE:-320x240}" --device cpu -q
}

scene() {
    local name=$1
    shift
    [[ ${ONLY:-$name} == "$name" ]] || return 0
    names+=("$name")
    # Another seed than the noisy picture's: nothing is compared with itself.
    [[ -f $folder/$name-reference.exr ]] ||
        frame "$@" --seed 1000 --spp "${REFERENCE_SPP:-2048}" -o "$folder/$name-reference.exr"
    frame "$@" --spp "${SPP:-64}" --denoise --aov albedo,normal -o "$folder/$name.exr" -o "$folder/$name.png"
}

scene DamagedHelmet "$scenes/DamagedHelmet.glb" --env "$studio" --eye=1.2,0.5,2.4 --target=0,0,0.1 --vfov 28
scene Cornell "$scenes/generated/cornell_box.glb"
scene Sponza "$scenes/Sponza.glb" --env "$sky" --env-intensity 12 --eye=-5,2,0 --target=5,2.5,0 --vfov 60
scene DreamApartment "$scenes/DreamApartment.glb" --env "$sky" --eye=6.6,7,1.5 --target=7.5,0,-4.5 --vfov 32
scene PineTree "$scenes/PineTree.glb" --env "$sky" --eye=0,40,80 --target=0,36,0 --vfov 22
scene Spheres "$scenes/MetalRoughSpheresNoTextures.glb" --env "$studio" \
    --eye=0.0032,0.0032,0.0105 --target=0.0026,0.0036,0 --vfov 16
"$venv/bin/python" benches/denoise/compare.py "$folder" "${names[@]}"
