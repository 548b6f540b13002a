#!/usr/bin/env bash
# FLIP of noisy and denoised frames against references, beside Open Image Denoise, on nine scenes of
# the library and the shared folder.
#
#   benches/denoise/run.sh VENV SCENES FOLDER SPP=64 ONLY=Cornell REFERENCE_SPP=8192 SIZE=320x240
#   HEIGHT=1080 benches/denoise/run.sh ... # what is rendered
#
# VENV has pyoidn, flip-evaluator, OpenEXR and numpy; SCENES is the folder of the shared scenes.
# FOLDER gets all pictures; references that lie there are kept.
set -euo pipefail
venv=$1 scenes=$2 folder=$3
cd "$(dirname "$0")/../.."
. benches/views.sh

windows
for name in "${names[@]}"; do
    reference "$name"
    frame "$name" --spp "${SPP:-64}" --denoise --aov albedo,normal \
        -o "$folder/$name.exr" -o "$folder/$name.png"
done
"$venv/bin/python" benches/denoise/compare.py "$folder" "${names[@]}"
