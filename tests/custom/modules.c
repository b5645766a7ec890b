/* custom/modules.c - see modules.h. */
#include "custom/modules.h"

#include <string.h>

#include "custom_modules.h" /* generated: the modules as arrays, and CUSTOM_MODULES(X) */

module module_at(size_t i)
{
    static const module modules[] = {
#define X(name) { #name, name##_spv, sizeof name##_spv },
        CUSTOM_MODULES(X)
#undef X
            { NULL, NULL, 0 },
    };
    return modules[i];
}

module module_of(const char *name)
{
    size_t i = 0;
    while (module_at(i).name && strcmp(module_at(i).name, name) != 0) i++;
    return module_at(i);
}
