/* common/train_files.c - see train_files.h. */
#include "common/train_files.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/message.h"
#include "common/outputs.h"

enum { FAILED = 1, USAGE = 2, MOST = 8, FOLDER_ROOM = 4096, LINE_ROOM = 1024 };

typedef struct output {
    const char *option, **path;
    bool is_text; /* the file may be standard output */
} output;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Gets the status of the folder of a path. Returns false if there is no such folder. */
static bool look_at_folder(const char *path, struct stat *out)
{
    char folder[FOLDER_ROOM];
    const size_t n = (size_t)(base_name(path) - path);
    if (n >= sizeof folder) return false;
    memcpy(folder, path, n);
    folder[n] = 0;
    return stat(n ? folder : ".", out) == 0;
}

/* Returns whether two paths name the same file: a regular file, a file that does not exist yet, or "-". Returns false
 * for devices, because several options may write to the same device. */
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

static bool is_image(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".svg") == 0 || strcasecmp(dot, ".png") == 0);
}

/* Is a log function: keeps the last line in `room`. */
static void keep(void *room, vkt_log_level level, const char *line)
{
    (void)level;
    snprintf(room, LINE_ROOM, "%s", line);
}

/* Returns whether a file begins like a checkpoint. Skips the first 8 bytes, which have the length of the header. */
static bool begins_as_checkpoint(const char *path)
{
    static const char want[] = "{\"__metadata__\":{\"vktrain.crc32\":\"";
    char begin[8 + sizeof want - 1] = "";
    FILE *f = fopen(path, "rb");
    const bool read = f && fread(begin, 1, sizeof begin, f) == sizeof begin;
    if (f) fclose(f);
    return read && memcmp(begin + 8, want, sizeof want - 1) == 0;
}

static bool is_weights_file(const char *option, const char *path)
{
    char line[LINE_ROOM] = "", *text = NULL;
    const vkt_host host = { .log = keep, .log_user = line, .log_level = VKT_LOG_ERROR };
    const vkt_result r = vkt_read_attachment(&host, path, "data", &text);
    vkt_text_release(&text);
    /* If the file exists, VKT_E_NOT_FOUND means that it is a weights file without the attachment "data". */
    if (r == VKT_OK || (r == VKT_E_NOT_FOUND && access(path, F_OK) == 0)) return true;
    complain("--%s: %s", option, line);
    return false;
}

int train_inputs_try(const train_options *o)
{
    if (o->predict) return 0; /* predict_card (common/predict.h) tests the file of --load */
    if (o->load && !is_weights_file("load", o->load)) return FAILED;
    if (!o->resume) return 0;
    if (!is_weights_file("resume", o->resume)) return FAILED;
    if (begins_as_checkpoint(o->resume)) return 0;
    complain("--resume: \"%s\" is a safetensors file, but not a vktrain checkpoint: --load takes weights", o->resume);
    return FAILED;
}

static int try_one(const output *f)
{
    const vkt_host host = message_host(f->option);
    if (strcmp(*f->path, "-") == 0 && !f->is_text) {
        complain_of_usage("--%s: want the name of a file, got '-'", f->option);
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
                complain_of_usage("--%s and --%s: want two files, got '%s' and '%s', which are the same", all[k].option,
                                  all[i].option, *all[k].path, *all[i].path);
                return USAGE;
            }
    const output *const images[] = { &all[4], &all[7] };
    for (size_t i = 0; i < 2; i++)
        if (*images[i]->path && !is_image(*images[i]->path)) {
            complain_of_usage("--%s: want a name that ends in .svg or .png, got '%s'", images[i]->option,
                              *images[i]->path);
            return USAGE;
        }
    int status = 0;
    for (size_t i = 0; i < MOST; i++) {
        const int one = *all[i].path ? try_one(&all[i]) : 0;
        if (!status) status = one;
    }
    return status;
}
