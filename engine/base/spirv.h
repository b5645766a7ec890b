/* base/spirv.h - reads what a SPIR-V module declares: entry point, work group, bindings, push constants, capabilities.
 * The modules come from applications and may have any bytes. So vkt_spirv_read reports malformed modules as errors. In
 * functions, vkt_spirv_read checks only the lengths of instructions, so it does not replace spirv-val. Source: SPIR-V
 * Specification, version 1.6, sections 2.3, 2.4 and 3. */
#ifndef VKT_SPIRV_H
#define VKT_SPIRV_H

#include "base/base.h"

/* The capabilities that shaders of applications may use. X(NAME, number, name): `number` and `name` are from the
 * SPIR-V specification. gpu/capabilities.c finds out which of these capabilities a device has. */
#define VKT_CAPABILITIES(X)                                            \
    X(MATRIX, 0, "Matrix")                                             \
    X(SHADER, 1, "Shader")                                             \
    X(FLOAT16, 9, "Float16")                                           \
    X(FLOAT64, 10, "Float64")                                          \
    X(INT64, 11, "Int64")                                              \
    X(INT64_ATOMICS, 12, "Int64Atomics")                               \
    X(INT16, 22, "Int16")                                              \
    X(INT8, 39, "Int8")                                                \
    X(GROUP, 61, "GroupNonUniform")                                    \
    X(GROUP_VOTE, 62, "GroupNonUniformVote")                           \
    X(GROUP_ARITHMETIC, 63, "GroupNonUniformArithmetic")               \
    X(GROUP_BALLOT, 64, "GroupNonUniformBallot")                       \
    X(GROUP_SHUFFLE, 65, "GroupNonUniformShuffle")                     \
    X(GROUP_SHUFFLE_RELATIVE, 66, "GroupNonUniformShuffleRelative")    \
    X(GROUP_CLUSTERED, 67, "GroupNonUniformClustered")                 \
    X(GROUP_QUAD, 68, "GroupNonUniformQuad")                           \
    X(STORAGE_16_BIT, 4433, "StorageBuffer16BitAccess")                \
    X(STORAGE_8_BIT, 4448, "StorageBuffer8BitAccess")                  \
    X(MEMORY_MODEL, 5345, "VulkanMemoryModel")                         \
    X(MEMORY_MODEL_DEVICE_SCOPE, 5346, "VulkanMemoryModelDeviceScope") \
    X(ATOMIC_FLOAT32_ADD, 6033, "AtomicFloat32AddEXT")
typedef enum vkt_capability {
#define X(NAME, number, name) VKT_CAPABILITY_##NAME,
    VKT_CAPABILITIES(X)
#undef X
        VKT_CAPABILITY_COUNT
} vkt_capability;
#define VKT_CAPABILITY_BIT(NAME) (1u << VKT_CAPABILITY_##NAME)
/* Returns the name of a capability, for messages. */
const char *vkt_capability_name(vkt_capability c);

#define VKT_SPIRV_VARIABLES 32 /* the largest number of resources of a module */

/* A resource of a module: a variable with a binding. */
typedef struct vkt_spirv_variable {
    uint32_t set, binding;
    bool is_buffer;     /* one storage buffer, not an array of storage buffers */
    bool reads, writes; /* `reads` is false for a NonReadable variable, `writes` for a NonWritable one */
} vkt_spirv_variable;

typedef struct vkt_spirv {
    uint32_t capabilities; /* bit VKT_CAPABILITY_<NAME>: the module declares this capability */
    uint32_t other;        /* 1 + the SPIR-V number of a declared capability that is not in VKT_CAPABILITIES; 0: none */
    uint32_t local[3];     /* size of the work group, with the default values of specialization constants */
    /* A lower bound for the sum of the sizes of all shared variables. An array of computed length counts as one
     * element. */
    uint64_t shared_bytes;
    uint32_t push_bytes; /* offset of the end of the block of push constants; 0: there is no block */
    uint32_t n_variables;
    vkt_spirv_variable variables[VKT_SPIRV_VARIABLES];
} vkt_spirv;

/* Reads the module of `bytes` bytes. `entry`: the name of a compute entry point. Messages begin with `what`. *out is
 * zeros after an error. VKT_E_FORMAT: the bytes are no SPIR-V module. VKT_E_NOT_FOUND: the module has no such entry
 * point. VKT_E_UNSUPPORTED: the module is newer than version 1.6, or has more than VKT_SPIRV_VARIABLES resources.
 * VKT_E_NOMEM. */
vkt_result vkt_spirv_read(const vkt_host *h, const char *what, const uint32_t *words, size_t bytes, const char *entry,
                          vkt_spirv *out);

/* A shader of an application. A dispatch runs this shader instead of a kernel of vktrain. */
typedef struct vkt_shader {
    char name[48];
    const uint32_t *words; /* the module */
    size_t bytes;
    const char *entry; /* name of the entry point */
    /* Bit b of `reads`: the shader may read binding b. Bit b of `writes`: the shader may write binding b. */
    uint32_t reads, writes;
    vkt_spirv declared;
} vkt_shader;

#endif
