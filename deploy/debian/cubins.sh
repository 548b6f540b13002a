#!/usr/bin/env bash
# Builds the Debian package tessera-cubins: the machine code of the kernels for GPUs of compute
# capability 7.5 to 12.0, made of the same PTX as the program has. Nodes with it do not wait for
# their driver's compiler. Prints the package's path.
#
#   PTXAS=/path/to/ptxas deploy/debian/cubins.sh
#
# ptxas is a part of CUDA; 12.9 makes code for every driver from 525 on
# (`pip install nvidia-cuda-nvcc-cu12==12.9.86`). Needs dpkg-deb.
set -euo pipefail
cd "$(dirname "$0")/../.."
ptxas=${PTXAS:-$(command -v ptxas || true)}
[ -n "$ptxas" ] || { echo "ptxas is not there: set PTXAS to its path" >&2; exit 1; }
made=target/cubins
rm -rf "$made"
mkdir -p "$made/DEBIAN" "$made/usr/share/doc/tessera-cubins"
cargo run --release --locked --quiet -p tessera-kernels --example make_cubins -- \
    "$ptxas" "$made/usr/lib/tessera/cubins" >&2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
cp deploy/debian/licences.txt "$made/usr/share/doc/tessera-cubins/copyright"
cat >"$made/DEBIAN/control" <<CONTROL
Package: tessera-cubins
Version: $version-1
Architecture: all
Maintainer: The Tessera authors <tessera@example.org>
Depends: tessera (= $version-1)
Section: graphics
Priority: optional
Description: machine code of Tessera's kernels for NVIDIA GPUs
 Made of the PTX that tessera has, so that a node need not wait ten seconds
 or more for its driver's compiler. A node takes it if it gives the known
 answers, and has its driver compile the kernels otherwise.
CONTROL
chmod -R u=rwX,go=rX "$made"
mkdir -p target/debian
dpkg-deb --build --root-owner-group "$made" "target/debian/tessera-cubins_$version-1_all.deb" >&2
echo "target/debian/tessera-cubins_$version-1_all.deb"
