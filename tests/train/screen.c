/* train/screen.c - see screen.h. */
#include "train/screen.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The server takes a display that is free and writes its number, when it is ready, to a pipe. */
bool screen_start(screen *s)
{
    int ready[2];
    if (pipe(ready) != 0) return false;
    s->server = fork();
    if (s->server == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", ready[1]);
        close(ready[0]);
        if (!freopen("/dev/null", "w", stderr)) _exit(127);
        execlp("Xvfb", "Xvfb", "-displayfd", number, "-screen", "0", "800x600x24", "-nolisten", "tcp", (char *)NULL);
        _exit(127);
    }
    close(ready[1]);
    FILE *in = fdopen(ready[0], "r");
    unsigned display;
    const bool good = in && s->server > 0 && fscanf(in, "%u", &display) == 1;
    if (in) fclose(in);
    if (good) snprintf(s->display, sizeof s->display, "DISPLAY=:%u", display);
    if (!good && s->server > 0) waitpid(s->server, NULL, 0);
    return good;
}

void screen_stop(screen *s)
{
    kill(s->server, SIGTERM);
    waitpid(s->server, NULL, 0);
}

/* libX11, as far as it is called; its XID is an unsigned long. */
typedef struct x11 {
    void *(*open)(const char *);
    unsigned long (*root)(void *);
    int (*tree)(void *, unsigned long, unsigned long *, unsigned long *, unsigned long **, unsigned *);
    int (*resize)(void *, unsigned long, unsigned, unsigned);
    int (*free)(void *);
    int (*close)(void *);
} x11;

static bool load(void *library, x11 *x)
{
    const struct {
        const char *name;
        void *to;
    } all[] = { { "XOpenDisplay", &x->open }, { "XDefaultRootWindow", &x->root },
                { "XQueryTree", &x->tree },   { "XResizeWindow", &x->resize },
                { "XFree", &x->free },        { "XCloseDisplay", &x->close } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *const f = dlsym(library, all[i].name);
        if (!f) return false;
        memcpy(all[i].to, &f, sizeof f);
    }
    return true;
}

static bool resize_first(const x11 *x, void *display, unsigned width, unsigned height)
{
    unsigned long root = x->root(display), parent, *windows = NULL;
    unsigned n = 0;
    for (int i = 0; i < 2000 && n == 0; i++) {
        if (!x->tree(display, root, &root, &parent, &windows, &n)) return false;
        if (n == 0) nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    if (n) x->resize(display, windows[n - 1], width, height);
    if (windows) x->free(windows);
    return n > 0;
}

bool screen_resize(const screen *s, unsigned width, unsigned height)
{
    x11 x;
    void *library = dlopen("libX11.so.6", RTLD_NOW);
    void *display = library && load(library, &x) ? x.open(strchr(s->display, ':')) : NULL;
    const bool good = display && resize_first(&x, display, width, height);
    if (display) x.close(display);
    if (library) dlclose(library);
    return good;
}
