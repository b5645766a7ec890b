/* Decodes JPEG and PNG, gray and in colour, and resizes the image. */
#include "data/image.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAX_PIXELS = 1 << 16 };
    vkt_image_scratch s = { 0 };
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        const vkt_image *image = NULL;
        const vkt_result r = vkt_image_decode(fuzz_host(), "input", data, size, MAX_PIXELS, channels, &s, &image);
        fuzz_status(r, r == VKT_OK);
        if (r != VKT_OK) continue;
        const uint64_t pixels = (uint64_t)image->width * image->height;
        fuzz_require(image->channels == channels && pixels > 0 && pixels <= MAX_PIXELS &&
                         image->pixels.bytes >= pixels * channels,
                     "an image of another size");
        uint8_t planes[3 * 4 * 5];
        const vkt_result resized = vkt_image_resize(fuzz_host(), image, 4, 5, &s, planes);
        fuzz_require(resized == VKT_OK || resized == VKT_E_NOMEM, "an image that cannot be resized");
    }
    vkt_image_scratch_free(fuzz_host(), &s);
    fuzz_end();
    return 0;
}
