// row_norm.glsl - loads WIDTH neighbouring elements of a row of x or dy, and adds them up: see abi/row_norm.abi.h
//   WIDTH 4: pc.run is a multiple of 4. Either pc.inner is a multiple of 4, or pc.inner is 1 and pc.channels is a
//   multiple of 4.
layout(constant_id = ROW_NORM_SPEC_RMS) const uint RMS = 0;
#if WIDTH == 4
#define NUMBER vec4
VKT_IN4(ROW_NORM_X, x4);
#define X(i) LOAD4(x4, (i) / 4)
#ifdef WITH_DY
VKT_IN4(ROW_NORM_DY, dy4);
#define DY(i) LOAD4(dy4, (i) / 4)
#endif
float across(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}
#else
#define NUMBER float
layout(binding = ROW_NORM_X, std430) readonly buffer BlockX { float x[]; };
#define X(i) x[i]
#ifdef WITH_DY
layout(binding = ROW_NORM_DY, std430) readonly buffer BlockDy { float dy[]; };
#define DY(i) dy[i]
#endif
float across(float v)
{
    return v;
}
#endif
