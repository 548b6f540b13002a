#!/usr/bin/env bash
# Installs the Debian package in a fresh Debian, starts the coordinator and a node as their units
# say, and renders a frame by the documented commands. Prints figures; fails on the first thing that
# is not as documented.
#
#   deploy/debian/test.sh [PACKAGE.deb] [ROOT]
#
# Needs root, debootstrap and python3. ROOT (default target/debian-root) is a bare Debian, made
# where it is absent; a copy of it is used. The nearest to `systemctl start` where no systemd runs:
# the unit's own ExecStart, Environment, credential, state folder and notify socket, as an
# unprivileged user without capabilities.
set -euo pipefail
cd "$(dirname "$0")/../.."
package=$(realpath "${1:-$(deploy/debian/build.sh)}")
root=${2:-target/debian-root}
suite=bookworm
command -v debootstrap >/dev/null || { echo "NOT RUN: debootstrap is not installed"; exit 1; }
test "$(id -u)" = 0 || { echo "NOT RUN: only root may make a Debian and enter it"; exit 1; }

if [ ! -e "$root/usr/bin/dpkg" ]; then
    echo "making a bare $suite in $root"
    debootstrap --variant=minbase "$suite" "$root" >"$root.log" 2>&1 || {
        tail -5 "$root.log"
        exit 1
    }
fi
fresh=$(mktemp -d)
started=()
finish() {
    for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    for place in proc dev; do mountpoint -q "$fresh/$place" && umount -l "$fresh/$place"; done
    rm -rf --one-file-system "$fresh"
}
trap finish EXIT
cp -a "$root/." "$fresh"
mount -t proc proc "$fresh/proc"
mount --bind /dev "$fresh/dev"

seconds() { python3 -c 'import time; print(time.monotonic())'; }
since() { python3 -c "print(f'{$(seconds) - $1:.2f}')"; }
enter() {
    local path=/usr/sbin:/usr/bin:/sbin:/bin
    chroot "$fresh" /usr/bin/env -i PATH=$path HOME=/root LC_ALL=C.UTF-8 "$@"
}

# One setting of a unit, specifiers filled in as systemd would.
setting() {
    sed -n "s/^$2=//p" "$fresh/usr/lib/systemd/system/$1.service" |
        sed "s#%S#/var/lib#g;s#%C#/var/cache#g;s#%d#/run/credentials/$1.service#g"
}

# Starts a unit's ExecStart, and waits until it says READY=1 to its notify socket.
start() {
    local unit=$1 user=$2 state=$3 begun credentials
    credentials=$fresh/run/credentials/$unit.service
    begun=$(seconds)
    install -d -m 0700 -o "$user" -g "$user" "$fresh/var/lib/$state"
    for cache in $(setting "$unit" CacheDirectory); do
        install -d -m 0755 -o "$user" -g "$user" "$fresh/var/cache/$cache"
    done
    for credential in $(setting "$unit" LoadCredential); do
        install -d -m 0500 -o "$user" -g "$user" "$credentials"
        install -m 0400 -o "$user" -g "$user" \
            "$fresh${credential#*:}" "$credentials/${credential%%:*}"
    done
    python3 - "$fresh/run/$unit.notify" "$user" >"$fresh/run/$unit.heard" <<'PYTHON' &
import os, socket, sys
path, user = sys.argv[1], int(sys.argv[2])
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind(path)
os.chown(path, user, user)
while True:
    print(heard.recv(4096).decode(), flush=True)
PYTHON
    started+=($!)
    disown
    while [ ! -S "$fresh/run/$unit.notify" ]; do sleep 0.05; done
    local environment command
    mapfile -t environment < <(setting "$unit" Environment)
    read -ra command < <(setting "$unit" ExecStart)
    chroot "$fresh" /usr/bin/setpriv --reuid "$user" --regid "$user" --clear-groups \
        --no-new-privs --bounding-set=-all --inh-caps=-all \
        /usr/bin/env -i PATH=/usr/bin:/bin "${environment[@]}" \
        "NOTIFY_SOCKET=/run/$unit.notify" WATCHDOG_USEC=60000000 \
        "${command[@]}" 2>"$fresh/run/$unit.log" &
    started+=($!)
    for _ in $(seq 600); do
        if grep -q '^READY=1' "$fresh/run/$unit.heard"; then
            echo "$unit: ready after $(since "$begun") s"
            return
        fi
        kill -0 "$!" 2>/dev/null || break
        sleep 0.1
    done
    echo "$unit is not ready"; cat "$fresh/run/$unit.log"; exit 1
}

echo "package: $(basename "$package"), $(stat -c %s "$package") bytes"
begun=$(seconds)
cp "$package" "$fresh/root/tessera.deb"
enter DEBIAN_FRONTEND=noninteractive dpkg -i /root/tessera.deb >"$fresh/root/dpkg.log" 2>&1 || {
    cat "$fresh/root/dpkg.log"
    exit 1
}
size=$(enter dpkg-query -W -f '${Installed-Size}' tessera)
depends=$(enter dpkg-query -W -f '${Depends}' tessera)
echo "installed after $(since "$begun") s, $size KiB, depends on: $depends"
test "$(stat -c %a "$fresh/etc/tessera/node.token")" = 600
test -z "$(enter pgrep tessera 2>/dev/null || true)"

doctor=(tessera doctor --device cpu --data /var/lib/tessera-node --listen 0.0.0.0:7420)
enter "${doctor[@]}" >"$fresh/root/doctor" || {
    cat "$fresh/root/doctor"
    exit 1
}
begun_farm=$(seconds)
start tessera-coordinator 61184 tessera
# As documented, but for sudo.
(umask 077
    enter tessera token create --role node --identity /var/lib/tessera/admin \
        >"$fresh/root/node.token")
enter install -m 600 /root/node.token /etc/tessera/node.token
start tessera-node 61185 tessera-node
grep -h '^STATUS' "$fresh"/run/*.heard | tail -2

cp scenes/library/cornell-box.gltf "$fresh/root/"
farm=(env TESSERA_IDENTITY=/var/lib/tessera/admin)
picture=(--size 256x256 --spp 32)
job=$(enter "${farm[@]}" tessera submit /root/cornell-box.gltf "${picture[@]}" --format exr,png)
enter "${farm[@]}" tessera wait "$job"
enter "${farm[@]}" tessera fetch "$job" -o /root/frames
echo "first frame $(since "$begun_farm") s after the coordinator's start," \
    "$(since "$begun") s after the install began"
enter tessera render /root/cornell-box.gltf "${picture[@]}" -q -o /root/alone.exr
frame=$(cd "$fresh/root/frames" && ls ./*.exr)
enter tessera diff "/root/frames/${frame#./}" /root/alone.exr

# SIGTERM drains the node and ends the coordinator, both with success.
for unit in node coordinator; do
    pid=${started[-1]}
    kill -TERM "$pid"
    wait "$pid" || {
        echo "tessera-$unit ended with $?"
        cat "$fresh/run/tessera-$unit.log"
        exit 1
    }
    grep -q '^STOPPING=1' "$fresh/run/tessera-$unit.heard"
    # The service, then its listener.
    unset 'started[-1]'
    kill -KILL "${started[-1]}"; unset 'started[-1]'
done
enter dpkg --purge tessera >/dev/null 2>&1
test ! -e "$fresh/etc/tessera" && test ! -e "$fresh/usr/bin/tessera"
echo "passed: installed, served, rendered the same bits as one process, ended, purged"
