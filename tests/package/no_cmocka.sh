#!/bin/sh
# no_cmocka.sh SOURCE - configures as on a machine without cmocka. The library and the samples must be targets. There must be no
# target of a test, and a message must name the missing package.
set -u
source=$(cd "$1" && pwd) || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

fail() {
    cat "$work/log"
    echo "FAILED: $1"
    exit 1
}

cmake -G Ninja -S "$source" -B "$work/build" -DCMAKE_DISABLE_FIND_PACKAGE_cmocka=ON >"$work/log" 2>&1 ||
    fail "want a build that is configured without cmocka"
grep -q '^-- cmocka not found: tests are not built (.*libcmocka-dev)$' "$work/log" || fail "want a message that names the package"
cmake --build "$work/build" --target help >"$work/targets" || fail "want a list of targets"
grep -q '^vktrain:' "$work/targets" || fail "want the target vktrain"
grep -q '^vkt-mnist:' "$work/targets" || fail "want the target vkt-mnist"
! grep -q '^tests_' "$work/targets" || fail "want no target of the tests"
