/* view/window.h - a window of GLFW's, its keys, and the swapchain that shows pictures in it. */
#ifndef VIEW_WINDOW_H
#define VIEW_WINDOW_H

#include "view/device.h"

enum { WINDOW_MOST_IMAGES = 16, WINDOW_MOST_KEYS = 16 };

typedef struct GLFWwindow GLFWwindow;

typedef struct window_image {
    VkImage handle;
    VkImageView view;
    VkSemaphore drawn; /* its presentation waits for it; one for each image, as it is free when the image is again */
} window_image;

typedef struct window {
    const device *d;
    GLFWwindow *handle;
    VkSurfaceKHR surface;
    VkSurfaceFormatKHR format;
    VkSwapchainKHR swapchain;
    VkExtent2D extent;
    VkImageUsageFlags usage;
    window_image images[WINDOW_MOST_IMAGES];
    uint32_t n_images;
    bool stale; /* the swapchain does not fit the window any more */
    char keys[WINDOW_MOST_KEYS];
    uint32_t n_keys; /* pressed since window_keys */
} window;

/* GLFW itself; false, said on stderr: there is no screen. Before device_open, which wants the instance extensions and
 * window_can_present. */
bool window_system_begin(const char *const **extensions, uint32_t *n);
void window_system_end(void);
bool window_can_present(VkInstance instance, VkPhysicalDevice physical, uint32_t family);

vkt_result window_open(const device *d, uint32_t width, uint32_t height, window *w);
void window_close(window *w); /* the device is idle */
bool window_poll(window *w);  /* looks for events; false: it was closed */
bool window_is_minimised(const window *w);
void window_sleep(void); /* until there is an event */
/* The keys that were pressed since the last call, in order: letters in lower case, '+', '-' for up and down, 'q' for
 * escape, ' '. */
uint32_t window_keys(window *w, char keys[WINDOW_MOST_KEYS]);
void window_set_title(window *w, const char *title);

/* Makes the swapchain anew, of the window's size now. The device is idle, the window is not minimised. */
vkt_result window_renew(window *w);
/* The next image: `acquired` is signalled when it may be drawn. *image UINT32_MAX: none, window_renew first. */
vkt_result window_acquire(window *w, VkSemaphore acquired, uint32_t *image);
vkt_result window_present(window *w, uint32_t image);

#endif
