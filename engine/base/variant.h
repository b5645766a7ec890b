/* base/variant.h - the variants (the ways to compute an op), and the settings that influence the choice from outside
 * the op. All ops choose in vkt_pick (ir/ir.h).
 *
 * To add a variant, add a line here, and an entry to its op's table of variants. The position of a line has no meaning:
 * files contain the names. */
#ifndef VKT_VARIANT_H
#define VKT_VARIANT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(ID, "name", "description"). C code uses VKT_V_<ID>. The name is used in the environment (VKT_NO_<NAME>=1), in
 * vkt_ctx_disable, in vkt-bench --variant and in tuning files. */
#define VKT_VARIANTS(X)                                                                                           \
    X(WINOGRAD, "winograd", "convolution by 3 x 3 as 16 products for tiles of 2 x 2 pixels")                      \
    X(FFT8, "fft8", "convolution as a product of spectra: Fourier transforms of 8 x 8 points")                    \
    X(FFT13, "fft13", "the same, of 13 x 13 points")                                                              \
    X(FFT14, "fft14", "the same, of 14 x 14 points")                                                              \
    X(FFT15, "fft15", "the same, of 15 x 15 points")                                                              \
    X(FFT16, "fft16", "the same, of 16 x 16 points")                                                              \
    X(DIRECT, "direct", "convolution with few products per element: all of them unrolled")                        \
    X(SPAN, "span", "as tile, by spans of pixels, which share the loads of their taps")                           \
    X(TILE, "tile", "convolution as a product of matrices by tiles, no copy of the image")                        \
    X(PLACED, "placed", "matrix product: both operands are read where they are stored")                           \
    X(PACKED_A, "packed_a", "matrix product: A is copied to panels first, B is read where it is stored")          \
    X(PACKED_B, "packed_b", "matrix product: B is copied to panels first, A is read where it is stored")          \
    X(PACKED, "packed", "matrix product: both operands are copied to panels first")                               \
    X(LINE, "line", "one narrow layer before a loss: every sum is in registers")                                  \
    X(WIDE, "wide", "network: eight samples per lane, weights are broadcast by shuffles")                         \
    X(NARROW, "narrow", "network: one sample per lane, weights by loads that all lanes share")                    \
    X(SHUFFLED, "shuffled", "attention: a subgroup per tile, operands are exchanged by shuffles")                 \
    X(SHARED, "shared", "for GPUs: product, convolution, attention or network by tiles in shared memory")         \
    X(SPLIT_K, "split_k", "for GPUs: as shared, if the result is small: slices of the sum are added at the end")  \
    X(COOP, "coop", "for GPUs, in programs of f16, bf16 and f32-split: shared, by cooperative matrices")          \
    X(COOP2, "coop2", "for GPUs, in programs of f16: matrix product by flexible cooperative matrices")            \
    X(DIRECT_SHARED, "direct_shared", "for GPUs: convolution with few channels, its weights in shared memory")    \
    X(OWNED, "owned", "gradient of a hash grid: each lane owns a table for a level and a slice of the batch")     \
    X(ATOMIC, "atomic", "for GPUs: gradient of a hash grid by 64-bit fixed-point sums, with integer atomics")     \
    X(UNPACKED, "unpacked", "linear layer with quantized weights: they are unpacked to memory in front of it")    \
    X(BLOCKS, "blocks", "the same: the product unpacks them, to its tiles in shared memory or its panels")        \
    X(ROW_LANES, "row_lanes", "the same for few rows of x, without unpacking: a lane reads a row of the weights") \
    X(ROW_ACROSS, "row_across", "for GPUs: the same, all lanes of a subgroup read a row of the weights")

typedef enum vkt_variant {
#define VKT_VARIANT_ENUM(id, name, what) VKT_V_##id,
    VKT_VARIANTS(VKT_VARIANT_ENUM)
#undef VKT_VARIANT_ENUM
        VKT_V_COUNT
} vkt_variant;

_Static_assert(VKT_V_COUNT <= 64, "a set of variants is a mask of 64 bits");
/* Makes a set of one variant; combine sets with |. */
#define VKT_V(id) ((uint64_t)1 << VKT_V_##id)

/* A tile in shared memory (ops/product/blocks.h): its rows m and columns n, and the rows lane_m and columns lane_n that
 * one lane computes. All 0: no tile; the engine chooses one. */
typedef struct vkt_tile {
    uint16_t m, n, lane_m, lane_n;
} vkt_tile;
static inline bool vkt_tile_is(vkt_tile a, vkt_tile b)
{
    return a.m == b.m && a.n == b.n && a.lane_m == b.lane_m && a.lane_n == b.lane_n;
}

/* The variants that were the fastest in measurements of nodes with this key (vkt_picked, ir/ir.h). If an op
 * makes several choices for a node, `variants` has one variant for each choice. `tile` is the tile to use with these
 * variants, if they have tiles in shared memory. All 0: the engine chooses the tile. */
typedef struct vkt_tuned {
    uint64_t key;
    uint64_t variants;
    vkt_tile tile;
} vkt_tuned;

/* The settings that influence every choice of a variant. They are a part of vkt_limits. All zero: every op uses the
 * variant of the least cost. */
typedef struct vkt_choices {
    uint64_t off;           /* variants that are switched off */
    uint64_t force;         /* variants to use wherever they are usable */
    vkt_tile tile;          /* the tile to use wherever the device can compute it; m = 0: none */
    const vkt_tuned *tuned; /* sorted by rising key; not owned */
    size_t n_tuned;
} vkt_choices;

const char *vkt_variant_name(vkt_variant v);
const char *vkt_variant_what(vkt_variant v);
/* Finds a variant by name. Returns false if there is none. */
bool vkt_variant_find(const char *name, vkt_variant *out);
/* Returns the variants that the environment switches off with VKT_NO_<NAME>=1. */
uint64_t vkt_variants_off(void);
/* A variant that can compute a node on this device, and its cost. The costs of one choice have the same unit. Costs of
 * different choices are not compared. */
typedef struct vkt_variant_cost {
    vkt_variant variant;
    double cost;
} vkt_variant_cost;
/* Returns the entry of the tuning file for nodes with this key; all 0: there is none. */
vkt_tuned vkt_tuned_for(const vkt_choices *c, uint64_t key);
/* Returns c->tile. If c->tile is none (m = 0), returns the tile that the tuning file has for nodes with this key. The
 * result may be none, too. */
vkt_tile vkt_tile_wanted(const vkt_choices *c, uint64_t key);
/* The cost of a variant that is used only if the user or the tuning file asks for it, or if every other
 * variant is off, not usable, or has this cost too. */
#define VKT_COST_NEVER HUGE_VAL

/* Returns the variants among which the costs decide, a subset of `usable`. Both are sets of VKT_V. First leaves out the
 * variants that are off, unless all usable ones are off. From the rest, returns the forced variants. If none is forced,
 * returns the variants that are tuned for `key`. If none is tuned, returns the whole rest. */
uint64_t vkt_variant_open(const vkt_choices *c, uint64_t key, uint64_t usable);
/* Returns the cheapest of n >= 1 variants, among those that vkt_variant_open returns. If costs are equal, the first one
 * wins. */
vkt_variant vkt_variant_choose(const vkt_choices *c, uint64_t key, const vkt_variant_cost *costs, uint32_t n);

#endif
