#!/bin/sh
# bfloat.sh BFLOAT GLSLANG COOP - checks BFLOAT (cmake/bfloat.c), which changes float16 to bfloat16. BFLOAT must accept a module
# that uses float16 only for elements of cooperative matrices. BFLOAT must refuse any other module. GLSLANG compiles the shaders
# without cooperative matrices. COOP compiles the shaders with cooperative matrices. If COOP is empty, these shaders are not
# tested.
set -u
bfloat=$1
glslang=$2
coop=${3-}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

# change COMPILER: compiles the shader on stdin, and runs BFLOAT on its module. Sets rc to the status of BFLOAT.
change() {
    { printf '#version 460\n#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n' && cat; } >"$work/a.comp"
    "$1" -V --quiet --target-env vulkan1.3 -o "$work/a.spv" "$work/a.comp" || exit 2
    rm -f "$work/b.spv"
    "$bfloat" "$work/a.spv" "$work/b.spv" 2>"$work/log"
    rc=$?
}
refused() {
    [ "$rc" -ne 0 ] && [ ! -e "$work/b.spv" ] && grep -q "$1" "$work/log" && return
    cat "$work/log"
    echo "FAILED: want a refusal with \"$1\""
    failed=1
}

other='not only the type of elements'
change "$glslang" <<'GLSL'
layout(binding = 0) buffer B { uint u[]; };
void main() { u[0] = packFloat2x16(f16vec2(uintBitsToFloat(u[1]))); }
GLSL
refused "$other" # a vector
change "$glslang" <<'GLSL'
layout(binding = 0) buffer B { float f[]; };
void main() { f[0] = float(float16_t(f[1])); }
GLSL
refused "$other" # a value
change "$glslang" <<'GLSL'
layout(binding = 0) buffer B { float f[]; };
void main() { f[0] = 1.0; }
GLSL
refused 'no cooperative matrix'
head -c 100 "$work/a.spv" >"$work/cut.spv"
"$bfloat" "$work/cut.spv" "$work/b.spv" 2>"$work/log"
rc=$?
refused 'no SPIR-V module'

words() { # words NUMBER...: prints each number as four bytes, the lowest byte first
    for word; do
        # shellcheck disable=SC2059
        printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $((word & 255)) $((word >> 8 & 255)) $((word >> 16 & 255)) $((word >> 24)))"
    done
}
op() { echo $((($2 << 16) | $1)); } # op CODE WORDS: prints the first word of an instruction of WORDS words

# module WORD...: runs BFLOAT on a module that declares the type float16 with the id 4, then has the instructions
# WORD..., then declares a matrix of float16. Sets rc.
module() {
    {
        words $((0x07230203)) $((0x00010600)) 0 20 0 "$(op 17 2)" 9 "$(op 22 3)" 4 16 "$(op 21 4)" 5 32 0
        words "$@" "$(op 4456 7)" 9 4 5 5 5 5
    } >"$work/a.spv"
    rm -f "$work/b.spv"
    "$bfloat" "$work/a.spv" "$work/b.spv" 2>"$work/log"
    rc=$?
}
# float16 has the id 4. Here a vector has 4 elements, and pointers have the storage class 4. These numbers are no ids, so BFLOAT
# must accept the module.
module "$(op 23 4)" 6 5 4 "$(op 32 4)" 7 4 5 "$(op 32 4)" 8 4 6
[ "$rc" -eq 0 ] || {
    cat "$work/log"
    echo "FAILED: numbers that are equal to the id of float16"
    failed=1
}
module "$(op 23 4)" 6 4 2
refused "$other" # a vector of float16
module "$(op 32 4)" 7 7 4
refused "$other" # a pointer
module "$(op 28 4)" 7 4 5
refused "$other" # an array
module "$(op 30 4)" 7 5 4
refused "$other" # a member of a struct
module "$(op 33 4)" 7 5 4
refused "$other" # a parameter of a function
module "$(op 33 3)" 7 4
refused "$other" # the result of a function

matrix='#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
layout(binding = 0) buffer B { uvec2 u[]; };
void main()
{
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;
    coopMatLoad(a, u, 0, 4, gl_CooperativeMatrixLayoutRowMajor);'
if [ -n "$coop" ]; then
    change "$coop" <<GLSL
$matrix
    coopMatStore(a, u, 0, 4, gl_CooperativeMatrixLayoutColumnMajor);
}
GLSL
    # The changed module has nine more words: two for a capability, six for the extension, one for the type.
    [ "$rc" -eq 0 ] && [ "$(wc -c <"$work/b.spv")" -eq $(($(wc -c <"$work/a.spv") + 4 * 9)) ] || {
        cat "$work/log"
        echo "FAILED: a module with a matrix of float16"
        failed=1
    }
    change "$coop" <<GLSL
$matrix
    u[0].x = uint(a[0]);
}
GLSL
    refused "$other" # an element
else
    echo "SKIPPED: a module with a matrix of float16: no compiler"
fi
exit $failed
