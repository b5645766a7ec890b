/* Checks that docs/ops.md agrees with the op descriptors of ops.def. If you change a descriptor, run this test with
 * VKT_UPDATE_GOLDEN=1, which writes docs/ops.md again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "ops/ops.h"
#include "support/host.h"

#define TABLE VKT_TEST_DIR "/../docs/ops.md"

static void add_text(vkt_text *t, const char *text)
{
    for (const char *c = text; *c; c++) vkt_text_add(t, *c == '|' ? "\\|" : "%c", *c); /* a bar would end the cell */
}

/* Adds two cells. The first has the number of inputs of an op ("1 to 3"), without inputs that vkt_apply appends. The
 * second names the inputs that have gradients. */
static void add_inputs(vkt_text *t, const vkt_op *op)
{
    if (op->min_in == op->max_in)
        vkt_text_add(t, " | %u | ", op->min_in);
    else
        vkt_text_add(t, " | %u to %u | ", op->min_in, op->max_in);
    if (!op->diff) vkt_text_add(t, "none");
    bool first = true;
    for (uint32_t i = 0; i < VKT_MAX_IN; i++)
        if (op->diff >> i & 1) {
            vkt_text_add(t, "%s%u", first ? "" : ", ", i);
            first = false;
        }
}

static void add_row(vkt_text *t, const vkt_op *op)
{
    vkt_text_add(t, "| `%s`", op->name);
    add_inputs(t, op);
    vkt_text_add(t, " | ");
    add_text(t, op->formula);
    vkt_text_add(t, " | ");
    if (op->tested_by)
        vkt_text_add(t, "as `%s`", op->tested_by);
    else if (op->rel_tol == 0 && op->abs_tol == 0)
        vkt_text_add(t, "exact");
    else
        vkt_text_add(t, "%.2g relative, %.2g of the largest", (double)op->rel_tol, (double)op->abs_tol);
    vkt_text_add(t, " |\n");
}

static void the_table_in_the_docs_is_that_of_the_ops(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_text t = { .h = &h };
    vkt_text_add(
        &t,
        "# Ops\n\nAll ops of `engine/ops/ops.def`, as their descriptors say: `tests/ops/test_ops_table.c` writes this "
        "file. The public functions\nare in [ops.h](../include/vktrain/ops.h); [add-an-op.md](add-an-op.md) "
        "says how to add an op. Inputs are counted from 0. The tests\ncompare values and gradients of every "
        "kernel variant with double precision, within this tolerance.\n\n"
        "| op | inputs | gradients of | formula | tolerance |\n| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; vkt_ops[i]; i++) {
        if (!vkt_ops[i]->formula) fail_msg("%s has no formula", vkt_ops[i]->name);
        add_row(&t, vkt_ops[i]);
    }
    char *want, *have = NULL;
    size_t n;
    assert_int_equal(vkt_text_detach(&t, &want), VKT_OK);
    if (getenv("VKT_UPDATE_GOLDEN")) assert_int_equal(vkt_file_write(&h, TABLE, want, strlen(want)), VKT_OK);
    assert_int_equal(vkt_file_read(&h, TABLE, 1u << 20, (void **)&have, &n), VKT_OK);
    if (n != strlen(want) || memcmp(have, want, n) != 0)
        fail_msg("docs/ops.md is not what ops.def says: renew it with VKT_UPDATE_GOLDEN=1");
    vkt_free(&h, have);
    vkt_text_release(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_table_in_the_docs_is_that_of_the_ops) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
