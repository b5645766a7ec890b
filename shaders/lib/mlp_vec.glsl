// mlp_vec.glsl - types and loads of mlp.comp. A lane holds UNITS VECs of each row of a tile, and a VEC has ELEMENTS samples.
#ifdef NARROW
#define VEC float
#define UNITS 1
#define ELEMENTS 1
#define ELEMENT(v, c) (v)
#define VEC_IN(slot, name) layout(binding = slot, std430) readonly buffer name##_block { float name[]; }
#define LOAD_VEC(name, i) name[i]
#define VEC_OUT(slot, access, name)                                              \
    layout(binding = slot, std430) access buffer name##_block { float name##_stored[]; }; \
    void name##_put(uint i, float v) { name##_stored[i] = v; }
#define BELOW bool
vec4 vec4_of(float v) { return vec4(v, 0, 0, 0); }
bool below(uint i, uint n) { return i < n; }
float relu(float v) { return v < 0.0 ? 0.0 : v; }             // NaN stays NaN
float gate(float d, float h) { return h <= 0.0 ? 0.0 : d; }   // gradient of relu
#else
#define VEC vec4
#define UNITS 2
#define ELEMENTS 4
#define ELEMENT(v, c) (v)[c]
#define VEC_IN VKT_IN4
#define LOAD_VEC LOAD4
#define VEC_OUT VKT_STORED
#define BELOW bvec4
vec4 vec4_of(vec4 v) { return v; }
bvec4 below(uint i, uint n) { return lessThan(4 * i + uvec4(0, 1, 2, 3), uvec4(n)); }
vec4 relu(vec4 v) { return mix(v, vec4(0), lessThan(v, vec4(0))); }
vec4 gate(vec4 d, vec4 h) { return mix(d, vec4(0), lessThanEqual(h, vec4(0))); }
#endif
// VEC_SCRATCH declares an array of VECs, and SCRATCH declares an array of vec4s. The kernel writes element i of the array by
// name_put(i, v), which uses binding slot + 1. The kernel reads element i by AGAIN(name, i), which uses binding `slot`, or with
// NARROW binding slot + 1.
#ifdef NARROW
#define VEC_SCRATCH(slot, name) VEC_OUT(slot + 1, coherent, name)
#define SCRATCH(slot, name) VKT_STORED(slot + 1, coherent, name)
#define AGAIN(name, i) name##_stored[i]
#else
#ifdef VKT_TEXEL
#define SCRATCH_IN(slot, name) layout(binding = slot, rgba32ui) uniform coherent readonly uimageBuffer name##_in;
#define AGAIN(name, i) uintBitsToFloat(imageLoad(name##_in, int(i)))
#else
#define SCRATCH_IN(slot, name) layout(binding = slot, std430) coherent readonly buffer name##_in_block { vec4 name##_in[]; };
#define AGAIN(name, i) name##_in[i]
#endif
#define SCRATCH(slot, name) SCRATCH_IN(slot, name) VKT_STORED(slot + 1, coherent writeonly, name)
#define VEC_SCRATCH SCRATCH
#endif
