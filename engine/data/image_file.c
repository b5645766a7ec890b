/* data/image_file.c - reads one image from a file (vktrain/data.h). */
#include "base/file.h"
#include "data/dataset.h"
#include "data/image.h"

/* Computes the size to which `in` is resized: the longer side becomes at most `longest` (0: no limit). */
static void fit(const vkt_image *in, uint32_t longest, uint32_t *width, uint32_t *height)
{
    const uint64_t w = in->width, h = in->height, longer = VKT_MAX(w, h);
    *width = in->width;
    *height = in->height;
    if (longest == 0 || longer <= longest) return;
    *width = (uint32_t)VKT_MAX((w * longest + longer / 2) / longer, 1);
    *height = (uint32_t)VKT_MAX((h * longest + longer / 2) / longer, 1);
}

static vkt_result make(const vkt_host *h, const vkt_image *in, uint32_t longest, vkt_image_scratch *s,
                       vkt_dataset **out)
{
    vkt_dataset_params p = { .rows = 1, .channels = 3 };
    fit(in, longest, &p.width, &p.height);
    const size_t bytes = (size_t)p.width * p.height * p.channels;
    uint8_t *planes = vkt_realloc(h, NULL, bytes);
    if (!planes) return vkt_fail_nomem(h, "an image", bytes);
    vkt_result r = vkt_image_resize(h, in, p.width, p.height, s, planes);
    if (r == VKT_OK) r = vkt_dataset_adopt(h, &p, planes, out);
    if (r != VKT_OK) vkt_free(h, planes);
    return r;
}

vkt_result vkt_image_read(const vkt_host *host, const char *path, uint32_t longest, uint64_t max_pixels,
                          vkt_dataset **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    vkt_image_scratch s = { 0 };
    const vkt_image *image;
    void *bytes;
    size_t n;
    *out = NULL;
    if (!path) return vkt_fail(&h, VKT_E_ARG, "image: the path is NULL");
    VKT_TRY(vkt_file_read(&h, path, VKT_IMAGE_MAX_FILE_BYTES, &bytes, &n));
    vkt_result r = vkt_image_decode(&h, path, bytes, n, max_pixels, 3, &s, &image);
    vkt_free(&h, bytes);
    if (r == VKT_OK) r = make(&h, image, longest, &s, out);
    vkt_image_scratch_free(&h, &s);
    return r;
}
