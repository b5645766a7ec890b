// transpose.comp - y[..][j][i] = x[..][i][j]. x and y have different fastest dimensions.
// For a, b, xa and yb see transpose.abi.h.
//   A lane moves the blocks of one chunk, one after another, through registers. A chunk is blocks of 4 x 4 that are neighbours
//   along j, so the lane finishes each cache line of x before it leaves the line. Neighbouring lanes are neighbours along i,
//   which is the memory order of y.
//   LOAD 4: a block is four loads of vec4s (b, xa and all strides of x are multiples of 4). STORE 4: a block is four stores of
//   vec4s (a, yb and all strides of y are multiples of 4). If neither is 4, the kernel moves single 32-bit words of any type.
// grid: x over all combinations of block along i, chunk and outer position, with a stride; any group count is right.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/transpose.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#if LOAD == 4 || STORE == 4
#define WORD float
#define WORDS vec4
#else
#define WORD uint
#define WORDS uvec4
#endif
#if LOAD == 4
VKT_IN4(TRANSPOSE_X, x4);
#else
layout(binding = TRANSPOSE_X, std430) readonly buffer X { WORD x[]; };
#endif
#if STORE == 4
VKT_OUT4(TRANSPOSE_Y, y4);
#else
layout(binding = TRANSPOSE_Y, std430) writeonly buffer Y { WORD y[]; };
#endif

// Returns the words `at` .. `at` + count - 1 of x, but at most four words.
WORDS words_of_x(uint at, uint count)
{
#if LOAD == 4
    return LOAD4(x4, at / 4);
#else
    WORDS v = WORDS(0);
    for (uint k = 0; k < min(count, 4); k++) v[k] = x[at + k];
    return v;
#endif
}

void words_to_y(uint at, uint count, WORDS v)
{
#if STORE == 4
    STORE4(y4, at / 4, v);
#else
    for (uint k = 0; k < min(count, 4); k++) y[at + k] = v[k];
#endif
}

// Moves the block that starts at (i, j) of a matrix. The matrix starts at index at.x of x and at index at.y of y.
void move(uvec2 at, uint i, uint j)
{
    WORDS v[4];
    [[unroll]] for (uint k = 0; k < 4; k++) v[k] = words_of_x(at.x + min(i + k, pc.a - 1) * pc.xa + j, pc.b - j);
    [[unroll]] for (uint k = 0; k < 4; k++)
        if (j + k < pc.b) words_to_y(at.y + (j + k) * pc.yb + i, pc.a - i, WORDS(v[0][k], v[1][k], v[2][k], v[3][k]));
}

// Returns the indices in x and in y at which the matrix of outer position r starts.
uvec2 matrix_of(uint r)
{
    uvec2 at = uvec2(pc.x, pc.y) + r % pc.d3 * uvec2(pc.x3, pc.y3);
    r /= pc.d3;
    at += r % pc.d2 * uvec2(pc.x2, pc.y2);
    r /= pc.d2;
    at += r % pc.d1 * uvec2(pc.x1, pc.y1);
    return at + r / pc.d1 * uvec2(pc.x0, pc.y0);
}

void main()
{
    const uint columns = (pc.a + 3) / 4, blocks = (pc.b + 3) / 4, chunks = (blocks + pc.chunk - 1) / pc.chunk;
    const uint units = columns * chunks * pc.rows;
    for (uint u = gl_GlobalInvocationID.x; u < units; u += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint i = u % columns * 4, first = u / columns % chunks * pc.chunk;
        const uvec2 at = matrix_of(u / columns / chunks);
        for (uint block = first; block < min(first + pc.chunk, blocks); block++) move(at, i, 4 * block);
    }
}
