#!/usr/bin/env bash
# What sampling to a noise saves: frames by `--noise`, beside uniform ones of some numbers of
# samples, all against references.
#
#   benches/adaptive/run.sh VENV SCENES FOLDER NOISE=0.03 MOST=1024 SAMPLES='32 64 128 256 512'
#   ONLY=Cornell REFERENCE_SPP=2048 SIZE=384x288 benches/adaptive/run.sh ... # what is rendered
#
# VENV has OpenEXR and numpy; SCENES is the folder of the shared scenes. FOLDER gets all pictures;
# references that lie there are kept.
set -euo pipefail
venv=$1 scenes=$2 folder=$3
cd "$(dirname "$0")/../.."
. benches/views.sh

samples=${SAMPLES:-32 64 128 256 512}
mapfile -t names < <(asked Cornell ManyLights MaterialRow DamagedHelmet Sponza \
    DreamApartment PineTree Spheres)
for name in "${names[@]}"; do
    reference "$name"
    for spp in $samples; do
        frame "$name" --spp "$spp" --json -o "$folder/$name-$spp.exr" > "$folder/$name-$spp.json"
    done
    frame "$name" --noise "${NOISE:-0.03}" --spp "${MOST:-1024}" --json \
        -o "$folder/$name-noise.exr" > "$folder/$name-noise.json"
done
"$venv/bin/python" benches/adaptive/compare.py "$folder" "$samples" "${names[@]}"
