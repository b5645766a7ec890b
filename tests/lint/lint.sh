#!/bin/sh
# lint.sh [TREE [RULE...]] - rules of the house that no compiler checks. One line "RULE: file:line: what" per violation.
# selftest.sh plants a violation of each, so that a rule which cannot fail is found.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/../..}" || exit 2
[ $# -gt 0 ] && shift

engine_code() { find engine -name '*.[ch]' | sort; }
code_of() { awk -f "$here/code.awk" "$@" /dev/null; }
why() { sed "s|\$|   <- $1|"; }

# A file of engine/ includes only its own folder and those it may know (engine/README.md).
rule_floors() {
    [ -f engine/README.md ] || { echo "engine/README.md:0: the table of floors is missing"; return; }
    # shellcheck disable=SC2046 # file names of this tree have no blanks, here and below
    awk -f "$here/floors.awk" engine/README.md $(engine_code)
}

# Vulkan is spoken on few floors; a program that does not adopt a device needs no Vulkan header.
rule_vulkan() {
    files=$(find engine include -name '*.[ch]' | grep -vE '^engine/(gpu|kernel|record|dist)/|^include/vktrain/vulkan\.h$')
    # shellcheck disable=SC2086
    code_of $files | grep -E '(^|[^A-Za-z0-9_])(PFN_vk|Vk[A-Z]|vk[A-Z][A-Za-z0-9_]*[ \t]*\()' |
        why "Vulkan names belong in gpu, kernel, record, dist and vktrain/vulkan.h"
    # shellcheck disable=SC2086
    grep -nE '#[ \t]*include[ \t]*[<"](vulkan/|vktrain/vulkan\.h)' $files /dev/null
}

# Every public header compiles alone, as C and as C++.
rule_headers() {
    for header in include/vktrain/*.h; do
        for language in "cc c c11" "clang c c11" "c++ c++ c++17" "clang++ c++ c++17"; do
            # shellcheck disable=SC2086
            set -- $language
            command -v "$1" >/dev/null || continue
            printf '#include "%s"\n' "${header#include/}" |
                "$1" -x "$2" -std="$3" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude - 2>&1 |
                grep -m 1 'error:' | why "$1 -std=$3"
        done
    done
}

# Files of .c up to 600 lines, .comp 200, functions 70 ("{" to "}" at the start of a line); tables (*.def) are exempt.
rule_sizes() {
    # shellcheck disable=SC2046
    awk 'function end() { if (lines > max) print file ":1: " lines " lines, split it at " max }
         FNR == 1 { end(); file = FILENAME; max = file ~ /\.comp$/ ? 200 : 600; start = 0 }
         { lines = FNR }
         /^\{/ { start = FNR }
         /^\}/ { if (start && FNR - start - 1 > 70) print FILENAME ":" start ": a function of " FNR - start - 1 " lines, split it at 70"
                 start = 0 }
         END { end() }' $(find engine samples tests cmake shaders -name '*.c' -o -name '*.comp' | sort) /dev/null
}

# The layout of .clang-format; clang-format 14 (Debian 12) decides, other versions differ in details.
rule_format() {
    tool=$(command -v clang-format-14 || command -v clang-format) || { echo "clang-format is not installed"; return; }
    # shellcheck disable=SC2046
    case $("$tool" --version) in
    *"version 14."*) "$tool" --dry-run -Werror $(find engine include samples tests cmake -name '*.[ch]') 2>&1 |
        grep 'error:' | awk -F: '!seen[$1]++' | why "run clang-format -i on it (first place shown)" ;;
    *) echo "note: format was not checked: it wants clang-format 14, not $("$tool" --version)" >&2 ;;
    esac
}

# No path of one machine.
rule_paths() {
    find . -type f ! -path './.git' ! -path './.git/*' ! -path './build*' ! -path './.drivers/*' ! -path './data/*' ! -path './.cache/*' \
        -exec grep -HnIE '(^|[^A-Za-z0-9_.~})-])/(work|farm|home|root|mnt|Users)/' {} +
}

# The library never takes its host down, prints to stdout or changes the environment (but where a host asks for that:
# kernel/wide.c).
rule_calls() {
    # shellcheck disable=SC2046
    code_of $(engine_code) |
        grep -E '(^|[^A-Za-z0-9_])((abort|_?exit|quick_exit|assert|v?printf|puts|putchar|perror|system|(un)?setenv|putenv)[ \t]*\(|stdout([^A-Za-z0-9_]|$))' |
        grep -vE '^engine/kernel/wide\.c:[0-9]+:.*[^A-Za-z0-9_](un)?setenv\(WIDTH' |
        why "not in the library: return a vkt_result and log"
}

# shaders/kernels.def and shaders/tools.def name each shaders/*/*.comp, and nothing else. The kernels of tests and vkt-bench
# are in tools.def, so that the library does not have them.
rule_shaders() {
    rows=
    for list in kernels tools; do
        of_list=$(sed -nE 's/^VKT_KERNEL\( *[A-Z0-9_]+ *, *([a-z0-9_/]+) *,.*/\1/p' shaders/$list.def | sort -u)
        for row in $of_list; do
            [ -f "shaders/$row.comp" ] || echo "shaders/$list.def:0: shaders/$row.comp does not exist"
            case $list:$row in
            tools:test/* | tools:bench/*) ;;
            kernels:test/* | kernels:bench/*) echo "shaders/kernels.def:0: $row belongs in tools.def" ;;
            tools:*) echo "shaders/tools.def:0: $row belongs in kernels.def, or in shaders/test or shaders/bench" ;;
            esac
        done
        rows="$rows
$of_list"
    done
    find shaders -name '*.comp' | sort | while read -r file; do
        name=${file#shaders/}
        echo "$rows" | grep -qx "${name%.comp}" || echo "$file:1: no row of shaders/kernels.def or tools.def compiles it"
    done
}

# Samples are for readers who copy them: they include public headers, samples/common and their own folder. The tools (bench,
# info, audit) look into the engine.
rule_samples() {
    inside=$(find engine samples -mindepth 1 -maxdepth 1 -type d ! -path samples/common ! -path samples/view |
        sed 's|.*/||' | paste -sd '|' -)
    find samples/*.c samples/common samples/view -name '*.[ch]' -exec \
        grep -HnE "^[ \t]*#[ \t]*include[ \t]*[<\"]((\.\./)+)?(engine/|abi/|shaders/|($inside)/)" {} + |
        why "a sample includes vktrain/, common/ and its own folder"
}

[ $# -gt 0 ] || set -- floors vulkan headers sizes format paths calls shaders samples
violations=0
for rule; do
    found=$("rule_$rule")
    [ -z "$found" ] && continue
    echo "$found" | sed "s|^|$rule: |"
    violations=$((violations + $(echo "$found" | wc -l)))
done
echo "lint: $# rules, $violations violations"
[ "$violations" -eq 0 ]
