/* dist/crew.h - runs one function on each rank of a thread group, each in a thread of its own. cmocka's assertions
 * jump, so only the test's own thread may call them: the function returns its result. */
#ifndef VKT_TEST_CREW_H
#define VKT_TEST_CREW_H

#include "vktrain/dist.h"

enum { CREW_MOST = 16 };

typedef vkt_result (*crew_job)(const vkt_transport *t, void *user);

/* Runs `job` on `ranks` ranks of a new group and waits for all. result[r] is what rank r returned. */
void crew_run(const vkt_host *h, uint32_t ranks, double timeout_seconds, crew_job job, void *user, vkt_result *result);
/* The same, where each rank must return VKT_OK. */
void crew_run_ok(const vkt_host *h, uint32_t ranks, crew_job job, void *user);
/* Sleeps. */
void crew_pause_ms(uint32_t ms);

#endif
