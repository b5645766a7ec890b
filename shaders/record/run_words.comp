// run_words.comp - copies the learning rate, the rows and the first row of a run from an array to a slot of the host's words.
// More rows than the batch has count as the whole batch. 0 rows are no rows.
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
    words[slot + RING_LR] = values[VALUES_LR];
    words[slot + RING_ROWS] = min(values[VALUES_ROWS], pc.most_rows);
    words[slot + RING_FIRST] = values[VALUES_FIRST];
}
