/* support/temp_dir.c - see temp_dir.h. */
#include "support/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/paths.h"
#include "base/system.h"

vkt_temp_dir vkt_temp_dir_make(void)
{
    static unsigned made;
    vkt_temp_dir dir;
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = vkt_path_exists("/dev/shm") ? "/dev/shm" : "/tmp";
    int error = EEXIST;
    for (int i = 0; i < 1000 && error == EEXIST; i++) {
        const uint64_t time = vkt_wall_ns() % 1000000007;
        snprintf(dir.path, sizeof dir.path, "%.200s/vkt-test-%lld-%u-%llu", base, (long long)vkt_process_id(), made++,
                 (unsigned long long)time);
        error = vkt_folder_make(dir.path, true);
    }
    if (error) fail_msg("cannot make a directory like %s", dir.path);
    return dir;
}

const char *vkt_temp_dir_file(const vkt_temp_dir *dir, const char *name)
{
    static _Thread_local char paths[4][512];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", dir->path, name);
    return path;
}

/* Returns the number of entries of a folder. If remove_them is not 0, also removes the entries. A subfolder is removed
 * with its content. */
static unsigned visit_files(const char *folder, int remove_them)
{
    unsigned n = 0;
    vkt_folder *f;
    if (vkt_folder_open(folder, &f) != 0) return 0;
    for (const char *name; vkt_folder_next(f, &name) == 0 && name;) {
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (remove_them && vkt_path_remove(path) != 0) {
            visit_files(path, 1);
            vkt_path_remove(path);
        }
        n++;
    }
    vkt_folder_close(f);
    return n;
}

unsigned vkt_temp_dir_count(const vkt_temp_dir *dir)
{
    return visit_files(dir->path, 0);
}

void vkt_temp_dir_remove(const vkt_temp_dir *dir)
{
    chmod(dir->path, 0700);
    visit_files(dir->path, 1);
    vkt_path_remove(dir->path);
}
