#!/bin/sh
# Builds the native core of native/ into .venv, or leaves it when it is up to date.
#
#   sh tools/native.sh          ends with an error where it cannot be built
#   sh tools/native.sh --try    then says so in one line and ends well: rlmm works without it
#
# Up to date means: the same sources, compiler and Python as when it was built. An attempt of --try that failed is
# repeated when one of these has changed; without --try each is an attempt.
set -eu
cd "$(dirname "$0")/.."
mode=${1:-}
log=.venv/native.log
without="the native core is not built, so the engine is Python"

give_up() {
    if [ "$mode" = --try ]; then
        echo "rlmm: $without: $*"
        exit 0
    fi
    echo "rlmm: the native core is not built: $*" >&2
    exit 2
}

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' native/Cargo.toml)
command -v cargo >/dev/null || give_up "needs cargo, Rust $wanted or newer (https://rustup.rs)"
rust=$(cargo --version 2>/dev/null | cut -d ' ' -f 2)
[ -n "$rust" ] || give_up "cargo is on the path and does not start; install Rust $wanted or newer (https://rustup.rs)"
[ "$(printf '%s\n' "$wanted" "$rust" | sort -V | head -n 1)" = "$wanted" ] ||
    give_up "needs Rust $wanted or newer, found $rust (rustup update)"
command -v cc >/dev/null || give_up "needs a C compiler for its linker (Debian, Ubuntu: apt-get install gcc libc6-dev)"

# Not the lock file, the target folder and the rest that a build leaves.
sources=$(find native -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.txt' -o -name '*.cfg' -o -name '*.in' \) \
    ! -path 'native/target/*' ! -path 'native/build/*' ! -path '*.egg-info/*' | LC_ALL=C sort)
stamp="$(.venv/bin/python -c 'import platform; print(platform.python_version())') $rust $(
    # shellcheck disable=SC2086 - names without spaces
    cat $sources | cksum
)"
if [ "$(cat .venv/.native-stamp 2>/dev/null)" = "$stamp" ]; then
    exit 0
fi
if [ "$mode" = --try ] && [ "$(cat .venv/.native-failed 2>/dev/null)" = "$stamp" ]; then
    give_up "the last attempt failed, see $log; \`make native\` repeats it"
fi

echo "rlmm: building the native core with Rust $rust into .venv: about a minute"
rm -f .venv/.native-stamp .venv/.native-failed
if ! .venv/bin/python -m pip install --disable-pip-version-check --no-deps --no-index --no-build-isolation \
    --force-reinstall ./native >"$log" 2>&1; then
    echo "$stamp" >.venv/.native-failed
    [ "$mode" = --try ] || cat "$log" >&2
    give_up "the build failed, without a network for instance, from which cargo fetches crates; see $log"
fi
echo "$stamp" >.venv/.native-stamp
