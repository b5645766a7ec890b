/* Checks that cropping and mirroring of an image depend only on the index of the sample, the seed and the epoch, and
 * not on caching or on the number of workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "data/dataset.h"
#include "data/gallery.h"
#include "data/loader.h"
#include "support/host.h"

/* ---- crops ---- */

static void fetch_as(const vkt_dataset *ds, uint32_t row, vkt_pass pass, uint8_t *out, uint32_t worker)
{
    assert_int_equal(vkt_dataset_fetch_as(ds, row, pass, out, worker), VKT_OK);
}

/* Returns whether `row` (3,H,W) is the crop at (top, left) of planes (3,h,w), mirrored if `mirror`. Pixels outside of
 * the planes are black. */
static bool is_crop(const uint8_t *row, int H, int W, const uint8_t *planes, int h, int w, int top, int left,
                    bool mirror)
{
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                const int from_y = y + top, from_x = (mirror ? W - 1 - x : x) + left;
                const bool inside = from_y >= 0 && from_y < h && from_x >= 0 && from_x < w;
                if (*row++ != (inside ? planes[(c * h + from_y) * w + from_x] : 0)) return false;
            }
    return true;
}

static void the_crop_is_the_middle_of_the_shorter_side(void **state)
{
    const vkt_temp_dir *t = *state;
    static uint8_t planes[3 * 64 * 64];
    uint8_t row[3 * 12 * 13];
    vkt_dataset *ds = gallery_open(gallery_table(t, 8), &(vkt_image_params){ .height = 12, .width = 13, .resize = 16 });
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t w, h;
        gallery_size(i, &w, &h);
        const uint32_t shorter = VKT_MIN(w, h);
        w = w * 16 / shorter;
        h = h * 16 / shorter;
        gallery_resized(i, w, h, planes);
        assert_int_equal(vkt_dataset_fetch(ds, i, row), VKT_OK);
        /* lrint rounds n + 1/2 to the even one of n and n + 1, as torchvision's CenterCrop does. */
        const int top = (int)lrint((h - 12) / 2.0), left = (int)lrint((w - 13) / 2.0);
        assert_true(is_crop(row, 12, 13, planes, (int)h, (int)w, top, left, false));
    }
    vkt_dataset_destroy(&ds);
}

/* Finds the offset and the mirroring by which `row` was cropped. Fails the test if no crop of the planes gives
 * `row`. */
static void find_crop(const uint8_t *row, int H, int W, const uint8_t *planes, int h, int w, int pad, int *top,
                      int *left, bool *mirror)
{
    for (int m = 0; m < 2; m++)
        for (int y = -pad; y <= h + pad - H; y++)
            for (int x = -pad; x <= w + pad - W; x++)
                if (is_crop(row, H, W, planes, h, w, y, x, m)) {
                    *top = y;
                    *left = x;
                    *mirror = m;
                    return;
                }
    fail_msg("the row is no part of its image");
}

static void augmentation_crops_anywhere_and_mirrors_half(void **state)
{
    const vkt_temp_dir *t = *state;
    enum { H = 10, W = 12, EPOCHS = 200 };
    static uint8_t planes[3 * 64 * 64];
    const char *table = gallery_table(t, 2);
    for (int padded = 0; padded < 2; padded++) {
        const int pad = padded ? 3 : 0;
        vkt_dataset *ds = gallery_open(table, &(vkt_image_params){ .height = H,
                                                                   .width = W,
                                                                   .resize = padded ? 0 : 14,
                                                                   .random_crop = true,
                                                                   .crop_padding = (uint32_t)pad,
                                                                   .random_flip = true });
        assert_true(vkt_dataset_varies(ds));
        uint32_t w, h;
        gallery_size(1, &w, &h);
        const uint32_t shorter = VKT_MIN(w, h);
        const int bw = padded ? W : (int)(w * 14 / shorter), bh = padded ? H : (int)(h * 14 / shorter);
        gallery_resized(1, (uint32_t)bw, (uint32_t)bh, planes);
        const int offsets_y = bh + 2 * pad - H + 1, offsets_x = bw + 2 * pad - W + 1;
        int mirrored = 0, tops[64] = { 0 }, lefts[64] = { 0 };
        uint8_t row[3 * H * W], again[3 * H * W];
        for (uint32_t epoch = 1; epoch <= EPOCHS; epoch++) {
            int top = 0, left = 0;
            bool mirror = false;
            fetch_as(ds, 1, (vkt_pass){ 9, epoch }, row, 0);
            fetch_as(ds, 1, (vkt_pass){ 9, epoch }, again, 63);
            assert_memory_equal(row, again, sizeof row);
            find_crop(row, H, W, planes, bh, bw, pad, &top, &left, &mirror);
            mirrored += mirror;
            tops[top + pad]++;
            lefts[left + pad]++;
        }
        assert_in_range(mirrored, EPOCHS / 2 - 35, EPOCHS / 2 + 35); /* 35: five standard deviations */
        /* There are at most 7 offsets along each axis. The probability that any of them is missing is about e^-28. */
        for (int i = 0; i < offsets_y; i++) assert_true(tops[i] > 0);
        for (int i = 0; i < offsets_x; i++) assert_true(lefts[i] > 0);
        fetch_as(ds, 1, (vkt_pass){ 9, 0 }, row, 0); /* epoch 0 gives the middle, not mirrored */
        assert_true(is_crop(row, H, W, planes, bh, bw, (bh - H) / 2, (bw - W) / 2, false));
        uint32_t same = 0;
        for (uint32_t epoch = 1; epoch <= 20; epoch++) {
            fetch_as(ds, 1, (vkt_pass){ 9, epoch }, row, 0);
            fetch_as(ds, 1, (vkt_pass){ 10, epoch }, again, 0);
            same += memcmp(row, again, sizeof row) == 0;
        }
        assert_true(same < 10); /* in most epochs, another seed gives another crop */
        vkt_dataset_destroy(&ds);
    }
}

/* ---- caching, workers ---- */

static void kept_and_decoded_rows_are_the_same(void **state)
{
    const vkt_temp_dir *t = *state;
    const char *table = gallery_table(t, 12);
    vkt_image_params p = gallery_augmented;
    /* Values of cache_bytes. 0 stands for 1 GiB, and 1 means that no image is kept. The last two have space for all 12
     * samples, but not for all 12 resized images, which are larger. */
    static const uint64_t caches[] = { 0, 1, 7000, 12 * 3 * 12 * 12 };
    vkt_dataset *all[4];
    for (int i = 0; i < 4; i++) {
        p.cache_bytes = caches[i];
        p.workers = (uint32_t)i;
        p.skip_broken = i & 1;
        all[i] = gallery_open(table, &p);
    }
    const size_t held = vkt_test_live_bytes();
    for (uint32_t epoch = 0; epoch < 3; epoch++)
        for (uint32_t row = 0; row < 12; row++) {
            uint8_t want[432], got[432];
            fetch_as(all[0], row, (vkt_pass){ 4, epoch }, want, 0);
            for (int i = 1; i < 4; i++) {
                fetch_as(all[i], row, (vkt_pass){ 4, epoch }, got, (uint32_t)i);
                assert_memory_equal(got, want, sizeof want);
            }
        }
    assert_true(vkt_test_live_bytes() > held); /* decoding has allocated scratch memory */
    for (int i = 1; i < 4; i++) vkt_dataset_destroy(&all[i]);
    const size_t kept = vkt_test_live_bytes();
    fetch_as(all[0], 5, (vkt_pass){ 4, 1 }, (uint8_t[432]){ 0 }, 7);
    assert_int_equal(vkt_test_live_bytes(), kept);
    vkt_dataset_destroy(&all[0]);
}

/* Loads a whole epoch with a loader. */
static void load_epoch(const vkt_dataset *ds, uint32_t workers, vkt_pass pass, uint8_t *rows, uint32_t *labels)
{
    const vkt_host h = vkt_test_host();
    const size_t row = vkt_dataset_row_bytes(ds);
    static uint8_t features[2][5 * 432];
    uint32_t slot_labels[2][5], order[40], slot, n, at = 0;
    const vkt_loader_slot slots[2] = { { features[0], slot_labels[0], NULL }, { features[1], slot_labels[1], NULL } };
    const vkt_loader_params p = { .dataset = ds, .batch = 5, .slots = slots, .n_slots = 2, .workers = workers };
    vkt_loader *l;
    vkt_shuffle(order, vkt_dataset_rows(ds), 1, pass.epoch);
    assert_int_equal(vkt_loader_create(&h, &p, &l), VKT_OK);
    assert_int_equal(vkt_loader_start_epoch(l, order, vkt_dataset_rows(ds), pass), VKT_OK);
    for (;; at += n) {
        assert_int_equal(vkt_loader_next(l, &slot, &n), VKT_OK);
        if (n == 0) break;
        memcpy(rows + at * row, features[slot], n * row);
        memcpy(labels + at, slot_labels[slot], n * sizeof *labels);
        assert_int_equal(vkt_loader_release(l, slot), VKT_OK);
    }
    assert_int_equal(at, vkt_dataset_rows(ds));
    vkt_loader_destroy(&l);
}

static void the_number_of_workers_changes_nothing(void **state)
{
    const vkt_temp_dir *t = *state;
    static uint8_t rows[3][37 * 432];
    static const uint32_t workers[] = { 1, 2, 7 };
    uint32_t labels[3][37];
    const char *table = gallery_table(t, 37);
    for (uint64_t cache = 0; cache < 2; cache++) {
        vkt_image_params p = gallery_augmented;
        p.cache_bytes = cache;
        vkt_dataset *ds = gallery_open(table, &p);
        for (uint32_t epoch = 1; epoch < 4; epoch++) {
            for (int i = 0; i < 3; i++) load_epoch(ds, workers[i], (vkt_pass){ 2, epoch }, rows[i], labels[i]);
            for (int i = 1; i < 3; i++) {
                assert_memory_equal(rows[i], rows[0], sizeof rows[0]);
                assert_memory_equal(labels[i], labels[0], sizeof labels[0]);
            }
        }
        vkt_dataset_destroy(&ds);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_crop_is_the_middle_of_the_shorter_side),
        TEST(augmentation_crops_anywhere_and_mirrors_half),
        TEST(kept_and_decoded_rows_are_the_same),
        TEST(the_number_of_workers_changes_nothing),
    };
    return cmocka_run_group_tests_name("augment", tests, NULL, NULL);
}
