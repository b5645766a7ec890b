// mlp_vec.glsl - the samples of a tile that one lane of mlp.comp holds: UNITS of ELEMENTS each.
#ifdef NARROW
#define VEC float
#define STORED float // what lib/load.glsl makes of a VEC that is stored
#define UNITS 1
#define ELEMENTS 1
#define ELEMENT(v, c) (v)
#define VEC_IN(slot, name) layout(binding = slot, std430) readonly buffer name##_block { float name[]; }
#define LOAD_VEC(name, i) name[i]
#define BELOW bool
vec4 vec4_of(float v) { return vec4(v, 0, 0, 0); }
bool below(uint i, uint n) { return i < n; }
float relu(float v) { return v < 0.0 ? 0.0 : v; }             // NaN passes
float gate(float d, float h) { return h <= 0.0 ? 0.0 : d; }   // its gradient
#else
#define VEC vec4
#define STORED STORED4
#define UNITS 2
#define ELEMENTS 4
#define ELEMENT(v, c) (v)[c]
#define VEC_IN VKT_IN4
#define LOAD_VEC LOAD4
#define BELOW bvec4
vec4 vec4_of(vec4 v) { return v; }
bvec4 below(uint i, uint n) { return lessThan(4 * i + uvec4(0, 1, 2, 3), uvec4(n)); }
vec4 relu(vec4 v) { return mix(v, vec4(0), lessThan(v, vec4(0))); }
vec4 gate(vec4 d, vec4 h) { return mix(d, vec4(0), lessThanEqual(h, vec4(0))); }
#endif
// Memory that the kernel itself writes, by name##_out[i] = TO_STORED(v), and reads again, by AGAIN(name, i): bindings slot and slot + 1, but for
// NARROW, which reads the second.
#ifdef NARROW
#define SCRATCH(slot, type, name) layout(binding = slot + 1, std430) coherent buffer name##_block { type name##_out[]; }
#define AGAIN(name, i) name##_out[i]
#else
#ifdef VKT_TEXEL
#define SCRATCH_IN(slot, name) layout(binding = slot, rgba32ui) uniform coherent readonly uimageBuffer name##_in
#else
#define SCRATCH_IN(slot, name) layout(binding = slot, std430) coherent readonly buffer name##_in_block { vec4 name##_in[]; }
#endif
#define SCRATCH(slot, type, name) \
    SCRATCH_IN(slot, name);       \
    layout(binding = slot + 1, std430) coherent writeonly buffer name##_block { type name##_out[]; }
#ifdef VKT_TEXEL
#define AGAIN(name, i) uintBitsToFloat(imageLoad(name##_in, int(i)))
#else
#define AGAIN(name, i) name##_in[i]
#endif
#endif
