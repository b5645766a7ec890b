/* ops/large.c - see large.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/large.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/host.h"

float *large_random(uint64_t n, uint32_t stream)
{
    vkt_rng r = vkt_rng_make(3, VKT_STREAM_TEST, stream, 0);
    float *f = malloc(n * sizeof *f);
    assert_non_null(f);
    for (uint64_t i = 0; i < n; i++) f[i] = vkt_rng_uniform(&r, -1, 1);
    return f;
}

void large_skip_if_small(void)
{
    harness_needs(harness_ctx);
    if (vkt_env_int("VKT_TEST_SMALL", 0)) {
        puts("SKIPPED: tensors larger than a binding: VKT_TEST_SMALL is set");
        skip();
    }
}

static size_t elements(const job *j, vkt_tensor t)
{
    return (size_t)vkt_shape_elements(vkt_tensor_shape(j->g, t));
}

void job_begin(job *j, vkt_layout layout, vkt_shape a, vkt_shape b)
{
    const vkt_host h = vkt_test_host();
    *j = (job){ NULL };
    assert_int_equal(vkt_graph_create(&h, &j->g), VKT_OK);
    j->a = vkt_input(j->g, "a", VKT_F32, layout, a);
    j->b = vkt_input(j->g, "b", VKT_F32, VKT_ROWS, b);
    j->n_a = elements(j, j->a);
    j->n_b = elements(j, j->b);
    j->in_a = large_random(j->n_a, 1);
    j->in_b = large_random(j->n_b, 2);
}

bool job_run(job *j, vkt_tensor y)
{
    j->y = y;
    j->n_y = elements(j, y);
    vkt_keep(j->g, y);
    const vkt_result r = vkt_program_create(harness_ctx, j->g, NULL, NULL, &j->p);
    if (r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY) return false;
    assert_int_equal(r, VKT_OK);
    j->out = malloc(j->n_y * sizeof *j->out);
    assert_non_null(j->out);
    assert_int_equal(vkt_program_write(j->p, j->a, j->in_a, j->n_a * sizeof *j->in_a), VKT_OK);
    assert_int_equal(vkt_program_write(j->p, j->b, j->in_b, j->n_b * sizeof *j->in_b), VKT_OK);
    assert_int_equal(vkt_program_run(j->p, NULL, NULL), VKT_OK);
    assert_int_equal(vkt_program_read(j->p, y, j->out, j->n_y * sizeof *j->out), VKT_OK);
    return true;
}

void job_end(job *j)
{
    vkt_program_destroy(&j->p);
    vkt_graph_destroy(&j->g);
    free(j->in_a);
    free(j->in_b);
    free(j->out);
}

void large_skip_for_memory(job *j)
{
    puts("SKIPPED: tensors larger than a binding: not enough memory");
    job_end(j);
    skip();
}
