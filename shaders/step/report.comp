// report.comp - copies numbers of a run to the run's slot of the metrics ring (abi/step.abi.h): the loss, the number of
// correct samples, the number of rows, the step number, the loss scale, the number of skipped steps, the norm of the
// gradients, and the weight of the run (STEP_TERMS). The host reads the slot later. If HOLD_FOUND is set
// (overflow.comp found gradients that are not finite), this run completes no step. The run is counted as skipped, and
// the step number is that of the previous step.
// If the report runs before overflow.comp, HOLD_FOUND is not set yet, and the report does not count the run as skipped.
// The kernel also stores the number of the next run, for kernels that run beside step_advance.comp.
// grid: one invocation.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/report.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = REPORT_METRICS, std430) writeonly buffer Metrics { uint metrics[]; };
layout(binding = REPORT_LOSS, std430) readonly buffer Loss { uint loss[]; };
layout(binding = REPORT_CORRECT, std430) readonly buffer Correct { uint correct[]; };
layout(binding = REPORT_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = REPORT_RUN, std430) writeonly buffer Run { uint run[]; };

void main()
{
    if (gl_GlobalInvocationID.x != 0u) return;
    const uint slot = step[STEP_SLOT] * METRIC_WORDS, skipped = (step[STEP_HOLD] & HOLD_FOUND) != 0u ? 1u : 0u;
    metrics[slot + METRIC_LOSS] = loss[0];
    metrics[slot + METRIC_CORRECT] = pc.has_correct != 0u ? correct[0] : 0u;
    metrics[slot + METRIC_ROWS] = step[STEP_ROWS];
    metrics[slot + METRIC_T] = step[STEP_T] - skipped;
    metrics[slot + METRIC_SCALE] = step[STEP_SCALE];
    metrics[slot + METRIC_SKIPPED] = step[STEP_SKIPPED] + skipped;
    metrics[slot + METRIC_NORM] = step[STEP_NORM];
    metrics[slot + METRIC_TERMS] = step[STEP_TERMS];
    run[0] = step[STEP_NEXT];
}
