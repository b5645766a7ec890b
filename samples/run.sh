#!/bin/sh
# run.sh [SAMPLE] [OPTIONS] - installs missing packages (Debian, Ubuntu), builds the sample in build/ and runs it with
# OPTIONS. If the sample has options, --help lists all of them. SAMPLE names the file samples/SAMPLE.c or
# samples/SAMPLE/main.c. The default is mnist, a network that learns to read digits. With VKT_BUILD_DIR=DIR in the
# environment, the script builds in DIR/build instead.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/setup.sh"
case ${1-} in
"" | -*) sample=mnist ;;
*)
    sample=$1
    shift
    ;;
esac
if [ ! -f "$root/samples/$sample.c" ] && [ ! -f "$root/samples/$sample/main.c" ]; then
    message "there is no sample '$sample', but:" \
        "$(cd "$root/samples" && ls ./*.c ./*/main.c | sed 's,^./,,; s,/main.c$,,; s,.c$,,' | tr '\n' ' ')"
    exit 2
fi
build_sample "$root" "vkt-$sample" || exit 1
exec "$build/samples/vkt-$sample" "$@"
