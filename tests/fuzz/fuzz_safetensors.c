/* Reads safetensors files. Each entry must be within the file. The reader must find each entry by name and read it. */
#include "fuzz/fuzz.h"
#include "io/safetensors.h"

static void check_entry(const vkt_safetensors *st, const vkt_st_entry *e)
{
    const vkt_file *f = vkt_safetensors_file(st);
    fuzz_require(e->offset <= f->size && e->bytes <= f->size - e->offset, "an entry outside the file");
    fuzz_require(vkt_safetensors_find(st, e->name) != NULL, "an entry without its name");
    uint64_t n = 1;
    for (uint32_t i = 0; i < e->rank; i++) n *= e->dims[i];
    fuzz_require(n == e->elements && (!e->dtype || e->bytes == n * vkt_st_dtype_bytes(e->dtype)), "a wrong size");
    void *raw = vkt_alloc(fuzz_host(), e->bytes + 1);
    float *f32 = vkt_alloc_array(fuzz_host(), e->elements + 1, sizeof *f32);
    const bool is_float =
        e->dtype == VKT_ST_F32 || e->dtype == VKT_ST_F16 || e->dtype == VKT_ST_BF16 || e->dtype == VKT_ST_F64;
    if (raw) fuzz_require(vkt_safetensors_read_raw(st, e, raw, e->bytes) == VKT_OK, "bytes that cannot be read");
    if (f32) {
        const vkt_result r = vkt_safetensors_read_f32(st, e, f32, e->elements);
        fuzz_require(is_float ? r == VKT_OK || r == VKT_E_NOMEM : r == VKT_E_DTYPE, "numbers that cannot be read");
    }
    vkt_free(fuzz_host(), raw);
    vkt_free(fuzz_host(), f32);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vkt_safetensors *st;
    const vkt_result r = vkt_safetensors_open(fuzz_host(), fuzz_file(data, size), &st);
    fuzz_status(r, st != NULL);
    if (st) {
        for (size_t i = 0; i < vkt_safetensors_count(st); i++) check_entry(st, vkt_safetensors_entry(st, i));
        vkt_safetensors_meta(st, "format");
        vkt_safetensors_close(&st);
    }
    fuzz_end();
    return 0;
}
