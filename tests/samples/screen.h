/* samples/screen.h - an X server without a screen (Xvfb) for programs with windows, and a function that resizes a
 * window as a user does. */
#ifndef VKT_TEST_SCREEN_H
#define VKT_TEST_SCREEN_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct screen {
    pid_t server;
    char display[32]; /* for instance "DISPLAY=:7", for a program's environment */
} screen;

/* Starts Xvfb. Returns false if it is not installed or does not start. */
bool screen_start(screen *s);
void screen_stop(screen *s);
/* Waits for the program's window, the only one wider than 100 pixels, and resizes it. Returns false if no such window
 * appears, or if libX11 is not installed. */
bool screen_resize(const screen *s, unsigned width, unsigned height);

#endif
