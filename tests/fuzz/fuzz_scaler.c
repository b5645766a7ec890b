/* Reads scalers from text. */
#include <math.h>

#include "fuzz/fuzz.h"
#include "vktrain/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = vkt_alloc(fuzz_host(), size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    vkt_scaler *s;
    const vkt_result r = vkt_scaler_from_text(fuzz_host(), "input", text, &s);
    fuzz_status(r, s != NULL);
    for (uint32_t i = 0; s && i < vkt_scaler_columns(s); i++)
        fuzz_require(isfinite(vkt_scaler_mean(s)[i]) && vkt_scaler_std(s)[i] > 0, "numbers that cannot be used");
    vkt_scaler_destroy(&s);
    vkt_free(fuzz_host(), text);
    fuzz_end();
    return 0;
}
