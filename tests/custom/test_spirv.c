/* Tests the reader of SPIR-V modules with compiled modules and with damaged ones. (fuzz/fuzz_spirv.c tests more damaged
 * modules.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "base/spirv.h"
#include "custom/modules.h"
#include "support/host.h"

static vkt_spirv read(const char *name)
{
    const vkt_host h = vkt_test_host();
    const module m = module_of(name);
    vkt_spirv s;
    assert_int_equal(vkt_spirv_read(&h, name, m.words, m.bytes, "main", &s), VKT_OK);
    return s;
}

static void expect_local(const vkt_spirv *s, uint32_t x, uint32_t y, uint32_t z)
{
    assert_true(s->local[0] == x && s->local[1] == y && s->local[2] == z);
}

/* Checks the resource with this binding. */
static void expect_variable(const vkt_spirv *s, uint32_t binding, bool is_buffer, bool reads, bool writes)
{
    uint32_t i = 0;
    while (i < s->n_variables && s->variables[i].binding != binding) i++;
    assert_true(i < s->n_variables);
    const vkt_spirv_variable *v = &s->variables[i];
    assert_true(v->is_buffer == is_buffer && v->reads == reads && v->writes == writes);
}

static void finds_bindings_and_push_constants(void **state)
{
    (void)state;
    vkt_spirv s = read("wave_dx"); /* SPIR-V 1.6 */
    expect_local(&s, 64, 1, 1);
    assert_true(s.n_variables == 5 && s.push_bytes == 4 && s.shared_bytes == 0 && s.other == 0);
    assert_int_equal(s.capabilities, VKT_CAPABILITY_BIT(SHADER));
    expect_variable(&s, 0, true, true, false);
    expect_variable(&s, 1, true, true, false);
    expect_variable(&s, 4, true, true, false);
    expect_variable(&s, 2, true, false, true);
    expect_variable(&s, 7, true, false, true);
    s = read("relu_dx"); /* SPIR-V 1.0: a storage buffer has the class Uniform and the decoration BufferBlock */
    expect_local(&s, 32, 1, 1);
    assert_true(s.n_variables == 3 && s.push_bytes == 4);
    expect_variable(&s, 0, true, true, false);
    expect_variable(&s, 2, true, false, true);
    s = read("draw");
    expect_variable(&s, 2, true, true, true); /* neither readonly nor writeonly */
    s = read("robust_dx");
    expect_local(&s, 8, 4, 1);
    assert_int_equal(s.push_bytes, 12);
    s = read("odd12"); /* push constants: vec3 at byte 16, mat3 at byte 32, float[4] at byte 80 */
    assert_int_equal(s.push_bytes, 96);
}

static void finds_other_resources(void **state)
{
    (void)state;
    vkt_spirv s = read("odd4");
    assert_true(s.variables[0].set == 1 || s.variables[1].set == 1);
    s = read("odd5");
    expect_variable(&s, 0, false, true, true);
    s = read("odd6");
    assert_false(s.variables[0].is_buffer && s.variables[1].is_buffer);
    s = read("odd7");
    assert_false(s.variables[0].is_buffer && s.variables[1].is_buffer);
}

static void finds_work_groups_shared_memory_and_capabilities(void **state)
{
    (void)state;
    vkt_spirv s = read("odd0");
    expect_local(&s, 4, 2, 3);
    s = read("odd2");
    expect_local(&s, 1024, 1024, 64);
    s = read("odd3"); /* specialization constants */
    expect_local(&s, 4, 2, 1);
    s = read("odd11");
    assert_int_equal(s.shared_bytes, 4 << 20);
    s = read("odd1");
    assert_int_equal(s.capabilities, VKT_CAPABILITY_BIT(SHADER) | VKT_CAPABILITY_BIT(FLOAT64));
}

/* Changes each word of each module to several other words, and truncates each module before each word. Checks that the
 * reader returns a status. A sanitizer sees reads out of bounds. */
static void damaged_modules_have_a_status(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    unsigned refused = 0, read = 0;
    vkt_test_expect_errors(true);
    for (size_t m = 0; module_at(m).name; m++) {
        const size_t n = module_at(m).bytes / 4;
        uint32_t *words = test_malloc(n * sizeof *words);
        memcpy(words, module_at(m).words, n * sizeof *words);
        for (size_t i = 0; i < n; i++) {
            const uint32_t was = words[i],
                           others[] = { 0, UINT32_MAX, was ^ 1, was + 0x10000, was - 0x10000, was >> 16 };
            for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
                vkt_spirv s;
                words[i] = others[k];
                *(vkt_spirv_read(&h, "damaged", words, n * 4, "main", &s) == VKT_OK ? &read : &refused) += 1;
            }
            words[i] = was;
        }
        for (size_t i = 0; i < n; i++) {
            vkt_spirv s;
            uint32_t *part = test_malloc(i * sizeof *part + 1); /* a sanitizer sees a read of a word behind the end */
            memcpy(part, words, i * sizeof *part);
            const vkt_result r = vkt_spirv_read(&h, "truncated", part, i * 4, "main", &s);
            assert_true(r == VKT_E_FORMAT || r == VKT_E_NOT_FOUND);
            test_free(part);
        }
        test_free(words);
    }
    vkt_test_expect_errors(false);
    assert_true(refused > 1000 && read > 1000);
}

static void headers_are_checked(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const module m = module_of("wave");
    const struct {
        size_t at;
        uint32_t word;
        vkt_result result;
        const char *message;
    } cases[] = {
        { 0, 0x12345678, VKT_E_FORMAT, "it does not begin with 0x07230203" },
        { 0, 0x03022307, VKT_E_FORMAT, "its bytes are in the other order" },
        { 1, 0x00010700, VKT_E_UNSUPPORTED, "SPIR-V version 1.7; Vulkan 1.3 has versions up to 1.6" },
        { 3, 0, VKT_E_FORMAT, "want 1 to 4194304 ids" },
        { 5, 0x00000011, VKT_E_FORMAT, "word 5: an instruction ends behind the module" },
        { 5, 0x00010011, VKT_E_FORMAT, "word 5: an instruction is too short" },
    };
    uint32_t *words = test_malloc(m.bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vkt_spirv s;
        memcpy(words, m.words, m.bytes);
        words[cases[i].at] = cases[i].word;
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_spirv_read(&h, "header", words, m.bytes, "main", &s), cases[i].result);
        vkt_test_expect_errors(false);
        vkt_test_error_contains(cases[i].message);
    }
    test_free(words);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = { TEST(finds_bindings_and_push_constants), TEST(finds_other_resources),
                                        TEST(finds_work_groups_shared_memory_and_capabilities),
                                        TEST(damaged_modules_have_a_status), TEST(headers_are_checked) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
