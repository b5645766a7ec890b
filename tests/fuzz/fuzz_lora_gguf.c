/* Reads the options of a LoRA adapter from GGUF files. Accepted options must have a rank, alpha and names of layers. */
#include <math.h>

#include "fuzz/fuzz.h"
#include "vktrain/peft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const vkt_gguf_model m = { .architecture = VKT_GGUF_LLAMA, .blocks = 2 };
    vkt_peft_config *c;
    const vkt_result r = vkt_lora_gguf_config(fuzz_host(), &m, fuzz_file(data, size), &c);
    fuzz_status(r, c != NULL);
    if (c) {
        const vkt_lora_params *p = vkt_peft_config_lora(c);
        fuzz_require(p->rank > 0 && isfinite(p->alpha) && p->alpha != 0, "no adapter");
        fuzz_require(p->n_targets > 0 && p->n_targets <= 14, "no layers, or more than two blocks have");
        for (uint32_t i = 0; i < p->n_targets; i++) fuzz_require(*p->targets[i] != 0, "a layer without a name");
        vkt_peft_config_destroy(&c);
    }
    fuzz_end();
    return 0;
}
