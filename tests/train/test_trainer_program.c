/* The recorded training step of the MNIST network, as text, must equal golden/mnist_program.txt. If you change a
 * kernel, the planner or the barriers on purpose, read the difference and write the file again with
 * VKT_UPDATE_GOLDEN=1. */
#include "train/rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "gpu/gpu.h"

#define PINNED VKT_TEST_DIR "/golden/mnist_program.txt"

/* Returns whether the device is like the one for which the file was written. Another device may use other kernels. The
 * file was written for lavapipe of Debian 12 with default settings: a CPU driver whose subgroups have eight lanes. */
static bool device_is_the_pinned_one(const vkt_ctx *ctx)
{
    const vkt_limits *l = &ctx->limits;
    return ctx->device_class == VKT_CLASS_CPU && l->subgroup_size == 8 && l->max_texel_elements > 0 &&
           strncmp(ctx->info.name, "llvmpipe", 8) == 0;
}

/* Prints the number of the first line that differs, and both lines from their first difference on. */
static void print_difference(const char *want, const char *got)
{
    int line = 1;
    while (*want && *want == *got) {
        line += *want == '\n';
        want++;
        got++;
    }
    print_error("line %d: want ...%.*s\n         got  ...%.*s\n", line, (int)strcspn(want, "\n"), want,
                (int)strcspn(got, "\n"), got);
}

static void the_recorded_mnist_step_is_the_pinned_one(void **state)
{
    rig *r = rig_of(state);
    if (!device_is_the_pinned_one(r->ctx)) {
        puts("SKIPPED: the pinned program is of lavapipe with eight lanes and texel loads");
        skip();
    }
    vkt_dataset *digits;
    assert_int_equal(vkt_dataset_digits(&r->h, 400, 1, &digits), VKT_OK);
    float dropout = 0.1f;
    vkt_trainer_params p = rig_params(r);
    p.model = (vkt_model){ .name = "MNIST network", .forward = rig_mnist_forward, .user = &dropout };
    p.train = digits;
    p.validation = NULL;
    p.batch = 128;
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    assert_int_equal(vkt_trainer_parameters(t), 53994);
    char *text, *pinned;
    size_t n;
    assert_int_equal(vkt_program_print(vkt_trainer_program(t), &text), VKT_OK);
    if (getenv("VKT_UPDATE_GOLDEN")) assert_int_equal(vkt_file_write(&r->h, PINNED, text, strlen(text)), VKT_OK);
    assert_int_equal(vkt_file_read(&r->h, PINNED, 1u << 20, (void **)&pinned, &n), VKT_OK);
    const bool same = strcmp(text, pinned) == 0;
    if (!same) print_difference(pinned, text);
    vkt_free(&r->h, pinned);
    vkt_text_release(&text);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&digits);
    assert_true(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(the_recorded_mnist_step_is_the_pinned_one) };
    return cmocka_run_group_tests_name("recorded program", tests, NULL, NULL);
}
