/* loss_scale.abi.h - see loss_scale.comp. The first scale and the interval are the defaults of torch.amp.GradScaler. */
#define LOSS_SCALE_CLOCK 0 /* u32 (CLOCK_WORDS) */
#define LOSS_SCALE_STEP  1 /* u32 (STEP_WORDS) */
#define LOSS_SCALE_FIRST    65536.0f
#define LOSS_SCALE_INTERVAL 2000 /* successive steps without overflow before the scale is doubled */
/* The limits of the scale, as the bits of a float. Between them, the scale and its inverse are normal floats. */
#define LOSS_SCALE_MAX  0x7e800000u /* 2^126 */
#define LOSS_SCALE_MIN 0x00800000u  /* 2^-126 */
