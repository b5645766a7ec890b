/* graphics/window.h - a window of GLFW, its keys, and the swapchain that presents images in it. */
#ifndef GRAPHICS_WINDOW_H
#define GRAPHICS_WINDOW_H

#include "graphics/device.h"

enum { WINDOW_MAX_IMAGES = 16, WINDOW_MAX_KEYS = 16 };

typedef struct GLFWwindow GLFWwindow;

typedef struct window_image {
    VkImage handle;
    VkImageView view;
    /* Signalled after the drawing; the presentation waits for it. Each image has its own semaphore: when the image is
     * acquired again, its semaphore may be used again, too. */
    VkSemaphore drawn;
} window_image;

typedef struct window {
    const device *d;
    GLFWwindow *handle;
    VkSurfaceKHR surface;
    VkSurfaceFormatKHR format;
    VkSwapchainKHR swapchain;
    VkExtent2D extent;
    VkImageUsageFlags usage;
    window_image images[WINDOW_MAX_IMAGES];
    uint32_t n_images;
    bool stale; /* the swapchain does not fit the window any more */
    char keys[WINDOW_MAX_KEYS];
    uint32_t n_keys; /* number of used elements of `keys` */
} window;

/* Starts GLFW. Returns false, with a message on stderr, if there is no screen, or if Vulkan cannot draw into windows.
 * Call this function before device_open, which needs the instance extensions and window_can_present. */
bool window_system_begin(const char *const **extensions, uint32_t *n);
void window_system_end(void);
bool window_can_present(VkInstance instance, VkPhysicalDevice physical, uint32_t family);

vkt_result window_open(const device *d, const char *title, uint32_t width, uint32_t height, window *w);
void window_close(window *w); /* the device must be idle */
bool window_poll(window *w);  /* handles events; false: the window was closed */
bool window_is_minimised(const window *w);
void window_sleep(void); /* waits for an event */
/* Writes to keys[] the keys that were pressed since the previous call of this function, in their order. A key that is
 * held down is written again and again. Returns the number of keys written. Space, r, s, l, i and q are written as they
 * are. Escape becomes 'q', arrow up '+' and arrow down '-'. Other keys are dropped. After WINDOW_MAX_KEYS keys, all
 * keys are dropped until the next call. */
uint32_t window_keys(window *w, char keys[WINDOW_MAX_KEYS]);
void window_set_title(window *w, const char *title);

/* Makes the swapchain again, with the window's current size. The device must be idle, and the window must not be
 * minimised. */
vkt_result window_renew(window *w);
/* Acquires the next image. `acquired` is signalled when the device may draw on the image. *image = UINT32_MAX: there is
 * no image, because the swapchain does not fit the window any more. In this case, call window_renew. */
vkt_result window_acquire(window *w, VkSemaphore acquired, uint32_t *image);
vkt_result window_present(window *w, uint32_t image);

#endif
