// run_words.comp - copies the learning rate, the number of rows and the first row of a run from an array to a slot of the
// host's ring (abi/step.abi.h). If the number of rows is larger than the batch, the run uses the whole batch. With 0 rows, the
// learning rate becomes 0, so that parameters do not change. Exception: SGD and RMSprop of Keras still subtract the momentum
// of earlier steps.
// grid: one invocation.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/run_words.abi.h"
#include "abi/step.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = RUN_WORDS_ARRAY, std430) readonly buffer Array { uint values[]; };
layout(binding = RUN_WORDS_SLOTS, std430) writeonly buffer Words { uint words[]; };

void main()
{
    if (gl_GlobalInvocationID.x != 0u) return;
    const uint slot = pc.slot * RING_WORDS;
    const uint rows = min(values[VALUES_ROWS], pc.most_rows);
    words[slot + RING_LR] = rows != 0u ? values[VALUES_LR] : 0u;
    words[slot + RING_ROWS] = rows;
    words[slot + RING_WEIGHT] = rows != ROWS_ALL ? rows : 1u;
    words[slot + RING_FIRST] = values[VALUES_FIRST];
}
