/* Reads the input as a checkpoint: as it is, and with a correct checksum, so that the code behind the checksum runs. */
#include <stdio.h>
#include <zlib.h>

#include "fuzz/fuzz.h"
#include "io/checkpoint.h"

static void open_it(const uint8_t *data, size_t size)
{
    vkt_safetensors *st;
    const vkt_result r = vkt_checkpoint_open(fuzz_host(), fuzz_file(data, size), &st);
    fuzz_status(r, st != NULL);
    if (st) fuzz_require(vkt_safetensors_meta(st, "vktrain.kind") != NULL, "a checkpoint without its kind");
    vkt_safetensors_close(&st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_it(data, size);
    static const char opening[] = "{\"__metadata__\":{\"vktrain.crc32\":\"";
    const size_t at = 8 + sizeof opening - 1; /* the offset of the checksum's eight digits: see io/checkpoint.h */
    uint8_t *right = size < at + 8 ? NULL : vkt_alloc(fuzz_host(), size);
    if (!right) {
        fuzz_end();
        return 0;
    }
    memcpy(right, data, size);
    memcpy(right + 8, opening, sizeof opening - 1);
    uLong crc = crc32_z(0, right, at);
    crc = crc32_z(crc, right + at + 8, size - at - 8);
    char digits[9];
    snprintf(digits, sizeof digits, "%08lx", crc);
    memcpy(right + at, digits, 8);
    open_it(right, size);
    vkt_free(fuzz_host(), right);
    fuzz_end();
    return 0;
}
