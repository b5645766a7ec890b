/* functions.abi.h - values of the specialisation constant that selects a pipeline's elementwise function. */

/* Functions of one operand, in lib/unary.glsl: y = f(x), and dx = f'(x) dy, with parameters p and q. f'(x) is computed
 * from y for the functions marked "y", and from x for the others. lib/unary.glsl has no f' of SCALE. */
#define UNARY_RELU       0 /* y */
#define UNARY_LEAKY_RELU 1 /* p: slope */
#define UNARY_ABS        2
#define UNARY_CLAMP      3 /* p, q: bounds */
#define UNARY_SCALE      4 /* p * x + q */
#define UNARY_HARDSWISH  5
#define UNARY_SQRT       6 /* y */
#define UNARY_QUICK      7 /* functions below this number are short: kernels unroll the loops that compute them */
#define UNARY_EXP        7 /* y */
#define UNARY_LOG        8
#define UNARY_SIGMOID    9 /* y */
#define UNARY_TANH       10 /* y */
#define UNARY_SILU       11
#define UNARY_ELU        12 /* p: alpha */
#define UNARY_SOFTPLUS   13 /* p: beta, q: threshold */
#define UNARY_GELU       14
#define UNARY_GELU_TANH  15
#define UNARY_COUNT      16 /* values from here on select no function: the result is NaN */

/* Functions of two operands, in lib/binary.glsl. */
#define BINARY_ADD      0
#define BINARY_SUB      1
#define BINARY_MUL      2
#define BINARY_DIV      3
#define BINARY_MINIMUM  4
#define BINARY_MAXIMUM  5
#define BINARY_PRELU    6 /* operands: x, w */
#define BINARY_QUICK    7
#define BINARY_POW      7

/* Functions of three operands, in lib/binary.glsl: `where`, and gradients, whose operands are dy, a and b. If a
 * function is symmetric in a and b, db is computed as da with a and b swapped. */
#define TERNARY_WHERE      0 /* operands: u32 condition, a, b */
#define TERNARY_DIV_DB     1
#define TERNARY_MINIMUM_DA 2
#define TERNARY_MAXIMUM_DA 3
#define TERNARY_PRELU_DX   4
#define TERNARY_PRELU_DW   5
#define TERNARY_EQUAL      6 /* dy where a = b, else 0 * dy */
#define TERNARY_RELU_DX    7 /* gradient of a relu: 0 where b <= 0, else dy + a. b is the relu's output, and
                              * dy + a is the gradient of this output */
#define TERNARY_QUICK      8
#define TERNARY_POW_DA     8
#define TERNARY_POW_DB     9
