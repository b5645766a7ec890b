// gemm_shared.comp - C[m][n] (+)= sum_k A[m][k] B[k][n] (+ bias[n]) for GPUs: tiles in shared memory (lib/blocks.glsl)
// The operands are not packed first: the kernel reads A and B from their own memory, by vec4s if VECTORS allows.
// Without COOP, shared memory needs vec4s along m or n, so an operand that is contiguous along k is transposed in
// registers, in blocks of 4 x 4. With COOP, shared memory needs vec4s along k, so an operand that is contiguous along m
// or n is transposed. COOP rounds the operands to f16 or bf16, or with SPLIT to sums of two f16 numbers. The bias and
// all sums, also the sums over slices of k, stay f32.
// QUANTIZED: B has the blocks of quantized weights (lib/quantized.glsl). They are unpacked before they go to shared memory.
// grid: x over tiles (stride loop), y over slices of k, z over the matrices of the batch.
// source: see lib/blocks.glsl.
// Deterministic: see lib/blocks.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/blocks.abi.h"
#include "abi/gemm_shared.abi.h"
#include "lib/load.glsl"
layout(constant_id = GEMM_SHARED_SPEC_A_BY_K) const bool A_BY_K = true;
layout(constant_id = GEMM_SHARED_SPEC_B_BY_K) const bool B_BY_K = false;
layout(constant_id = GEMM_SHARED_SPEC_VECTORS) const uint VECTORS = 7;
layout(constant_id = GEMM_SHARED_SPEC_ACCUMULATE) const bool ACCUMULATE = false;
layout(constant_id = GEMM_SHARED_SPEC_BIAS) const bool BIAS = false;
layout(binding = GEMM_SHARED_A, std430) readonly buffer A { float a[]; };
VKT_IN4(GEMM_SHARED_A, a4);
#ifdef QUANTIZED
layout(constant_id = GEMM_SHARED_SPEC_FORMAT) const uint FORMAT = 0;
VKT_WORDS(GEMM_SHARED_B, words);
#include "abi/quant.abi.h"
#include "lib/quantized.glsl"
#else
layout(binding = GEMM_SHARED_B, std430) readonly buffer B { float b[]; };
VKT_IN4(GEMM_SHARED_B, b4);
#endif
#ifdef COOP2
#extension GL_EXT_shader_16bit_storage : require
#extension GL_KHR_memory_scope_semantics : require
layout(binding = GEMM_SHARED_C, std430) workgroupcoherent buffer C { float c[]; };
layout(binding = GEMM_SHARED_C, std430) writeonly buffer CHalf { float16_t c_half[]; };
#else
layout(binding = GEMM_SHARED_C, std430) buffer C { float c[]; };
VKT_INOUT4(GEMM_SHARED_C, c4);
#endif
layout(binding = GEMM_SHARED_BIAS, std430) readonly buffer Bias { float bias[]; };

const bool ROUNDS_A = STORED_AS(GEMM_SHARED_A) != MATRIX_STORAGE, ROUNDS_B = STORED_AS(GEMM_SHARED_B) != MATRIX_STORAGE;
#include "lib/blocks.glsl"

// Returns whether an index is inside the product.
bool is_row(uint m) { return WHOLE_M || m < pc.M; }
bool is_column(uint n) { return WHOLE_N || n < pc.N; }
bool is_k(uint k) { return WHOLE_K || k < pc.K; }

// Returns four elements of a row or column of A. `at`: index of the first one in this work group's matrix. n: number of
// elements from `at` to the end of the row or column. Elements past this end are zero.
LINE run_a(uint at, uint n)
{
    at += pc.a_base + gl_WorkGroupID.z * pc.a_batch;
    if ((VECTORS & 1u) != 0u) return LOAD_LINE(GEMM_SHARED_A, a4, at / 4u);
    vec4 v = vec4(0.0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (i < n) v[i] = a[at + i];
    return LINE_OF(v);
}

LINE line_a(uint m, uint k, uint j)
{
    if (A_BY_K) return is_row(m + j) && is_k(k) ? run_a((m + j) * pc.a_ld + k, pc.K - k) : LINE(0);
    return is_k(k + j) && is_row(m) ? run_a((k + j) * pc.a_ld + m, pc.M - m) : LINE(0);
}

#ifdef QUANTIZED
LINE line_b(uint n, uint k, uint j)
{
    const bool inside = B_BY_K ? is_column(n + j) && is_k(k) : is_k(k + j) && is_column(n);
    const uint row = B_BY_K ? n + j : k + j, i = B_BY_K ? pc.b_first + k : n;
    return inside ? LINE_OF(quantized4(FORMAT, pc.b_base + row * pc.b_ld, i)) : LINE(0);
}
#else
LINE run_b(uint at, uint n)
{
    at += pc.b_base + gl_WorkGroupID.z * pc.b_batch;
    if ((VECTORS & 2u) != 0u) return LOAD_LINE(GEMM_SHARED_B, b4, at / 4u);
    vec4 v = vec4(0.0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (i < n) v[i] = b[at + i];
    return LINE_OF(v);
}

LINE line_b(uint n, uint k, uint j)
{
    if (B_BY_K) return is_column(n + j) && is_k(k) ? run_b((n + j) * pc.b_ld + k, pc.K - k) : LINE(0);
    return is_k(k + j) && is_column(n) ? run_b((k + j) * pc.b_ld + n, pc.N - n) : LINE(0);
}
#endif

#ifdef COOP2
// Returns whether the position (row, column) is inside C.
bool is_sum(uvec2 at) { return is_row(at.x) && is_column(at.y); }

// Returns v plus the bias (BIAS), plus the value in C (ACCUMULATE; C is f32). For a position outside C, returns v.
// row, column: position of v in the matrix of sums. corner: row and column of the tile's first element in C.
// base: index of C's first element.
float add_to(const in uint row, const in uint column, const in float v, const in uvec2 corner, const in uint base)
{
    const uvec2 at = corner + uvec2(sum_row(row), sum_column(column));
    if (!is_sum(at)) return v;
    const float sum = BIAS ? v + bias[at.y] : v;
    return ACCUMULATE ? c[base + at.x * pc.c_ld + at.y] + sum : sum;
}

// Stores the sum v. A driver may call this function several times for an element, always with the same value.
float put_sum(const in uint row, const in uint column, const in float v, const in uvec2 corner, const in uint base)
{
    const uvec2 at = corner + uvec2(sum_row(row), sum_column(column));
    const uint i = base + at.x * pc.c_ld + at.y;
    const float y = as_stored(vec4(v)).x;
    if (!is_sum(at)) return v;
    if (STORED_AS(GEMM_SHARED_C) == STORAGE_F32) c[i] = y;
    else c_half[i] = float16_t(y);
    return v;
}

void store_tile(uint m0, uint n0)
{
    const uint base = pc.c_base + gl_WorkGroupID.z * pc.c_batch + gl_WorkGroupID.y * pc.part;
    if (BIAS || ACCUMULATE) coopMatPerElementNV(sums, sums, add_to, uvec2(m0, n0), base);
    // No lane may read an element of C that another lane has stored already. barrier() orders only shared memory.
    if (ACCUMULATE)
        controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,
                       gl_SemanticsAcquireRelease);
    coopMatPerElementNV(sums, sums, put_sum, uvec2(m0, n0), base);
}
#else
void store(uint at, uint columns, vec4 v)
{
    if ((VECTORS & 4u) != 0u) {
        STORE4(c4, at / 4u, ACCUMULATE ? LOAD4(c4, at / 4u) + v : v);
    } else {
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (i < columns) c[at + i] = ACCUMULATE ? c[at + i] + v[i] : v[i];
    }
}

void store_tile(uint m0, uint n0)
{
    const uint base = pc.c_base + gl_WorkGroupID.z * pc.c_batch + gl_WorkGroupID.y * pc.part;
    [[unroll]] for (uint j = 0; j < TN / 4; j++) {
        const uint n = n0 + tile_column(4 * j);
        if (!is_column(n)) continue;
        const uint columns = min(pc.N - n, 4u);
        vec4 add = vec4(0.0);
        if (BIAS) {
            [[unroll]] for (uint i = 0; i < 4; i++)
                if (i < columns) add[i] = bias[n + i];
        }
        [[unroll]] for (uint i = 0; i < TM; i++) {
            const uint m = m0 + tile_row(i);
            if (is_row(m)) store(base + m * pc.c_ld + n, columns, acc[i * TN / 4 + j] + add);
        }
    }
}
#endif

void main()
{
    const uint k = gl_WorkGroupID.y * pc.slice;
    for (uint id = gl_WorkGroupID.x; id < tile_count(pc.M, pc.N); id += gl_NumWorkGroups.x) {
        const uvec2 at = tile_at(id, pc.M, pc.N);
        multiply(at.x, at.y, k, min(k + pc.slice, pc.K));
        store_tile(at.x, at.y);
    }
}
