/* Tests how vkt-ntc chooses its grids for a limit of bits per pixel and channel. The file stays within the limit. The
 * grids use as much of the limit as possible: with one more feature in the last grid, the file would exceed the limit,
 * or the network would have too many inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ntc/plan.h"

static const double rates[] = { 0.2, 0.31, 0.5, 0.75, 1.0, 2.0 };

static ntc_set set_of(uint32_t channels, uint32_t side)
{
    ntc_set s = { .width = side, .height = side, .channels = channels, .hidden = 32 };
    for (uint32_t left = channels; left > 0; left -= s.textures[s.n_textures++].channels)
        s.textures[s.n_textures].channels = left >= 3 ? 3 : 1;
    return s;
}

/* Checks the plan (the grids that plan_grids chooses) for at most `bppc` bits per pixel and channel. Returns the bits
 * per pixel and channel of the file; 0: there is no plan. */
static double check_plan(uint32_t channels, uint32_t side, double bppc, bool bc4)
{
    ntc_set s = set_of(channels, side);
    if (plan_grids(&s, bppc, bc4) != VKT_OK) return 0;
    const double got = plan_bppc(&s);
    assert_true(s.n_grids >= 1 && s.n_grids <= NTC_MAX_GRIDS);
    assert_true(got <= bppc && ntc_inputs(&s) <= NTC_MAX_INPUTS);
    for (uint32_t i = 0; i < s.n_grids; i++) assert_true(s.grids[i].features >= 1 && (s.grids[i].bits == 0) == bc4);
    s.grids[s.n_grids - 1].features++;
    assert_true(plan_bppc(&s) > bppc || ntc_inputs(&s) > NTC_MAX_INPUTS);
    return got;
}

static void plans_fill_their_bits(void **state)
{
    (void)state;
    static const uint32_t channels[] = { 1, 3, 4, 7, 12 }, sides[] = { 256, 1024, 2048 };
    for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
        for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
            for (int bc4 = 0; bc4 < 2; bc4++) {
                bool fitted = false;
                for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
                    const double got = check_plan(channels[c], sides[i], rates[k], bc4);
                    assert_true(got > 0 || !fitted); /* if a limit has a plan, each larger limit has one */
                    fitted = got > 0;
                }
                assert_true(fitted);
            }
}

/* Usual materials have 3 channels (colour), 4 channels (colour and gloss) or 7 channels (colour, normals and gloss).
 * The limits from 0.2 to 1 bits per pixel and channel are usual, too. */
static void usual_materials_have_plans(void **state)
{
    (void)state;
    for (uint32_t side = 256; side <= 4096; side *= 2) {
        assert_true(check_plan(3, side, 0.5, false) > 0.4);
        assert_true(check_plan(4, side, 0.5, false) > 0.4);
        assert_true(check_plan(7, side, 0.2, false) > 0.15);
        assert_true(check_plan(7, side, 0.31, false) > 0.25);
        assert_true(check_plan(7, side, 1, false) > 0.95);
        assert_true(check_plan(7, side, 1, true) > 0.85);
    }
    assert_true(check_plan(3, 256, 0.05, false) == 0); /* the network alone needs more bits */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(plans_fill_their_bits),
                                        cmocka_unit_test(usual_materials_have_plans) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
