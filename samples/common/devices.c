/* common/devices.c - see devices.h. */
#include "common/devices.h"

#include <string.h>

#include "common/terminal.h"

void devices_note(FILE *out, const vkt_device_info *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strncmp(list[i].driver, "llvmpipe", 8) == 0) {
            terminal_print(out, "llvmpipe is listed with its default vectors; a run takes vectors of 512 bits "
                                "(subgroups of 16) on CPUs that gain by them\n");
            return;
        }
}
