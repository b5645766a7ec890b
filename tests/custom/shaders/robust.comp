// robust.comp - a loss per row: loss[b] = scale * (sum over k of (sqrt((y - t)^2 + eps^2) - eps)) for a real row, else
// 0. `scale` is batch / real rows, so that the mean over the batch is the mean over the real rows. (Charbonnier et al.,
// Two deterministic half-quadratic regularization algorithms for computed imaging, 1994.)
#version 450
layout(local_size_x = 8) in;
layout(push_constant) uniform Push { uint batch, width; float eps; } pc;
layout(binding = 0) readonly buffer Y { float y[]; };
layout(binding = 1) readonly buffer T { float t[]; };
layout(binding = 2) readonly buffer Step { uint step_words[]; };
layout(binding = 3) writeonly buffer Loss { float loss[]; };

void main()
{
    const uint b = gl_GlobalInvocationID.x, rows = min(step_words[2], pc.batch);
    if (b >= pc.batch) return;
    float sum = 0.0;
    for (uint k = 0; k < pc.width; k++) {
        const float d = y[b * pc.width + k] - t[b * pc.width + k];
        sum += sqrt(d * d + pc.eps * pc.eps) - pc.eps;
    }
    loss[b] = b < rows ? sum * float(pc.batch) / float(rows) : 0.0;
}
