// cross_entropy.glsl - the options of cross-entropy for softmax_xent.comp (OPTIONS): class weights, label smoothing, ignored
// labels, one loss per row. NLL is the variant for log-probabilities. Without OPTIONS this file adds no work.
#ifdef OPTIONS
layout(constant_id = XENT_SPEC_WEIGHTED) const uint WEIGHTED = 0;
layout(constant_id = XENT_SPEC_SMOOTH) const uint SMOOTH = 0;
layout(constant_id = XENT_SPEC_EACH) const bool EACH = false;
layout(binding = XENT_WEIGHT, std430) readonly buffer Weight { float weight[]; };
layout(binding = XENT_NORM, std430) writeonly buffer Norm { float norm[]; };
// Sum over this lane's rows in the current block: the class weight of the row's label. A row is left out if it is not
// real, or if its label is ignored or no class. EACH does not use this sum.
float counted = 0.0;
float weight_of(uint k) { return WEIGHTED != 0 ? weight[k] : 1.0; }

// Returns the loss of a row: 0 for the ignored label, NaN for a label that is not a class. lse = log sum exp(z - m),
// where m is the maximum of z. miss = m - z[t]. slack = sum of w * (m - z). all = sum of w. The sums are over the
// classes. slack and all are 0 without SMOOTH. NLL: m, lse, slack and all are 0. factor: the coefficient of softmax(z)
// in the gradient of z.
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

// Stores the loss of row b if each row has its own loss (EACH). Returns the loss.
float keep(uint b, float loss)
{
#ifdef OPTIONS
    if (EACH) part[b] = loss;
#endif
    return loss;
}

#ifdef NLL
layout(binding = XENT_Z, std430) readonly buffer Z { float z[]; };

// Returns the loss of this lane's row, 0 past the real rows.
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
