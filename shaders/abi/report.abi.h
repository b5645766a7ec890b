/* report.abi.h - copies the scalars of a run to the run's slot of the metrics ring. The words of a slot are in step.abi.h. */
VKT_PUSH(vkt_report_push, VKT_U32(has_correct) /* 0: binding REPORT_CORRECT has no count, and 0 is reported */)
#define REPORT_METRICS 0 /* u32 (RING_ALL, METRIC_WORDS) */
#define REPORT_LOSS    1 /* f32 scalar */
#define REPORT_CORRECT 2 /* f32 scalar */
#define REPORT_STEP    3 /* u32 (STEP_WORDS) */
#define REPORT_RUN     4 /* u32 (1): STEP_RUN */
