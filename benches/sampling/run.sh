#!/usr/bin/env bash
# FLIP of frames with few samples, beside another build of this program: what a change of the
# sampler brings to the eye.
#
#   benches/sampling/run.sh VENV SCENES FOLDER OTHER ONLY=Cornell REFERENCE_SPP=8192 SIZE=320x240
#   HEIGHT=1080 benches/sampling/run.sh ... # what is rendered
#
# OTHER is the other `tessera`. References of benches/denoise serve here too.
#
# VENV has flip-evaluator, OpenEXR and numpy; SCENES is the folder of the shared scenes. FOLDER gets
# all pictures; references that lie there are kept.
set -euo pipefail
venv=$1 scenes=$2 folder=$3 other=$(realpath "$4")
cd "$(dirname "$0")/../.."
. benches/views.sh

windows
for name in "${names[@]}"; do
    reference "$name"
    for spp in 1 4 16 64; do
        frame "$name" --spp "$spp" -o "$folder/$name-$spp.exr"
        program=$other frame "$name" --spp "$spp" -o "$folder/$name-$spp-other.exr"
    done
done
"$venv/bin/python" benches/sampling/compare.py "$folder" "${names[@]}"
