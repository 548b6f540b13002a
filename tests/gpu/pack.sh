#!/usr/bin/env bash
# Puts into a folder what tests/gpu/run.sh needs on a machine without cargo: the program and the
# test of single functions, both stripped and compressed, the script, jobs to compute, scenes.
#
#   tests/gpu/pack.sh FOLDER [MAX_MIB]
#
# The folder takes at most MAX_MIB (50) in all, so that it travels with the repository in 64 MiB.
# The scenes that are timed go first, then those of scenes/library and of $TESSERA_SCENES
# (../shared/scenes), smallest first; what does not fit is named.
# With TESSERA_GPU_BUILT=FOLDER the two programs, `tessera` and `units`, are taken from there.
set -euo pipefail
folder=${1:?usage: tests/gpu/pack.sh FOLDER [MAX_MIB]}
max=${2:-50}
mkdir -p "$folder/scenes" "$folder/compute"
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/../.."

if [ -n "${TESSERA_GPU_BUILT:-}" ]; then
    tessera=$TESSERA_GPU_BUILT/tessera units=$TESSERA_GPU_BUILT/units
else
    cargo build --release --locked --offline --bin tessera
    tessera=target/release/tessera
    units=$(cargo test --release --locked --offline --test gpu --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | grep '/gpu-' | tail -n 1)
fi
cp "$tessera" "$folder/tessera"
cp "$units" "$folder/units"
cp tests/gpu/run.sh tests/gpu/steps.sh tests/gpu/compute.txt "$folder/"
cp examples/compute/*.ptx examples/compute/*.npy "$folder/compute/"
for program in tessera units; do
    strip "$folder/$program" 2>/dev/null || echo "not stripped: $program"
    gzip --force --no-name "$folder/$program"
done

bytes_of() { find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'; }
room=$(((max << 20) - $(bytes_of "$folder")))
if [ "$room" -le 0 ]; then
    echo "pack.sh: the programs take $(($(bytes_of "$folder") >> 20)) MiB of $max MiB already" >&2
    exit 1
fi

# take BYTES PATH: copies a scene that fits; names one that does not.
take() {
    [ ! -e "$folder/scenes/$(basename "$2")" ] || return 0
    if [ "$1" -gt "$room" ]; then
        echo "left out: $(basename "$2"), $(($1 >> 10)) KiB of $((room >> 10)) KiB of room"
        return 0
    fi
    cp "$2" "$folder/scenes/"
    room=$((room - $1))
}

scenes=${TESSERA_SCENES:-../shared/scenes}
for name in cornell-box.gltf Sponza.glb DamagedHelmet.glb; do
    for path in "scenes/library/$name" "$scenes/$name"; do
        [ ! -f "$path" ] || take "$(stat -c %s "$path")" "$path"
    done
done
while read -r bytes path; do take "$bytes" "$path"; done < <({
    find scenes/library -maxdepth 1 -name '*.gltf' -printf '%s %p\n'
    find "$scenes" "$scenes/generated" -maxdepth 1 -name '*.glb' -printf '%s %p\n' 2>/dev/null ||
        true
} | sort -n)
count=$(find "$folder/scenes" -type f | wc -l)
echo "$folder: $(($(bytes_of "$folder") >> 10)) KiB, $count scenes"
