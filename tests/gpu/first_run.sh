#!/bin/sh
# first_run.sh [--small] BUILD [DEVICE] - runs all that a first run on a new GPU should measure: the tests of the folders
# ops, record and gpu, the audit of all ops, vkt-bench with large sizes, and PyTorch on its default GPU, if it finds one.
#
#   sh tests/gpu/first_run.sh build            # the device that programs choose by themselves; an hour
#   sh tests/gpu/first_run.sh build 1          # device 1 of vkt-info
#   sh tests/gpu/first_run.sh --small build    # a minute, to test this script
#
# Writes first-run.tar.gz with all results, and first-run.md with a table for docs/performance.md, to the current folder. After
# a part that fails, the script goes on. The last line, "N passed, N failed, N skipped", counts the parts.
set -u
small=
if [ "${1-}" = --small ]; then
    small=yes
    shift
fi
build=$(cd "${1:?usage: first_run.sh [--small] BUILD [DEVICE]}" && pwd) || exit 2
here=$(cd "$(dirname "$0")" && pwd)
[ -z "${2-}" ] || export VKT_DEVICE="$2"
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
all=$out/first-run
mkdir "$all"
passed=0
failed=0
skips=0

# Runs a part: part NAME COMMAND... Its output is in NAME.txt.
part() {
    name=$1
    shift
    echo "first run: $name"
    if "$@" >"$all/$name.txt" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "first run: $name failed; its last lines:"
        tail -n 5 "$all/$name.txt"
    fi
}

skip() {
    echo "SKIPPED: $1"
    skips=$((skips + 1))
}

tests='ops|record|gpu' sizes=large only='.' ops='.' seeds=8 ms=100
[ -z "$small" ] || tests='^unit$' sizes=small only='^relu ' ops='^relu$' seeds=1 ms=1
{
    date -u
    uname -srm
    vulkaninfo --summary 2>/dev/null
} >"$all/system.txt"
part info "$build/samples/vkt-info"
part tests ctest --test-dir "$build" --output-on-failure -L "$tests"
part audit "$build/samples/vkt-audit" --all --filter "$ops" --seeds "$seeds" --json "$all/audit.json"
part bench "$build/samples/vkt-bench" --sizes "$sizes" --filter "$only" --min-time "$ms" --json "$all/bench.json"
if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then # true with ROCm, too
    part torch python3 "$here/../bench/compare_torch.py" --vkt "$build/samples/vkt-bench" --device cuda
else
    skip "PyTorch on this GPU: it is not installed, or it finds no GPU"
fi
part table python3 "$here/first_run/table.py" "$all/bench.json" "$all/audit.json"
cp "$all/table.txt" first-run.md
tar -czf first-run.tar.gz -C "$out" first-run && echo "first run: first-run.md, first-run.tar.gz"
echo "$passed passed, $failed failed, $skips skipped"
[ "$failed" -eq 0 ]
