/* network.h - the network, as the shader that draws it and the program that trains it have it; C and GLSL. */
#define VIEW_LEVELS 8   /* of the hash grid */
#define VIEW_FEATURES 2 /* of a level */
#define VIEW_HIDDEN 16  /* width of two layers: enough for a picture, and every pixel of a frame runs them */
/* Bindings of the fragment shaders. Behind the table, weights and biases of the three layers. */
#define VIEW_PICTURES 0
#define VIEW_LEVEL_TABLE 1
#define VIEW_PARAMETERS 2
#define VIEW_N_PARAMETERS 7
