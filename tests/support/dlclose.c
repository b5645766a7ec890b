/* Mesa 22.3.6 leaks 128 bytes when lavapipe is unloaded, and a suppression cannot name an unloaded library. Sanitizer
 * builds unload nothing: that memory stays reachable, and leaks of this project are still reported. */
#include <dlfcn.h>

#ifdef VKT_SANITIZED
__attribute__((visibility("default"))) int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
#endif
