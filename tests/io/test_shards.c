/* Tests sharded safetensors: the files of an index are one set, a single file is a set too, and a wrong index is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/philox.h"
#include "io/shards.h"
#include "support/host.h"
#include "support/temp_dir.h"

static const float x[6] = { 1, 2, 3, 4, 5, 6 };
static const char index_text[] =
    "{\"metadata\": {\"total_size\": 56, \"deep\": {\"a\": [1]}},\n \"weight_map\": {\"b.weight\": "
    "\"one.safetensors\", "
    "\"a.bias\": \"two.safetensors\", \"c\\u00e9\": \"one.safetensors\"}, \"later\": null}\n";

/* Writes the two files of a sharded model. one.safetensors has three tensors, but the index lists only two of the
 * three. two.safetensors has a.bias. */
static void write_shards(const vkt_temp_dir *dir)
{
    const vkt_host h = vkt_test_host();
    const vkt_blob one[] = { { "c\xc3\xa9", VKT_ST_F32, 1, { 2 }, x },
                             { "b.weight", VKT_ST_F32, 2, { 2, 3 }, x },
                             { "not listed", VKT_ST_F32, 1, { 1 }, x } };
    const vkt_blob two = { "a.bias", VKT_ST_F32, 1, { 3 }, x + 3 };
    assert_int_equal(vkt_safetensors_write(&h, vkt_temp_dir_file(dir, "one.safetensors"), one, 3, NULL, 0), VKT_OK);
    assert_int_equal(vkt_safetensors_write(&h, vkt_temp_dir_file(dir, "two.safetensors"), &two, 1, NULL, 0), VKT_OK);
}

static const char *write_index(const vkt_temp_dir *dir, const char *text, size_t n)
{
    const vkt_host h = vkt_test_host();
    const char *path = vkt_temp_dir_file(dir, "model.safetensors.index.json");
    assert_int_equal(vkt_file_write(&h, path, text, n), VKT_OK);
    return path;
}

static void the_files_of_an_index_are_one_set(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    vkt_shards *s;
    float got[6];
    write_shards(&dir);
    assert_int_equal(vkt_shards_open(&h, write_index(&dir, index_text, sizeof index_text - 1), &s), VKT_OK);
    static const char *const names[] = { "a.bias", "b.weight", "c\xc3\xa9" };
    assert_int_equal(vkt_shards_count(s), 3);
    for (size_t i = 0; i < 3; i++) {
        const vkt_shard_entry e = vkt_shards_entry(s, i), found = vkt_shards_find(s, names[i]);
        assert_string_equal(e.tensor->name, names[i]);
        assert_ptr_equal(found.tensor, e.tensor);
        assert_ptr_equal(found.file, e.file);
        assert_int_equal(vkt_safetensors_read_f32(e.file, e.tensor, got, e.tensor->elements), VKT_OK);
        assert_memory_equal(got, i == 0 ? x + 3 : x, (size_t)e.tensor->bytes);
    }
    assert_ptr_not_equal(vkt_shards_entry(s, 0).file, vkt_shards_entry(s, 1).file);
    assert_ptr_equal(vkt_shards_entry(s, 1).file, vkt_shards_entry(s, 2).file);
    assert_null(vkt_shards_find(s, "not listed").tensor);
    assert_null(vkt_shards_find(s, "absent").tensor);
    vkt_shards_close(&s);
    assert_null(s);
    vkt_temp_dir_remove(&dir);
}

static void a_single_file_is_a_set(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    vkt_shards *s;
    write_shards(&dir);
    assert_int_equal(vkt_shards_open(&h, vkt_temp_dir_file(&dir, "one.safetensors"), &s), VKT_OK);
    assert_int_equal(vkt_shards_count(s), 3);
    assert_string_equal(vkt_shards_entry(s, 0).tensor->name, "b.weight");
    assert_int_equal(vkt_shards_find(s, "not listed").tensor->elements, 1);
    vkt_shards_close(&s);
    vkt_temp_dir_remove(&dir);
}

static void wrong_indices_are_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    static const struct {
        const char *text;
        vkt_result status;
        const char *reason;
    } bad[] = {
        { "", VKT_E_FORMAT, "does not begin with '{'" },
        { "[]", VKT_E_FORMAT, "does not begin with '{'" },
        { "{}", VKT_E_FORMAT, "no \"weight_map\"" },
        { "{\"weight_map\": 3}", VKT_E_FORMAT, "\"weight_map\" is not an object" },
        { "{\"weight_map\": {\"a\": 3}}", VKT_E_FORMAT, "the file of tensor \"a\" is no text" },
        { "{\"weight_map\": {\"a.bias\": \"two.safetensors\"}", VKT_E_FORMAT, "byte " },
        { "{\"weight_map\": {\"a.bias\": \"two.safetensors\"}} x", VKT_E_FORMAT, "byte " },
        { "{\"weight_map\": {\"a.bias\": \"two.safetensors\"}, \"weight_map\": {}}", VKT_E_FORMAT, "a duplicate of" },
        { "{\"weight_map\": {\"a\": \"two.safetensors\", \"a\": \"two.safetensors\"}}", VKT_E_FORMAT,
          "a duplicate of" },
        { "{\"weight_map\": {\"a\": \"\"}}", VKT_E_FORMAT, "no name of a file" },
        { "{\"weight_map\": {\"a\": \"../two.safetensors\"}}", VKT_E_FORMAT, "no name of a file" },
        { "{\"weight_map\": {\"a\": \"C:two.safetensors\"}}", VKT_E_FORMAT, "no name of a file" },
        { "{\"weight_map\": {\"a\": \"x\\\\two.safetensors\"}}", VKT_E_FORMAT, "no name of a file" },
        { "{\"weight_map\": {\"a.bias\": \"three.safetensors\"}}", VKT_E_NOT_FOUND, "three.safetensors" },
        { "{\"weight_map\": {\"a.bias\": \"one.safetensors\"}}", VKT_E_FORMAT, "does not have the tensor \"a.bias\"" },
        { "{\"weight_map\": {\"a\": \"model.safetensors.index.json\"}}", VKT_E_FORMAT, "not a sound safetensors file" },
    };
    write_shards(&dir);
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        vkt_shards *s;
        assert_int_equal(vkt_shards_open(&h, write_index(&dir, bad[i].text, strlen(bad[i].text)), &s), bad[i].status);
        assert_null(s);
        vkt_test_error_contains(bad[i].reason);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    vkt_shards *s;
    assert_int_equal(vkt_shards_open(&h, vkt_temp_dir_file(&dir, "none.json"), &s), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_shards_open(&h, NULL, &s), VKT_E_ARG);
    vkt_temp_dir_remove(&dir);
}

static void truncations_and_damage_give_a_status(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const size_t n = sizeof index_text - 1, whole = n - 1; /* the index is complete even without its last newline */
    vkt_shards *s;
    write_shards(&dir);
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(vkt_shards_open(&h, write_index(&dir, index_text, i), &s), i < whole ? VKT_E_FORMAT : VKT_OK);
        vkt_shards_close(&s);
    }
    vkt_rng r = vkt_rng_make(1, VKT_STREAM_TEST, 0, 0);
    for (int i = 0; i < 2000; i++) {
        char damaged[sizeof index_text];
        memcpy(damaged, index_text, sizeof damaged);
        for (uint32_t k = vkt_rng_range(&r, 1, 3); k > 0; k--)
            damaged[vkt_rng_range(&r, 0, (uint32_t)n - 1)] ^= (char)(1u << vkt_rng_range(&r, 0, 7));
        const vkt_result status = vkt_shards_open(&h, write_index(&dir, damaged, n), &s);
        assert_true(status == VKT_OK || status == VKT_E_FORMAT || status == VKT_E_NOT_FOUND || status == VKT_E_IO);
        assert_true((status == VKT_OK) == (s != NULL));
        for (size_t k = 0; s && k < vkt_shards_count(s); k++) assert_non_null(vkt_shards_entry(s, k).tensor);
        vkt_shards_close(&s);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    vkt_temp_dir_remove(&dir);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    write_shards(&dir);
    const char *const paths[] = { write_index(&dir, index_text, sizeof index_text - 1),
                                  vkt_temp_dir_file(&dir, "one.safetensors") };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < 2; i++) {
        vkt_shards *s;
        for (unsigned n = 1;; n++) {
            vkt_test_fail_allocation(n);
            const vkt_result r = vkt_shards_open(&h, paths[i], &s);
            if (!vkt_test_allocation_failed()) break;
            assert_int_equal(r, VKT_E_NOMEM);
            assert_null(s);
            assert_int_equal(vkt_test_live_blocks(), 0);
        }
        vkt_test_fail_allocation(0);
        assert_int_equal(vkt_shards_count(s), 3);
        vkt_shards_close(&s);
    }
    vkt_temp_dir_remove(&dir);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_files_of_an_index_are_one_set),    TEST(a_single_file_is_a_set),   TEST(wrong_indices_are_refused),
        TEST(truncations_and_damage_give_a_status), TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
