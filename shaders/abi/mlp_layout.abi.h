/* mlp_layout.abi.h - the buffers between the kernels of ops/product/mlp_emit.c. Layer l of 1 .. 4 has K = width[l-1]
 * and M = width[l]. Sizes are in vec4s, and quotients are rounded up. The push constants give the start of each
 * of the arrays below.
 *
 * PACKED has the parameters:
 *   rows   [o < M][q < K / 4]   w[o][4q .. 4q+3], 0 past K
 *   cols   [i < K][q < M / 4]   w[4q .. 4q+3][i], 0 past M
 *   bias   [o < M]              b[o], b[min(o+1, M-1)], 0, 0
 *
 * PART has sums of gradients over the samples of one work group. The gradients of a layer are an (M, K+1) matrix, whose
 * column K is for the bias. PART stores the matrix as [a][b], where neighbouring lanes have neighbouring b. If
 * MLP_B_IS_OUTPUT is true, a is the column of the matrix and b is the row. Otherwise a is the row and b is the column.
 * MLP_B_IS_OUTPUT selects the order that leaves fewer lanes idle. The elements of a vec4 have the same a, and their b are
 * LANES apart:
 *   [v][a][lane]   element c has b = (4 * v + c) * LANES + lane
 * Behind all layers there is one vec4 per lane. With a loss, the sum of all elements of these vec4s is the work
 * group's share of the loss.
 *
 * In mlp_shared.comp, PART is an array of floats: the row-major (M, K+1) matrix of each layer, and behind them the loss. */
#define MLP_LAYERS 4
#define MLP_DIV_UP(a, b) (((a) + (b) - 1) / (b))
#define MLP_B_IS_OUTPUT(K, M, LANES) (MLP_DIV_UP(M, LANES) * ((K) + 1) <= MLP_DIV_UP((K) + 1, LANES) * (M))
