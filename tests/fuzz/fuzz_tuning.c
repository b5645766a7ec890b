/* Reads tuning files: the input as it is, and with a correct checksum. */
#include <stdio.h>

#include "fuzz/fuzz.h"
#include "kernel/tuning.h"

static void decode(const char *text, size_t size)
{
    static const vkt_tuning_id id = { .device = "1-2-3", .shaders = 0x0123456789abcdef };
    vkt_tuned *list;
    size_t n;
    const char *fault;
    const vkt_result r = vkt_tuning_decode(fuzz_host(), &id, text, size, &list, &n, &fault);
    fuzz_require(r == VKT_OK || r == VKT_E_NOMEM, "a damaged file is no error");
    fuzz_require(!(fault && (list || n)), "entries of a damaged file");
    for (size_t i = 1; i < n; i++) fuzz_require(list[i - 1].key < list[i].key, "keys that do not rise");
    vkt_free(fuzz_host(), list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CHECK = 23 };
    char *text = vkt_alloc(fuzz_host(), size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    decode(text, size);
    if (size >= CHECK) {
        char check[CHECK + 1];
        const unsigned long long hash = vkt_hash(VKT_HASH_START, text, size - CHECK);
        snprintf(check, sizeof check, "check %016llx\n", hash);
        memcpy(text + size - CHECK, check, CHECK);
        decode(text, size);
    }
    vkt_free(fuzz_host(), text);
    fuzz_end();
    return 0;
}
