/* common/train_files.c - see train_files.h. */
#include "common/train_files.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/outputs.h"

enum { FAILED = 1, USAGE = 2, MOST = 8, FOLDER_ROOM = 4096 };

typedef struct output {
    const char *option, **path;
    bool is_text; /* may go to standard output */
} output;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The folder of a path; false where there is none. */
static bool look_at_folder(const char *path, struct stat *out)
{
    char folder[FOLDER_ROOM];
    const size_t n = (size_t)(base_name(path) - path);
    if (n >= sizeof folder) return false;
    memcpy(folder, path, n);
    folder[n] = 0;
    return stat(n ? folder : ".", out) == 0;
}

/* Whether two paths are one file. Devices and the like may be written to by several. */
static bool same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0) return strcmp(a, b) == 0;
    const bool a_exists = stat(a, &sa) == 0, b_exists = stat(b, &sb) == 0;
    if (a_exists != b_exists) return false;
    if (a_exists) return S_ISREG(sa.st_mode) && sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
    return strcmp(base_name(a), base_name(b)) == 0 && look_at_folder(a, &sa) && look_at_folder(b, &sb) &&
           sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
}

static bool is_picture(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".svg") == 0 || strcasecmp(dot, ".png") == 0);
}

static void tell(void *option, vkt_log_level level, const char *line)
{
    (void)level;
    fprintf(stderr, "--%s: %s\n", (const char *)option, line);
}

static int try_one(const output *f)
{
    const vkt_host host = { .log = tell, .log_user = (void *)(size_t)f->option, .log_level = VKT_LOG_ERROR };
    if (strcmp(*f->path, "-") == 0 && !f->is_text) {
        fprintf(stderr, "--%s: want the name of a file, got '-'\n", f->option);
        return USAGE;
    }
    *f->path = output_path(*f->path);
    return vkt_try_output(&host, *f->path) == VKT_OK ? 0 : FAILED;
}

int train_files_try(train_options *o)
{
    const output all[MOST] = {
        { "checkpoint", &o->checkpoint, false }, { "save", &o->save, false },       { "json", &o->json, true },
        { "history", &o->history, true },        { "plot", &o->plot, false },       { "profile", &o->profile, true },
        { "confusion", &o->confusion, false },   { "find-lr", &o->find_lr, false },
    };
    for (size_t i = 0; i < MOST; i++)
        for (size_t k = 0; k < i; k++)
            if (*all[i].path && *all[k].path && same_file(*all[i].path, *all[k].path)) {
                fprintf(stderr, "--%s and --%s: want two files, got '%s' and '%s', which are the same\n", all[k].option,
                        all[i].option, *all[k].path, *all[i].path);
                return USAGE;
            }
    const output *const pictures[] = { &all[4], &all[7] };
    for (size_t i = 0; i < 2; i++)
        if (*pictures[i]->path && !is_picture(*pictures[i]->path)) {
            fprintf(stderr, "--%s: want a name that ends in .svg or .png, got '%s'\n", pictures[i]->option,
                    *pictures[i]->path);
            return USAGE;
        }
    int status = 0;
    for (size_t i = 0; i < MOST; i++) {
        const int one = *all[i].path ? try_one(&all[i]) : 0;
        if (!status) status = one;
    }
    return status;
}
