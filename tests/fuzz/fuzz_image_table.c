/* Reads the input as a table of image paths and labels. The images are not opened. */
#include "data/image_list.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const vkt_image_params params[] = { { .height = 1, .width = 1 },
                                        { .height = 1, .width = 1, .path_column = "x", .label_column = "y" } };
    const char *path = fuzz_file(data, size);
    for (size_t i = 0; i < VKT_COUNT(params); i++) {
        vkt_image_list l;
        const vkt_result r = vkt_image_list_from_table(fuzz_host(), path, &params[i], &l);
        fuzz_status(r, l.n > 0);
        for (uint32_t k = 0; k < l.n; k++) {
            fuzz_require(l.paths[k] != NULL, "a row without a path");
            fuzz_require(!l.labels || !l.names || l.labels[k] < l.classes, "a label that is no class");
        }
        vkt_image_list_free(&l);
    }
    fuzz_end();
    return 0;
}
