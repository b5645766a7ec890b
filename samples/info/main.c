/* info/main.c - vkt-info: prints the devices of this machine, and how vktrain uses one of them. */
#include "common/outputs.h"
#include "common/devices.h"
#include "common/message.h"
#include "info/json.h"
#include "info/text.h"

int main(int argc, char **argv)
{
    info_options o;
    info_facts f = { .devices = NULL };
    const vkt_host host = { .log = message_log };
    outputs_begin();
    info_options_parse(&o, argc, argv);
    vkt_result r = info_find_devices(&host, &f);
    if (r == VKT_OK && !o.list_devices) r = info_find_facts(&host, &o, &f);
    if (r == VKT_OK && !o.list_devices)
        info_print(stdout, &f);
    else if (!f.ctx)
        info_print_devices(stdout, &f), devices_note(stdout, f.devices, f.n_devices);
    fflush(stdout); /* the JSON file may be the same file as stdout */
    if (r == VKT_OK && o.json) r = info_write_json(&o, &f);
    if (r != VKT_OK) complain_of_result(r);
    info_free(&f);
    return r != VKT_OK;
}
