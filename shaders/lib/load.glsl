// load.glsl - vec4 loads from a read-only binding: a texel buffer in a kernel's texel variant, else a storage buffer.
// On CPU drivers the texel load is the only one without a per-lane loop; on GPUs the storage buffer is as fast.
// VKT_IN4(binding, name) declares; LOAD4(name, i) reads floats 4i .. 4i+3. The index must be inside the binding: what an
// index outside gives differs between the two.
#ifdef VKT_TEXEL
#define VKT_IN4(slot, name) layout(binding = slot, rgba32f) uniform readonly imageBuffer name
#define LOAD4(name, i) imageLoad(name, int(i))
#else
#define VKT_IN4(slot, name) layout(binding = slot, std430) readonly buffer name##_block { vec4 name[]; }
#define LOAD4(name, i) name[i]
#endif
