/* Tests the enums whose numbers must not change, because checkpoints or test cases contain them. The comments at these
 * enums contain the word ORDER. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "vktrain/data.h"
#include "vktrain/optim.h"
#include "vktrain/train.h"

static void monitors_of_checkpoints_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(VKT_MONITOR_AUTO, 0);
    assert_int_equal(VKT_MONITOR_VAL_ACC, 1);
    assert_int_equal(VKT_MONITOR_VAL_LOSS, 2);
    assert_int_equal(VKT_MONITOR_TRAIN_ACC, 3);
    assert_int_equal(VKT_MONITOR_TRAIN_LOSS, 4);
    assert_int_equal(VKT_MONITOR_METRIC, 5);
}

static void kinds_of_optimizers_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(VKT_SGD, 0);
    assert_int_equal(VKT_ADAM, 1);
    assert_int_equal(VKT_ADAMW, 2);
    assert_int_equal(VKT_NADAM, 3);
    assert_int_equal(VKT_RMSPROP, 4);
    assert_int_equal(VKT_ADAGRAD, 5);
}

static void types_of_rows_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(VKT_ROW_U8, 0);
    assert_int_equal(VKT_ROW_F32, 1);
    assert_int_equal(VKT_ROW_U16, 2);
    assert_int_equal(VKT_ROW_U32, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monitors_of_checkpoints_keep_their_numbers),
        cmocka_unit_test(kinds_of_optimizers_keep_their_numbers),
        cmocka_unit_test(types_of_rows_keep_their_numbers),
    };
    return cmocka_run_group_tests_name("enums in files", tests, NULL, NULL);
}
