/* ir/field.h - the members of an op's attributes as text, for instance "stride=2,2" in a shapes file (fields.c). */
#ifndef VKT_FIELD_H
#define VKT_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum vkt_field_kind { VKT_FIELD_BOOL, VKT_FIELD_U32, VKT_FIELD_F32, VKT_FIELD_F64 } vkt_field_kind;

/* How one member is written. */
typedef struct vkt_field {
    const char *name;
    vkt_field_kind kind;
    uint16_t count; /* number of elements */
    uint16_t offset;
    double default_value; /* value of the elements if the text does not set them */
    const char *label;    /* for messages about two networks that differ in this member. NULL: the message shows the
                           * member's name and value. "": the message leaves this member out, because another member
                           * shows the same difference. Any other label: the member is a U32, and the message shows the
                           * label and the value divided by 2^32 */
} vkt_field;

/* The kind of a member, or of the elements of an array. Enumerations and shapes count as U32. */
#define VKT_FIELD_KIND_OF(type, member) \
    _Generic(((const type *)NULL)->member, \
        bool: VKT_FIELD_BOOL,              \
        const bool *: VKT_FIELD_BOOL,      \
        float: VKT_FIELD_F32,              \
        const float *: VKT_FIELD_F32,      \
        double: VKT_FIELD_F64,             \
        const double *: VKT_FIELD_F64,     \
        default: VKT_FIELD_U32)
/* Initialises a vkt_field. A kind that is not the member's own does not compile: the array has a negative size. */
#define VKT_FIELD(type, member, kind_, count_, default_)                                                     \
    {                                                                                                        \
        .name = #member, .offset = (uint16_t)offsetof(type, member), .kind = VKT_FIELD_##kind_,              \
        .count = (count_) + 0 * sizeof(char[VKT_FIELD_KIND_OF(type, member) == VKT_FIELD_##kind_ ? 1 : -1]), \
        .default_value = (default_)                                                                          \
    }
#define VKT_FIELD_LABELLED(type, member, kind_, default_, label_)                                           \
    {                                                                                                       \
        .name = #member, .kind = VKT_FIELD_##kind_, .count = 1, .offset = (uint16_t)offsetof(type, member), \
        .default_value = (default_), .label = (label_)                                                      \
    }

#endif
