/* data/jpeg.c - decodes JPEG by libjpeg-turbo (image.h).
 *
 * On an error, libjpeg calls error_exit, which must not return. By default error_exit ends the process; here it jumps
 * back to `guarded`. Some warnings mean that libjpeg has invented pixels for damaged data. `warn` treats these
 * warnings as errors, and ignores all others. */
#include <setjmp.h>
#include <stdio.h> /* before jpeglib.h, which needs FILE */

#include <jerror.h>
#include <jpeglib.h>

#include "data/image.h"

/* Limits for the number of scans of a progressive file. Real files have about ten scans. A scan of few bytes can make
 * libjpeg decode the whole image again. So all scans of a file together may decode at most MAX_SCANNED_PIXELS pixels,
 * which takes some seconds. MIN_SCANS scans are always allowed. More than MAX_SCANS scans are never allowed. */
#define MAX_SCANS 500
#define MIN_SCANS 16
#define MAX_SCANNED_PIXELS (UINT64_C(1) << 31)

typedef struct decoder {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf stopped;
    const vkt_host *h;
    const char *name;
    const uint8_t *bytes;
    size_t n;
    uint64_t max_pixels;
    int max_scans;
    vkt_image *out;
    uint32_t *orientation;
    vkt_result result;
} decoder;

/* libjpeg's error_exit: logs the error, and jumps to `guarded`, because error_exit must not return. */
static void stop(j_common_ptr c)
{
    decoder *d = c->client_data;
    char why[JMSG_LENGTH_MAX];
    c->err->format_message(c, why);
    d->result =
        vkt_fail(d->h, c->err->msg_code == JERR_OUT_OF_MEMORY ? VKT_E_NOMEM : VKT_E_FORMAT, "\"%s\": %s", d->name, why);
    longjmp(d->stopped, 1);
}

static void warn(j_common_ptr c, int level)
{
    if (level >= 0) return; /* a trace message */
    switch (c->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC: stop(c);
    }
}

static void watch_scans(j_common_ptr c)
{
    decoder *d = c->client_data;
    if (d->c.input_scan_number <= d->max_scans) return;
    d->result = vkt_fail(d->h, VKT_E_FORMAT, "\"%s\" has more than %d scans", d->name, d->max_scans);
    longjmp(d->stopped, 1);
}

static void read_orientation(decoder *d)
{
    static const char exif[] = "Exif\0"; /* the terminating NUL is the sixth byte */
    *d->orientation = 1;
    for (jpeg_saved_marker_ptr m = d->c.marker_list; m; m = m->next)
        if (m->data_length >= sizeof exif && memcmp(m->data, exif, sizeof exif) == 0) {
            *d->orientation = vkt_exif_orientation(m->data + sizeof exif, m->data_length - sizeof exif);
            return;
        }
}

/* Converts one row of inverted CMYK, as Adobe's programs write it, to RGB. The bytes are c, m, y, k. The ink of c is
 * 255 - c, and red is k - k * ink / 255. In the same way, m gives green, and y gives blue. The quotient is rounded to
 * the nearest integer, as in Pillow. */
static void rgb_from_cmyk(const uint8_t *cmyk, uint32_t n, uint8_t *rgb)
{
    for (uint32_t x = 0; x < n; x++, cmyk += 4)
        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t k = cmyk[3], t = k * (255u - cmyk[i]) + 128;
            *rgb++ = (uint8_t)(k - ((t + (t >> 8)) >> 8));
        }
}

static int most_scans(uint64_t pixels)
{
    return (int)VKT_MAX(VKT_MIN(MAX_SCANNED_PIXELS / pixels, MAX_SCANS), MIN_SCANS);
}

static vkt_result read_pixels(decoder *d)
{
    j_decompress_ptr c = &d->c;
    jpeg_create_decompress(c);
    d->progress.progress_monitor = watch_scans;
    c->progress = &d->progress;
    /* `unsigned long` has 32 bits on Windows. This is enough for files: they are read only up to 2^30 bytes
     * (VKT_IMAGE_MAX_FILE_BYTES). */
    jpeg_mem_src(c, d->bytes, (unsigned long)d->n);
    jpeg_save_markers(c, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(c, TRUE);
    VKT_TRY(vkt_image_check_size(d->h, d->name, c->image_width, c->image_height, d->n, d->max_pixels));
    d->max_scans = most_scans((uint64_t)c->image_width * c->image_height);
    read_orientation(d);
    const bool cmyk = c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK;
    const bool gray = c->jpeg_color_space == JCS_GRAYSCALE;
    c->out_color_space = cmyk ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(c);
    VKT_TRY(vkt_image_reserve(d->h, d->out, c->output_width, c->output_height, gray ? 1 : 3));
    const size_t row_bytes = (size_t)c->output_width * d->out->channels;
    JSAMPARRAY inks = cmyk ? c->mem->alloc_sarray((j_common_ptr)c, JPOOL_IMAGE, c->output_width * 4, 1) : NULL;
    for (uint32_t y; (y = c->output_scanline) < c->output_height;) {
        JSAMPROW row = d->out->pixels.p + y * row_bytes;
        jpeg_read_scanlines(c, cmyk ? inks : &row, 1);
        if (cmyk) rgb_from_cmyk(inks[0], c->output_width, row);
    }
    jpeg_finish_decompress(c); /* reads up to the end marker, so a truncated file gives an error */
    return VKT_OK;
}

/* Decodes. This is a separate function without local variables, because longjmp may leave changed local variables
 * undefined. All state is in *d. */
static void guarded(decoder *d)
{
    if (setjmp(d->stopped) == 0) d->result = read_pixels(d);
}

vkt_result vkt_jpeg_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                           vkt_image *out, uint32_t *orientation)
{
    decoder d = {
        .h = h, .name = name, .bytes = bytes, .n = n, .max_pixels = max_pixels, .out = out, .orientation = orientation
    };
    d.max_scans = MAX_SCANS;
    d.c.err = jpeg_std_error(&d.errors);
    d.c.client_data = &d;
    d.errors.error_exit = stop;
    d.errors.emit_message = warn;
    guarded(&d);
    jpeg_destroy_decompress(&d.c);
    return d.result;
}
