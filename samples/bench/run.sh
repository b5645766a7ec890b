#!/bin/sh
# run.sh [OPTIONS of vkt-bench] - installs missing packages (Debian, Ubuntu), builds vkt-bench in build/ and runs
# vkt-bench with OPTIONS. `sh samples/bench/run.sh --help` lists the options. With VKT_BUILD_DIR=DIR in the environment,
# the script builds in DIR/build instead.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/scripts/setup.sh"
build_sample "$root" vkt-bench || exit 1
exec "$build/samples/vkt-bench" "$@"
