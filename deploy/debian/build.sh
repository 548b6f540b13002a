#!/usr/bin/env bash
# Builds the Debian package: the binary, its completions and manual pages (which it writes itself),
# the licences of all crates in it, then cargo-deb. Needs `cargo install --locked cargo-deb`, and
# dpkg-dev for the dependencies. Prints the package's path.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --locked --features otlp >&2
tessera=target/release/tessera
made=target/deploy
rm -rf "$made"
mkdir -p "$made/man"
cargo run --release --locked --quiet -p tessera-notices -- "$made/third-party.txt"
"$tessera" completions bash >"$made/tessera.bash"
"$tessera" completions zsh >"$made/_tessera"
"$tessera" completions fish >"$made/tessera.fish"
"$tessera" man "$made/man"
gzip -9n "$made"/man/*.1
gzip -9nc CHANGELOG.md >"$made/changelog.gz"
version=$("$tessera" --version | cut -d' ' -f2)
cat >"$made/changelog" <<CHANGES
tessera ($version-1) unstable; urgency=medium

  * See /usr/share/doc/tessera/changelog.gz.

 -- The Tessera authors <tessera@example.org>  $(git log -1 --format=%cD)
CHANGES
cargo deb --no-build --locked --quiet >&2
ls -t target/debian/tessera_*.deb | head -1
