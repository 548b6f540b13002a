#!/usr/bin/env bash
# The proof with a GPU, in one call on a machine that has one: the hash of every scene on the GPU is
# the CPU's, and so is every word of every function of the kernels; then timings.
#
#   tests/gpu/run.sh builds the program with cargo, offline tests/gpu/run.sh FOLDER takes the
#   program and the scenes of a folder made by tests/gpu/pack.sh; needs bash, awk and sed alone
#
# Writes report.json and report.md to $OUT, else to target/gpu. Status 1 where a hash or a word
# differs, or nothing could be compared.
#
#   TESSERA_GPU_DEVICE   what to compare with the CPU (cuda:0)
#   TESSERA_GPU_CHECK    size:samples of the comparison (320x180:16)
#   TESSERA_GPU_TIME     size:samples of the timings (1920x1080:256); `none` leaves them out
#   TESSERA_GPU_UNITS    inputs of each function (400000); `none` leaves them out
#   TESSERA_GPU_SCENES   only scenes whose file name has this in it
#   TESSERA_SCENES       folder of more scenes (../shared/scenes)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
device=${TESSERA_GPU_DEVICE:-cuda:0}
check=${TESSERA_GPU_CHECK:-320x180:16}
time=${TESSERA_GPU_TIME:-1920x1080:256}
inputs=${TESSERA_GPU_UNITS:-400000}

if [ $# -ge 1 ]; then
    folder=$(cd "$1" && pwd) || exit 2
    tessera=$folder/tessera
    units=$folder/units
    places=("$folder/scenes")
    out=${OUT:-$folder/report}
else
    root=$(cd "$here/../.." && pwd)
    cargo build --release --locked --offline --bin tessera --manifest-path "$root/Cargo.toml" || exit 2
    tessera=$root/target/release/tessera
    units=$(cd "$root" && cargo test --release --locked --offline --test gpu --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | grep '/gpu-' | tail -n 1)
    shared=${TESSERA_SCENES:-$root/../shared/scenes}
    places=("$root/scenes/library" "$shared" "$shared/generated")
    out=${OUT:-$root/target/gpu}
fi
mkdir -p "$out" || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One field of a line of JSON: a number, or a text without its quotes.
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | head -n 1; }
number() { awk "BEGIN { printf \"%.4g\", $1 }"; }

# render DEVICE SCENE SIZE:SAMPLES NAME [more options]: leaves NAME.json and NAME.err.
render() {
    local on=$1 scene=$2 size=${3%%:*} spp=${3##*:} name=$4
    shift 4
    "$tessera" render "$scene" --device "$on" --size "$size" --spp "$spp" --env 0.6,0.7,0.8 --depth 5 \
        -o "$work/$name.exr" -q --json "$@" >"$work/$name.json" 2>"$work/$name.err"
}

names=()
for place in "${places[@]}"; do
    for scene in "$place"/*.gltf "$place"/*.glb; do
        [ -f "$scene" ] || continue
        case $(basename "$scene") in *"${TESSERA_GPU_SCENES:-}"*) names+=("$scene") ;; esac
    done
done

card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
[ -n "$card" ] || card="unknown (no nvidia-smi)"
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "device: $card; processor: $processor; ${#names[@]} scenes"

same=0 different=0 refused=0 rows=() entries=()
for scene in "${names[@]}"; do
    name=$(basename "${scene%.*}")
    if ! render cpu "$scene" "$check" cpu; then
        refused=$((refused + 1))
        entries+=("{\"scene\":\"$name\",\"compared\":false}")
        echo "NOT COMPARED: $name: $(head -n 1 "$work/cpu.err")"
        continue
    fi
    expected=$(field pixels_sha256 "$work/cpu.json")
    if render "$device" "$scene" "$check" gpu; then
        found=$(field pixels_sha256 "$work/gpu.json")
    else
        found="failed: $(head -n 2 "$work/gpu.err" | tr '\n"' '  ')"
    fi
    if [ "$found" = "$expected" ] && [ -n "$expected" ]; then
        same=$((same + 1)) equal=true
    else
        different=$((different + 1)) equal=false
        echo "DIFFERENT: $name: cpu $expected, gpu $found"
    fi
    entries+=("{\"scene\":\"$name\",\"compared\":true,\"equal\":$equal,\"cpu\":\"$expected\",\"gpu\":\"$found\"}")
    rows+=("| $name | ${expected:0:16} | ${found:0:16} | $equal |")
done
echo "hashes: $same equal, $different different, $refused not compared"

functions=null functions_equal=true functions_line="Functions of the kernels: not run."
if [ "$inputs" != none ] && [ -x "$units" ]; then
    TESSERA_GPU_UNITS=$inputs TESSERA_GPU_DEVICE=$device "$units" \
        --exact units::every_function_gives_the_bits_of_the_host --nocapture >"$work/units.out" 2>"$work/units.err" ||
        functions_equal=false
    line=$(grep -m 1 '^units: ' "$work/units.err" || true)
    read -r count each wrong < <(sed 's/[^0-9 ]//g' <<<"${line:-0 0 0}") || true
    # What ended before it could count has not shown that anything is equal.
    if [ -z "$line" ]; then functions_equal=false count=0 each=0 wrong=1; fi
    functions="{\"functions\":$count,\"inputs\":$each,\"different\":$wrong}"
    functions_line="Functions of the kernels: $count, $each inputs each, $wrong words differ."
    grep -m 8 '^DIFFERENT' "$work/units.err" || true
    [ -n "$line" ] || tail -n 5 "$work/units.err"
    echo "$functions_line"
fi

timings=() lines=()
if [ "$time" != none ]; then
    for scene in "${names[@]}"; do
        name=$(basename "${scene%.*}")
        # Twice: the first run fills the caches of the driver's compiler and of the disk.
        render "$device" "$scene" "$check" gpu || continue
        render "$device" "$scene" "$time" gpu || continue
        samples=$(field samples "$work/gpu.json") rays=$(field rays "$work/gpu.json")
        device_s=$(field device_s "$work/gpu.json") render_s=$(field render_s "$work/gpu.json")
        start_s=$(field start_s "$work/gpu.json")
        busy=$(number "$device_s / $render_s") rate=$(number "$samples / $render_s / 1e6")
        mrays=$(number "$rays / $device_s / 1e6")
        timings+=("{\"scene\":\"$name\",\"samples\":$samples,\"rays\":$rays,\"device_s\":$device_s,\"render_s\":$render_s,\"start_s\":$start_s,\"busy\":$busy,\"msamples_per_s\":$rate,\"mrays_per_device_s\":$mrays}")
        lines+=("| $name | $rate | $mrays | $(number "$device_s") | $(number "$render_s") | $busy | $(number "$start_s") |")
        echo "$name: $rate Msamples/s, $mrays Mrays/s of device time, busy $busy"
    done
fi

notes=()
python=$(command -v python3 || true)
if [ -n "$python" ] && "$python" -c 'import mitsuba as mi; mi.set_variant("cuda_ad_rgb")' 2>/dev/null; then
    notes+=("mitsuba cuda_ad_rgb is here: compare with benches/peers/run.sh")
else
    notes+=("NOT RUN: mitsuba cuda_ad_rgb (not installed)")
fi
ncu=$(command -v ncu || true)
sponza=$(printf '%s\n' ${names[@]+"${names[@]}"} | grep -m 1 Sponza || true)
if [ -n "$ncu" ] && [ -n "$sponza" ]; then
    # Starting programs is what the sandbox forbids, and ncu does it.
    TESSERA_SANDBOX=off "$ncu" --target-processes all --launch-count 20 --section SpeedOfLight \
        "$tessera" render "$sponza" --device "$device" --size 640x360 --spp 16 -o "$work/ncu.exr" -q >"$out/ncu.txt" 2>&1 &&
        notes+=("ncu: see ncu.txt") || notes+=("NOT RUN: ncu failed, see ncu.txt")
else
    notes+=("NOT RUN: ncu (not installed, or no Sponza)")
fi
[ "$functions" != null ] || notes+=("NOT RUN: functions of the kernels (left out, or no program for them)")

join() { local IFS=,; echo "$*"; }
quoted() { printf '%s\n' "$@" | sed 's/"//g; s/.*/"&"/' | paste -sd, -; }
{
    echo "{\"device\":$(quoted "$card"),\"processor\":$(quoted "$processor"),\"check\":\"$check\",\"time\":\"$time\","
    echo "\"equal\":$same,\"different\":$different,\"refused\":$refused,\"units\":$functions,"
    echo "\"hashes\":[$(join ${entries[@]+"${entries[@]}"})],"
    echo "\"timings\":[$(join ${timings[@]+"${timings[@]}"})],\"notes\":[$(quoted "${notes[@]}")]}"
} >"$out/report.json"
{
    echo "Device: $card. Processor: $processor."
    echo
    echo "Hashes at $check, depth 5: $same equal, $different different, $refused not compared."
    echo
    echo "| scene | CPU | GPU | equal |"
    echo "|---|---|---|---|"
    printf '%s\n' ${rows[@]+"${rows[@]}"}
    echo
    echo "$functions_line"
    echo
    echo "Timings at $time, depth 5; busy = device time of the kernels / time from the first unit to the last file."
    echo
    echo "| scene | Msamples/s | Mrays/s of device time | device s | render s | busy | start s |"
    echo "|---|---|---|---|---|---|---|"
    printf '%s\n' ${lines[@]+"${lines[@]}"}
    echo
    printf -- '- %s\n' "${notes[@]}"
} >"$out/report.md"
printf '%s\n' "${notes[@]}"
echo "report: $out/report.json, $out/report.md"
[ "$different" -eq 0 ] && [ "$same" -gt 0 ] && [ "$functions_equal" = true ]
