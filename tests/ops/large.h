/* ops/large.h - a graph with two inputs and one result, at sizes that may exceed the device's memory. */
#ifndef VKT_TEST_OPS_LARGE_H
#define VKT_TEST_OPS_LARGE_H

#include "ops/harness.h"

/* A graph with two inputs and one result, and their data on the host. */
typedef struct job {
    vkt_graph *g;
    vkt_program *p;
    vkt_tensor a, b, y;
    size_t n_a, n_b, n_y; /* elements */
    float *in_a, *in_b, *out;
} job;

/* Returns n random numbers in [-1, 1). The caller frees them. */
float *large_random(uint64_t n, uint32_t stream);
/* Skips the running test if there is no device, or if the environment variable VKT_TEST_SMALL is not 0. */
void large_skip_if_small(void);
/* Prints that there is not enough memory, frees the job, and skips the running test. */
void large_skip_for_memory(job *j);
/* Begins a job with two f32 inputs of random numbers: a in `layout`, and b in VKT_ROWS. */
void job_begin(job *j, vkt_layout layout, vkt_shape a, vkt_shape b);
/* Runs the graph and reads y to `out`. Returns false if the program needs more memory than the device has, or more than
 * the context's memory cap allows. */
bool job_run(job *j, vkt_tensor y);
void job_end(job *j);

#endif
