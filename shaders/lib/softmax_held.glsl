// softmax_held.glsl - held_line() computes the same as line() of softmax.comp, but the work group keeps the line in
// registers. So each line is read once. Deterministic: the additions are the same as in line(), in the same order.
// HELD is the number of VECs of a line that a lane keeps. It is at most SPAN, the number of terms of a partial sum in
// line(). So each lane has only one partial sum in line() too.
layout(constant_id = SOFTMAX_SPEC_HELD) const uint HELD = 0;
const uint HOLDS = HELD == 0 ? 1 : HELD;

#ifdef DX
void held_line(uint at, uint all, uint n, uint visible)
{
    VEC v[HOLDS], g[HOLDS], sum = VEC(0.0);
    for (uint i = 0; i < HOLDS; i++) {
        const uint k = FIRST + i * STEP, from = at + min(k, n - 1);
        v[i] = LOAD(from);
        g[i] = LOAD_DY(from);
        if (k < n) sum += seen(LOG != 0 ? g[i] : g[i] * v[i], k, visible, 0.0);
    }
    sum = VEC(total(sum));
    for (uint i = 0; i < HOLDS; i++) {
        const uint k = FIRST + i * STEP;
        const VEC dx = LOG != 0 ? g[i] - exp_1ulp(v[i]) * sum : v[i] * (g[i] - sum);
        if (k < all) STORE(at + k, seen(pc.scale * dx, k, visible, 0.0));
    }
}
#else
void held_line(uint at, uint all, uint n, uint visible)
{
    VEC v[HOLDS], m = VEC(LOWEST), rest = VEC(0.0), top = VEC(0.0);
    for (uint i = 0; i < HOLDS; i++) {
        v[i] = z(at, min(FIRST + i * STEP, n - 1), visible);
        m = max(m, v[i]);
    }
    m = VEC(largest(m));
    for (uint i = 0; i < HOLDS; i++)
        if (FIRST + i * STEP < n) {
            rest += mix(exp_1ulp(v[i] - m), v[i] - m, SAME(v[i], m)); // if v = m, the term is 0, or NaN for infinite v
            top += mix(VEC(0.0), VEC(1.0), SAME(v[i], m));
        }
    rest = VEC(total(rest));
    top = VEC(total(top));
    const VEC inverse = 1.0 / (top + rest), logarithm = log1p_1ulp(top - 1.0 + rest);
    for (uint i = 0; i < HOLDS; i++) {
        const uint k = FIRST + i * STEP;
        const VEC d = (k < n ? v[i] : VEC(LOWEST)) - m;
        if (k < all) STORE(at + k, LOG != 0 ? d - logarithm : exp_1ulp(d) * inverse);
    }
}
#endif
