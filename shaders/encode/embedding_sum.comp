// embedding_sum.comp - dtable[v] = sum of the gradients of the positions with id v. The entries of these positions are
//   sorted[start[v] .. start[v+1] - 1]. For positions, START and SORTED see abi/embedding_dw.abi.h.
//   A lane has one entry of SORTED. If this entry is the first one of a row, the lane computes VECS vec4s of the row. Rows
//   without an entry are 0 already.
//   Gradients are whole vec4s. They are in dy, at the index that SORTED gives, or (COPIED) in the order of SORTED.
//   BLOCKS: the entries of a row, from the first one on, form whole blocks of BLOCK entries, and fewer than BLOCK entries are
//   left over. This variant computes the sum of each block. The kernel without BLOCKS then adds, for each row, the entries left
//   over and the sums of the row's blocks. A block contains exactly one entry whose index in SORTED is a multiple of BLOCK.
//   This multiple, divided by BLOCK, is the block's index in PART, so no two blocks share an index.
// grid: x over entries (BLOCKS: blocks) times the parts of a chunk, in contiguous shares; y over chunks (stride loop).
//       A part is VECS vec4s of a row (the binding PART is not meant). A chunk has at most as many parts as a work
//       group has lanes.
// Deterministic: the order of additions depends only on SORTED and START.
// Two loops are an `if` and a for (;;) that ends with a break, because llvmpipe runs the body of a for loop with a condition
// once even if no lane needs an iteration.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/embedding_dw.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
layout(constant_id = EMBEDDING_DW_SPEC_WIDTH) const uint WIDTH = 4;
layout(constant_id = EMBEDDING_DW_SPEC_VECS) const uint VECS = 1;
VKT_WORDS(EMBEDDING_DW_START, start);
VKT_WORDS(EMBEDDING_DW_SORTED, sorted);
VKT_IN4(EMBEDDING_DW_DY, dy);
#ifndef BLOCKS
VKT_IN4(EMBEDDING_DW_PART, part);
#endif
VKT_STORED(EMBEDDING_DW_OUT, writeonly, y)
layout(binding = EMBEDDING_DW_OUT, std430) writeonly buffer Out { float y1[]; };
const uint BLOCK = EMBEDDING_DW_BLOCK, WIDTH4 = (WIDTH + 3) / 4, PARTS = WIDTH4 / VECS;
const uint CHUNK = PARTS < LANES ? PARTS : LANES;
#ifdef COPIED
#define AT4(s) ((s) * WIDTH4)
#else
#define AT4(s) (LOAD1(sorted, 2 * (s) + 1) / 4)
#endif

void main()
{
    const uint entries = LOAD1(start, pc.rows);
    vec4 sum[VECS];
#ifdef BLOCKS
    const uvec2 share = share_of((entries + BLOCK - 1) / BLOCK * CHUNK);
    for (uint c = gl_WorkGroupID.y * CHUNK; c < PARTS; c += gl_NumWorkGroups.y * CHUNK)
        for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
            const uint block = i / CHUNK, at = block * BLOCK, d = (c + i % CHUNK) * VECS, v = LOAD1(sorted, 2 * at);
            const uint first = at - (at - LOAD1(start, v)) % BLOCK;
            if (d >= WIDTH4 || first + BLOCK > LOAD1(start, v + 1)) continue;
            [[unroll]] for (uint q = 0; q < VECS; q++) sum[q] = vec4(0.0);
            for (uint s = first; s < first + BLOCK; s++) {
                const uint from = AT4(s) + d;
                [[unroll]] for (uint q = 0; q < VECS; q++) sum[q] += LOAD4(dy, from + q);
            }
            [[unroll]] for (uint q = 0; q < VECS; q++) y_put(block * WIDTH4 + d + q, sum[q]);
        }
#else
    const uvec2 share = share_of(entries * CHUNK);
    for (uint c = gl_WorkGroupID.y * CHUNK; c < PARTS; c += gl_NumWorkGroups.y * CHUNK)
        for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
            const uint position = i / CHUNK, d = (c + i % CHUNK) * VECS, v = LOAD1(sorted, 2 * position);
            if (d >= WIDTH4 || v < pc.begin || v >= pc.end || position != LOAD1(start, v)) continue;
            const uint end = LOAD1(start, v + 1), blocks = (end - position) / BLOCK;
            [[unroll]] for (uint q = 0; q < VECS; q++) sum[q] = vec4(0.0);
            uint s = position + blocks * BLOCK, k = (position + BLOCK - 1) / BLOCK;
            const uint last = k + blocks;
            if (s < end)
                for (;;) {
                    const uint from = AT4(s) + d;
                    [[unroll]] for (uint q = 0; q < VECS; q++) sum[q] += LOAD4(dy, from + q);
                    if (++s >= end) break;
                }
            if (k < last)
                for (;;) {
                    [[unroll]] for (uint q = 0; q < VECS; q++) sum[q] += LOAD4(part, k * WIDTH4 + d + q);
                    if (++k >= last) break;
                }
            const uint row = v - pc.begin;
            [[unroll]] for (uint q = 0; q < VECS; q++) {
                if (WIDTH % 4 == 0) y_put(row * WIDTH4 + d + q, sum[q]);
                else
                    [[unroll]] for (uint j = 0; j < 4; j++)
                        if (4 * (d + q) + j < WIDTH) y1[row * WIDTH + 4 * (d + q) + j] = sum[q][j];
            }
        }
#endif
}
