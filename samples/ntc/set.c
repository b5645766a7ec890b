/* ntc/set.c - sizes and memory of a set, and its file. All numbers of the file have the lowest byte first. The numbers
 * before the weights have 32 bits. The file has, in this order:
 *   "VTC2", number of bytes of the file, CRC-32 of all bytes behind the CRC-32
 *   width, height, number of textures, number of grids, hidden
 *   for each texture: channels, name (28 bytes, ends with 0)
 *   for each grid: scale, features, bits, corners
 *   weights as 16-bit floats
 *   for each grid: latents of `bits` bits each, the lowest bit first, filled up to a whole byte. If `bits` is 0: BC4
 *   blocks, feature after feature */
#include "ntc/set.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "graphics/vk.h"
#include "ntc/bc4.h"

enum { HEAD = 12, FIXED = HEAD + 5 * 4, TEXTURE = 4 + NTC_NAME, GRID = 4 * 4 };

/* ---- sizes and memory ---- */

uint32_t ntc_inputs(const ntc_set *s)
{
    uint32_t n = NTC_POSITION;
    for (uint32_t i = 0; i < s->n_grids; i++) n += s->grids[i].features * (s->grids[i].corners ? 4 : 1);
    return n;
}

uint32_t ntc_outputs(const ntc_set *s)
{
    return NTC_BLOCK * NTC_BLOCK * s->channels;
}

uint32_t ntc_blocks(uint32_t texels)
{
    return (texels + NTC_BLOCK - 1) / NTC_BLOCK;
}

uint32_t ntc_place_scale(const ntc_set *s)
{
    uint32_t scale = 0;
    for (uint32_t i = 0; i < s->n_grids; i++)
        if (s->grids[i].corners && s->grids[i].scale > scale) scale = s->grids[i].scale;
    return scale ? scale : s->grids[0].scale;
}

ntc_layer ntc_layer_of(const ntc_set *s, uint32_t i)
{
    ntc_layer l = { .in = ntc_inputs(s), .out = s->hidden };
    for (uint32_t k = 0;; k++) {
        if (k == NTC_LAYERS - 1) l.out = ntc_outputs(s);
        l.bias = l.weight + (size_t)l.in * l.out;
        if (k == i) return l;
        l.weight = l.bias + l.out;
        l.in = s->hidden;
    }
}

size_t ntc_weights(const ntc_set *s)
{
    const ntc_layer last = ntc_layer_of(s, NTC_LAYERS - 1);
    return last.bias + last.out;
}

size_t ntc_latents(const ntc_grid *g)
{
    return (size_t)g->features * g->height * g->width;
}

uint32_t ntc_steps(const ntc_grid *g)
{
    return g->bits ? (1u << g->bits) - 1 : BC4_STEPS;
}

/* Returns the size of the latents in a file, in bytes. */
static uint64_t latent_bytes(const ntc_grid *g)
{
    if (!g->bits) return (uint64_t)g->features * bc4_bytes(g->height, g->width);
    return ((uint64_t)g->features * g->height * g->width * g->bits + 7) / 8;
}

uint64_t ntc_bytes(const ntc_set *s)
{
    uint64_t n = FIXED + (uint64_t)s->n_textures * TEXTURE + (uint64_t)s->n_grids * GRID + 2 * ntc_weights(s);
    for (uint32_t i = 0; i < s->n_grids; i++) n += latent_bytes(&s->grids[i]);
    return n;
}

/* Returns the reason why the members of *s are not valid. NULL: they are valid. */
static const char *fault_of(const ntc_set *s)
{
    uint32_t channels = 0;
    if (s->width < 8 || s->height < 8 || s->width > NTC_MAX_SIDE || s->height > NTC_MAX_SIDE)
        return "images of 8 to 8192 pixels along each side are wanted";
    if (s->n_textures < 1 || s->n_textures > NTC_MAX_TEXTURES) return "1 to 8 textures are wanted";
    for (uint32_t i = 0; i < s->n_textures; i++) {
        if (s->textures[i].channels != 1 && s->textures[i].channels != 3)
            return "textures of 1 or 3 channels are wanted";
        if (!memchr(s->textures[i].name, 0, NTC_NAME)) return "the name of a texture has no end";
        channels += s->textures[i].channels;
    }
    if (channels != s->channels) return "the number of channels is wrong";
    if (s->n_grids < 1 || s->n_grids > NTC_MAX_GRIDS) return "1 to 3 grids are wanted";
    for (uint32_t i = 0; i < s->n_grids; i++) {
        const ntc_grid *g = &s->grids[i];
        if (g->scale < 1 || g->scale > 64 || g->scale % NTC_BLOCK || g->features < 1 || g->features > NTC_MAX_INPUTS ||
            g->bits > 8)
            return "grids of 2 to 64 texels a cell (an even number), 1 to 128 features and 1 to 8 bits are wanted";
    }
    if (s->hidden < 4 || s->hidden > NTC_MAX_INPUTS || ntc_inputs(s) > NTC_MAX_INPUTS)
        return "at most 128 inputs of the network and hidden layers of 4 to 128 numbers are wanted";
    return NULL;
}

static void set_grid_sizes(ntc_set *s)
{
    for (uint32_t i = 0; i < s->n_grids; i++) {
        ntc_grid *g = &s->grids[i];
        g->height = (s->height + g->scale - 1) / g->scale;
        g->width = (s->width + g->scale - 1) / g->scale;
    }
}

vkt_result ntc_allocate(ntc_set *s)
{
    const char *fault = fault_of(s);
    if (fault) {
        complain("%s", fault);
        return VKT_E_ARG;
    }
    set_grid_sizes(s);
    for (uint32_t i = 0; i < s->n_grids; i++) {
        ntc_grid *g = &s->grids[i];
        g->levels = calloc(ntc_latents(g), sizeof *g->levels);
        if (!g->levels) return VKT_E_NOMEM;
    }
    s->weights = calloc(ntc_weights(s), sizeof *s->weights);
    return s->weights ? VKT_OK : VKT_E_NOMEM;
}

void ntc_free(ntc_set *s)
{
    for (uint32_t i = 0; i < NTC_MAX_GRIDS; i++) {
        free(s->grids[i].levels);
        s->grids[i].levels = NULL;
    }
    free(s->weights);
    s->weights = NULL;
}

/* ---- 16-bit floats ---- */

static uint16_t half_bits(float x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return 0x7e00;
    const double a = fmin(fabs((double)x), 65504);
    if (!(a >= 0x1p-24 / 2)) return sign;
    int e = 0;
    frexp(a, &e); /* a = f 2^e with f in [1/2, 1) */
    if (e < -13) e = -13;
    const unsigned m = (unsigned)nearbyint(ldexp(a, 11 - e));   /* 1024 times the significand; below 1024: subnormal */
    return (uint16_t)(sign | (m + ((unsigned)(e + 13) << 10))); /* bit 10 of m (its leading 1) adds 1 to the exponent */
}

static float half_value(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    if (e == 31) return m ? NAN : h & 0x8000 ? -INFINITY : INFINITY;
    const double a = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return (float)(h & 0x8000 ? -a : a);
}

float ntc_half(float x)
{
    return half_value(half_bits(x));
}

/* ---- the file ---- */

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* A position in the bytes of a file. */
typedef struct cursor {
    uint8_t *p;
} cursor;

static void put(cursor *c, uint32_t x, int bytes)
{
    for (int i = 0; i < bytes; i++) *c->p++ = (uint8_t)(x >> 8 * i);
}

static uint32_t get(cursor *c, int bytes)
{
    uint32_t x = 0;
    for (int i = 0; i < bytes; i++) x |= (uint32_t)*c->p++ << 8 * i;
    return x;
}

/* Encodes the latents of a grid as BC4 blocks in the file's bytes. If `get_them` is true, instead decodes the latents
 * from the blocks in the file's bytes. */
static void code_blocks(cursor *c, const ntc_grid *g, bool get_them)
{
    for (uint32_t f = 0; f < g->features; f++, c->p += bc4_bytes(g->height, g->width)) {
        uint16_t *plane = g->levels + (size_t)f * g->height * g->width;
        if (get_them)
            bc4_decode(c->p, g->height, g->width, plane);
        else
            bc4_encode(plane, g->height, g->width, 0, c->p);
    }
}

static void put_latents(cursor *c, const ntc_grid *g)
{
    uint32_t room = 0, used = 0;
    if (!g->bits) code_blocks(c, g, false);
    for (size_t i = 0; g->bits && i < ntc_latents(g); i++) {
        room |= (uint32_t)g->levels[i] << used;
        for (used += g->bits; used >= 8; used -= 8, room >>= 8) put(c, room & 255, 1);
    }
    if (used) put(c, room & 255, 1);
}

static void get_latents(cursor *c, ntc_grid *g)
{
    uint32_t room = 0, used = 0;
    if (!g->bits) code_blocks(c, g, true);
    for (size_t i = 0; g->bits && i < ntc_latents(g); i++) {
        if (used < g->bits) {
            room |= get(c, 1) << used;
            used += 8;
        }
        g->levels[i] = (uint16_t)(room & ((1u << g->bits) - 1));
        room >>= g->bits;
        used -= g->bits;
    }
}

vkt_result ntc_write(const ntc_set *s, const char *path)
{
    static const vkt_host host = { .log = message_log };
    const size_t n = ntc_bytes(s);
    uint8_t *bytes = malloc(n);
    if (!bytes) return VKT_E_NOMEM;
    cursor c = { bytes + HEAD };
    const uint32_t fixed[] = { s->width, s->height, s->n_textures, s->n_grids, s->hidden };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) put(&c, fixed[i], 4);
    for (uint32_t i = 0; i < s->n_textures; i++) {
        put(&c, s->textures[i].channels, 4);
        memcpy(c.p, s->textures[i].name, NTC_NAME);
        c.p += NTC_NAME;
    }
    for (uint32_t i = 0; i < s->n_grids; i++) {
        const ntc_grid *g = &s->grids[i];
        const uint32_t of[] = { g->scale, g->features, g->bits, g->corners };
        for (int k = 0; k < 4; k++) put(&c, of[k], 4);
    }
    for (size_t i = 0; i < ntc_weights(s); i++) put(&c, half_bits(s->weights[i]), 2);
    for (uint32_t i = 0; i < s->n_grids; i++) put_latents(&c, &s->grids[i]);
    memcpy(bytes, "VTC2", 4);
    c.p = bytes + 4;
    put(&c, (uint32_t)n, 4);
    put(&c, crc32_of(bytes + HEAD, n - HEAD), 4);
    const vkt_result r = vkt_write_file(&host, path, bytes, n);
    free(bytes);
    return r;
}

static vkt_result damaged(const char *path, const char *why)
{
    complain("%s: %s", path, why);
    return VKT_E_FORMAT;
}

/* Sets the members of *s that are stored before the weights. Returns the reason why they are wrong. NULL: they are
 * valid. */
static const char *parse_head(cursor *c, size_t n, ntc_set *s)
{
    s->width = get(c, 4);
    s->height = get(c, 4);
    s->n_textures = get(c, 4);
    s->n_grids = get(c, 4);
    s->hidden = get(c, 4);
    if (s->n_textures > NTC_MAX_TEXTURES || s->n_grids > NTC_MAX_GRIDS ||
        n < FIXED + (size_t)s->n_textures * TEXTURE + (size_t)s->n_grids * GRID)
        return "it has more textures or grids than its size allows";
    for (uint32_t i = 0; i < s->n_textures; i++) {
        s->textures[i].channels = get(c, 4);
        s->channels += s->textures[i].channels;
        memcpy(s->textures[i].name, c->p, NTC_NAME);
        c->p += NTC_NAME;
    }
    for (uint32_t i = 0; i < s->n_grids; i++) {
        ntc_grid *g = &s->grids[i];
        g->scale = get(c, 4);
        g->features = get(c, 4);
        g->bits = get(c, 4);
        g->corners = get(c, 4) != 0;
    }
    return fault_of(s);
}

static vkt_result parse(const char *path, uint8_t *bytes, size_t n, ntc_set *s)
{
    cursor c = { bytes + 4 };
    if (n >= FIXED && memcmp(bytes, "VTC1", 4) == 0)
        return damaged(path, "want a file of version 2, got version 1: pack it again");
    if (n < FIXED || memcmp(bytes, "VTC2", 4) != 0) return damaged(path, "this is no compressed set of textures");
    const uint32_t size = get(&c, 4), crc = get(&c, 4);
    if (size != n) return damaged(path, "the file is shorter or longer than it says");
    if (crc != crc32_of(bytes + HEAD, n - HEAD)) return damaged(path, "the checksum is wrong");
    const char *fault = parse_head(&c, n, s);
    if (fault) return damaged(path, fault);
    set_grid_sizes(s);
    if (ntc_bytes(s) != n) return damaged(path, "the file does not have the size of its contents");
    TRY(ntc_allocate(s));
    for (size_t i = 0; i < ntc_weights(s); i++) s->weights[i] = half_value((uint16_t)get(&c, 2));
    for (uint32_t i = 0; i < s->n_grids; i++) get_latents(&c, &s->grids[i]);
    for (size_t i = 0; i < ntc_weights(s); i++)
        if (!isfinite(s->weights[i]) || fabsf(s->weights[i]) > 65504) return damaged(path, "a weight is not finite");
    return VKT_OK;
}

vkt_result ntc_read(const char *path, ntc_set *s)
{
    *s = (ntc_set){ 0 };
    FILE *f = fopen(path, "rb");
    if (!f) {
        const int why = errno;
        complain("%s: %s", path, strerror(why));
        return why == ENOENT ? VKT_E_NOT_FOUND : VKT_E_IO;
    }
    size_t n = 0, room = 1 << 16;
    uint8_t *bytes = malloc(room);
    for (size_t got = 1; bytes && got; n += got) {
        if (n == room) {
            uint8_t *more = room < (size_t)1 << 31 ? realloc(bytes, room *= 2) : NULL;
            if (!more) free(bytes);
            bytes = more;
        }
        got = bytes ? fread(bytes + n, 1, room - n, f) : 0;
    }
    const bool failed = ferror(f) != 0;
    fclose(f);
    vkt_result r = bytes ? VKT_OK : VKT_E_NOMEM;
    if (failed) {
        complain("%s: it cannot be read", path);
        r = VKT_E_IO;
    }
    if (r == VKT_OK) r = parse(path, bytes, n, s);
    free(bytes);
    return r;
}
