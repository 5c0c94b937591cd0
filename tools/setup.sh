#!/bin/sh
# Makes .venv from constraints/dev.txt, or leaves it when it is up to date; then the native core, where it can be built.
#
#   sh tools/setup.sh PREREQUISITE...      each one of: python java
#
# PYTHON names the interpreter; without it an existing .venv keeps its own, and a new one gets the newest
# tested Python on the path. Up to date means: the same constraints, project file and Python as when it was made.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "rlmm: $*" >&2
    exit 2
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-.venv/bin/python python3.13 python3.12 python3.11 python3}; do
        if is_new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

need_python() {
    python=$(find_python)
    [ -n "$python" ] || fail "needs Python 3.11 or newer, found ${PYTHON:-$(python3 --version 2>&1 || echo none)}." \
        "Install it (Debian, Ubuntu: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3.12"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$("$python" --version) has no venv module. Install it (Debian, Ubuntu: apt-get install python3-venv)"
}

need_java() {
    java -version >/dev/null 2>&1 ||
        fail "needs a Java runtime, and 'java' is not on the path. Install a JDK (Debian, Ubuntu: apt-get install default-jdk-headless)"
}

for prerequisite in "$@"; do
    "need_$prerequisite"
done

version=$("$python" -c 'import platform; print(platform.python_version())')
stamp="$version $(cat constraints/dev.txt pyproject.toml | "$python" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')"
if [ "$(cat .venv/.stamp 2>/dev/null)" = "$stamp" ]; then
    exec sh tools/native.sh --try
fi

packages=$(grep -c '^[a-z].*==' constraints/dev.txt)
echo "rlmm: installing $packages packages for Python $version into .venv: about 1.4 GB on disk, one to three minutes"
rm -f .venv/.stamp
if [ "$(.venv/bin/python -c 'import platform; print(platform.python_version())' 2>/dev/null)" != "$version" ]; then
    "$python" -m venv --clear .venv
fi
# Two steps, because hashes are demanded of everything a command installs, and a folder has none.
# The warning kept quiet is the backend telling every editable install that it is one.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints/dev.txt ||
    fail "could not install constraints/dev.txt: see pip's words above"
PYTHONWARNINGS=ignore .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . ||
    fail "could not install the project itself: see pip's words above"
echo "$stamp" >.venv/.stamp
exec sh tools/native.sh --try
