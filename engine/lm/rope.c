/* lm/rope.c - the divisors of the frequencies of a model's rotary embedding, and the factor of its attention scores. */
#include <math.h>

#include "io/gguf.h"
#include "lm/lm.h"

/* The rotary embedding rotates pairs of numbers, each pair by an angle that grows with the token's position. YaRN
 * counts the full turns that a pair makes over rope_context tokens. A pair with more than YARN_FAST turns keeps its
 * frequency. The frequency of a pair with fewer than YARN_SLOW turns is divided by rope_factor. arXiv 2309.00071,
 * section 3.2, calls YARN_FAST beta and YARN_SLOW alpha. */
static const double YARN_FAST = 32, YARN_SLOW = 1;

/* Returns the index of the pair that makes `turns` full turns, as a real number: it may be between two pairs. */
static double pair_of_turns(const vkt_gguf_model *m, double turns)
{
    const double two_pi = 6.283185307179586;
    return m->rope_width * log(m->rope_context / (turns * two_pi)) / (2 * log(m->rope_base));
}

/* Returns the divisor that YaRN gives the frequency of pair j. */
static double yarn_divisor(const vkt_gguf_model *m, uint32_t j)
{
    const double first = fmax(floor(pair_of_turns(m, YARN_FAST)), 0);
    double last = fmin(ceil(pair_of_turns(m, YARN_SLOW)), m->rope_width - 1.0);
    if (last == first) last += 0.001;
    const double slow = fmin(fmax((j - first) / (last - first), 0), 1);
    return 1 / (1 - slow + slow / m->rope_factor);
}

vkt_result vkt_lm_rope(vkt_lm *m, const vkt_gguf *g, const vkt_gguf_model *model)
{
    const uint32_t n = model->rope_width / 2;
    const bool yarn = model->scaling == VKT_ROPE_YARN;
    m->attention_scale = (float)(1 / sqrt(model->head_width));
    if (!yarn && !model->rope_divisors) return VKT_OK;
    if (yarn && model->rope_width != model->head_width)
        return vkt_fail(&m->host, VKT_E_UNSUPPORTED,
                        "\"%s\": YaRN for %u of the %u numbers of a head is not read: want all of them",
                        vkt_gguf_path(g), model->rope_width, model->head_width);
    m->rope_factors = vkt_alloc_array(&m->host, n, sizeof *m->rope_factors);
    if (!m->rope_factors) return vkt_fail_nomem(&m->host, "frequencies", n * sizeof *m->rope_factors);
    for (uint32_t j = 0; j < n; j++) m->rope_factors[j] = 1;
    if (model->rope_divisors) VKT_TRY(vkt_gguf_read_f32(g, model->rope_divisors->name, 0, n, m->rope_factors));
    for (uint32_t j = 0; yarn && j < n; j++)
        m->rope_factors[j] = (float)((double)m->rope_factors[j] * yarn_divisor(model, j));
    /* YaRN multiplies sine and cosine by `length`, both for queries and for keys. So the scores are multiplied by the
     * square of `length`. For a rope_factor up to 1, `length` is 1, as in transformers (modeling_rope_utils.py). */
    const double length = yarn ? 1 + 0.1 * log(fmax(model->rope_factor, 1)) : 1;
    m->attention_scale = (float)(length * length / sqrt(model->head_width));
    return VKT_OK;
}
