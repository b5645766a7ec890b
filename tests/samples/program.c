/* samples/program.c - see program.h. */
#define _XOPEN_SOURCE 700 /* putenv, unsetenv */
#include "samples/program.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_ARGS = 64 };

pid_t program_start(const rig *r, const char *program, const char *const *env, const char *const *args)
{
    const char *argv[MAX_ARGS + 2] = { program };
    for (int i = 0; args[i]; i++) {
        assert_true(i < MAX_ARGS);
        argv[i + 1] = args[i];
    }
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    if (chdir(r->dir.path) != 0) _exit(127);
    for (; env && *env; env++) /* putenv does not change the string, but its parameter is no const char * */
        if ((strchr(*env, '=') ? putenv((char *)(size_t)*env) : unsetenv(*env)) != 0) _exit(127);
    dup2(open("out", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
    dup2(open("err", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
    execv(program, (char *const *)(size_t)argv); /* execv does not change the strings, either */
    _exit(127);
}

char *program_text(const rig *r, const char *name)
{
    size_t n;
    void *text = NULL;
    assert_int_equal(vkt_file_read(&r->h, vkt_temp_dir_file(&r->dir, name), 1u << 24, &text, &n), VKT_OK);
    return text;
}

run program_finish(const rig *r, pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    const run done = { WIFEXITED(status) ? WEXITSTATUS(status) : -1, program_text(r, "out"), program_text(r, "err") };
    if (strstr(done.err, "validation:")) fail_msg("%s", done.err);
    return done;
}

void run_forget(const rig *r, run *done)
{
    vkt_free(&r->h, done->out);
    vkt_free(&r->h, done->err);
}

run program_output(const rig *r, const char *program, const char *const *args)
{
    run done = program_finish(r, program_start(r, program, NULL, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    return done;
}

void program_expect(const rig *r, const char *program, int status, const char *says, const char *const *args)
{
    run done = program_finish(r, program_start(r, program, NULL, args));
    const bool good = done.status == status && strstr(done.err, says);
    if (!good) print_error("status %d, want %d; stderr '%s', want '%s'\n", done.status, status, done.err, says);
    run_forget(r, &done);
    assert_true(good);
}

bool program_wrote(const rig *r, const char *name)
{
    struct stat s;
    return stat(vkt_temp_dir_file(&r->dir, name), &s) == 0 && s.st_size > 0;
}

json_t *program_json(const rig *r, const char *name)
{
    json_error_t e;
    json_t *o = json_load_file(vkt_temp_dir_file(&r->dir, name), 0, &e);
    if (!o) fail_msg("%s: %s", name, e.text);
    return o;
}

double json_number_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_number(v)) fail_msg("'%s' is no number", key);
    return json_number_value(v);
}
