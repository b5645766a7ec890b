/* Reads IDX files, plain and gzip, as an array and as images. Also uses one file both as images and as their labels. */
#include "data/dataset.h"
#include "data/idx.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    vkt_idx idx;
    vkt_result r = vkt_idx_read(fuzz_host(), path, 1 << 20, &idx);
    fuzz_status(r, idx.data != NULL);
    if (idx.data) {
        size_t n = 1;
        for (int i = 0; i < 4; i++) n *= idx.dim[i];
        fuzz_require(idx.bytes == n, "bytes that are not the product of the sizes");
    }
    vkt_free(fuzz_host(), idx.data);
    vkt_dataset *d;
    r = vkt_dataset_from_idx(fuzz_host(), path, NULL, 0, &d);
    fuzz_status(r, d != NULL);
    vkt_dataset_destroy(&d);
    r = vkt_dataset_from_idx(fuzz_host(), path, path, 200, &d);
    fuzz_status(r, d != NULL);
    vkt_dataset_destroy(&d);
    fuzz_end();
    return 0;
}
