/* Mesa 22.3.6 leaks 128 bytes when lavapipe is unloaded, and a library that is gone cannot be named in a suppression.
 * In sanitizer builds nothing is unloaded: the memory stays reachable, and leaks of our own are still reported. */
#include <dlfcn.h>

#ifdef VKT_SANITIZED
__attribute__((visibility("default"))) int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
#endif
