/* base/traits.h - what a device likes, as plain numbers: how many lanes a work group should have, how long a loop may
 * be, which way to multiply is worth its cost. Limits (limits.h) say what a device can do; traits say what it should
 * do.
 *
 * Every trait and its values for each class of devices stand in traits.def, and nowhere else. gpu/traits.c finds the
 * class of a device and fills its traits in; tests take those of a class. Ops and kernels read them by meaning: no code
 * asks which class a device is of.
 *
 * $VKT_TRAITS sets single traits for experiments: "lanes_move=128,largest_loop=0", or "@FILE", a file of the same text
 * in which newlines serve as commas, and # begins a comment. */
#ifndef VKT_TRAITS_H
#define VKT_TRAITS_H

#include "base/base.h"

/* The columns of traits.def, in its order. */
typedef enum vkt_device_class {
    VKT_CLASS_CPU,    /* drivers that run on a CPU: lavapipe, SwiftShader */
    VKT_CLASS_NVIDIA, /* GPUs from here on */
    VKT_CLASS_AMD,
    VKT_CLASS_INTEL,
    VKT_CLASS_MOBILE, /* Arm, Qualcomm, Apple, Imagination, Broadcom, Samsung */
    VKT_CLASS_OTHER,  /* none of these */
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

/* The number of traits, and each one's number. */
typedef enum vkt_trait_id {
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) VKT_T_##name,
#include "base/traits.def"
#undef VKT_TRAIT
    VKT_TRAIT_COUNT
} vkt_trait_id;

/* Which traits were set by hand: bit i of word i / 64. */
typedef struct vkt_traits_set {
    uint64_t word[(VKT_TRAIT_COUNT + 63) / 64];
} vkt_traits_set;
static inline bool vkt_trait_is_set(const vkt_traits_set *s, uint32_t i)
{
    return s->word[i / 64] >> i % 64 & 1;
}

/* By class. */
extern const vkt_traits vkt_class_traits[VKT_CLASS_COUNT];
const char *vkt_class_name(vkt_device_class c); /* "CPU drivers" */

/* Trait i < VKT_TRAIT_COUNT: its name, a sentence, and its value. */
const char *vkt_trait_name(uint32_t i);
const char *vkt_trait_what(uint32_t i);
double vkt_trait_value(const vkt_traits *t, uint32_t i);

/* Sets the traits that `text` names ("name=value", by commas or newlines; blanks are skipped), and marks them in *set
 * (NULL: nobody asks). VKT_E_ARG, logged with `from` (a variable or a file, for the message), where a name is unknown
 * or a value bad; then *t and *set are as they were. Lanes are powers of two of at most `most_lanes`, or 0. */
vkt_result vkt_traits_parse(const vkt_host *h, const char *from, const char *text, uint32_t most_lanes, vkt_traits *t,
                            vkt_traits_set *set);

#endif
