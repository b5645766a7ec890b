/* linear_xent_loss.abi.h - see linear_xent_loss.comp. A row counts if its label counts (label_rows.abi.h). */
VKT_PUSH(vkt_linear_xent_loss_push, VKT_U32(mean) /* 1: the sum is divided by the number of labels that count */)
#define LINEAR_XENT_LOSS_PART  0 /* f32: the losses of the rows that count */
#define LINEAR_XENT_LOSS_FOUND 1 /* label_found.abi.h */
#define LINEAR_XENT_LOSS_OUT   2 /* f32 scalar */
