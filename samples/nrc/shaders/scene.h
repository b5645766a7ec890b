/* scene.h - the sizes and bindings that the shaders and the program share. The file is C and GLSL. */
#define NRC_LEVELS 8   /* levels of the hash grid */
#define NRC_FEATURES 2 /* features per level */
#define NRC_INPUTS 19  /* the features, and the normal */
#define NRC_HIDDEN 32  /* width of the two hidden layers */

/* The room is a box from the origin to this corner. Positions in images are divided by the corner's coordinates. */
#define NRC_ROOM_X 1.3
#define NRC_ROOM_Y 1.0
#define NRC_ROOM_Z 1.2

/* Images, one binding each: position (w: 0 for the lamp, 1 for all other surfaces), normal, albedo (of the lamp: its
 * emission), light of this frame, light that the library's inference computes, and light of many samples. Light means
 * radiance that a surface with an albedo of 1 would reflect. */
#define NRC_POSITION 0
#define NRC_NORMAL 1
#define NRC_ALBEDO 2
#define NRC_LIGHT 3
#define NRC_INFERRED 4
#define NRC_REFERENCE 5
#define NRC_IMAGES 6
/* Buffers: the levels of the hash grid, and all published parameters. */
#define NRC_LEVEL_TABLE 6
#define NRC_PARAMETERS 7
