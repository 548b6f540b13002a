# What tests/gpu/run.sh asks of a device beside scenes, functions and compute jobs; sourced by it.
# Each step ends with `found NAME TRUE|FALSE WHAT`, which the report lists.

steps_wrong=0 steps=() step_lines=()

# found NAME TRUE|FALSE WHAT: notes what a step gave.
found() {
    [ "$2" = true ] || steps_wrong=$((steps_wrong + 1))
    steps+=("{\"step\":\"$1\",\"right\":$2,\"said\":$(quoted "$3")}")
    step_lines+=("| $1 | $2 | $3 |")
    [ "$2" = true ] && echo "$1: $3" || echo "WRONG: $1: $3"
    report
}

# same_hash STEP FIRST SECOND [WHAT]: whether two renders, by name, gave one hash.
same_hash() {
    local first second
    first=$(field pixels_sha256 "$work/$2.json") second=$(field pixels_sha256 "$work/$3.json")
    if [ -n "$first" ] && [ "$first" = "$second" ]; then
        found "$1" true "${4:-same hash}"
    else
        found "$1" false "${first:-nothing} and ${second:-$(said 1 "$work/$3.err")}"
    fi
}

# A frame whose pixels stop at a measure of noise is the CPU's.
step_noise() {
    render cpu "$1" "${check%%:*}:128" noise-cpu --noise 0.05
    render "$device" "$1" "${check%%:*}:128" noise-gpu --noise 0.05
    same_hash "frame by noise" noise-cpu noise-gpu
}

# Two programs on one device at once.
step_two_contexts() {
    render "$device" "$1" "$check" first & local other=$!
    render "$device" "$1" "$check" second
    wait "$other"
    same_hash "two programs at once" first second
}

# workers_of PROCESS: the processes below it that serve devices.
workers_of() {
    local child
    for child in $(pgrep -P "$1"); do
        if grep -qz '^device-worker$' "/proc/$child/cmdline" 2>/dev/null; then
            echo "$child"
        else
            workers_of "$child"
        fi
    done
}

# The device's processes are killed in the middle of a frame: it becomes the same.
step_killed_worker() {
    local workers killed=0 frame
    render "$device" "$1" "$check" whole
    frame=$(field device_s "$work/whole.json")
    # About two seconds on the device, so that it is met at work.
    local longer=${check%%:*}:$(awk "BEGIN { n = ${check##*:} * 2 / (${frame:-1} + 0.0001);
        print int(n > 65536 ? 65536 : n < 4 ? 4 : n) }")
    render "$device" "$1" "$longer" undisturbed
    render "$device" "$1" "$longer" killed & local other=$!
    for _ in $(seq 100); do
        sleep 0.1
        workers=$(workers_of "$other")
        # shellcheck disable=SC2086  # one word for each
        [ -n "$workers" ] && sleep 1 && kill -9 $workers 2>/dev/null && killed=1 && break
        kill -0 "$other" 2>/dev/null || break
    done
    wait "$other"
    if [ "$killed" = 1 ]; then
        same_hash "killed worker" undisturbed killed
    else
        found "killed worker" false "it ended before it could be killed"
    fi
}

# How long a device takes to start with an empty cache of the driver's compiler, and a full one.
step_start() {
    local cold warm cache=$work/compiler-cache
    CUDA_CACHE_PATH=$cache render "$device" "$1" 64x64:1 cold
    CUDA_CACHE_PATH=$cache render "$device" "$1" 64x64:1 warm
    cold=$(field start_s "$work/cold.json") warm=$(field start_s "$work/warm.json")
    same_hash "start" cold warm "${cold:-?} s with an empty cache, ${warm:-?} s with a full one"
}

# A farm of one node on the device renders and finishes denoised frames. The node is killed once in
# the middle, and started again.
step_farm() {
    local home=$work/farm job coordinator tries node view
    local -x TESSERA_IDENTITY=$home/data/admin XDG_CONFIG_HOME=$home/config
    local -x TESSERA_COORDINATOR=127.0.0.1:$((20000 + RANDOM))
    mkdir -p "$home"
    # Each frame has noise of its own.
    render cpu "$1" "$check" "farm-cpu.####" --denoise --frames 0-7
    "$tessera" coordinator --data "$home/data" --listen "$TESSERA_COORDINATOR" \
        2>"$home/coordinator.log" & coordinator=$!
    for tries in $(seq 100); do
        "$tessera" jobs >"$home/jobs" 2>&1 && break
        sleep 0.1
    done
    "$tessera" token create --role node >"$home/token" 2>"$home/errors"
    start_node() {
        "$tessera" node --name gpu --token-file "$home/token" --data "$home/node" \
            --device "$device" 2>>"$home/node.log" & node=$!
    }
    start_node
    read -ra view <<<"$(view_of "$1")"
    job=$("$tessera" submit "$1" --size "${check%%:*}" --spp "${check##*:}" --depth 5 \
        --env 0.6,0.7,0.8 ${view[@]+"${view[@]}"} --denoise --frames 0-7 2>>"$home/errors")
    for tries in $(seq 600); do
        "$tessera" jobs 2>&1 | grep -q ' [1-7]/8' && break
        sleep 0.1
    done
    kill -9 "$node" && wait "$node" 2>/dev/null
    start_node
    limited "$tessera" wait "$job" >"$home/wait" 2>>"$home/errors"
    limited "$tessera" fetch "$job" -o "$home/out" --json >"$work/farm.json" 2>>"$home/errors"
    kill "$node" "$coordinator" && wait "$node" "$coordinator" 2>/dev/null
    hashes() { grep -o '"pixels_sha256":"[0-9a-f]*"' "$1" | sort -u; }
    if [ "$(hashes "$work/farm.json" | wc -l)" = 8 ] &&
        [ "$(hashes "$work/farm.json")" = "$(hashes "$work/farm-cpu.####.json")" ]; then
        found "farm" true "8 denoised frames with the hashes of the CPU, the node killed once"
    else
        found "farm" false "$(cat "$home/errors" "$work/farm.json" | head -c 300)"
    fi
}

# A frame that the device denoises, and one that the processor does. Without timings it is small,
# and the device is only tried: a simulated one would take minutes.
step_denoise() {
    local size=${TESSERA_GPU_TIME:-1920x1080} by=gpu told="frames are denoised on this device"
    [ "$size" = none ] && size=72x58 by=auto told="denoise"
    TESSERA_LOG=info TESSERA_DENOISE=$by \
        render "$device" "$1" "${size%%:*}:4" denoise-device --denoise
    TESSERA_DENOISE=cpu render "$device" "$1" "${size%%:*}:4" denoise-cpu --denoise
    cost() {
        echo "$(field cpu_s "$work/$1.json") CPU s in $(field total_s "$work/$1.json") s"
    }
    if grep -q "$told" "$work/denoise-device.err"; then
        same_hash denoise denoise-device denoise-cpu \
            "$(cost denoise-device) with the device, $(cost denoise-cpu) without it"
    else
        found denoise false "the device was not asked: $(said 1 "$work/denoise-device.err")"
    fi
}

# Memory errors and races that NVIDIA's tool sees.
step_sanitizer() {
    local tool said status=0
    tool=$(command -v compute-sanitizer || true)
    if [ -z "$tool" ]; then
        notes+=("NOT RUN: compute-sanitizer (not installed)")
        return
    fi
    TESSERA_SANDBOX=off limited "$tool" --target-processes all "$tessera" render "$1" \
        --device "$device" --size 64x64 --spp 4 --env 0.6,0.7,0.8 -o "$work/sanitized.exr" -q \
        >"$work/sanitizer.out" 2>&1 || status=$?
    said=$(grep -h 'ERROR SUMMARY' "$work/sanitizer.out" | sort | uniq -c | tr -s ' =\n' ' ')
    if [ $status -eq 0 ] && [ -n "$said" ] && ! grep -q 'SUMMARY: [1-9]' "$work/sanitizer.out"; then
        found compute-sanitizer true "$said"
    else
        found compute-sanitizer false "status $status: ${said:-no summary}"
    fi
}

# run_steps SCENE: all of them.
run_steps() {
    local step
    for step in noise denoise two_contexts killed_worker start farm sanitizer; do
        case $step in *"${TESSERA_GPU_STEPS:-}"*) fits 12 "step $step" && "step_$step" "$1" ;; esac
    done
}
