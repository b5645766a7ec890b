#!/bin/sh
# selftest.sh - plants one violation after the other in a small clean tree and checks that lint.sh reports each one. The clean
# tree also has lines that look like violations but are not.
set -u
lint=$(cd "$(dirname "$0")" && pwd)/lint.sh
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
passed=0
failed=0

put() { mkdir -p "$(dirname "$tmp/$1")" && cat > "$tmp/$1"; }
expect() { # expect NAME CONDITION...: runs the command CONDITION, and counts its success or failure
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        cat "$tmp/out"
    fi
}
reports_only() { # reports_only RULE PATTERN: lint must fail by this rule alone, with a line that matches PATTERN
    [ "$status" -ne 0 ] && grep -E "^$1: .*$2" "$tmp/out" >/dev/null && ! grep ': ' "$tmp/out" | grep -vE "^($1|lint): "
}
run_lint() { sh "$lint" "$tmp/tree" > "$tmp/out" 2>&1; status=$?; }

clean_tree() {
    rm -rf "$tmp/tree"
    mkdir -p "$tmp/tree/cmake" "$tmp/tree/samples" "$tmp/tree/tests"
    cp "$(dirname "$lint")/../../.clang-format" "$tmp/tree/.clang-format"
    put tree/engine/README.md <<'END'
| floor | folder | what lives there | knows |
| --- | --- | --- | --- |
| 0 | base | strings | nothing |
| 1 | ir | graphs | base |
| 1 | gpu | the device | base |
| 2 | kernel | pipelines | base, gpu |
| 3 | ops | one file per op | ir, kernel ids |
| 8 | train | the loop | all but gpu, kernel |
END
    for floor in base ir gpu kernel ops train; do
        put tree/engine/$floor/$floor.h </dev/null
    done
    put tree/engine/kernel/ids.h </dev/null
    put tree/engine/base/base.c <<'END'
/* Never calls abort() or exit(1), nor vkCreateBuffer(); it has no VkBuffer.
 * printf("stdout") is a comment. */
#include "base/base.h"
#include "vktrain/core.h"
#include <stdio.h>

int text(char *s, size_t n)
{
    return snprintf(s, n, "a string: \" exit(1) VkBuffer %d", '"'); // printf("x")
}
END
    put tree/engine/ops/ops.c <<'END'
#include "base/base.h" /* through ir */
#include "ir/ir.h"
#include "kernel/ids.h"
#include "abi/k.abi.h"
END
    put tree/engine/train/train.c <<'END'
#include "base/base.h" /* an image: whatever it is, the comment's word is that of the glossary */
const char *clockmaker = "Of what adds up like a random walk"; // Returns nothing
#include "ops/ops.h"
END
    put tree/engine/gpu/gpu.c <<'END'
#include <vulkan/vulkan_core.h>
VkBuffer buffer;
END
    put tree/include/vktrain/core.h <<'END'
#include <stddef.h>
size_t vkt_size(void);
END
    put tree/shaders/kernels.def <<'END'
VKT_KERNEL(K, k, "", 1, 2, 0, 0)
END
    put tree/shaders/k.comp </dev/null
    put tree/shaders/tools.def <<'END'
VKT_KERNEL(T, test/t, "", 1, 2, 0, 0)
END
    put tree/shaders/test/t.comp </dev/null
    put tree/samples/view/view.h </dev/null
    put tree/samples/scaling/scaling.h </dev/null
    put tree/samples/common/common.c <<'END'
#include "common/common.h"
#include "vktrain/train.h"
END
    put tree/samples/sample.c <<'END'
#include "common/common.h"
#include "view/view.h"
#include <vulkan/vulkan.h>
END
    put tree/samples/bench/bench.c <<'END'
#include "kernel/kernel.h"
END
    put tree/README.md <<'END'
Use ../shared/data, "$dir/root/usr" and https://example.org/work/page.
END
    put tree/docs/b.md <<'END'
# The first page
A [link](environment.md#the-table), [another](#the-first-page), `engine/base/base.c`, `vkt_size()` and `[no](link)`.
```
[no](link either)
```
END
    put tree/docs/environment.md <<'END'
# The table
See [the first page](../docs/b.md#the-first-page) for `VKT_HERE` and `VKT_NO_THING`.
END
    put tree/scripts/a.sh <<'END'
echo "${VKT_HERE-}" $VKT_BUILD_PACKAGES
END
}

# plant RULE PATTERN FILE TEXT: appends TEXT to FILE. RULE alone must report it, in a line that matches PATTERN.
plant() {
    clean_tree
    mkdir -p "$(dirname "$tmp/tree/$3")"
    printf '%s\n' "$4" >> "$tmp/tree/$3"
    run_lint
    expect "$1 in $3: $2" reports_only "$1" "$2"
}
lines() { awk -v n="$1" -v text="$2" 'BEGIN { while (n--) print text }'; }
a_function() { printf 'int f(void)\n{\n' && lines "$1" '    f();' && echo '}'; }

clean_tree
run_lint
expect "the clean tree is clean" [ "$status" -eq 0 ]

plant floors 'ir/x.c:1: .*must not know ops/ops.h' engine/ir/x.c '#include "ops/ops.h"'
plant floors 'ir .floor 1. must not know gpu/gpu.h .floor 1.' engine/ir/x.c '#include "gpu/gpu.h"'
plant floors 'must not know kernel/kernel.h' engine/ops/x.c '#include "kernel/kernel.h"'
plant floors 'must not know kernel/kernel.h' engine/train/x.h '#include "kernel/kernel.h"'
plant floors 'from the root' engine/ir/x.c '#include "../base/base.h"'
plant floors 'no folder attic' engine/ir/x.c '#include "attic/a.h"'
plant floors 'engine/attic is not in the table' engine/attic/x.c 'int x;'
plant floors 'not on a lower floor' engine/README.md '| 2 | plan | memory | ops |'
plant floors 'no folder of the table' engine/README.md '| 2 | plan | memory | bass |'

# Checks the table of this repository itself: of the headers in the folder kernel, ops may include only ids.h.
clean_tree
echo '#include "kernel/kernel.h"' | put tree/engine/ops/x.c
(cd "$tmp/tree" && awk -f "$(dirname "$lint")/floors.awk" "$(dirname "$lint")/../../engine/README.md" engine/ops/*.c) \
    > "$tmp/out" 2>&1
expect "ops knows kernel ids alone" grep -q '^engine/ops/x.c:1: ops (floor 3) must not know kernel/kernel.h' "$tmp/out"

clean_tree
rm "$tmp/tree/engine/README.md"
run_lint
expect "floors without a table" reports_only floors 'missing'

plant vulkan 'ir/x.c:1' engine/ir/x.c 'extern VkBuffer b;'
plant vulkan 'ops/x.h:1' engine/ops/x.h 'int x = vkCmdDispatch(1);'
plant vulkan 'train/x.c:1' engine/train/x.c '#include <vulkan/vulkan_core.h>'
plant vulkan 'train/x.c:1' engine/train/x.c '#include "vktrain/vulkan.h"'

plant headers 'vktrain/x.h:1.* cc ' include/vktrain/x.h 'vkt_thing *vkt_thing_create(void);'
plant headers 'vktrain/x.h:1.* c[+][+] ' include/vktrain/x.h 'int vkt_new(int class);'

plant sizes 'base/x.c:1: 601 lines' engine/base/x.c "$(lines 601 'int x;')"
plant sizes 'k.comp:1: 201 lines' shaders/k.comp "$(lines 201 '// x')"
plant sizes 'base/x.c:2: a function of 71' engine/base/x.c "$(a_function 71)"
clean_tree
lines 601 'X(1)' | put tree/engine/base/x.def
a_function 70 | put tree/engine/base/x.c
run_lint
expect "long tables and functions of 70 lines are allowed" [ "$status" -eq 0 ]

plant lines 'k.comp:1: 129 columns' shaders/k.comp "// $(printf '%0126d' 0)"
plant lines 'k.abi.h:1: 129 columns' shaders/abi/k.abi.h "/* $(printf '%0123d' 0) */"
plant lines 'README.md:2: 133 columns' README.md "$(printf '%0133d' 0)"
plant lines 'a.md:1: 133 columns' docs/a.md "[a](b.md) $(printf '%0129d' 0)"
clean_tree
printf '// %0125d\n' 0 | put tree/shaders/k.comp
{
    printf '%0132d\n| %0140d |\n' 0 0
    printf '[a](https://example.org/%0140d) and https://example.org/%0140d\n```\n%0140d\n```\n' 0 0 0
} | put tree/docs/a.md
run_lint
expect "lines of 128 and 132 columns, long tables, code and links are allowed" [ "$status" -eq 0 ]

clean_tree
echo '#include "ir/a.h"' | put tree/engine/ir/ir.h
echo '#include "ir/b.h"' | put tree/engine/ir/a.h
echo '#include "ir/ir.h"' | put tree/engine/ir/b.h
run_lint
expect "three headers that include each other" reports_only includes 'ir/a.h <-> ir/b.h|ir/b.h <-> ir/ir.h|ir/ir.h <-> ir/a.h'
clean_tree
echo '#include "lib/b.glsl"' | put tree/shaders/lib/a.glsl
echo '#include "lib/a.glsl"' | put tree/shaders/lib/b.glsl
run_lint
expect "two files of GLSL that include each other" reports_only includes 'lib/(a|b).glsl <-> lib/(a|b).glsl'

case $(clang-format --version 2>/dev/null) in
*"version 14."*) plant format 'tests/x.c:1' tests/x.c 'int  x ;' ;;
esac

slash=/ # a variable, so that this file itself does not break the rule
plant paths 'README.md:2' README.md "see ${slash}work/x"
plant paths 'run.sh:1' samples/run.sh "DIR=${slash}home/me"

plant calls 'base/x.c:1' engine/base/x.c 'int x = exit(1);'
plant calls 'base/x.c:1' engine/base/x.c 'int x = abort();'
plant calls 'ops/x.c:1' engine/ops/x.c 'int x = printf("x");'
plant calls 'ops/x.c:1' engine/ops/x.c 'int x = assert(1);'
plant calls 'ops/x.c:1' engine/ops/x.c 'int x = fputs("x", stdout);'
plant calls 'ops/x.c:1' engine/ops/x.c 'int x = vkt_env_set("X", "1");'
plant calls 'base/posix/x.c:1' engine/base/posix/x.c 'int x = setenv("X", "1", 1);'

plant system 'gpu/x.c:1' engine/gpu/x.c '#include <dlfcn.h>'
plant system 'base/x.h:1' engine/base/x.h '#include <sys/stat.h>'
plant system 'train/x.c:1' engine/train/x.c '#ifdef _WIN32'
plant system 'train/x.c:1' engine/train/x.c '#if defined(__linux__) || defined(_WIN32)'
clean_tree
printf '#include <unistd.h>\n' | put tree/engine/base/posix/x.c
printf '#include <windows.h>\n' | put tree/engine/base/win32/x.c
run_lint
expect "the folders of the systems call them" [ "$status" -eq 0 ]

plant shaders 'gone.comp does not exist' shaders/kernels.def 'VKT_KERNEL(GONE, gone, "", 1, 2, 0, 0)'
plant shaders 'orphan.comp:1: no entry' shaders/orphan.comp '// x'
plant shaders 'tools.def:0: .*gone.comp does not exist' shaders/tools.def 'VKT_KERNEL(GONE, test/gone, "", 1, 2, 0, 0)'
plant shaders 'kernels.def:0: test/t belongs in tools.def' shaders/kernels.def 'VKT_KERNEL(T, test/t, "", 1, 2, 0, 0)'
plant shaders 'tools.def:0: k belongs in kernels.def' shaders/tools.def 'VKT_KERNEL(K, k, "", 1, 2, 0, 0)'

plant samples 'samples/x.c:1' samples/x.c '#include "gpu/gpu.h"'
plant samples 'samples/common/x.h:1' samples/common/x.h '#include "base/base.h"'
plant samples 'samples/common/x.c:1' samples/common/x.c '#include "abi/k.abi.h"'
plant samples 'samples/view/x.c:1' samples/view/x.c '#include <ops/ops.h>'
plant samples 'samples/view/x.c:1' samples/view/x.c '#include "bench/bench.h"'
plant samples 'samples/scaling/x.c:1' samples/scaling/x.c '#include "ops/ops.h"'

plant words "x.c:1:.*field's word" engine/ir/x.c 'int x; /* Reads a picture. */'
plant words "x.glsl:1:.*field's word" shaders/lib/x.glsl '// Whoever reads it.'
plant words "x.c:1:.*field's word" engine/ir/x.c 'int read_picture(void);'
plant words "x.h:1:.*field's word" engine/ir/x.h '#define NOBODY 0'
plant words "x.c:1:.*field's word" tests/x.c 'const char *s = "a Picture";'
plant words "x.c:1:.*field's word" samples/x.c 'const char *s = "\"in place of\""; /* a comment */'
plant words "x.glsl:1:.*field's word" shaders/lib/x.glsl 'uint maker_of(uint i);'
plant words "b.sh:1:.*field's word" scripts/b.sh 'make_pictures'
plant words "walk.h:1:.*field's word" engine/ir/walk.h 'int x;'
plant words 'x.c:1:.*begin with the subject' engine/ir/x.c '/* Of x. */'
plant words 'x.c:1:.*begin with the subject' samples/x.c '/* What x is. */'

plant docs 'b.md:6: the link leads nowhere: gone.md' docs/b.md '[x](gone.md)'
plant docs 'README.md:2: the link leads nowhere: docs/x.md' README.md '[x](docs/x.md)'
plant docs 'b.md:6: docs/environment.md has no heading #gone' docs/b.md '[x](environment.md#gone)'
plant docs 'environment.md:3: docs/b.md has no heading #gone' docs/environment.md '[x](../docs/b.md#gone)'
plant docs 'b.md:6: docs/b.md has no heading #gone' docs/b.md '[x](#gone)'
plant docs 'b.md:6: there is no engine/base/gone.c' docs/b.md 'In `engine/base/gone.c` it says so.'
plant docs 'b.md:6: .* has vkt_gone' docs/b.md 'Call `vkt_gone`.'

plant environment 'VKT_THERE is not' engine/base/x.c 'const char *s = getenv("VKT_THERE");'
plant environment 'VKT_COUNT is not' tests/x.c 'int n = vkt_env_int("VKT_COUNT", 0);'
plant environment 'VKT_NO_OTHER is not' engine/base/x.c 'int n = vkt_env_disabled("other");'
plant environment 'VKT_NO_TILE is not' engine/base/variant.h '// clang-format off
    X(TILE, "tile", "a variant")'
plant environment 'VKT_ELSEWHERE is not' scripts/a.sh 'echo $VKT_ELSEWHERE'

echo "lint selftest: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
