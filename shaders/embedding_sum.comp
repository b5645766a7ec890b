// embedding_sum.comp - dtable[v][d] = sum of dy[..][d] over the positions with id v, in their order: sorted[start[v] .. start[v+1]]
//   A lane takes the first place of a row in SORTED, and FEATURES of its numbers; rows without a place are 0 already.
//   BLOCKS: the sums of whole blocks of SORTED that are of one id, for frequent ones; a row then sums what stands before its first
//   whole block and behind its last, and its blocks' sums. So no sum has more than BLOCK terms, or N / BLOCK of blocks.
//   WIDTH 4: rows of the table and of dy are whole vec4s.
// grid: x over places, or blocks, and features in contiguous shares. Deterministic: the order is that of SORTED.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/embedding_dw.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(binding = EMBEDDING_DW_START, std430) readonly buffer Start { uint start[]; };
layout(binding = EMBEDDING_DW_SORTED, std430) readonly buffer Sorted { uvec2 sorted[]; };
#if WIDTH == 4
#define NUMBER vec4
VKT_IN4(EMBEDDING_DW_DY, dy4);
#define DY(at, d) LOAD4(dy4, (at) / 4 + (d))
const uint FEATURES = 4; // NUMBERs
#else
#define NUMBER float
layout(binding = EMBEDDING_DW_DY, std430) readonly buffer Dy { float dy[]; };
#define DY(at, d) dy[(at) + (d) * pc.step]
const uint FEATURES = 8;
#endif
#ifndef BLOCKS
layout(binding = EMBEDDING_DW_PART, std430) readonly buffer Part { NUMBER part[]; };
#endif
layout(binding = EMBEDDING_DW_OUT, std430) writeonly buffer Out { NUMBER y[]; };
const uint BLOCK = EMBEDDING_DW_BLOCK;

// Adds up places first .. end - 1 of SORTED, NUMBERs d and on of their rows.
void add(uint first, uint end, uint d, inout NUMBER sum[FEATURES])
{
    for (uint s = first; s < end; s++) {
        const uint at = sorted[s].y;
        [[unroll]] for (uint j = 0; j < FEATURES; j++) sum[j] += DY(at, min(d + j, pc.width / WIDTH - 1));
    }
}

void store(uint row, uint d, NUMBER sum[FEATURES])
{
    const uint width = pc.width / WIDTH;
    [[unroll]] for (uint j = 0; j < FEATURES; j++)
        if (d + j < width) y[row * width + d + j] = sum[j];
}

void main()
{
    const uint parts = (pc.width / WIDTH + FEATURES - 1) / FEATURES, places = start[pc.rows];
#ifdef BLOCKS
    const uvec2 share = share_of(places / BLOCK * parts);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint s = i / parts * BLOCK, d = i % parts * FEATURES;
        NUMBER sum[FEATURES];
        [[unroll]] for (uint j = 0; j < FEATURES; j++) sum[j] = NUMBER(0.0);
        if (sorted[s].x != sorted[s + BLOCK - 1].x) continue;
        add(s, s + BLOCK, d, sum);
        store(i / parts, d, sum);
    }
#else
    const uvec2 share = share_of(places * parts);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint s = i / parts, d = i % parts * FEATURES, v = sorted[s].x;
        if (v < pc.begin || v >= pc.end || s != start[v]) continue;
        const uint end = start[v + 1], head = min(end, (s + BLOCK - 1) / BLOCK * BLOCK);
        const uint tail = max(head, end / BLOCK * BLOCK);
        NUMBER sum[FEATURES], blocks[FEATURES], rest[FEATURES];
        [[unroll]] for (uint j = 0; j < FEATURES; j++) sum[j] = blocks[j] = rest[j] = NUMBER(0.0);
        add(s, head, d, sum);
        for (uint k = head / BLOCK; k < tail / BLOCK; k++)
            [[unroll]] for (uint j = 0; j < FEATURES; j++)
                blocks[j] += part[k * (pc.width / WIDTH) + min(d + j, pc.width / WIDTH - 1)];
        add(tail, end, d, rest);
        [[unroll]] for (uint j = 0; j < FEATURES; j++) sum[j] = (sum[j] + rest[j]) + blocks[j];
        store(v - pc.begin, d, sum);
    }
#endif
}
