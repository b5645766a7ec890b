/* storage.abi.h - the number format of a binding that VKT_IN4, VKT_OUT4 or VKT_INOUT4 (lib/load.glsl) declares.
 * Every pipeline gets the specialisation constant with the id STORAGE_SPEC, in addition to the kernel's own constants.
 * This constant has two bits for each binding: STORAGE_F32, STORAGE_F16 or STORAGE_BF16. */
#define STORAGE_SPEC 31
#define STORAGE_F32  0
#define STORAGE_F16  1
#define STORAGE_BF16 2
/* If this bit of the constant is set, the texel variant of a kernel (lib/load.glsl) stores whole vec4s, not 64-bit words. */
#define STORAGE_NO_WORDS64 0x80000000u
/* If this bit of the constant is set, VKT_OUT4 and VKT_INOUT4 store max(v, 0). NaN and -0 do not change, as in
 * UNARY_RELU of lib/unary.glsl. */
#define STORAGE_RELU 0x40000000u
