#!/bin/sh
# lint.sh [TREE [RULE...]] - checks the rules of this project that no compiler checks. Prints one line "RULE: file:line: what"
# per violation. selftest.sh plants violations of each rule, to prove that the rule can fail.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/../..}" || exit 2
[ $# -gt 0 ] && shift

engine_code() { find engine -name '*.[ch]' | sort; }
code_of() { awk -f "$here/code.awk" "$@" /dev/null; }
why() { sed "s|\$|   <- $1|"; }

# A file of engine/ includes another folder of engine/ only if the table of engine/README.md allows that.
rule_floors() {
    [ -f engine/README.md ] || { echo "engine/README.md:0: the table of floors is missing"; return; }
    # shellcheck disable=SC2046 # file names of this tree have no blanks, here and below
    awk -f "$here/floors.awk" engine/README.md $(engine_code)
}

# In engine/, only gpu, kernel, record and dist use Vulkan. In include/, only vktrain/vulkan.h does.
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

# A .c file has at most 600 lines, a .comp file 200. A function has at most 70 lines between "{" and "}" at the start of a line.
# Tables (*.def) have no limit.
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

# A line has at most 128 columns in GLSL and in headers that GLSL includes, and 132 in Markdown. In Markdown, tables, code and
# the targets of links do not count. (rule_format checks the lines of C.)
rule_lines() {
    # shellcheck disable=SC2046
    awk 'length($0) > 128 { print FILENAME ":" FNR ": " length($0) " columns, break the line at 128" }' \
        $(find shaders include samples tests -name '*.comp' -o -name '*.glsl' -o -name '*.vert' -o -name '*.frag' \
            -o -name '*.abi.h' | sort) /dev/null
    # shellcheck disable=SC2046
    awk 'FNR == 1 { code = 0 }
         /^[ \t]*```/ { code = !code }
         code || /^[ \t]*\|/ { next }
         { text = $0; gsub(/\]\([^)]*\)/, "]", text); gsub(/https?:\/\/[^ )>]*/, "", text) }
         length(text) > 132 { print FILENAME ":" FNR ": " length(text) " columns, break the line at 132" }' \
        $(find . -name '*.md' ! -path './build*' ! -path './.drivers/*' | sed 's|^\./||' | sort) /dev/null
}

# No two headers, and no two files of GLSL, include each other, directly or through other files. (circles.sh reports circles of
# calls between source files. It needs their objects.)
rule_includes() {
    for root in engine shaders samples tests include; do
        [ -d "$root" ] || continue
        (cd "$root" && find . -name '*.h' -o -name '*.glsl' | sort | sed 's|^\./||' |
            xargs grep -HoE '^[ \t]*#[ \t]*include[ \t]*"[^"]+"' /dev/null |
            sed -E 's|^([^:]*):[^"]*"([^"]*)"$|\1 \2|' | tsort 2>&1 >/dev/null |
            awk -v root="$root" '/loop:$/ { if (circle) print circle; circle = ""; next }
                                 { sub(/^tsort: /, ""); circle = circle ? circle " <-> " $0 : root "/" $0 ":1: " $0 }
                                 END { if (circle) print circle }')
    done | why "these include each other: move what both need to a header of its own"
}

# Files have the layout of .clang-format. clang-format 14 (Debian 12) decides, because other versions differ in details.
rule_format() {
    tool=$(command -v clang-format-14 || command -v clang-format) || { echo "clang-format is not installed"; return; }
    # shellcheck disable=SC2046
    case $("$tool" --version) in
    *"version 14."*) "$tool" --dry-run -Werror $(find engine include samples tests cmake -name '*.[ch]') 2>&1 |
        grep 'error:' | awk -F: '!seen[$1]++' | why "run clang-format -i on it (first place shown)" ;;
    *) echo "note: format was not checked: it wants clang-format 14, not $("$tool" --version)" >&2 ;;
    esac
}

# No file contains a path that exists on one machine only.
rule_paths() {
    find . -type f ! -path './.git' ! -path './.git/*' ! -path './build*' ! -path './.drivers/*' ! -path './data/*' ! -path './.cache/*' \
        -exec grep -HnIE '(^|[^A-Za-z0-9_.~})-])/(work|farm|home|root|mnt|Users)/' {} +
}

# The library never ends its host's process, and never prints to stdout. Only kernel/wide.c changes the environment: it sets a
# variable by vkt_env_set, if the host asks for that.
rule_calls() {
    # shellcheck disable=SC2046
    code_of $(engine_code) |
        grep -E '(^|[^A-Za-z0-9_])((abort|_?exit|quick_exit|assert|v?printf|puts|putchar|perror|system|(un)?setenv|_?putenv(_s)?|vkt_env_set)[ \t]*\(|stdout([^A-Za-z0-9_]|$))' |
        grep -vE '^engine/kernel/wide\.c:[0-9]+:.*[^A-Za-z0-9_]vkt_env_set\(WIDTH|^engine/base/(system\.h|(posix|win32)/system\.c):' |
        why "not in the library: return a vkt_result and log"
}

# Only engine/base/posix and engine/base/win32 call the operating system, so that a port changes these folders alone. (The
# transport between processes, engine/mpi, is not a part of the library and exists on POSIX only.)
rule_system() {
    find engine -name '*.[ch]' ! -path 'engine/base/posix/*' ! -path 'engine/base/win32/*' ! -path 'engine/mpi/*' -exec \
        grep -HnE '^[ \t]*#[ \t]*(include[ \t]*<(unistd|fcntl|dirent|dlfcn|locale|poll|sched|termios|time|io|windows|sys/[a-z]+)\.h>|(el)?ifn?(def)?\>.*_WIN32)' {} + |
        why "system.h, paths.h, file.h and terminal.h of engine/base have what the engine needs of the system"
}

# shaders/kernels.def and shaders/tools.def name each shaders/*/*.comp, and nothing else. The kernels of tests and vkt-bench
# are in tools.def, so that the library does not have them.
rule_shaders() {
    entries=
    for list in kernels tools; do
        of_list=$(sed -nE 's/^VKT_KERNEL\( *[A-Z0-9_]+ *, *([a-z0-9_/]+) *,.*/\1/p' shaders/$list.def | sort -u)
        for entry in $of_list; do
            [ -f "shaders/$entry.comp" ] || echo "shaders/$list.def:0: shaders/$entry.comp does not exist"
            case $list:$entry in
            tools:test/* | tools:bench/*) ;;
            kernels:test/* | kernels:bench/*) echo "shaders/kernels.def:0: $entry belongs in tools.def" ;;
            tools:*) echo "shaders/tools.def:0: $entry belongs in kernels.def, or in shaders/test or shaders/bench" ;;
            esac
        done
        entries="$entries
$of_list"
    done
    find shaders -name '*.comp' | sort | while read -r file; do
        name=${file#shaders/}
        echo "$entries" | grep -qx "${name%.comp}" || echo "$file:1: no entry of shaders/kernels.def or tools.def compiles it"
    done
}

# Readers copy sample programs, so a sample program includes no headers of the engine or of the tools (bench, info, audit).
# The tools may include headers of the engine.
rule_samples() {
    inside=$(find engine -mindepth 1 -maxdepth 1 -type d | sed 's|.*/||' | paste -sd '|' -)
    find samples -name '*.[ch]' ! -path 'samples/bench/*' ! -path 'samples/info/*' ! -path 'samples/audit/*' -exec \
        grep -HnE "^[ \t]*#[ \t]*include[ \t]*[<\"]((\.\./)+)?(engine/|abi/|shaders/|($inside|bench|info|audit)/)" {} + |
        why "a sample includes vktrain/, common/ and its own folder"
}

# The references in documents exist: links and their headings, paths, names of the API. The lab diaries and the changelog are
# not checked, because they describe older versions.
rule_docs() {
    files=$(documents)
    [ -n "$files" ] || return
    # shellcheck disable=SC2086
    refs=$(awk -f "$here/docs.awk" $files)
    headings=$(echo "$refs" | sed -nE 's/^([^ ]*):[0-9]+ heading (.*)/\1#\2/p')
    names=$(find include engine shaders -type f -exec cat {} + 2>/dev/null | grep -oE 'vkt_[a-z0-9_]+' | sort -u)
    echo "$refs" | grep -v ' heading ' | while read -r at kind what; do
        case $kind in
        link)
            file=${what%%"#"*}
            path=$(dirname "${at%:*}")/$file
            [ -n "$file" ] || path=${at%:*}
            [ -e "$path" ] || { echo "$at: the link leads nowhere: $what"; continue; }
            [ "$what" = "$file" ] && continue
            path=$(echo "$path" | sed -E ':a; s,(^|/)\./,\1,; ta; :b; s,[^/.]+/\.\./,,; tb')
            echo "$headings" | grep -qxF "$path#${what#*"#"}" || echo "$at: $path has no heading #${what#*"#"}"
            ;;
        path) [ -e "$what" ] || echo "$at: there is no $what" ;;
        name) echo "$names" | grep -qx "$what" || echo "$at: neither the API nor the engine has $what" ;;
        esac
    done
}
documents() {
    find . -name '*.md' ! -path './build*' ! -path './.drivers/*' ! -path './data/*' ! -path './.cache/*' \
        ! -path './docs/lab/*' ! -name CHANGELOG.md | sed 's,^\./,,' | sort
}

# docs/environment.md has each variable that a program reads by a literal name, the VKT_NO_ variable of each variant, and each
# VKT_ variable that a shell script reads. (The VKT_ lists of packages in setup.sh are no variables of the environment.)
rule_environment() {
    {
        find engine samples tests -name '*.[ch]' -exec grep -hoE '(getenv|vkt_env_int)\("[A-Z0-9_]+"' {} + |
            sed -E 's/.*"(.*)"/\1/'
        find engine samples tests -name '*.[ch]' -exec grep -hoE 'vkt_env_disabled\("[a-z0-9_]+"' {} + |
            sed -E 's/.*"(.*)"/\1/; y/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ/; s/^/VKT_NO_/'
        [ ! -f engine/base/variant.h ] || sed -nE 's/^ *X\(([A-Z0-9_]+), ".*/VKT_NO_\1/p' engine/base/variant.h
        find samples tests scripts -name '*.sh' ! -path 'tests/lint/*' -exec grep -hoE '[$][{]?VKT_[A-Z0-9_]+' {} + 2>/dev/null |
            sed 's/^[${]*//' | grep -vE '^VKT_(BUILD|TEST|MPI)_PACKAGES$'
    } | sort -u | while read -r name; do
        grep -qF "\`$name\`" docs/environment.md 2>/dev/null || echo "docs/environment.md:0: $name is not explained"
    done
}

# Comments, names and strings use the words of docs/glossary.md. The rule reports each word that the glossary replaces, unless
# the word has another sense here. "turn", "place" and "row" may be right, so only a reader can judge them. The rule also reports a
# comment that begins with "Of", "What" or "Where": a comment must begin with its subject or its verb.
rule_words() {
    files=$(find engine include shaders samples tests -name '*.[ch]' -o -name '*.comp' -o -name '*.glsl' -o -name '*.def' \
        -o -name '*.vert' -o -name '*.frag' | sort)
    # shellcheck disable=SC2086
    comments=$(awk -f "$here/comments.awk" $files /dev/null)
    words='pictures?|lattices?|(re)?makers?|whoever|nobodys?|dear(er|est)?|walk(s|ed|ing|er|ers)?|told|untold|vkt_say'
    words="$words|in place of|handed round|held against|gone over|looked over"
    {
        echo "$comments"
        # shellcheck disable=SC2086
        awk -v strings=1 -f "$here/code.awk" $files /dev/null
        find samples scripts tests -name '*.sh' ! -path 'tests/lint/*' -exec grep -Hn '' {} +
        echo "$files" | sed "s|.*|&:1:&|"
    } | sed 's/[Rr]andom walks\{0,1\}//g; s/\(cross_entropy\|global_[a-z]*_pool\)_pictures//g' |
        # "Random walk" is a term of the field. The names that end in _pictures are inside golden files.
        grep -iE "^[^:]*:[0-9]+:(.*[^A-Za-z0-9])?($words)([^A-Za-z0-9]|\$)" | why "docs/glossary.md has the field's word"
    echo "$comments" | grep -E '^[^:]*:[0-9]+:>[*!]* *(Of|What|Where) ' |
        why "begin with the subject, or with the verb of what a function does"
}

[ $# -gt 0 ] || set -- floors vulkan headers sizes lines includes format paths calls system shaders docs environment samples words
violations=0
for rule; do
    found=$("rule_$rule")
    [ -z "$found" ] && continue
    echo "$found" | sed "s|^|$rule: |"
    violations=$((violations + $(echo "$found" | wc -l)))
done
echo "lint: $# rules, $violations violations"
[ "$violations" -eq 0 ]
