/* custom/modules.h - the modules that custom/modules.cmake compiles from custom/shaders. */
#ifndef VKT_TEST_MODULES_H
#define VKT_TEST_MODULES_H

#include <stddef.h>
#include <stdint.h>

typedef struct module {
    const char *name;
    const uint32_t *words;
    size_t bytes;
} module;

/* Returns the module of this name. If there is none, all members are NULL or 0. */
module module_of(const char *name);
/* Returns module number i. For i = number of modules, all members are NULL or 0. */
module module_at(size_t i);

#endif
