/* dist/crew.h - runs one function on all ranks of a thread group. Each rank has a thread of its own. A failed assertion
 * of cmocka calls longjmp, so only the test's own thread may use assertions. The function returns a result instead. */
#ifndef VKT_TEST_CREW_H
#define VKT_TEST_CREW_H

#include "vktrain/dist.h"

enum { CREW_MOST = 16 };

typedef vkt_result (*crew_job)(const vkt_transport *t, void *user);

/* Runs `job` on all ranks of a new group of `ranks` ranks, and waits until all have returned. result[r] becomes what
 * rank r returned. timeout_seconds has the same meaning as in vkt_thread_group_create. */
void crew_run(const vkt_host *h, uint32_t ranks, double timeout_seconds, crew_job job, void *user, vkt_result *result);
/* Like crew_run, with the default timeout. Fails the test unless each rank returns VKT_OK. */
void crew_run_ok(const vkt_host *h, uint32_t ranks, crew_job job, void *user);
/* Sleeps for `ms` milliseconds. */
void crew_pause_ms(uint32_t ms);

#endif
