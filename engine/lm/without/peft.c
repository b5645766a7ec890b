/* lm/without/peft.c - replaces peft.c and peft_config.c in a build without jansson. */
#include "vktrain/peft.h"

#include "base/base.h"

vkt_result vkt_peft_config_open(const vkt_host *host, const char *folder, vkt_peft_config **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, folder);
    const vkt_host h = vkt_host_resolve(host);
    return vkt_fail_without(&h, folder, "jansson", "JANSSON");
}

vkt_result vkt_peft_load(const vkt_host *host, vkt_store *s, const vkt_lora_params *lora, const char *folder)
{
    VKT_WANT(host, s);
    VKT_WANT(host, lora);
    VKT_WANT(host, folder);
    const vkt_host h = vkt_host_resolve(host);
    return vkt_fail_without(&h, folder, "jansson", "JANSSON");
}

vkt_result vkt_peft_save(const vkt_host *host, vkt_store *s, vkt_store_part part, const vkt_peft_params *params,
                         const char *folder)
{
    (void)part;
    VKT_WANT(host, s);
    VKT_WANT(host, params);
    VKT_WANT(host, folder);
    const vkt_host h = vkt_host_resolve(host);
    return vkt_fail_without(&h, folder, "jansson", "JANSSON");
}
