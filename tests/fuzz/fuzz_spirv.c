/* Reads SPIR-V modules of applications: entry point, work group, bindings, push constants, capabilities. */
#include "base/spirv.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const vkt_host *h = fuzz_host();
    static const vkt_spirv none = { .n_variables = 0 };
    vkt_spirv s;
    uint32_t *words =
        vkt_alloc(h, size ? size : 1); /* as large as the module (at least 1), so a sanitizer sees reads behind it */
    if (!words) return 0;
    if (size) memcpy(words, data, size);
    const vkt_result r = vkt_spirv_read(h, "fuzz", words, size, "main", &s);
    vkt_free(h, words);
    if (r == VKT_OK)
        fuzz_require(s.n_variables <= VKT_SPIRV_VARIABLES && s.local[0] && s.local[1] && s.local[2],
                     "a strange module");
    else
        fuzz_require(memcmp(&s, &none, sizeof s) == 0, "an output after a failure");
    if (r != VKT_E_NOT_FOUND) fuzz_status(r, r == VKT_OK); /* NOT_FOUND: there is no entry point of this name */
    fuzz_end();
    return 0;
}
