// odd.comp - a small shader. CASE selects an unusual feature (0: none). Custom ops refuse most of these features.
#version 450
#if CASE == 1 // the capability Float64, which vktrain does not enable
#extension GL_EXT_shader_explicit_arithmetic_types_float64 : require
#endif
#if CASE == 2 // work groups that are too large for every device
layout(local_size_x = 1024, local_size_y = 1024, local_size_z = 64) in;
#elif CASE == 3 // specialization constants set the size of a work group
layout(local_size_x_id = 5, local_size_y_id = 6) in;
layout(local_size_x = 4, local_size_y = 2) in;
#else
layout(local_size_x = 4, local_size_y = 2, local_size_z = 3) in;
#endif
#if CASE == 4 // another descriptor set
layout(set = 1, binding = 0) readonly buffer X { float x[]; };
#elif CASE == 5 // a uniform block
layout(binding = 0) uniform X { vec4 u[16]; };
#elif CASE == 6 // an array of buffer blocks
layout(binding = 0) readonly buffer X { float x[]; } xs[2];
#elif CASE == 7 // an image
layout(binding = 0, r32f) uniform readonly image2D x;
#elif CASE == 8 // not readonly
layout(binding = 0) buffer X { float x[]; };
#else
layout(binding = 0) readonly buffer X { float x[]; };
#endif
#if CASE == 9 // readonly
layout(binding = 1) readonly buffer Y { float y[]; };
#elif CASE == 10 // a binding above 11
layout(binding = 12) writeonly buffer Y { float y[]; };
#else
layout(binding = 1) writeonly buffer Y { float y[]; };
#endif
#if CASE == 11 // more shared memory than devices have
shared float big[1 << 20];
#endif
#if CASE == 12 // push constants with offsets, a matrix and an array
layout(push_constant) uniform Push { layout(offset = 16) vec3 v; layout(offset = 32) mat3 m; float a[4]; } pc;
#elif CASE == 13 // two buffer blocks with the same binding
layout(binding = 1) readonly buffer Z { float z[]; };
#endif

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    float v = 1.0;
#if CASE == 1
    v = float(sin(v) * float(float64_t(v)));
#elif CASE == 5
    v = u[i].x;
#elif CASE == 6
    v = xs[0].x[i];
#elif CASE == 7
    v = imageLoad(x, ivec2(i, 0)).x;
#elif CASE == 11
    big[i] = x[i];
    barrier();
    v = big[i ^ 1];
#elif CASE == 12
    v = x[i] + pc.v.x + pc.m[2][2] + pc.a[3];
#elif CASE == 13
    v = x[i] + z[i];
#else
    v = x[i];
#endif
#if CASE != 9
    y[i] = v;
#else
    if (y[i] > v) return;
#endif
}
