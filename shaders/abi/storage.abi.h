/* storage.abi.h - how a binding that is declared by VKT_IN4, VKT_OUT4 or VKT_INOUT4 (lib/load.glsl) stores its numbers: two bits
 * for each binding of one specialisation constant, which every pipeline gets beside those of its kernel. */
#define STORAGE_SPEC 31
#define STORAGE_F32  0
#define STORAGE_F16  1
#define STORAGE_BF16 2
/* Beside these: a texel variant stores vec4s as they are, not as words of 64 bits. */
#define STORAGE_NO_WORDS64 0x80000000u
/* What VKT_OUT4 and VKT_INOUT4 store is max(v, 0), a NaN and -0 as they are: as UNARY_RELU of lib/unary.glsl. */
#define STORAGE_RELU 0x40000000u
