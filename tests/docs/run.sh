#!/bin/sh
# run.sh SOURCE DOXYFILE - checks that Doxygen makes the API reference without a warning, and that the reference has every
# public function and a text for every symbol. Then plants faults in a copy of the headers, and checks that each fault is
# reported.
set -u
source=$(cd "$1" && pwd)
doxyfile=$2
first_page=$source/docs/api/mainpage.dox
command -v doxygen >/dev/null || {
    echo "SKIPPED: the API reference: doxygen is not installed"
    echo "[  SKIPPED ] 3 test(s)"
    exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

verdict() { # verdict NAME FAULTS: counts a success if FAULTS is empty, otherwise a failure
    if [ -z "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        echo "$2"
    fi
}

faults_of() { # faults_of INCLUDE: makes the reference of the headers in INCLUDE, and prints its faults
    rm -rf "$work/docs"
    printf '%s\n' "@INCLUDE = \"$doxyfile\"" "OUTPUT_DIRECTORY = \"$work/docs\"" "INPUT = \"$1/vktrain\" \"$first_page\"" \
        "STRIP_FROM_PATH = \"$1\"" |
        doxygen - 2>&1
    awk -f "$source/tests/docs/check.awk" "$1"/vktrain/*.h "$work"/docs/xml/*.xml
}

verdict "the reference is whole" "$(faults_of "$source/include")"
verdict "the first page has every header" "$(for header in "$source"/include/vktrain/*.h; do
    name=$(basename "$header" .h) # vktrain.h declares nothing itself
    [ "$name" = vktrain ] || grep -q "@ref $name " "$first_page" || echo "$first_page lacks $name"
done)"

cp -r "$source/include" "$work/include"
cat >"$work/include/vktrain/planted.h" <<'END'
/* vktrain/planted.h - faults. */
#ifndef VKTRAIN_PLANTED_H
#define VKTRAIN_PLANTED_H
#ifdef __cplusplus
extern "C" {
#endif

VKT_API void vkt_bare(void);

/* Its values. */
typedef enum vkt_planted { VKT_PLANTED_VALUE } vkt_planted;

typedef struct vkt_bare_struct {
    int bare_member;
} vkt_bare_struct;

/* As vkt_no_such_function. */
VKT_API void vkt_stale(void);
#if 0
VKT_API void vkt_hidden(void);
#endif

/* One text for both. */
VKT_API void vkt_first(void);
VKT_API void vkt_second(void); /* and its own */

#ifdef __cplusplus
}
#endif
#endif
END
found=$(faults_of "$work/include")
for fault in "vkt_bare(void) .* is not documented" "vkt_bare (function) has no text" \
    "VKT_PLANTED_VALUE (enumvalue) has no text" "vkt_bare_struct is not documented" \
    "bare_member (variable) .* is not documented" "request to 'vkt_no_such_function' could not be resolved" \
    "vkt_hidden of .* is not in the reference"; do
    verdict "planted: $fault" "$(echo "$found" | grep -q "$fault" || echo "$found")"
done
verdict "more than was planted" "$(echo "$found" | grep -vE 'bare|VKT_PLANTED_VALUE|vkt_no_such_function|vkt_hidden|^$')"

echo "[  PASSED  ] $passed test(s)."
[ "$failed" -eq 0 ] || echo "[  FAILED  ] $failed test(s), listed above"
[ "$failed" -eq 0 ]
