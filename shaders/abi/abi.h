/* abi.h - the macros of the headers abi/<name>.abi.h. The C compiler and glslang compile the same text.
 *
 *   VKT_PUSH(vkt_accumulate_push, VKT_U32(n4) VKT_U32(block))  the push-constant block: `pc` in GLSL, a struct in C
 *   #define ACCUMULATE_SUM 0                                   binding numbers and specialisation ids are plain macros
 *
 * Members are 32-bit scalars, so std430 and C have the same offsets. A test that needs a table of the members defines
 * VKT_PUSH, VKT_U32, VKT_I32 and VKT_F32 before it includes an abi header. */
#ifndef VKT_ABI_H
#define VKT_ABI_H
#ifdef VKT_GLSL
#define VKT_U32(name) uint name;
#define VKT_I32(name) int name;
#define VKT_F32(name) float name;
#define VKT_PUSH(type, members) layout(push_constant, std430) uniform type { members } pc;
#elif !defined(VKT_PUSH)
#include <stdint.h>
#define VKT_U32(name) uint32_t name;
#define VKT_I32(name) int32_t name;
#define VKT_F32(name) float name;
#define VKT_PUSH(type, members) typedef struct type { members } type;
#endif
#endif
