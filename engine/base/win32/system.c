/* base/win32/system.c - see base/system.h. */
#include "base/system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <windows.h>

#include "base/base.h"
#include "base/win32/wide.h"

/* ---- this machine and this process ---- */

uint32_t vkt_cpu_count(void)
{
    const DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return VKT_MIN(VKT_MAX((uint32_t)n, 1u), 65536u);
}

uint64_t vkt_cpu_cache_bytes(void)
{
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION list[1024]; /* an element per core, cache, package and NUMA node */
    DWORD bytes = sizeof list;
    uint64_t level3 = 0;
    if (!GetLogicalProcessorInformation(list, &bytes)) return 0;
    for (size_t i = 0; i < bytes / sizeof *list; i++)
        if (list[i].Relationship == RelationCache && list[i].Cache.Level == 3)
            level3 = VKT_MAX(level3, (uint64_t)list[i].Cache.Size);
    return level3;
}

int64_t vkt_process_id(void)
{
    return GetCurrentProcessId();
}

void vkt_host_name(char name[65])
{
    wchar_t wide[256];
    DWORD n = VKT_COUNT(wide);
    if (!GetComputerNameExW(ComputerNameDnsHostname, wide, &n) || vkt_narrow(wide, name, 65) == 0)
        snprintf(name, 65, "localhost");
}

size_t vkt_user_cache(char *folder, size_t room)
{
    const wchar_t *local = _wgetenv(L"LOCALAPPDATA");
    const bool is_absolute = local && *local && (local[1] == L':' || (local[0] == L'\\' && local[1] == L'\\'));
    return is_absolute ? vkt_narrow(local, folder, room) : 0;
}

bool vkt_env_set(const char *name, const char *value)
{
    return _putenv_s(name, value ? value : "") == 0; /* an empty value removes the variable */
}

const char *vkt_error_text(int error, char buf[128])
{
    if (strerror_s(buf, 128, error) != 0) snprintf(buf, 128, "error %d", error);
    return buf;
}

/* ---- time ---- */

#define NS_PER_TICK 100u                           /* a FILETIME counts ticks of 100 ns (Microsoft's description) */
#define TICKS_TO_1970 UINT64_C(116444736000000000) /* from 1601-01-01, where a FILETIME begins, to 1970-01-01 */

static uint64_t ticks_of(FILETIME t)
{
    return (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
}

uint64_t vkt_now_ns(void)
{
    LARGE_INTEGER now, per_second; /* the two Query calls cannot fail since Windows XP */
    QueryPerformanceFrequency(&per_second);
    QueryPerformanceCounter(&now);
    const uint64_t n = (uint64_t)now.QuadPart, f = (uint64_t)per_second.QuadPart;
    return n / f * 1000000000u + n % f * 1000000000u / f;
}

uint64_t vkt_thread_cpu_ns(void)
{
    FILETIME begun, ended, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &begun, &ended, &kernel, &user)) return 0;
    return (ticks_of(kernel) + ticks_of(user)) * NS_PER_TICK;
}

uint64_t vkt_wall_ns(void)
{
    FILETIME now;
    GetSystemTimePreciseAsFileTime(&now);
    return (ticks_of(now) - TICKS_TO_1970) * NS_PER_TICK;
}

void vkt_sleep_until(uint64_t ns)
{
    enum { STEP_NS = 1000000, LATE_MS = 16 /* Sleep may last one period of the system timer too long */ };
    for (uint64_t now; (now = vkt_now_ns()) < ns;) {
        const uint64_t ms = (ns - now) / STEP_NS;
        Sleep(ms > LATE_MS ? (DWORD)VKT_MIN(ms - LATE_MS, 1000000u) : 0);
    }
}

void vkt_time_text(int64_t seconds, char text[32])
{
    const __time64_t t = seconds;
    struct tm utc;
    if (_gmtime64_s(&utc, &t) != 0 || strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &utc) == 0) *text = 0;
}

/* ---- waiting of threads ---- */

void vkt_cond_init(pthread_cond_t *cond)
{
    pthread_cond_init(cond, NULL);
}

bool vkt_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
    const uint64_t now = vkt_now_ns(), left = now < ns ? ns - now : 0;
    const struct timespec t = { .tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u) };
    return pthread_cond_timedwait_relative_np(cond, lock, &t) != ETIMEDOUT;
}

/* ---- shared libraries ---- */

void *vkt_library_open(const char *name)
{
    wchar_t wide[VKT_WIDE_PATH];
    if (strpbrk(name, "/\\"))
        return vkt_wide_path(name, wide) == 0 ? LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH) : NULL;
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, -1, wide, VKT_WIDE_PATH) == 0) return NULL;
    /* This flag selects the program's folder, the system's folder, and folders that the program has added with
     * AddDllDirectory. The current folder is not searched, because any user may have put a file into that folder. */
    return LoadLibraryExW(wide, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
}

void *vkt_library_symbol(void *library, const char *name)
{
    const FARPROC function = GetProcAddress(library, name);
    void *symbol;
    memcpy(&symbol, &function, sizeof symbol);
    return symbol;
}

void vkt_library_close(void *library)
{
    if (library) FreeLibrary(library);
}

const char *const *vkt_loader_names(void)
{
    static const char *const names[] = { "vulkan-1.dll", NULL };
    return names;
}

const char *vkt_loader_hint(void)
{
    return "install the current driver of your GPU";
}
