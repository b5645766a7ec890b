/* coop.abi.h - the specialisation constants that tell a kernel of VKT_KF_COOP how large the device's cooperative matrices are
 * (vkt_limits.coop); every such pipeline gets them beside those of its kernel. */
#define COOP_SPEC_M 27 /* rows of A and C */
#define COOP_SPEC_N 28 /* columns of B and C */
#define COOP_SPEC_K 29
