// attention_operands.glsl - shared by all attention kernels but attention_cached.comp: the operands, and the matrices of a head
// The file that includes this one defines D4: the vec4s of a row of a head.
#include "lib/explog.glsl"
#include "lib/load.glsl"
#define LOWEST uintBitsToFloat(0xff800000u) // -infinity
VKT_IN4(ATTENTION_Q, q4);
VKT_IN4(ATTENTION_K, k4);
VKT_IN4(ATTENTION_V, v4);
#ifdef GRADIENT
VKT_IN4(ATTENTION_DY, dy4);
#endif
const uint OF_Q = 0, OF_K = 1, OF_V = 2, OF_DY = 3;

// Returns vec4 number `at` of operand `of` (OF_Q, OF_K, OF_V or OF_DY).
vec4 load(uint of, uint at)
{
    if (of == OF_Q) return LOAD4(q4, at);
    if (of == OF_K) return LOAD4(k4, at);
#ifdef GRADIENT
    if (of == OF_DY) return LOAD4(dy4, at);
#endif
    return LOAD4(v4, at);
}

// A matrix of one head, with `rows` rows. Row i begins at vec4 number (at + i * ld) of operand `of`.
struct matrix {
    uint of, at, ld, rows;
};

// Returns the matrix of the head with the index `head` among the heads of all samples. For OF_K and OF_V, `head` is the
// index of a head of k and v: see kv_head(). base: index of the operand's first vec4.
matrix matrix_of(uint of, uint base, uint head, uint rows)
{
    const uint ld = of == OF_DY ? pc.heads * D4 : pc.ld, heads = of == OF_K || of == OF_V ? pc.kv_heads : pc.heads;
    return matrix(of, base + head / heads * rows * ld + head % heads * D4, ld, rows);
}

// Returns the head of k and v that a head of q reads.
uint kv_head(uint head)
{
    return head / pc.group;
}
