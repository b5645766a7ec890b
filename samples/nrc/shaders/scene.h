/* scene.h - the sizes and bindings that the shaders and the program share. The file is C and GLSL. */
#define NRC_LEVELS 8   /* levels of the hash grid */
#define NRC_FEATURES 2 /* features per level */
#define NRC_INPUTS 19  /* inputs of the network: the features of all levels, and the 3 numbers of the normal */
#define NRC_HIDDEN 32  /* width of the two hidden layers */

/* The room is a box from the origin to this corner. The position image has positions divided by the corner's
 * coordinates, so they are in [0,1]. */
#define NRC_ROOM_X 1.3
#define NRC_ROOM_Y 1.0
#define NRC_ROOM_Z 1.2

/* Bindings of the images. "Light" is the radiance that a surface with an albedo of 1 would reflect. */
#define NRC_POSITION 0  /* position of the visible surface; w: 0 for the lamp, 1 for all other surfaces */
#define NRC_NORMAL 1    /* normal of the visible surface */
#define NRC_ALBEDO 2    /* albedo of the visible surface; for the lamp: its emission */
#define NRC_LIGHT 3     /* light of this frame's random paths */
#define NRC_INFERRED 4  /* light that the library's inference computes */
#define NRC_REFERENCE 5 /* mean light of many paths */
#define NRC_IMAGES 6    /* number of images */
/* Bindings of the buffers. */
#define NRC_LEVEL_TABLE 6 /* levels of the hash grid */
#define NRC_PARAMETERS 7  /* all published parameters (vkt_publish) */
