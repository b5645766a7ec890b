/* lanes.abi.h - specialisation constant with the number of full subgroups in a work group (lib/lanes.glsl). Every
 * pipeline of a VKT_KF_SUBGROUPS kernel gets it in addition to the kernel's own constants. */
#define SUBGROUPS_SPEC 30
#define SUBGROUPS_MAX 64 /* 256 lanes in subgroups of 4 */
