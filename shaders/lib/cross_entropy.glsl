// cross_entropy.glsl - what the options of cross-entropy make of a row's sums: softmax_xent.comp with OPTIONS, and its form NLL
// for log-probabilities. Without OPTIONS nothing of it is left.
#ifdef OPTIONS
layout(constant_id = XENT_SPEC_WEIGHTED) const uint WEIGHTED = 0;
layout(constant_id = XENT_SPEC_SMOOTH) const uint SMOOTH = 0;
layout(constant_id = XENT_SPEC_EACH) const bool EACH = false;
layout(binding = XENT_WEIGHT, std430) readonly buffer Weight { float weight[]; };
layout(binding = XENT_NORM, std430) writeonly buffer Norm { float norm[]; };
float counted = 0.0; // weights of the rows that this lane has seen
float weight_of(uint k) { return WEIGHTED != 0 ? weight[k] : 1.0; }

// A row's loss from log sum exp(z - m), m - z[t], and what the classes add up to: sum w (m - z), sum w. *factor: of p, in dz.
float loss_of(uint label, float lse, float miss, float slack, float all, out float factor)
{
    factor = 0.0;
    if (label == pc.ignore) return 0.0;
    if (label >= pc.classes) return NOT_A_NUMBER;
    const float w = weight_of(label), hard = pc.hard * w;
    counted += w;
    factor = hard;
    if (SMOOTH == 0) return hard * (lse + miss);
    factor += pc.soft * all;
    return hard * (lse + miss) + pc.soft * (all * lse + slack);
}
#else
const uint SMOOTH = 0;
float weight_of(uint k) { return 1.0; }
#endif

// The loss of row b, where it is a value of its own.
float keep(uint b, float loss)
{
#ifdef OPTIONS
    if (EACH) part[b] = loss;
#endif
    return loss;
}

#ifdef NLL
layout(binding = XENT_Z, std430) readonly buffer Z { float z[]; };

// The loss of this lane's row; 0 past the real rows.
float losses(uint vector, uint rows)
{
    const uint b = pc.first + vector * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (b >= pc.end) return 0.0;
    if (b >= rows) return keep(b, 0.0);
    const uint label = t[b];
    const float y = label < pc.classes ? z[(b - pc.first) * pc.row_stride + label * pc.class_stride] : 0.0;
    float factor;
    return keep(b, loss_of(label, 0.0, -y, 0.0, 0.0, factor));
}
#endif
