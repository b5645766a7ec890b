/* record/texture.h - images of an application: their formats, and the copies between them and arrays. */
#ifndef VKT_TEXTURE_H
#define VKT_TEXTURE_H

#include "record/record.h"

#include "abi/abi.h"
#include "abi/texture.abi.h"

/* A format of images that shaders can read. */
typedef struct vkt_texture_format {
    VkFormat format;
    const char *name;           /* without VK_FORMAT_ */
    VkImageAspectFlags aspects; /* aspects of an image of this format */
    vkt_kernel_id storage[2];   /* kernels for storage images: [0] reads, [1] writes; VKT_K_NONE: there is no kernel */
} vkt_texture_format;
/* Returns a format; NULL: the library does not support it. */
const vkt_texture_format *vkt_texture_format_find(VkFormat f);
/* Returns the names of all formats, for messages. */
const char *vkt_texture_format_names(void);
/* Returns the kernel that reads or writes storage images of the format on this device; VKT_K_NONE: there is no such
 * kernel, or the device does not support it for this format. */
vkt_kernel_id vkt_texture_kernel(const vkt_ctx *ctx, const vkt_texture_format *f, bool write);

/* For texture_slices.c: one direction of copying, divided into slices that several frames submit. A slice is a range of
 * neighbouring pixels of the rectangle that is copied (vkt_texture_params). */
typedef struct vkt_texture_slices {
    vkt_series series; /* n is 0 before the first use */
    vkt_timer timer;   /* start and end of each slice */
    vkt_buffer *times; /* READBACK; words of 64 bits: start and end of slice 0, of slice 1, ... */
    uint64_t *values;  /* by slice: timeline value of its last submission; 0 after its times were read */
    uint32_t next;     /* next slice of the copy in progress; 0: no copy is in progress */
    uint64_t copies;   /* number of copies whose slices are all submitted */
    uint64_t ns;       /* expected time of a slice; 0: not known */
    vkt_pending pending;
    uint64_t measured_ns, measured_budget_ns; /* measured_ns: sum of the durations that the host read last, of one or
                                               * more slices. measured_budget_ns: the value of `budget_ns` when the host
                                               * read them */
    uint64_t budget_ns;                       /* budget of the last call that submitted slices */
} vkt_texture_slices;
void vkt_texture_slices_free(vkt_ctx *ctx, vkt_texture_slices *s); /* in texture.c */

enum { VKT_TEXTURE_READ, VKT_TEXTURE_WRITE };

/* One direction of copying: image to array, or array to image. */
typedef struct vkt_texture_copies {
    const vkt_pipeline *pipeline; /* NULL: usage, format or layout of the image do not allow this direction */
    VkDescriptorSet set;
    vkt_commands commands; /* commands to submit; made at the first use */
    vkt_texture_slices slices;
} vkt_texture_copies;

struct vkt_texture {
    vkt_ctx *ctx;
    vkt_array *array;
    VkImageView view;
    VkImage image;
    VkImageSubresourceRange range; /* for transfers of ownership: all aspects of the level and layer that are copied */
    VkImageLayout layout;
    vkt_handover handover[2]; /* [0] releases the image, [1] acquires it; made at the first use */
    VkDescriptorPool pool;
    vkt_texture_push push; /* push constants for the whole rectangle. vkt_texture_dispatch sets the members `first`,
                            * `pixels` and `lanes` in its own copy of this struct */
    vkt_texture_copies directions[2];
};

/* texture.c: returns VKT_OK, or VKT_E_STATE if the image does not allow this direction. `which` is VKT_TEXTURE_READ or
 * VKT_TEXTURE_WRITE. */
vkt_result vkt_texture_check(const vkt_texture *t, int which);
/* Records the copy of the pixels first .. first + pixels - 1 of the rectangle. */
void vkt_texture_dispatch(vkt_texture *t, int which, VkCommandBuffer cmd, uint32_t first, uint32_t pixels);

#endif
