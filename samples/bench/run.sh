#!/bin/sh
# run.sh [OPTIONS of vkt-bench] - installs missing packages (Debian, Ubuntu), builds vkt-bench in build/ and runs it
# with all options. `sh samples/bench/run.sh --help` lists them.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/scripts/setup.sh"
build_sample "$root" vkt-bench || exit 1
exec "$build/samples/vkt-bench" "$@"
