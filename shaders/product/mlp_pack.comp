// mlp_pack.comp - copies the parameters of a fully connected network into the order that mlp.comp and
// mlp_shared.comp read. abi/mlp_layout.abi.h describes the order, under PACKED.
// grid: x over the vec4s of a layer (stride loop), y over layers.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/mlp_pack.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = MLP_PACK_W + 0, std430) readonly buffer Weights1 { float w1[]; };
layout(binding = MLP_PACK_W + 1, std430) readonly buffer Weights2 { float w2[]; };
layout(binding = MLP_PACK_W + 2, std430) readonly buffer Weights3 { float w3[]; };
layout(binding = MLP_PACK_W + 3, std430) readonly buffer Weights4 { float w4[]; };
layout(binding = MLP_PACK_B + 0, std430) readonly buffer Bias1 { float b1[]; };
layout(binding = MLP_PACK_B + 1, std430) readonly buffer Bias2 { float b2[]; };
layout(binding = MLP_PACK_B + 2, std430) readonly buffer Bias3 { float b3[]; };
layout(binding = MLP_PACK_B + 3, std430) readonly buffer Bias4 { float b4[]; };
layout(binding = MLP_PACK_OUT, std430) writeonly buffer Packed { vec4 packed_out[]; };

uint of_layer(uint a, uint b, uint c, uint d)
{
    const uint l = gl_WorkGroupID.y;
    return l == 0 ? a : l == 1 ? b : l == 2 ? c : d;
}

float weight(uint i)
{
    const uint l = gl_WorkGroupID.y;
    return l == 0 ? w1[i] : l == 1 ? w2[i] : l == 2 ? w3[i] : w4[i];
}

float bias(uint i)
{
    const uint l = gl_WorkGroupID.y;
    if ((pc.biased >> l & 1) == 0) return 0;
    return l == 0 ? b1[i] : l == 1 ? b2[i] : l == 2 ? b3[i] : b4[i];
}

void main()
{
    const uint K = of_layer(pc.width0, pc.width1, pc.width2, pc.width3);
    const uint M = of_layer(pc.width1, pc.width2, pc.width3, pc.width4);
    const uint KQ = (K + 3) / 4, MQ = (M + 3) / 4, n_rows = M * KQ, n_cols = K * MQ;
    const uint rows = of_layer(pc.rows1, pc.rows2, pc.rows3, pc.rows4);
    const uint cols = of_layer(pc.cols1, pc.cols2, pc.cols3, pc.cols4);
    const uint biases = of_layer(pc.bias1, pc.bias2, pc.bias3, pc.bias4);
    for (uint j = gl_GlobalInvocationID.x; j < n_rows + n_cols + M; j += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        vec4 v = vec4(0);
        if (j < n_rows) {
            const uint o = j / KQ, k = 4 * (j - o * KQ);
            [[unroll]] for (uint c = 0; c < 4; c++)
                if (k + c < K) v[c] = weight(o * K + k + c);
            packed_out[rows + j] = v;
        } else if (j < n_rows + n_cols) {
            const uint at = j - n_rows, i = at / MQ, o = 4 * (at - i * MQ);
            [[unroll]] for (uint c = 0; c < 4; c++)
                if (o + c < M) v[c] = weight((o + c) * K + i);
            packed_out[cols + at] = v;
        } else {
            const uint o = j - n_rows - n_cols;
            packed_out[biases + o] = vec4(bias(o), bias(min(o + 1, M - 1)), 0, 0);
        }
    }
}
