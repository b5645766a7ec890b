/* info/main.c - vkt-info: the devices of this machine, and what vktrain makes of one. */
#include "common/outputs.h"
#include "info/json.h"
#include "info/text.h"

int main(int argc, char **argv)
{
    info_options o;
    info_facts f = { .devices = NULL };
    outputs_begin();
    info_options_parse(&o, argc, argv);
    vkt_result r = info_find_devices(NULL, &f);
    if (r == VKT_OK && !o.list_devices) r = info_find_facts(NULL, &o, &f);
    if (r == VKT_OK && !o.list_devices)
        info_print(stdout, &f);
    else if (!f.ctx)
        info_print_devices(stdout, &f);
    fflush(stdout); /* which may be where the file goes */
    if (r == VKT_OK && o.json) r = info_write_json(&o, &f);
    if (r != VKT_OK) fprintf(stderr, "vkt-info: %s\n", vkt_result_text(r));
    info_free(&f);
    return r != VKT_OK;
}
