# Sourced by the benches that render: builds the program; scenes as they are looked at, references,
# and which of them are asked for.
#
# Before it stands `scenes`, the folder of the shared scenes, and `folder`, which gets all pictures.
# References that lie there are kept, since they take most of the time; they have another seed than
# other pictures, so that nothing is compared with itself. The environment: ONLY=Cornell (one of
# them), REFERENCE_SPP=2048, SIZE=320x240, and HEIGHT=1080 for what is in the middle of a picture
# that high.

cargo build --release --locked
mkdir -p "$folder"
studio='--env @env/studio_small_05_1k.hdr' sky='--env @env/qwantani_afternoon_puresky_1k.hdr'
library=scenes/library
# @ stands for the folder of the shared scenes.
declare -A views=(
    [Cornell]="$library/cornell-box.gltf --eye=0.278,0.273,-0.8 --target=0.278,0.273,0.2 \
        --vfov 39.3"
    [ManyLights]="$library/many-lights.gltf --eye=0,1.8,4.7 --target=0,1.6803,3.7072 --vfov 54.43"
    [MaterialRow]="$library/material-row.gltf --eye=0,2.6,8.6 --target=0,2.353,7.631 --vfov 31.513"
    [CornellBox]='@generated/cornell_box.glb --eye=0,0,3.9 --target=0,0,2.9 --vfov 39.6'
    [DamagedHelmet]="@DamagedHelmet.glb $studio --eye=1.2,0.5,2.4 --target=0,0,0.1 --vfov 28"
    [Sponza]="@Sponza.glb $sky --env-intensity 12 --eye=-5,2,0 --target=5,2.5,0 --vfov 60"
    [DreamApartment]="@DreamApartment.glb $sky --eye=6.6,7,1.5 --target=7.5,0,-4.5 --vfov 32"
    [PineTree]="@PineTree.glb $sky --eye=0,40,80 --target=0,36,0 --vfov 22"
    [CandleHolder]="@GlassHurricaneCandleHolder.glb $studio \
        --eye=0.2,0.25,0.45 --target=0,0.15,0 --vfov 40"
    [Spheres]="@MetalRoughSpheresNoTextures.glb $studio \
        --eye=0.0032,0.0032,0.0105 --target=0.0026,0.0036,0 --vfov 16"
)

# narrowed DEGREES: the angle of the middle of a picture that is HEIGHT pixels high, as high as
# SIZE.
narrowed() {
    local size=${SIZE:-320x240}
    awk -v angle="$1" -v part="${size#*x}/$HEIGHT" 'BEGIN {
        split(part, of, "/"); half = angle * atan2(0, -1) / 360
        tangent = sin(half) / cos(half) * of[1] / of[2]
        printf "%.9f", atan2(tangent, 1) * 360 / atan2(0, -1)
    }'
}

# frame NAME OPTIONS...: renders a view, with nothing on the terminal but what goes wrong; by
# another `program` where one is named.
frame() {
    local view
    read -ra view <<< "${views[$1]}"
    [[ -z ${HEIGHT:-} ]] || view[-1]=$(narrowed "${view[-1]}")
    "${program:-target/release/tessera}" render "${view[@]/#@/$scenes/}" "${@:2}" \
        --size "${SIZE:-320x240}" --device cpu -q
}

# reference NAME: NAME-reference.exr, unless it is there.
reference() {
    local out=$folder/$1-reference.exr
    [[ -f $out ]] || frame "$1" --seed 1000 --spp "${REFERENCE_SPP:-2048}" -o "$out"
}

# asked NAMES...: those of them that are asked for.
asked() {
    local name
    for name in "$@"; do [[ ${ONLY:-$name} != "$name" ]] || echo "$name"; done
}

# windows: for benches that judge by FLIP. A picture of 320 x 240 has little but edges to show, so
# they look at windows of that size in the middle of pictures that are HEIGHT pixels high;
# references need far less noise than what is judged. Fills `names`.
windows() {
    export HEIGHT=${HEIGHT:-1080} REFERENCE_SPP=${REFERENCE_SPP:-8192}
    mapfile -t names < <(asked Cornell CornellBox ManyLights DreamApartment Sponza \
        Spheres CandleHolder PineTree DamagedHelmet)
}
