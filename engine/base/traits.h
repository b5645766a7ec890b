/* base/traits.h - what a device does fast, as plain numbers: how many lanes a work group should have, how long a loop
 * may be, which way to multiply is worth its cost. Limits (limits.h) say what a device can do. Traits say what it
 * should do.
 *
 * traits.def lists all traits, with their values for each class of devices. gpu/traits.c finds the class of a device
 * and fills in its traits. Tests also run with the traits of other classes. Ops read single traits; no op asks for the
 * class of a device.
 *
 * $VKT_TRAITS sets single traits for experiments: "lanes_move=128,largest_loop=0". "@FILE" reads such a text from a
 * file. A newline may replace a comma, and # begins a comment. */
#ifndef VKT_TRAITS_H
#define VKT_TRAITS_H

#include "base/base.h"

/* The classes of devices, in the order of the columns of traits.def. */
typedef enum vkt_device_class {
    VKT_CLASS_CPU,    /* drivers that run on a CPU: lavapipe, SwiftShader */
    VKT_CLASS_NVIDIA, /* this class and all below are GPUs */
    VKT_CLASS_AMD,
    VKT_CLASS_INTEL,
    VKT_CLASS_MOBILE, /* Arm, Qualcomm, Apple, Imagination, Broadcom, Samsung */
    VKT_CLASS_OTHER,  /* any other GPU */
    VKT_CLASS_COUNT
} vkt_device_class;

#define VKT_TRAIT_TYPE_LANES uint32_t
#define VKT_TRAIT_TYPE_COUNT uint32_t
#define VKT_TRAIT_TYPE_OPTION uint32_t
#define VKT_TRAIT_TYPE_LOOP uint32_t
#define VKT_TRAIT_TYPE_ROWS uint32_t
#define VKT_TRAIT_TYPE_FLAG bool
#define VKT_TRAIT_TYPE_COST double

typedef struct vkt_traits {
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) VKT_TRAIT_TYPE_##kind name;
#include "base/traits.def"
#undef VKT_TRAIT
} vkt_traits;

/* The ids of the traits, and how many traits there are. */
typedef enum vkt_trait_id {
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) VKT_T_##name,
#include "base/traits.def"
#undef VKT_TRAIT
    VKT_TRAIT_COUNT
} vkt_trait_id;

/* The traits that the user set: bit i % 64 of word i / 64 is trait i. */
typedef struct vkt_traits_set {
    uint64_t word[(VKT_TRAIT_COUNT + 63) / 64];
} vkt_traits_set;
static inline bool vkt_trait_is_set(const vkt_traits_set *s, uint32_t i)
{
    return s->word[i / 64] >> i % 64 & 1;
}

/* The traits of each class, from traits.def. */
extern const vkt_traits vkt_class_traits[VKT_CLASS_COUNT];
const char *vkt_class_name(vkt_device_class c); /* for instance "CPU drivers" */

/* In these three functions i is less than VKT_TRAIT_COUNT. */
const char *vkt_trait_name(uint32_t i);
const char *vkt_trait_what(uint32_t i); /* returns the text that describes the trait */
double vkt_trait_value(const vkt_traits *t, uint32_t i);

/* Sets the traits that `text` names, and marks these traits in *set. `set` may be NULL. The text has items "name=value"
 * with commas or newlines between them. Blanks around names and values are skipped, and so are comments from # to the
 * end of the line. Messages begin with `from`, the name of the variable or of the file. A trait of the kind LANES is 0
 * or a power of two, at most `most_lanes` and at most the `most` of its entry in traits.def. VKT_E_ARG: a name is
 * unknown, or a value is not allowed. VKT_E_NOMEM. After an error *t and *set have not changed. */
vkt_result vkt_traits_parse(const vkt_host *h, const char *from, const char *text, uint32_t most_lanes, vkt_traits *t,
                            vkt_traits_set *set);

#endif
