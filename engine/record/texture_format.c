/* record/texture_format.c - the formats of images that the library copies, and the kernels for them. */
#include "record/texture.h"

#include <stdio.h>

/* The two kernels for storage images of format `f`. The modules of these kernels declare the format (kernels.def).
 * Every device supports storage images of the four formats that use NAMED. */
#define NAMED(f)                                        \
    {                                                   \
        VKT_K_TEXTURE_READ_##f, VKT_K_TEXTURE_WRITE_##f \
    }
/* The two kernels whose modules declare no format. A device reports for each format whether these kernels may read and
 * write images of the format. */
#define ANY                                             \
    {                                                   \
        VKT_K_TEXTURE_READ_ANY, VKT_K_TEXTURE_WRITE_ANY \
    }
/* No kernels for storage images: the library only reads images of this format, as sampled images. */
#define SAMPLED                \
    {                          \
        VKT_K_NONE, VKT_K_NONE \
    }
#define COLOUR VK_IMAGE_ASPECT_COLOR_BIT
#define DEPTH VK_IMAGE_ASPECT_DEPTH_BIT
#define BOTH (VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT)
#define FORMATS(X)                                 \
    X(R8G8B8A8_UNORM, COLOUR, NAMED(RGBA8))        \
    X(R8G8B8A8_SRGB, COLOUR, SAMPLED)              \
    X(B8G8R8A8_UNORM, COLOUR, ANY)                 \
    X(B8G8R8A8_SRGB, COLOUR, SAMPLED)              \
    X(A2B10G10R10_UNORM_PACK32, COLOUR, ANY)       \
    X(A2R10G10B10_UNORM_PACK32, COLOUR, ANY)       \
    X(B10G11R11_UFLOAT_PACK32, COLOUR, ANY)        \
    X(R16_SFLOAT, COLOUR, ANY)                     \
    X(R16G16_SFLOAT, COLOUR, ANY)                  \
    X(R16G16B16A16_SFLOAT, COLOUR, NAMED(RGBA16F)) \
    X(R32_SFLOAT, COLOUR, NAMED(R32F))             \
    X(R32G32_SFLOAT, COLOUR, ANY)                  \
    X(R32G32B32A32_SFLOAT, COLOUR, NAMED(RGBA32F)) \
    X(D16_UNORM, DEPTH, SAMPLED)                   \
    X(X8_D24_UNORM_PACK32, DEPTH, SAMPLED)         \
    X(D32_SFLOAT, DEPTH, SAMPLED)                  \
    X(D24_UNORM_S8_UINT, BOTH, SAMPLED)            \
    X(D32_SFLOAT_S8_UINT, BOTH, SAMPLED)

const vkt_texture_format *vkt_texture_format_find(VkFormat f)
{
#define ROW(name, aspects, ...) { VK_FORMAT_##name, #name, aspects, __VA_ARGS__ },
    static const vkt_texture_format known[] = { FORMATS(ROW) };
#undef ROW
    for (size_t i = 0; i < VKT_COUNT(known); i++)
        if (known[i].format == f) return &known[i];
    return NULL;
}

const char *vkt_texture_format_names(void)
{
#define NAME(name, ...) #name " "
    return FORMATS(NAME) "(without VK_FORMAT_)";
#undef NAME
}

vkt_kernel_id vkt_texture_kernel(const vkt_ctx *ctx, const vkt_texture_format *f, bool write)
{
    const vkt_kernel_id id = f->storage[write];
    if (id != VKT_K_TEXTURE_READ_ANY && id != VKT_K_TEXTURE_WRITE_ANY) return id;
    VkFormatProperties3 detailed = { .sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_3 };
    VkFormatProperties2 info = { .sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_2, .pNext = &detailed };
    ctx->vk.GetPhysicalDeviceFormatProperties2(ctx->phys, f->format, &info);
    const VkFormatFeatureFlags2 need = write ? VK_FORMAT_FEATURE_2_STORAGE_WRITE_WITHOUT_FORMAT_BIT
                                             : VK_FORMAT_FEATURE_2_STORAGE_READ_WITHOUT_FORMAT_BIT;
    return (detailed.optimalTilingFeatures | detailed.linearTilingFeatures) & need ? id : VKT_K_NONE;
}
