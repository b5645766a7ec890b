/* Tests vkt_module_unpack. It returns the words of a SPIR-V module of the library, or an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kernel/kernel.h"
#include "support/host.h"

/* Unpacks the module of VKT_K_CONV2D_TILE to *words, which the caller frees with vkt_free. Returns the module. */
static const vkt_module *unpack_one(const vkt_host *h, uint32_t **words)
{
    const vkt_module *m = &vkt_kernel_get(VKT_K_CONV2D_TILE)->spv;
    assert_int_equal(vkt_module_unpack(h, m, words), VKT_OK);
    assert_int_equal((*words)[0], 0x07230203); /* the magic number: SPIR-V specification 1.6, section 2.3 */
    return m;
}

static void modules_are_compressed_if_the_build_says_so(void **state)
{
    (void)state;
    size_t stored = 0, bytes = 0;
    for (int id = VKT_K_NONE + 1; id < VKT_K_COUNT; id++) {
        const vkt_kernel_entry *kernel = vkt_kernel_get((vkt_kernel_id)id);
        assert_true(kernel->spv.bytes > 0 && kernel->spv.stored <= kernel->spv.bytes);
        assert_int_equal(kernel->spv_texel.bytes > 0, kernel->texels != 0);
        stored += kernel->spv.stored;
        bytes += kernel->spv.bytes;
    }
    if (VKT_COMPRESSED)
        assert_true(stored < bytes / 2);
    else
        assert_int_equal(stored, bytes);
}

static void plain_words_are_copied(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    uint32_t *words, *again;
    const vkt_module *m = unpack_one(&h, &words);
    const vkt_module plain = { words, m->bytes, m->bytes };
    assert_int_equal(vkt_module_unpack(&h, &plain, &again), VKT_OK);
    assert_ptr_not_equal(again, words);
    assert_memory_equal(again, words, m->bytes);
    vkt_free(&h, again);
    vkt_free(&h, words);
}

static void damage_is_an_error(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    uint32_t *words;
    const vkt_module *m = unpack_one(&h, &words);
    vkt_free(&h, words);
    if (m->stored == m->bytes) return; /* without compression, damage is not found */
    const vkt_module damaged[] = { { m->data, m->stored - 1, m->bytes },
                                   { m->data, m->stored, m->bytes - 4 },
                                   { m->data, m->stored, m->bytes + 4 },
                                   { (const char *)m->data + 1, m->stored - 1, m->bytes } };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(damaged); i++) {
        assert_int_equal(vkt_module_unpack(&h, &damaged[i], &words), VKT_E_FORMAT);
        assert_null(words);
    }
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_module *m = &vkt_kernel_get(VKT_K_CONV2D_TILE)->spv;
    uint32_t *words;
    unsigned failures = 0;
    vkt_test_expect_errors(true);
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_module_unpack(&h, m, &words);
        const bool failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        assert_int_equal(!words, failed);
        vkt_free(&h, words);
        if (!failed) break;
        failures++;
    }
    /* There is an allocation for the words. With compression, zlib allocates, too. */
    assert_true(failures >= (m->stored < m->bytes ? 2 : 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(modules_are_compressed_if_the_build_says_so),
        TEST(plain_words_are_copied),
        TEST(damage_is_an_error),
        TEST(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
