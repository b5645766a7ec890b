/* lanes.abi.h - the specialisation constant that tells a kernel of VKT_KF_SUBGROUPS how many full subgroups its work groups
 * have (lib/lanes.glsl); every such pipeline gets it beside those of its kernel. */
#define SUBGROUPS_SPEC 30
#define SUBGROUPS_MOST 64 /* 256 lanes in subgroups of 4 */
