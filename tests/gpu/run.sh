#!/usr/bin/env bash
# The proof with a GPU, in one call on a machine that has one: the hash of every scene on the GPU is
# the CPU's, and so is every word of every function of the kernels; three scenes are timed.
#
#   tests/gpu/run.sh           builds the program with cargo, offline
#   tests/gpu/run.sh FOLDER    takes the program and the scenes of a folder that tests/gpu/pack.sh
#                              made; needs a driver, bash, awk, sed, coreutils, gzip, and no cargo
#
# Writes report.json and report.md to $OUT, else to target/gpu, again after every step: a run that
# is cut off keeps its figures. A step that would go beyond the budget, by the time that such steps
# have taken so far, is left out and named. Status 1 where a hash or a word differs or nothing could
# be compared; 3 where nothing differs but something was left out.
#
#   TESSERA_GPU_BUDGET   seconds for everything (540)
#   TESSERA_GPU_DEVICE   what to compare with the CPU (cuda:0)
#   TESSERA_GPU_CHECK    size:samples of the comparison (320x180:16)
#   TESSERA_GPU_TIME     size:samples of the timings (1920x1080:1024); `none` leaves them out
#   TESSERA_GPU_TIMED    scenes to time, by file name; others fill up to three
#   TESSERA_GPU_UNITS    inputs of each function (400000); `none` leaves them out
#   TESSERA_GPU_COMPUTE  only compute jobs whose name has this in it; `none` leaves them out
#   TESSERA_GPU_STEPS    only steps of steps.sh with this in their name; `none` leaves them out
#   TESSERA_GPU_CALLS    records the system calls of workers; `none` leaves them out
#   TESSERA_GPU_SCENES   only scenes whose file name has this in it
#   TESSERA_SCENES       folder of more scenes (../shared/scenes)
set -uo pipefail
SECONDS=0
here=$(cd "$(dirname "$0")" && pwd)
budget=${TESSERA_GPU_BUDGET:-540}
device=${TESSERA_GPU_DEVICE:-cuda:0}
check=${TESSERA_GPU_CHECK:-320x180:16}
time=${TESSERA_GPU_TIME:-1920x1080:1024}
preferred=${TESSERA_GPU_TIMED:-Sponza cornell-box DamagedHelmet}
inputs=${TESSERA_GPU_UNITS:-400000}

if [ $# -ge 1 ]; then
    folder=$(cd "$1" && pwd) || exit 2
    for program in tessera units; do
        [ ! -f "$folder/$program.gz" ] || gunzip --force "$folder/$program.gz" || exit 2
    done
    tessera=$folder/tessera
    units=$folder/units
    places=("$folder/scenes")
    examples=$folder/compute
    out=${OUT:-$folder/report}
else
    root=$(cd "$here/../.." && pwd)
    (cd "$root" && cargo build --release --locked --offline --bin tessera) || exit 2
    tessera=$root/target/release/tessera
    units=$(cd "$root" &&
        cargo test --release --locked --offline --test gpu --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | grep '/gpu-' | tail -n 1)
    shared=${TESSERA_SCENES:-$root/../shared/scenes}
    places=("$root/scenes/library" "$shared" "$shared/generated")
    examples=$root/examples/compute
    out=${OUT:-$root/target/gpu}
fi
mkdir -p "$out" || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

same=0 different=0 refused=0 complete=false
rows=() entries=() timings=() lines=() left_out=() notes=()
functions=null functions_equal=true functions_line="Functions of the kernels: not run."
jobs_same=0 jobs_different=0 jobs=() jobs_line="Compute jobs: not run."
calls=null calls_line="System calls of workers: not recorded."

# One field of a line of JSON: a number, or a text without its quotes.
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | head -n 1; }
# said LINES FILE: first lines of a file, as a text that JSON can hold.
said() { head -n "$1" "$2" | tr '\n"\\' '   ' | tr -d '[:cntrl:]'; }
number() { awk "BEGIN { printf \"%.4g\", $1 }"; }
join() { local IFS=,; echo "$*"; }
quoted() {
    printf '%s\n' "$@" | tr -d '\\"\000-\011\013-\037' | sed '/^$/d; s/.*/"&"/' | paste -sd, -
}

report_json() {
    echo "{\"complete\":$complete,\"budget_s\":$budget,\"used_s\":$SECONDS,"
    echo "\"device\":$(quoted "$card"),\"processor\":$(quoted "${processor:-unknown}"),"
    echo "\"check\":\"$check\",\"time\":\"$time\","
    echo "\"equal\":$same,\"different\":$different,\"refused\":$refused,\"units\":$functions,"
    echo "\"steps\":[$(join ${steps[@]+"${steps[@]}"})],"
    echo "\"compute\":[$(join ${jobs[@]+"${jobs[@]}"})],"
    echo "\"calls\":$calls,"
    echo "\"hashes\":[$(join ${entries[@]+"${entries[@]}"})],"
    echo "\"timings\":[$(join ${timings[@]+"${timings[@]}"})],"
    echo "\"left_out\":[$(quoted ${left_out[@]+"${left_out[@]}"})],"
    echo "\"notes\":[$(quoted ${notes[@]+"${notes[@]}"})]}"
}

report_md() {
    echo "Device: $card. Processor: ${processor:-unknown}."
    echo "$SECONDS s of $budget s used; complete: $complete."
    echo
    echo "Hashes at $check, depth 5: $same equal, $different different, $refused not compared."
    echo
    echo "| scene | CPU | GPU | equal |"
    echo "|---|---|---|---|"
    printf '%s\n' ${rows[@]+"${rows[@]}"}
    echo
    echo "$functions_line"
    echo
    echo "$jobs_line"
    echo
    echo "| step | right | what was seen |"
    echo "|---|---|---|"
    printf '%s\n' ${step_lines[@]+"${step_lines[@]}"}
    echo
    echo "$calls_line"
    echo
    echo "Timings at $time, depth 5; busy = device time of the kernels / time from the first unit" \
        "to the last file."
    echo
    echo "| scene | Msamples/s | Mrays/s of device time | device s | render s | busy | start s |"
    echo "|---|---|---|---|---|---|---|"
    printf '%s\n' ${lines[@]+"${lines[@]}"}
    echo
    printf -- '- LEFT OUT: %s\n' ${left_out[@]+"${left_out[@]}"} | sed '/: $/d'
    printf -- '- %s\n' ${notes[@]+"${notes[@]}"} | sed '/^- $/d'
}

# Writes both reports whole: a reader, and a run that is killed, never see half of one.
report() {
    report_json >"$out/.report.json" && mv "$out/.report.json" "$out/report.json"
    report_md >"$out/.report.md" && mv "$out/.report.md" "$out/report.md"
}

# leave_out TEXT: names a step that was not made.
leave_out() {
    left_out+=("$1")
    echo "LEFT OUT: $1"
    report
}

# fits SECONDS WHAT: whether a step of that length ends within the budget; names it where it is not.
fits() {
    [ $((SECONDS + $1)) -lt "$budget" ] && return 0
    local left=$((budget > SECONDS ? budget - SECONDS : 0))
    leave_out "$2: it takes about $1 s, and $left s of the budget of $budget s are left"
    return 1
}

# The longer of two numbers of seconds.
longer() { echo $(($1 > $2 ? $1 : $2)); }

# Whether a status is that of a command which the end of the budget has ended.
cut_off() { [ "$1" = 124 ] || [ "$1" = 137 ]; }

# limited COMMAND...: ends it where the budget ends.
limited() { timeout --foreground -k 5 "$((budget > SECONDS ? budget - SECONDS : 1))" "$@"; }

# view_of SCENE: options of its camera. Sponza has none, and is a hall to stand in.
view_of() { case $(basename "$1") in Sponza*) echo --eye=-9,1.5,0 --target=5,3,0.5 ;; esac; }

# render DEVICE SCENE SIZE:SAMPLES NAME [more options]: leaves NAME.json and NAME.err.
render() {
    local on=$1 scene=$2 size=${3%%:*} spp=${3##*:} name=$4 view
    shift 4
    read -ra view <<<"$(view_of "$scene")"
    limited "$tessera" render "$scene" --device "$on" --size "$size" --spp "$spp" \
        ${view[@]+"${view[@]}"} --env 0.6,0.7,0.8 --depth 5 \
        -o "$work/$name.exr" -q --json "$@" \
        >"$work/$name.json" 2>"$work/$name.err"
}

# Whether the pixels of a picture compress to a hundredth: there is nothing in it.
is_bare() {
    local size=${check%%:*}
    [ $(($(stat -c %s "$1") * 100)) -lt $((12 * ${size%x*} * ${size#*x})) ]
}

# Compares the hash of a scene on the GPU with the CPU's.
compare_s=1
compare() {
    local scene=$1 name expected found equal status=0 start=$SECONDS
    name=$(basename "${scene%.*}")
    fits "$compare_s" "comparison of $name" || return 0
    render cpu "$scene" "$check" cpu || status=$?
    if cut_off $status; then
        leave_out "comparison of $name: the CPU was cut off by the budget of $budget s"
        return 0
    elif [ $status -ne 0 ]; then
        refused=$((refused + 1))
        entries+=("{\"scene\":\"$name\",\"compared\":false}")
        echo "NOT COMPARED: $name: $(said 1 "$work/cpu.err")"
        report
        return 0
    fi
    expected=$(field pixels_sha256 "$work/cpu.json")
    if is_bare "$work/cpu.exr"; then
        refused=$((refused + 1))
        entries+=("{\"scene\":\"$name\",\"compared\":false}")
        echo "NOT COMPARED: $name: nothing can be seen in its picture"
        report
        return 0
    fi
    render "$device" "$scene" "$check" gpu || status=$?
    if cut_off $status; then
        leave_out "comparison of $name: the device was cut off by the budget of $budget s"
        return 0
    elif [ $status -eq 0 ]; then
        found=$(field pixels_sha256 "$work/gpu.json")
    else
        found="failed: $(said 2 "$work/gpu.err")"
    fi
    if [ "$found" = "$expected" ] && [ -n "$expected" ]; then
        same=$((same + 1)) equal=true
    else
        different=$((different + 1)) equal=false
        echo "DIFFERENT: $name: cpu $expected, gpu $found"
    fi
    entries+=("{\"scene\":\"$name\",\"compared\":true,\"equal\":$equal,
        \"cpu\":\"$expected\",\"gpu\":\"$found\"}")
    rows+=("| $name | ${expected:0:16} | ${found:0:16} | $equal |")
    # The first one also waits for the driver's compiler, so it says little about the next ones.
    if [ $((same + different)) -gt 1 ]; then
        compare_s=$(longer "$compare_s" $((SECONDS - start + 1)))
    fi
    report
}

# Compares every function of the kernels.
compare_functions() {
    local line count each wrong status=0
    fits 20 "functions of the kernels" || return 0
    TESSERA_GPU_UNITS=$inputs TESSERA_GPU_DEVICE=$device limited "$units" \
        --exact units::every_function_gives_the_bits_of_the_host --nocapture \
        >"$work/units.out" 2>"$work/units.err" || status=$?
    if cut_off $status; then
        leave_out "functions of the kernels: cut off by the budget of $budget s"
        return 0
    fi
    [ $status -eq 0 ] || functions_equal=false
    line=$(grep -m 1 '^units: ' "$work/units.err" || true)
    read -r count each wrong < <(sed 's/[^0-9 ]//g' <<<"${line:-0 0 0}") || true
    # What ended before it could count has not shown that anything is equal.
    if [ -z "$line" ]; then functions_equal=false count=0 each=0 wrong=1; fi
    functions="{\"functions\":$count,\"inputs\":$each,\"different\":$wrong}"
    functions_line="Functions of the kernels: $count, $each inputs each, $wrong words differ."
    grep -m 8 '^DIFFERENT' "$work/units.err" || true
    [ -n "$line" ] || tail -n 5 "$work/units.err"
    echo "$functions_line"
    report
}

# Runs one line of compute.txt, and compares the hash of what it wrote.
compute_s=1
compare_job() {
    local name=$1 expected=$2 found equal=false status=0 start=$SECONDS
    shift 2
    fits "$compute_s" "compute job $name" || return 0
    (cd "$work/compute" && limited "$tessera" compute "$@" --local --device "$device") \
        >"$work/job.out" 2>"$work/job.err" || status=$?
    if cut_off $status; then
        leave_out "compute job $name: cut off by the budget of $budget s"
        return 0
    fi
    found=$(cd "$work/compute" && cat "$name".*npy 2>/dev/null | sha256sum | cut -d ' ' -f 1)
    [ $status -eq 0 ] || found="failed: $(said 2 "$work/job.err")"
    if [ "$found" = "$expected" ]; then
        jobs_same=$((jobs_same + 1)) equal=true
    else
        jobs_different=$((jobs_different + 1))
        echo "DIFFERENT: compute job $name: expected $expected, found $found"
    fi
    jobs+=("{\"job\":\"$name\",\"equal\":$equal,\"found\":\"$found\"}")
    jobs_line="Compute jobs: $jobs_same with the bytes of compute.txt, $jobs_different with others."
    compute_s=$(longer "$compute_s" $((SECONDS - start + 1)))
    report
}

# Runs every line of compute.txt.
compare_jobs() {
    local name expected arguments
    mkdir -p "$work/compute" && cp "$examples"/*.ptx "$examples"/*.npy "$work/compute/" || return 0
    while read -r name expected arguments; do
        case $name in '#'*) continue ;; *"${TESSERA_GPU_COMPUTE:-}"*) ;; *) continue ;; esac
        # shellcheck disable=SC2086  # the arguments are words
        compare_job "$name" "$expected" $arguments </dev/null
    done <"$here/compute.txt"
    echo "$jobs_line"
}

# kinds VERDICT: the recorded calls of which that became.
kinds() { sed -n "s/ $1\$//; t found; d; :found; s/.*/\"&\"/; p" "$out/calls.txt" | paste -sd, -; }

# Records which system calls the workers make, for the list of those that they need: what is refused
# would show as a failure of the driver, and what is unlisted is only logged. See
# node/src/device/worker/sandbox. Recording makes calls slower, so nothing here is timed.
record_calls() {
    local scene=$1 count found status=0
    fits 60 "calls of workers" || return 0
    mkdir -p "$work/calls"
    TESSERA_RECORD_CALLS=$work/calls render "$device" "$scene" "$check" calls || status=$?
    if cut_off $status; then
        leave_out "calls of workers: cut off by the budget of $budget s"
        return 0
    elif [ $status -ne 0 ]; then
        notes+=("calls of workers: the scene failed: \
$(head -n 2 "$work/calls.err" | tr '\n"' '  ')")
    fi
    cat >"$work/calls.cu" <<'CUDA'
#include "tessera.cuh"
extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    if (at.index == 0) printf("first\n");
    tessera_store(chunk, at, 0, float(at.index));
}
CUDA
    TESSERA_RECORD_CALLS=$work/calls limited "$tessera" compute "$work/calls.cu" --domain 1000000 \
        --reduce sum --compile-on-node --local --device "$device" --out "$work/calls.npy" \
        >"$work/compute.out" 2>"$work/compute.err" ||
        notes+=("calls of workers: the compute job failed: \
$(head -n 2 "$work/compute.err" | tr '\n"' '  ')")
    sort -u "$work"/calls/*.calls >"$out/calls.txt" 2>/dev/null
    count=$(wc -l <"$out/calls.txt")
    if [ "$count" -eq 0 ]; then
        notes+=("NOT RUN: calls of workers (this kernel cannot ask a process about them)")
        return 0
    fi
    found=$(find "$work/calls" -name '*.calls' | wc -l)
    calls="{\"workers\":$found,\"needed\":[$(kinds needed)],\"unlisted\":[$(kinds unlisted)],
        \"refused\":[$(kinds refused)]}"
    calls_line="System calls of $found workers: $count kinds, in calls.txt; unlisted:\
 $(kinds unlisted | tr -d '"'); refused: $(kinds refused | tr -d '"')."
    echo "$calls_line"
    report
}

# Times a scene. It was compared before, so the caches of the driver's compiler and of the disk are
# full.
time_s=1
measure() {
    local scene=$1 name samples rays device_s render_s start_s busy rate mrays start=$SECONDS
    name=$(basename "${scene%.*}")
    fits "$time_s" "timing of $name" || return 0
    if ! render "$device" "$scene" "$time" gpu; then
        leave_out "timing of $name: $(said 1 "$work/gpu.err")"
        return 0
    fi
    samples=$(field samples "$work/gpu.json") rays=$(field rays "$work/gpu.json")
    device_s=$(field device_s "$work/gpu.json") render_s=$(field render_s "$work/gpu.json")
    start_s=$(field start_s "$work/gpu.json")
    busy=$(number "$device_s / $render_s") rate=$(number "$samples / $render_s / 1e6")
    mrays=$(number "$rays / $device_s / 1e6")
    timings+=("{\"scene\":\"$name\",\"samples\":$samples,\"rays\":$rays,
        \"device_s\":$device_s,\"render_s\":$render_s,\"start_s\":$start_s,\"busy\":$busy,
        \"msamples_per_s\":$rate,\"mrays_per_device_s\":$mrays}")
    lines+=("| $name | $rate | $mrays | $(number "$device_s") | $(number "$render_s") \
| $busy | $(number "$start_s") |")
    echo "$name: $rate Msamples/s, $mrays Mrays/s of device time, busy $busy"
    time_s=$(longer "$time_s" $((SECONDS - start + 1)))
    report
}

. "$here/steps.sh"

# What other tools of such machines could say.
ask_others() {
    local python ncu sponza view
    python=$(command -v python3 || true)
    if [ -n "$python" ] &&
        limited "$python" -c 'import mitsuba; mitsuba.set_variant("cuda_ad_rgb")' 2>/dev/null; then
        notes+=("mitsuba cuda_ad_rgb is here: compare with benches/peers/run.sh")
    else
        notes+=("NOT RUN: mitsuba cuda_ad_rgb (not installed)")
    fi
    ncu=$(command -v ncu || true)
    sponza=$(printf '%s\n' ${names[@]+"${names[@]}"} | grep -m 1 Sponza || true)
    read -ra view <<<"$(view_of "$sponza")"
    if [ -z "$ncu" ] || [ -z "$sponza" ]; then
        notes+=("NOT RUN: ncu (not installed, or no Sponza)")
    elif fits 60 "ncu"; then
        # The sandbox forbids what ncu does, and the clocks stay as they are found.
        if TESSERA_SANDBOX=off limited "$ncu" --target-processes all --clock-control none \
            --kernel-name 'regex:^tessera_(extend|shade|shadow)' --launch-skip 15 \
            --launch-count 15 \
            --section SpeedOfLight --section LaunchStats --section Occupancy \
            --section WarpStateStats --section MemoryWorkloadAnalysis \
            "$tessera" render "$sponza" --device "$device" --size 1920x1080 --spp 64 \
            --depth 5 --env 0.6,0.7,0.8 ${view[@]+"${view[@]}"} \
            -o "$work/ncu.exr" -q >"$out/ncu.txt" 2>&1 &&
            grep -q 'Duration' "$out/ncu.txt"; then
            notes+=("ncu: see ncu.txt")
        else
            notes+=("NOT RUN: ncu failed, see ncu.txt")
        fi
    fi
    [ "$functions" != null ] ||
        notes+=("NOT RUN: functions of the kernels (left out, or no program for them)")
}

# All scenes, the smallest first; and those to time: the preferred ones, then the first of the
# others.
names=() timed=()
while read -r _ scene; do
    case $(basename "$scene") in *"${TESSERA_GPU_SCENES:-}"*) names+=("$scene") ;; esac
done < <(for place in "${places[@]}"; do
    find "$place" -maxdepth 1 \( -name '*.gltf' -o -name '*.glb' \) -printf '%s %p\n' 2>/dev/null
done | sort -n)
for wanted in $preferred ''; do
    for scene in ${names[@]+"${names[@]}"}; do
        case " ${timed[*]-} " in *" $scene "*) continue ;; esac
        case $(basename "$scene") in "$wanted"*) [ ${#timed[@]} -lt 3 ] && timed+=("$scene") ;; esac
    done
done

card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
[ -n "$card" ] || card="unknown (no nvidia-smi)"
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "device: $card; processor: ${processor:-unknown}; ${#names[@]} scenes; $budget s"
report

# What is worth most comes first.
for scene in ${timed[@]+"${timed[@]}"}; do compare "$scene"; done
if [ "${TESSERA_GPU_CALLS:-}" != none ] && [ ${#timed[@]} -gt 0 ]; then
    record_calls "${timed[0]}"
fi
if [ "$time" != none ]; then for scene in ${timed[@]+"${timed[@]}"}; do measure "$scene"; done; fi
for scene in ${names[@]+"${names[@]}"}; do
    case " ${timed[*]-} " in *" $scene "*) ;; *) compare "$scene" ;; esac
done
echo "hashes: $same equal, $different different, $refused not compared"
if [ "$inputs" != none ] && [ -x "$units" ]; then compare_functions; fi
if [ "${TESSERA_GPU_COMPUTE:-}" != none ]; then compare_jobs; fi
if [ "${TESSERA_GPU_STEPS:-}" != none ] && [ ${#names[@]} -gt 0 ]; then run_steps "${timed[0]}"; fi
ask_others

[ ${#left_out[@]} -gt 0 ] || complete=true
report
printf '%s\n' ${notes[@]+"${notes[@]}"}
if [ "$complete" = false ]; then
    echo "NOT COMPLETE: ${#left_out[@]} steps left out; TESSERA_GPU_BUDGET was $budget s"
fi
echo "report: $out/report.json, $out/report.md"
[ "$different" -eq 0 ] && [ "$same" -gt 0 ] && [ "$functions_equal" = true ] &&
    [ "$jobs_different" -eq 0 ] && [ "$steps_wrong" -eq 0 ] || exit 1
[ "$complete" = true ] || exit 3
