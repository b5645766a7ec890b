#!/bin/sh
# inline.sh SOURCE AWK [COMPILER] - checks that vktrain.glsl and vktrain.hlsl are what scripts/inline/generate.awk writes. If one
# line of vktrain.shader is changed, generate.awk must not write the same vktrain.glsl. If COMPILER supports cooperative vectors,
# a shader with such vectors must compile.
set -u
source=$1
awk=$2
compiler=${3-}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    echo "FAILED: $1"
    failed=1
}

for language in glsl hlsl; do
    "$awk" -v to=$language -f "$source/scripts/inline/generate.awk" "$source/scripts/inline/vktrain.shader" >"$work/$language" ||
        exit 2
    cmp "$work/$language" "$source/include/vktrain/vktrain.$language" ||
        fail "vktrain.$language is not what scripts/inline makes of vktrain.shader: cmake --build build --target inline_shaders"
done
sed 's/VKT_UNROLL > 1/VKT_UNROLL > 2/' "$source/scripts/inline/vktrain.shader" >"$work/changed"
"$awk" -v to=glsl -f "$source/scripts/inline/generate.awk" "$work/changed" | cmp -s - "$source/include/vktrain/vktrain.glsl" &&
    fail "a changed text makes the same vktrain.glsl"

cat >"$work/vector.comp" <<'END'
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_NV_cooperative_vector : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer Store { float16_t store[]; };
layout(std430, binding = 1) writeonly buffer Result { vec4 y_out[]; };
#define VKT_FLOAT(i) float(store[i])
#include "vktrain/vktrain.glsl"
VKT_COOPERATIVE_LAYER(layer, 16, 3, VKT_RELU, store)
void main()
{
    vec4 x[4], y[1];
    for (uint i = 0; i < 4; i++) x[i] = vec4(i);
    layer(0, 64, x, y);
    y_out[gl_GlobalInvocationID.x] = y[0];
}
END
if [ -z "$compiler" ]; then
    echo "SKIPPED: a shader with cooperative vectors: no compiler (VKT_GLSLANG_COOP)"
elif ! "$compiler" -V --target-env vulkan1.3 -I"$source/include" -o "$work/vector.spv" "$work/vector.comp" >"$work/log" 2>&1; then
    if grep -q "extension not supported" "$work/log"; then
        echo "SKIPPED: a shader with cooperative vectors: $compiler does not support them"
    else
        cat "$work/log"
        fail "a shader with cooperative vectors does not compile"
    fi
fi
exit $failed
