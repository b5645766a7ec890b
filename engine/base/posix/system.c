/* base/posix/system.c - see base/system.h. */
#include "base/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

/* ---- this machine and this process ---- */

uint32_t vkt_cpu_count(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return (uint32_t)VKT_MIN(VKT_MAX(n, 1), 65536);
}

uint64_t vkt_cpu_cache_bytes(void)
{
#ifdef _SC_LEVEL3_CACHE_SIZE /* glibc defines this name */
    const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? (uint64_t)bytes : 0;
#else
    return 0;
#endif
}

int64_t vkt_process_id(void)
{
    return getpid();
}

void vkt_host_name(char name[65])
{
    memset(name, 0, 65);
    if (gethostname(name, 64) != 0 || !*name) snprintf(name, 65, "localhost");
}

size_t vkt_user_cache(char *folder, size_t room)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool has_xdg = xdg && xdg[0] == '/'; /* XDG Base Directory Specification: relative paths must be ignored */
    if (!has_xdg && (!home || home[0] != '/')) return 0;
    const int n = snprintf(folder, room, "%s%s", has_xdg ? xdg : home, has_xdg ? "" : "/.cache");
    return n > 0 && (size_t)n < room ? (size_t)n : 0;
}

bool vkt_env_set(const char *name, const char *value)
{
    return (value ? setenv(name, value, 1) : unsetenv(name)) == 0;
}

const char *vkt_error_text(int error, char buf[128])
{
    if (strerror_r(error, buf, 128) != 0) snprintf(buf, 128, "error %d", error);
    return buf;
}

/* ---- time ---- */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
}

uint64_t vkt_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t vkt_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t vkt_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

void vkt_sleep_until(uint64_t ns)
{
    for (uint64_t now; (now = vkt_now_ns()) < ns;) {
        const struct timespec left = time_of(ns - now);
        nanosleep(&left, NULL); /* a signal ends nanosleep early */
    }
}

void vkt_time_text(int64_t seconds, char text[32])
{
    const time_t t = (time_t)seconds;
    struct tm utc;
    if (!gmtime_r(&t, &utc) || strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &utc) == 0) *text = 0;
}

/* ---- waiting of threads ---- */

#ifdef __APPLE__ /* macOS has no pthread_condattr_setclock, but it has a wait function with a relative time */
void vkt_cond_init(pthread_cond_t *cond)
{
    pthread_cond_init(cond, NULL);
}

bool vkt_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
    const uint64_t now = vkt_now_ns();
    const struct timespec left = time_of(now < ns ? ns - now : 0);
    return pthread_cond_timedwait_relative_np(cond, lock, &left) != ETIMEDOUT;
}
#else
void vkt_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes; /* on Linux the four pthread calls below cannot fail */
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool vkt_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
    const struct timespec until = time_of(ns);
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}
#endif

/* ---- shared libraries ---- */

void *vkt_library_open(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *vkt_library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

void vkt_library_close(void *library)
{
    if (library) dlclose(library);
}

const char *const *vkt_loader_names(void)
{
#ifdef __APPLE__ /* libMoltenVK is a driver that has the loader's functions too */
    static const char *const names[] = { "libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib", NULL };
#else
    static const char *const names[] = { "libvulkan.so.1", "libvulkan.so", NULL }; /* the second is for Android */
#endif
    return names;
}

const char *vkt_loader_hint(void)
{
#ifdef __APPLE__
    return "install the Vulkan SDK, or MoltenVK";
#else
    return "on Debian or Ubuntu: apt install libvulkan1 mesa-vulkan-drivers";
#endif
}
