/* base/system.h - what the operating system provides, except files (file.h, paths.h) and terminals (terminal.h). posix/
 * and win32/ implement the same functions. Code in other folders of engine/, except mpi/, calls these functions, not
 * the system. POSIX threads are an exception, because they exist on Windows too (winpthreads). */
#ifndef VKT_SYSTEM_H
#define VKT_SYSTEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- this machine and this process ---- */

/* Returns the number of CPUs that are online, 1 to 65536. */
uint32_t vkt_cpu_count(void);
/* Returns the size of the CPU's third-level cache, in bytes; 0: the system does not report the size. */
uint64_t vkt_cpu_cache_bytes(void);
/* Returns the id of this process. A child of fork() has another id than its parent. */
int64_t vkt_process_id(void);
/* Writes the name of this machine, at most 64 bytes; "localhost" if the system has none. */
void vkt_host_name(char name[65]);
/* Writes the folder in which programs of this user keep their caches. POSIX: $XDG_CACHE_HOME, else $HOME/.cache.
 * Windows: %LOCALAPPDATA%. Returns the length of the path, without the NUL; 0: none of these variables has an absolute
 * path, or the path has more than room - 1 bytes. */
size_t vkt_user_cache(char *folder, size_t room);
/* Sets a variable of the environment. If `value` is NULL, removes the variable. Returns false if the system reports an
 * error. */
bool vkt_env_set(const char *name, const char *value);
/* Writes the system's message for `error`, a value of errno, to buf. Returns buf. */
const char *vkt_error_text(int error, char buf[128]);

/* ---- time (vkt_now_ns and vkt_thread_cpu_ns are in base.h) ---- */

/* Returns the time since 1970-01-01 UTC, in ns. */
uint64_t vkt_wall_ns(void);
/* Sleeps until vkt_now_ns() is at least `ns`. */
void vkt_sleep_until(uint64_t ns);
/* Writes a time as text such as "2024-05-17 09:30:00 UTC". `seconds` counts from 1970-01-01 UTC. */
void vkt_time_text(int64_t seconds, char text[32]);

/* ---- waiting of threads ---- */

/* Initializes a condition variable for vkt_cond_wait_until. The caller destroys it with pthread_cond_destroy. */
void vkt_cond_init(pthread_cond_t *cond);
/* Waits like pthread_cond_wait, but at most until vkt_now_ns() is `ns`. Returns false after a timeout. */
bool vkt_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns);

/* ---- shared libraries ---- */

/* Loads a shared library by its file name or path. NULL: it does not exist, or cannot be loaded. */
void *vkt_library_open(const char *name);
/* Returns the address of a function of the library; NULL: the library has no function of this name. */
void *vkt_library_symbol(void *library, const char *name);
/* Unloads a library; NULL is allowed. */
void vkt_library_close(void *library);
/* Returns the file names of the Vulkan loader on this system, in the order in which they are tried. NULL ends the list.
 */
const char *const *vkt_loader_names(void);
/* Returns how the user can install the Vulkan loader on this system, for a message. */
const char *vkt_loader_hint(void);

#endif
