#!/bin/sh
# circles.sh LIST... - reports source files of one library that call each other in a circle. Each LIST is a text file
# NAME.objects with the path of one object file per line. NAME is the library's name in the report. A circle has one line
# "NAME: a.c <-> b.c". Below it, each pair of a caller and a called file has a line "    a.c uses SYMBOLS of b.c". If $NM is
# set, it is the program to call instead of nm. circles_selftest.sh plants circles.
set -u
[ $# -gt 0 ] || { echo "circles.sh: want lists of object files, got none" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
found=0
count=0
for list; do
    [ -s "$list" ] || { echo "$list: want objects, got none"; found=1; continue; }
    # shellcheck disable=SC2046 # paths of objects have no blanks: CMake replaces them
    symbols=$("${NM:-nm}" -A -P $(cat "$list")) || { echo "$list: nm cannot read its objects: build them first"; found=1; continue; }
    count=$((count + $(wc -l < "$list")))
    circles=$(echo "$symbols" | LC_ALL=C awk -v name="$(basename "$list" .objects)" -f "$here/circles.awk")
    [ -z "$circles" ] && continue
    echo "$circles"
    found=1
done
echo "circles: $# libraries, $count objects, $([ "$found" -eq 0 ] && echo "no circle" || echo "untie the circles above")"
exit "$found"
