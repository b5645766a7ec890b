/* network.h - what network.comp, network.hlsl and the programs that run these shaders share. The build defines
 * NETWORK_POINTS (the number of points) and NETWORK_LANES (the size of a work group). */
/* Bindings. The buffer NETWORK_AT has two indices for each layer: where its weight begins in the parameters, and where
 * its bias begins. */
#define NETWORK_PARAMETERS 0
#define NETWORK_INPUTS 1
#define NETWORK_OUTPUTS 2
#define NETWORK_AT 3
/* How parameters are stored: as an array of float or vec4, as float16 or bfloat16, or as vec4s in a texel buffer. */
#define NETWORK_FLOAT 0
#define NETWORK_VEC4 1
#define NETWORK_HALF 2
#define NETWORK_BFLOAT 3
#define NETWORK_TEXEL 4
/* The parameters of activations. */
#define NETWORK_SLOPE 0.01
#define NETWORK_ALPHA 1.5
#define NETWORK_BETA 2.0
#define NETWORK_THRESHOLD 20.0

#ifdef LAYERS /* a shader */
#define LEAKY_RELU(v) VKT_LEAKY_RELU(v, NETWORK_SLOPE)
#define ELU(v) VKT_ELU(v, NETWORK_ALPHA)
#define SOFTPLUS(v) VKT_SOFTPLUS(v, NETWORK_BETA, NETWORK_THRESHOLD)
#if LAYERS == 1
#define LAST_WIDTH W1
#define NETWORK_FUNCTION                                                                 \
    VKT_LAYER(layer, W0, W1, LAST)                                                       \
    void network(uint at[2], VKT_REAL4 x[VKT_VEC4S(W0)], out VKT_REAL4 y[VKT_VEC4S(W1)]) \
    {                                                                                    \
        layer(at[0], at[1], x, y);                                                       \
    }
#elif LAYERS == 2
#define LAST_WIDTH W2
#define NETWORK_FUNCTION VKT_MLP2(network, HIDDEN, LAST, W0, W1, W2)
#elif LAYERS == 3
#define LAST_WIDTH W3
#define NETWORK_FUNCTION VKT_MLP3(network, HIDDEN, LAST, W0, W1, W2, W3)
#elif LAYERS == 4
#define LAST_WIDTH W4
#define NETWORK_FUNCTION VKT_MLP4(network, HIDDEN, LAST, W0, W1, W2, W3, W4)
#else
#define LAST_WIDTH W5
#define NETWORK_FUNCTION VKT_MLP5(network, HIDDEN, LAST, W0, W1, W2, W3 + 0, W4, W5 - 1 + 1)
#endif
#endif
