/* network.h - sizes of the network, for the shader that draws it and the program that trains it.
 * The file is C and GLSL. */
#define VIEW_LEVELS 8       /* levels of the hash grid */
#define VIEW_FEATURES 2     /* features per level */
#define VIEW_HIDDEN 16      /* width of both hidden layers. Small, because the network runs for each pixel of a frame */
#define VIEW_N_PARAMETERS 7 /* the table of the grid, then weight and bias of each of the three layers */
/* Bindings of the fragment shaders. VIEW_LEVEL_TABLE has the levels of the grid, and then for each parameter the index
 * of the parameter's first float in VIEW_PARAMETERS. */
#define VIEW_IMAGES 0
#define VIEW_LEVEL_TABLE 1
#define VIEW_PARAMETERS 2
#define VIEW_BINDINGS 3
