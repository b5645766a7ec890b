#!/bin/sh
# make.sh [PROGRAM] - runs vkt-mnist and writes two figures beside this file: training.svg for README.md, and
# history.svg for docs/samples.md. PROGRAM is the path of vkt-mnist (default: build/samples/vkt-mnist). The script needs
# python3, and MNIST in a folder where the program looks for it.
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
