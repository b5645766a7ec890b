// custom_loss.comp - a loss that outliers hardly change: loss[b] = sqrt(d^2 + eps^2) - eps with d = y[b] - t[b].
// With GRADIENT, dy[b] = dloss[b] d / sqrt(d^2 + eps^2). (Charbonnier et al., Two deterministic half-quadratic
// regularization algorithms for computed imaging, 1994.)
//
// The last batch of an epoch may have fewer real rows. vkt_mean divides by all rows. So this shader multiplies the loss
// of a real row by batch / rows, and the loss of each row after the real ones is 0.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint batch; float eps; } pc; // the struct of custom_loss.c
layout(binding = 0) readonly buffer Y { float y[]; };
layout(binding = 1) readonly buffer T { float t[]; };
layout(binding = 2) readonly buffer Step { uint step_words[]; };  // word 2: VKT_STEP_ROWS
#ifdef GRADIENT
layout(binding = 3) readonly buffer DLoss { float dloss[]; };
layout(binding = 4) writeonly buffer DY { float dy[]; };
#else
layout(binding = 3) writeonly buffer Loss { float loss[]; };
#endif

void main()
{
    const uint b = gl_GlobalInvocationID.x, rows = min(step_words[2], pc.batch);
    if (b >= pc.batch) return; // the last work group has more invocations than elements
    const float d = y[b] - t[b], root = sqrt(d * d + pc.eps * pc.eps);
    const float weight = b < rows ? float(pc.batch) / float(rows) : 0.0;
#ifdef GRADIENT
    dy[b] = dloss[b] * weight * d / root;
#else
    loss[b] = weight * (root - pc.eps);
#endif
}
