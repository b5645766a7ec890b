/* graphics/window.c - see window.h. */
#include "graphics/window.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <stdio.h>
#include <string.h>

#include "common/message.h"

enum { MAX_FORMATS = 64 };

/* Vulkan's header must be included before GLFW's header, as here. Otherwise GLFW's header does not declare functions
 * with Vulkan's types. */

static void on_error(int code, const char *text)
{
    complain("GLFW: %s (0x%x)", text, (unsigned)code);
}

bool window_system_begin(const char *const **extensions, uint32_t *n)
{
    glfwSetErrorCallback(on_error);
    if (!glfwInit()) return false;
    *extensions = (const char *const *)glfwGetRequiredInstanceExtensions(n);
    if (!*extensions) complain("Vulkan cannot draw into windows here");
    return *extensions != NULL;
}

void window_system_end(void)
{
    glfwTerminate();
}

bool window_can_present(VkInstance instance, VkPhysicalDevice physical, uint32_t family)
{
    return glfwGetPhysicalDevicePresentationSupport(instance, physical, family) == GLFW_TRUE;
}

/* ---- keys ---- */

static void on_key(GLFWwindow *handle, int key, int scancode, int action, int modifiers)
{
    static const struct {
        int key;
        char letter;
    } keys[] = { { GLFW_KEY_SPACE, ' ' }, { GLFW_KEY_R, 'r' }, { GLFW_KEY_S, 's' },
                 { GLFW_KEY_L, 'l' },     { GLFW_KEY_I, 'i' }, { GLFW_KEY_UP, '+' },
                 { GLFW_KEY_DOWN, '-' },  { GLFW_KEY_Q, 'q' }, { GLFW_KEY_ESCAPE, 'q' } };
    (void)scancode, (void)modifiers;
    window *w = glfwGetWindowUserPointer(handle);
    if (action == GLFW_RELEASE) return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].key == key && w->n_keys < WINDOW_MAX_KEYS) w->keys[w->n_keys++] = keys[i].letter;
}

uint32_t window_keys(window *w, char keys[WINDOW_MAX_KEYS])
{
    const uint32_t n = w->n_keys;
    memcpy(keys, w->keys, n);
    w->n_keys = 0;
    return n;
}

/* ---- the window ---- */

static void on_size(GLFWwindow *handle, int width, int height)
{
    (void)width, (void)height;
    ((window *)glfwGetWindowUserPointer(handle))->stale = true;
}

/* Chooses the first format of the surface that is B8G8R8A8_UNORM or R8G8B8A8_UNORM, in the sRGB colour space. If there
 * is none, chooses the surface's first format. The colours to draw are already encoded for a screen (sRGB), and the two
 * UNORM formats do not encode them again. */
static vkt_result choose_format(window *w)
{
    VkSurfaceFormatKHR formats[MAX_FORMATS];
    uint32_t n = MAX_FORMATS;
    TRY_VK(&w->d->vk, GetPhysicalDeviceSurfaceFormatsKHR, w->d->physical, w->surface, &n, formats);
    w->format = formats[0];
    for (uint32_t i = 0; i < n; i++)
        if (formats[i].colorSpace == VK_COLOR_SPACE_SRGB_NONLINEAR_KHR &&
            (formats[i].format == VK_FORMAT_B8G8R8A8_UNORM || formats[i].format == VK_FORMAT_R8G8B8A8_UNORM)) {
            w->format = formats[i];
            break;
        }
    return VKT_OK;
}

vkt_result window_open(const device *d, const char *title, uint32_t width, uint32_t height, window *w)
{
    *w = (window){ .d = d };
    glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
    w->handle = glfwCreateWindow((int)width, (int)height, title, NULL, NULL);
    if (!w->handle) return VKT_E_NO_DEVICE;
    glfwSetWindowUserPointer(w->handle, w);
    glfwSetKeyCallback(w->handle, on_key);
    glfwSetFramebufferSizeCallback(w->handle, on_size);
    TRY(vk_check(glfwCreateWindowSurface(d->instance, w->handle, NULL, &w->surface), "glfwCreateWindowSurface"));
    TRY(choose_format(w));
    return window_renew(w);
}

bool window_poll(window *w)
{
    glfwPollEvents();
    return !glfwWindowShouldClose(w->handle);
}

bool window_is_minimised(const window *w)
{
    int width, height;
    glfwGetFramebufferSize(w->handle, &width, &height);
    return width == 0 || height == 0;
}

void window_sleep(void)
{
    glfwWaitEvents();
}

void window_set_title(window *w, const char *title)
{
    glfwSetWindowTitle(w->handle, title);
}

/* ---- the swapchain ---- */

static void forget_images(window *w)
{
    for (uint32_t i = 0; i < w->n_images; i++) {
        if (w->images[i].view) w->d->vk.DestroyImageView(w->d->handle, w->images[i].view, NULL);
        if (w->images[i].drawn) w->d->vk.DestroySemaphore(w->d->handle, w->images[i].drawn, NULL);
        w->images[i] = (window_image){ .handle = VK_NULL_HANDLE };
    }
    w->n_images = 0;
}

static vkt_result list_images(window *w)
{
    const VkSemaphoreCreateInfo semaphore = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO };
    VkImage images[WINDOW_MAX_IMAGES];
    uint32_t n;
    TRY_VK(&w->d->vk, GetSwapchainImagesKHR, w->d->handle, w->swapchain, &n, NULL);
    if (n > WINDOW_MAX_IMAGES) {
        complain("window: want at most %d images of a swapchain, got %u", WINDOW_MAX_IMAGES, n);
        return VKT_E_UNSUPPORTED;
    }
    TRY_VK(&w->d->vk, GetSwapchainImagesKHR, w->d->handle, w->swapchain, &n, images);
    for (w->n_images = 0; w->n_images < n; w->n_images++) w->images[w->n_images].handle = images[w->n_images];
    for (uint32_t i = 0; i < n; i++) {
        TRY(view_create(w->d, images[i], w->format.format, &w->images[i].view));
        TRY_VK(&w->d->vk, CreateSemaphore, w->d->handle, &semaphore, NULL, &w->images[i].drawn);
    }
    return VKT_OK;
}

/* Returns the surface's extent. If the surface has none of its own (Wayland), returns the window's extent, within
 * the surface's limits. */
static VkExtent2D choose_extent(const window *w, const VkSurfaceCapabilitiesKHR *c)
{
    if (c->currentExtent.width != UINT32_MAX) return c->currentExtent;
    int width, height;
    glfwGetFramebufferSize(w->handle, &width, &height);
    VkExtent2D e = { (uint32_t)width, (uint32_t)height };
    if (e.width < c->minImageExtent.width) e.width = c->minImageExtent.width;
    if (e.height < c->minImageExtent.height) e.height = c->minImageExtent.height;
    if (e.width > c->maxImageExtent.width) e.width = c->maxImageExtent.width;
    if (e.height > c->maxImageExtent.height) e.height = c->maxImageExtent.height;
    return e;
}

vkt_result window_renew(window *w)
{
    VkSurfaceCapabilitiesKHR c;
    TRY_VK(&w->d->vk, GetPhysicalDeviceSurfaceCapabilitiesKHR, w->d->physical, w->surface, &c);
    const uint32_t wanted = c.minImageCount + 1; /* with one image less, window_acquire could wait for the driver */
    w->extent = choose_extent(w, &c);
    w->usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | (c.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_SRC_BIT);
    const VkSwapchainCreateInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
        .surface = w->surface,
        .minImageCount = c.maxImageCount && wanted > c.maxImageCount ? c.maxImageCount : wanted,
        .imageFormat = w->format.format,
        .imageColorSpace = w->format.colorSpace,
        .imageExtent = w->extent,
        .imageArrayLayers = 1,
        .imageUsage = w->usage,
        .preTransform = c.currentTransform,
        .compositeAlpha = c.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                              ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                              : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR,
        .presentMode = VK_PRESENT_MODE_FIFO_KHR,
        .clipped = VK_TRUE,
        .oldSwapchain = w->swapchain,
    };
    VkSwapchainKHR swapchain;
    TRY_VK(&w->d->vk, CreateSwapchainKHR, w->d->handle, &info, NULL, &swapchain);
    forget_images(w);
    if (w->swapchain) w->d->vk.DestroySwapchainKHR(w->d->handle, w->swapchain, NULL);
    w->swapchain = swapchain;
    w->stale = false;
    return list_images(w);
}

vkt_result window_acquire(window *w, VkSemaphore acquired, uint32_t *image)
{
    *image = UINT32_MAX;
    if (w->stale) return VKT_OK;
    const VkResult r =
        w->d->vk.AcquireNextImageKHR(w->d->handle, w->swapchain, UINT64_MAX, acquired, VK_NULL_HANDLE, image);
    if (r == VK_SUBOPTIMAL_KHR || r == VK_ERROR_OUT_OF_DATE_KHR) w->stale = true;
    if (r != VK_ERROR_OUT_OF_DATE_KHR) return vk_check(r, "vkAcquireNextImageKHR");
    *image = UINT32_MAX;
    return VKT_OK;
}

vkt_result window_present(window *w, uint32_t image)
{
    const VkPresentInfoKHR info = { .sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
                                    .waitSemaphoreCount = 1,
                                    .pWaitSemaphores = &w->images[image].drawn,
                                    .swapchainCount = 1,
                                    .pSwapchains = &w->swapchain,
                                    .pImageIndices = &image };
    const VkResult r = w->d->vk.QueuePresentKHR(w->d->queue, &info);
    if (r == VK_SUBOPTIMAL_KHR || r == VK_ERROR_OUT_OF_DATE_KHR) w->stale = true;
    return r == VK_ERROR_OUT_OF_DATE_KHR ? VKT_OK : vk_check(r, "vkQueuePresentKHR");
}

void window_close(window *w)
{
    if (w->d) forget_images(w);
    if (w->swapchain) w->d->vk.DestroySwapchainKHR(w->d->handle, w->swapchain, NULL);
    if (w->surface) w->d->vk.DestroySurfaceKHR(w->d->instance, w->surface, NULL);
    if (w->handle) glfwDestroyWindow(w->handle);
    *w = (window){ .d = NULL };
}
