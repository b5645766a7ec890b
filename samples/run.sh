#!/bin/sh
# run.sh [OPTIONS of vkt-mnist] - from a fresh checkout to a network that learns: installs what is missing (Debian,
# Ubuntu), builds the sample in build/ and runs it with all options passed through. `sh samples/run.sh --help` lists them.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build
. "$root/scripts/setup.sh"

# shellcheck disable=SC2086
install_missing $VKT_BUILD_PACKAGES || exit 1

mkdir -p "$build"
if [ -f "$build/build.ninja" ] || [ -f "$build/Makefile" ]; then
    say "building (build/)"
else
    say "configuring and building (build/; a minute or two the first time)"
    quietly "$build/configure.log" cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DVKT_BUILD_TESTS=OFF || exit 1
fi
quietly "$build/build.log" cmake --build "$build" --target vkt-mnist --parallel || exit 1

exec "$build/samples/vkt-mnist" "$@"
