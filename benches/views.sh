# Sourced by the benches that render: builds the program; scenes as they are looked at, references, and which of them are asked for.
#
# Before it stands `scenes`, the folder of the shared scenes, and `folder`, which gets all pictures. References that lie there are kept, since
# they take most of the time; they have another seed than other pictures, so that nothing is compared with itself. The environment:
# ONLY=Cornell (one of them), REFERENCE_SPP=2048, SIZE=320x240.

cargo build --release --locked
mkdir -p "$folder"
studio='--env @env/studio_small_05_1k.hdr' sky='--env @env/qwantani_afternoon_puresky_1k.hdr'
# @ stands for the folder of the shared scenes.
declare -A views=(
    [Cornell]='scenes/library/cornell-box.gltf'
    [ManyLights]='scenes/library/many-lights.gltf'
    [MaterialRow]='scenes/library/material-row.gltf'
    [CornellBox]='@generated/cornell_box.glb'
    [DamagedHelmet]="@DamagedHelmet.glb $studio --eye=1.2,0.5,2.4 --target=0,0,0.1 --vfov 28"
    [Sponza]="@Sponza.glb $sky --env-intensity 12 --eye=-5,2,0 --target=5,2.5,0 --vfov 60"
    [DreamApartment]="@DreamApartment.glb $sky --eye=6.6,7,1.5 --target=7.5,0,-4.5 --vfov 32"
    [PineTree]="@PineTree.glb $sky --eye=0,40,80 --target=0,36,0 --vfov 22"
    [Spheres]="@MetalRoughSpheresNoTextures.glb $studio --eye=0.0032,0.0032,0.0105 --target=0.0026,0.0036,0 --vfov 16"
)

# frame NAME OPTIONS...: renders a view, with nothing on the terminal but what goes wrong.
frame() {
    local view
    read -ra view <<< "${views[$1]}"
    target/release/tessera render "${view[@]/#@/$scenes/}" "${@:2}" --size "${SIZE:-320x240}" --device cpu -q
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
