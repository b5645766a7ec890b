/* support/temp_dir.c - see temp_dir.h. */
#include "support/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

vkt_temp_dir vkt_temp_dir_make(void)
{
    vkt_temp_dir dir;
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir.path, sizeof dir.path, "%.200s/vkt-test-XXXXXX", base);
    if (!mkdtemp(dir.path)) fail_msg("cannot make a directory like %s", dir.path);
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

/* Returns the number of entries of a folder. With remove_them, removes these entries, folders with content. */
static unsigned visit_files(const char *folder, int remove_them)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (remove_them && unlink(path) != 0) {
            visit_files(path, 1);
            rmdir(path);
        }
        n++;
    }
    if (d) closedir(d);
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
    rmdir(dir->path);
}
