// robust_dx.comp - the gradient of robust.comp with respect to y:  dy = dloss[b] scale (y - t) / sqrt((y - t)^2 + eps^2) for a
// real row, else 0. `scale` is batch / real rows.
#version 450
layout(local_size_x = 8, local_size_y = 4) in;
layout(push_constant) uniform Push { uint batch, width; float eps; } pc;
layout(binding = 0) readonly buffer Y { float y[]; };
layout(binding = 1) readonly buffer T { float t[]; };
layout(binding = 2) readonly buffer Step { uint step_words[]; };
layout(binding = 3) readonly buffer DLoss { float dloss[]; };
layout(binding = 4) writeonly buffer DY { float dy[]; };

void main()
{
    const uint b = gl_GlobalInvocationID.x, k = gl_GlobalInvocationID.y, rows = min(step_words[2], pc.batch);
    if (b >= pc.batch || k >= pc.width) return;
    const uint i = b * pc.width + k;
    const float d = y[i] - t[i], slope = d / sqrt(d * d + pc.eps * pc.eps);
    dy[i] = b < rows ? dloss[b] * slope * float(pc.batch) / float(rows) : 0.0;
}
