/* data/png.c - decodes PNG by libpng (image.h). libpng allocates by the host's allocator, also for zlib. After an error
 * of libpng, `stop` jumps back to `guarded`. Warnings of libpng are ignored. */
#include <setjmp.h>

#include <png.h>

#include "data/image.h"

typedef struct decoder {
    png_structp png;
    png_infop info;
    jmp_buf stopped;
    const vkt_host *h;
    const char *name;
    const uint8_t *at;
    size_t left, n;
    uint64_t max_pixels;
    vkt_image *out;
    uint32_t *orientation;
    bool no_memory; /* an allocation has failed */
    vkt_result result;
} decoder;

static vkt_result fail(const decoder *d, const char *why)
{
    if (d->no_memory) why = "out of host memory";
    return vkt_fail(d->h, d->no_memory ? VKT_E_NOMEM : VKT_E_FORMAT, "\"%s\": %s", d->name, why);
}

/* libpng's error function: logs the error, and jumps to `guarded`, because an error function must not return. */
static void stop(png_structp png, png_const_charp why)
{
    decoder *d = png_get_error_ptr(png);
    d->result = fail(d, why);
    longjmp(d->stopped, 1);
}

static void ignore(png_structp png, png_const_charp why)
{
    (void)png;
    (void)why;
}

static png_voidp allocate(png_structp png, png_alloc_size_t n)
{
    decoder *d = png_get_mem_ptr(png);
    void *p = vkt_realloc(d->h, NULL, n);
    d->no_memory |= !p;
    return p;
}

static void release(png_structp png, png_voidp p)
{
    const decoder *d = png_get_mem_ptr(png);
    vkt_free(d->h, p);
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    decoder *d = png_get_io_ptr(png);
    if (n > d->left) png_error(png, "the file ends too early");
    memcpy(to, d->at, n);
    d->at += n;
    d->left -= n;
}

/* Asks libpng for gray or RGB of 8 bits, for any kind of file. */
static void ask_for_bytes(decoder *d)
{
    png_set_expand(d->png);   /* converts palettes to RGB, and gray of 1, 2 and 4 bits to 8 bits */
    png_set_scale_16(d->png); /* rounds v / 257; png_set_strip_16 would truncate */
    png_set_strip_alpha(d->png);
}

/* Skips texts, profiles and other chunks that do not change the pixels. libpng would decompress up to 1000 of them and
 * keep up to 8 MB of each. */
static void leave_out_texts(decoder *d)
{
    static const png_byte chunks[] = "iCCP\0iTXt\0tEXt\0zTXt\0sPLT\0hIST";
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0); /* chunks unknown to libpng */
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, chunks, (int)(sizeof chunks / 5));
}

static vkt_result read_pixels(decoder *d)
{
    d->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, d, stop, ignore, d, allocate, release);
    d->info = d->png ? png_create_info_struct(d->png) : NULL;
    if (!d->info) return fail(d, "this libpng is not the one of its header");
    png_set_read_fn(d->png, d, read_bytes);
    png_set_user_limits(d->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* vkt_image_check_size limits the pixels */
    leave_out_texts(d);
    png_read_info(d->png, d->info);
    const uint32_t width = png_get_image_width(d->png, d->info), height = png_get_image_height(d->png, d->info);
    VKT_TRY(vkt_image_check_size(d->h, d->name, width, height, d->n, d->max_pixels));
    ask_for_bytes(d);
    const int passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    const uint32_t channels = png_get_channels(d->png, d->info);
    VKT_TRY(vkt_image_reserve(d->h, d->out, width, height, channels));
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < height; y++)
            png_read_row(d->png, d->out->pixels.p + (size_t)y * width * channels, NULL);
    png_read_end(d->png, d->info);
    png_uint_32 n = 0;
    png_bytep exif = NULL;
    const bool has = png_get_eXIf_1(d->png, d->info, &n, &exif) != 0;
    *d->orientation = has ? vkt_exif_orientation(exif, n) : 1;
    return d->no_memory ? fail(d, NULL) : VKT_OK; /* libpng may go on after a failed allocation */
}

/* Decodes. This is a separate function without local variables, because longjmp may leave changed local variables
 * undefined. All state is in *d. */
static void guarded(decoder *d)
{
    if (setjmp(d->stopped) == 0) d->result = read_pixels(d);
}

vkt_result vkt_png_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                          vkt_image *out, uint32_t *orientation)
{
    decoder d = { .h = h,
                  .name = name,
                  .at = bytes,
                  .left = n,
                  .n = n,
                  .max_pixels = max_pixels,
                  .out = out,
                  .orientation = orientation };
    guarded(&d);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    return d.result;
}
