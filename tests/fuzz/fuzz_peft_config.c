/* Reads the adapter_config.json of a folder of PEFT. Accepted options must have a rank, alpha and names of layers. */
#include <math.h>

#include "fuzz/fuzz.h"
#include "lm/peft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vkt_peft_config *c;
    const vkt_result r = vkt_peft_config_parse(fuzz_host(), "input", (const char *)data, size, &c);
    fuzz_status(r, c != NULL);
    if (c) {
        const vkt_lora_params *p = vkt_peft_config_lora(c);
        fuzz_require(p->rank > 0 && p->n_targets > 0 && isfinite(p->alpha) && p->alpha != 0, "no adapter");
        fuzz_require(p->dropout >= 0 && p->dropout <= 1, "a dropout out of range");
        for (uint32_t i = 0; i < p->n_targets; i++) fuzz_require(*p->targets[i] != 0, "a layer without a name");
        fuzz_require(vkt_peft_config_base(c) != NULL, "no name of the model");
        vkt_peft_config_destroy(&c);
    }
    fuzz_end();
    return 0;
}
