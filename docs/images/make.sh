#!/bin/sh
# make.sh [PROGRAM] - makes the figures of README.md and docs/samples.md anew by a real run: training.svg and history.svg, beside this file.
# PROGRAM: build/samples/vkt-mnist. Needs MNIST where the program finds it, and python3.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
text=$(mktemp)
trap 'rm -f "$text"' EXIT
{
    echo "\$ sh samples/run.sh"
    "${1:-build/samples/vkt-mnist}" --plot "$here/history.svg"
} >"$text"
python3 "$here/terminal.py" <"$text" >"$here/training.svg"
