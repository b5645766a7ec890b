/* samples/screen.c - see screen.h. */
#include "samples/screen.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Starts Xvfb, which chooses a free display. When Xvfb is ready, it writes the number of the display to a pipe. */
bool screen_start(screen *s)
{
    int ready[2];
    if (pipe(ready) != 0) return false;
    s->server = fork();
    if (s->server == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", ready[1]);
        close(ready[0]);
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* Xvfb ends if the test is killed */
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(127);
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

/* The functions of libX11 that this file calls. An XID of libX11 is an unsigned long. */
typedef struct x11 {
    void *(*open)(const char *);
    unsigned long (*root)(void *);
    int (*tree)(void *, unsigned long, unsigned long *, unsigned long *, unsigned long **, unsigned *);
    int (*geometry)(void *, unsigned long, unsigned long *, int *, int *, unsigned *, unsigned *, unsigned *,
                    unsigned *);
    int (*resize)(void *, unsigned long, unsigned, unsigned);
    int (*free)(void *);
    int (*close)(void *);
} x11;

static bool load(void *library, x11 *x)
{
    const struct {
        const char *name;
        void *to;
    } all[] = { { "XOpenDisplay", &x->open },     { "XDefaultRootWindow", &x->root }, { "XQueryTree", &x->tree },
                { "XGetGeometry", &x->geometry }, { "XResizeWindow", &x->resize },    { "XFree", &x->free },
                { "XCloseDisplay", &x->close } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *const f = dlsym(library, all[i].name);
        if (!f) return false;
        memcpy(all[i].to, &f, sizeof f);
    }
    return true;
}

/* Resizes the first window that is wider than 100 pixels. Returns false if there is no such window yet. */
static bool resize_largest(const x11 *x, void *display, unsigned width, unsigned height)
{
    unsigned long root = x->root(display), parent, *windows = NULL;
    unsigned n = 0;
    bool found = false;
    if (!x->tree(display, root, &root, &parent, &windows, &n)) return false;
    for (unsigned i = 0; i < n && !found; i++) {
        unsigned w = 0, h, border, depth;
        int left, top;
        found = x->geometry(display, windows[i], &parent, &left, &top, &w, &h, &border, &depth) && w > 100;
        if (found) x->resize(display, windows[i], width, height);
    }
    if (windows) x->free(windows);
    return found;
}

bool screen_resize(const screen *s, unsigned width, unsigned height)
{
    x11 x;
    void *library = dlopen("libX11.so.6", RTLD_NOW);
    void *display = library && load(library, &x) ? x.open(strchr(s->display, ':')) : NULL;
    bool good = false;
    for (int i = 0; display && !good && i < 2000; i++) {
        good = resize_largest(&x, display, width, height);
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    if (display) x.close(display);
    if (library) dlclose(library);
    return good;
}
