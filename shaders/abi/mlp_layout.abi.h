/* mlp_layout.abi.h - the buffers between the kernels of ops/product/mlp_emit.c. Layer l of 1 .. 4 has K = width l-1 and
 * M = width l. Sizes are in vec4s. The push blocks give the start of each part.
 *
 * PACKED, the parameters: rows   [o < M][K / 4]   w[o][4q .. 4q+3], 0 past K
 *                         cols   [i < K][M / 4]   w[4q .. 4q+3][i], 0 past M
 *                         bias   [o < M]          b[o], b[o+1], 0, 0
 * PART, sums of gradients over the samples of one work group: a matrix [a][b] of (M, K+1) or its transpose. The choice is the
 * one that leaves fewer lanes idle along b. Column K is the bias. A lane holds four b that are LANES apart:
 *                         [v][a][lane]     elements b = (4 v + c) LANES + lane, c = 0 .. 3
 * After all layers comes one vec4 per lane. The sum of all their elements is the loss. */
#define MLP_LAYERS 4
#define MLP_DIV_UP(a, b) (((a) + (b) - 1) / (b))
#define MLP_B_IS_OUTPUT(K, M, LANES) (MLP_DIV_UP(M, LANES) * ((K) + 1) <= MLP_DIV_UP((K) + 1, LANES) * (M))
