/* train/export.c - writes parameters to a flat file, and macros to a header: for each parameter, the index of its first
 * element in the file, and its shape. Programs can then use the parameters without this library. */
#include <stdio.h>

#include "base/file.h"
#include "base/half.h"
#include "train/trainer.h"

enum { MACRO_ROOM = 160, ALIGN_BYTES = 64 };

typedef struct export
{
    const vkt_host *h;
    vkt_store *s;
    vkt_export_params p;
    const char *prefix;
    uint32_t element_bytes;
    uint64_t *first;           /* for each parameter, the index of its first element in the flat file */
    uint64_t elements;         /* number of elements of the flat file */
    char(*macros)[MACRO_ROOM]; /* all macros so far; a second macro of the same name is an error */
    size_t n_macros;
    vkt_text text; /* the header */
}
export;

static bool is_identifier(const char *s)
{
    const char *at = s;
    while (*at == '_' || vkt_is_letter(*at) || (at > s && vkt_is_digit(*at))) at++;
    return at > s && !*at && !strstr(s, "__"); /* GLSL reserves names with two underscores in a row */
}

/* Writes the macro PREFIX_NAME to `out`. Letters of the name become upper case. Each character that is neither a letter
 * nor a digit becomes an underscore, and neighbouring underscores become one. */
static void macro_of(const char *prefix, const char *name, char out[MACRO_ROOM])
{
    size_t n = (size_t)snprintf(out, MACRO_ROOM, "%s", prefix);
    if (n >= MACRO_ROOM) return;
    if (out[n - 1] != '_') out[n++] = '_';
    for (; *name && n < MACRO_ROOM - 1; name++) {
        if (vkt_is_letter(*name) || vkt_is_digit(*name))
            out[n++] = vkt_upper(*name);
        else if (out[n - 1] != '_')
            out[n++] = '_';
    }
    out[n] = '\0';
}

/* Adds the line of a macro to the header. VKT_E_ARG if the header has this macro already. */
static vkt_result define(export *x, const char *name, uint64_t value)
{
    char *macro = x->macros[x->n_macros];
    macro_of(x->prefix, name, macro);
    for (size_t i = 0; i < x->n_macros; i++)
        if (strcmp(x->macros[i], macro) == 0)
            return vkt_fail(x->h, VKT_E_ARG,
                            "export: want a macro of its own for '%s', got %s twice; rename a parameter", name, macro);
    x->n_macros++;
    vkt_text_add(&x->text, "#define %s %llu\n", macro, (unsigned long long)value);
    return VKT_OK;
}

static vkt_result describe(export *x)
{
    static const char *const stored[] = {
        [VKT_PRECISION_F32] = "float32", [VKT_PRECISION_F16] = "float16", [VKT_PRECISION_BF16] = "bfloat16"
    };
    vkt_text_add(&x->text,
                 "/* Written by vktrain: where parameters begin in a file of %s, in elements, and their shapes. */\n",
                 stored[x->p.precision]);
    VKT_TRY(define(x, "ELEMENTS", x->elements));
    for (uint32_t i = 0; i < vkt_store_count(x->s); i++) {
        const vkt_shape shape = vkt_store_shape(x->s, i);
        const char *name = vkt_store_name(x->s, i);
        VKT_TRY(define(x, name, x->first[i]));
        for (uint32_t d = 0; d < shape.rank; d++) {
            char dim[MACRO_ROOM];
            snprintf(dim, sizeof dim, "%s.DIM%u", name, d);
            VKT_TRY(define(x, dim, shape.dim[d]));
        }
    }
    return VKT_OK;
}

/* Reads parameter i, and appends it to the flat file in little-endian order. */
static vkt_result append(export *x, vkt_file_writer *w, uint32_t i, float *values, unsigned char *bytes)
{
    const uint64_t n = vkt_shape_elements(vkt_store_shape(x->s, i));
    const uint64_t end = i + 1 < vkt_store_count(x->s) ? x->first[i + 1] : x->elements;
    const size_t size = (size_t)(end - x->first[i]) * x->element_bytes;
    VKT_TRY(vkt_store_read(x->s, i, x->p.part, values));
    memset(bytes, 0, size);
    for (uint64_t k = 0; k < n; k++) {
        uint32_t word;
        memcpy(&word, &values[k], sizeof word);
        if (x->p.precision == VKT_PRECISION_F16) word = vkt_half_from_f32(values[k]);
        if (x->p.precision == VKT_PRECISION_BF16) word = vkt_bf16_from_f32(values[k]);
        for (uint32_t b = 0; b < x->element_bytes; b++)
            bytes[k * x->element_bytes + b] = (unsigned char)(word >> 8 * b);
    }
    return vkt_file_writer_write(w, bytes, size);
}

static vkt_result write_blob(export *x, const char *path)
{
    vkt_file_writer w;
    float *values = vkt_alloc_array(x->h, x->elements, sizeof *values);
    unsigned char *bytes = vkt_alloc_array(x->h, x->elements, x->element_bytes);
    vkt_result r = values && bytes ? VKT_OK : vkt_fail_nomem(x->h, "an export", x->elements * sizeof *values);
    if (r == VKT_OK) r = vkt_file_writer_begin(x->h, path, &w);
    if (r == VKT_OK) {
        for (uint32_t i = 0; i < vkt_store_count(x->s) && r == VKT_OK; i++) r = append(x, &w, i, values, bytes);
        if (r == VKT_OK)
            r = vkt_file_writer_commit(&w);
        else
            vkt_file_writer_abort(&w);
    }
    vkt_free(x->h, bytes);
    vkt_free(x->h, values);
    return r;
}

static vkt_result write_both(export *x, const char *blob, const char *header)
{
    VKT_TRY(describe(x));
    if (x->text.failed) return vkt_fail_nomem(x->h, "the header of an export", x->text.len);
    VKT_TRY(write_blob(x, blob));
    return vkt_file_write(x->h, header, x->text.s, x->text.len);
}

vkt_result vkt_store_export(const vkt_host *host, vkt_store *s, const vkt_export_params *params, const char *blob,
                            const char *header)
{
    VKT_WANT(host, s);
    VKT_WANT(host, params);
    VKT_WANT(host, blob);
    VKT_WANT(host, header);
    const vkt_host h = vkt_host_resolve(host);
    export x = { .h = &h, .s = s, .p = *params, .prefix = params->prefix ? params->prefix : "VKT", .text.h = &h };
    if (!is_identifier(x.prefix) || strlen(x.prefix) > MACRO_ROOM / 4)
        return vkt_fail(&h, VKT_E_ARG, "export: want a prefix of letters, digits and single underscores, got '%s'",
                        x.prefix);
    if ((unsigned)x.p.precision > VKT_PRECISION_BF16)
        return vkt_fail(&h, VKT_E_ARG, "export: want float32, float16 or bfloat16, got precision %d",
                        (int)x.p.precision);
    if (!vkt_store_has(s, x.p.part))
        return vkt_fail(&h, VKT_E_STATE, "export: the store does not have part %d", (int)x.p.part);
    const uint32_t n = vkt_store_count(s);
    x.element_bytes = x.p.precision == VKT_PRECISION_F32 ? 4 : 2;
    x.first = vkt_alloc_array(&h, n, sizeof *x.first);
    x.macros = vkt_alloc_array(&h, 1 + (size_t)n * (1 + VKT_ST_MAX_RANK), sizeof *x.macros);
    vkt_result r = x.first && x.macros ? VKT_OK : vkt_fail_nomem(&h, "an export", n * sizeof *x.macros);
    for (uint32_t i = 0; i < n && r == VKT_OK; i++) {
        x.first[i] = x.elements;
        x.elements += vkt_round_up(vkt_shape_elements(vkt_store_shape(s, i)), ALIGN_BYTES / x.element_bytes);
    }
    if (r == VKT_OK) r = write_both(&x, blob, header);
    vkt_text_free(&x.text);
    vkt_free(&h, x.macros);
    vkt_free(&h, x.first);
    return r;
}
