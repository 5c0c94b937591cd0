#!/bin/sh
# Feeds COUNT damaged record sets and state images to the native core alone, twice: with every overflow and
# assertion checked, and under the address sanitizer. No Python is needed.
#
#   sh tools/fuzz_native.sh COUNT SEED
#
# Exit code 77: the address sanitizer cannot be had here; the line says why.
set -eu
cd "$(dirname "$0")/../native"
command -v cargo >/dev/null || { echo "rlmm: needs cargo. Install Rust (https://rustup.rs)" >&2; exit 77; }
export FUZZ_COUNT="$1" FUZZ_SEED="$2"

fuzz() {
    cargo test --quiet --profile fuzz --no-default-features "$@" fuzz -- --nocapture
}

fuzz

host=$(rustc -vV | sed -n 's/^host: //p')
runtime=$(rustc --print target-libdir)
if ! ls "$runtime" | grep -q '_rt\.asan\.a$'; then
    echo "rlmm: no address sanitizer for $host in $runtime; rustup's toolchains have it for Linux on x86-64 and arm64" >&2
    exit 77
fi
# A stable compiler takes the option only so. Nothing else of nightly is used.
RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address fuzz --target "$host"
