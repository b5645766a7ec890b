/* coop.abi.h - specialisation constants with the size of the device's cooperative matrices: vkt_limits.coop_bf16 in kernels
 * with VKT_KF_BFLOAT, else vkt_limits.coop. Every pipeline of a kernel with VKT_KF_COOP (kernels.def) gets these constants in
 * addition to the kernel's own. */
#define COOP_SPEC_M 27 /* rows of A and C */
#define COOP_SPEC_N 28 /* columns of B and C */
#define COOP_SPEC_K 29 /* columns of A, rows of B */
