// row_norm_held.glsl - `normalise` of row_norm.comp for a row that the lanes keep in registers, so the row is read once
// Deterministic: the additions are the same as in `normalise`, in the same order.
layout(constant_id = ROW_NORM_SPEC_HELD) const uint HELD = 0;
const uint HOLDS = HELD == 0 ? 1 : HELD;
// This lane holds at most HELD NUMBERs (WIDTH elements each) of the row. Executes `body` for each NUMBER. i counts
// the NUMBERs from 0, and k is the index in the row of the first element of NUMBER i.
#define EACH_HELD(i, k, body)                  \
    for (uint i = 0; i < HOLDS; i++) {         \
        const uint k = FIRST + i * STEP;       \
        if (k < pc.run) {                      \
            body                               \
        }                                      \
    }

#ifdef DX
void normalise_held(uint u)
{
    const uint row = pc.first + u, x_at = pc.x0 + u * pc.run, dy_at = pc.dy0 + u * pc.run, y_at = pc.y0 + u * pc.run;
    const uint channel = row % pc.groups * pc.channels;
    const float mean = RMS != 0 ? 0.0 : mean_of[row], scale = scale_of[row], n = float(pc.run);
    NUMBER d[HOLDS], x_held[HOLDS], a = NUMBER(0.0), b = NUMBER(0.0);
    EACH_HELD(i, k, {
        d[i] = DY(dy_at + k) * gamma_of(channel, 0, k);
        x_held[i] = X(x_at + k) - mean;
        a += d[i];
        b += d[i] * x_held[i];
    })
    const float m0 = RMS != 0 ? 0.0 : sum_of_lanes(across(a)) / n;
    const float m1 = sum_of_lanes(across(b)) / n * (scale * scale);
    EACH_HELD(i, k, { PUT(y_at + k, scale * (d[i] - m0 - x_held[i] * m1)); })
}
#else
void normalise_held(uint u)
{
    const uint row = pc.first + u, x_at = pc.x0 + u * pc.run, y_at = pc.y0 + u * pc.run;
    const uint channel = row % pc.groups * pc.channels;
    const float n = float(pc.run);
    NUMBER x_held[HOLDS], a = NUMBER(0.0), b = NUMBER(0.0);
    float mean = 0.0;
    EACH_HELD(i, k, {
        x_held[i] = X(x_at + k);
        a += x_held[i];
    })
    if (RMS == 0) mean = sum_of_lanes(across(a)) / n;
    a = NUMBER(0.0);
    EACH_HELD(i, k, {
        const NUMBER d = x_held[i] - mean;
        a += d;
        b += d * d;
    })
    const float left = RMS != 0 ? 0.0 : sum_of_lanes(across(a)) / n;
    mean += left;
    const float scale = 1.0 / sqrt(max(sum_of_lanes(across(b)) / n - left * left, 0.0) + pc.eps);
    EACH_HELD(i, k, { PUT(y_at + k, (x_held[i] - mean) * scale * gamma_of(channel, 0, k) + beta_of(channel, 0, k)); })
    if (gl_LocalInvocationID.x == 0) {
        if (RMS == 0) mean_of[row] = mean;
        scale_of[row] = scale;
    }
}
#endif
