/* custom/modules.h - the modules that tests/CMakeLists.txt compiles from custom/shaders. */
#ifndef VKT_TEST_MODULES_H
#define VKT_TEST_MODULES_H

#include <stddef.h>
#include <stdint.h>

typedef struct module {
    const char *name;
    const uint32_t *words;
    size_t bytes;
} module;

/* Returns the module of this name. There must be one. */
module module_of(const char *name);
/* Returns module number i. Its name is NULL if there is no such module. */
module module_at(size_t i);

#endif
