#!/bin/sh
# run.sh [OPTIONS of vkt-mnist] - from a fresh checkout to a network that learns: installs what is missing (Debian,
# Ubuntu), builds the sample in build/ and runs it with all options passed through. `sh samples/run.sh --help` lists them.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/setup.sh"
build_sample "$root" vkt-mnist || exit 1
exec "$root/build/samples/vkt-mnist" "$@"
