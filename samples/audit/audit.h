/* audit/audit.h - vkt-audit without its command line, so that tests can audit their own networks. */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include <stdio.h>

#include "audit/options.h"
#include "bench/nets.h"

/* Runs the audit; o->list: only prints the networks and ops. The last entry of `nets` has no name. Returns the exit
 * status. 0: all is right. 1: something is wrong or could not run. 2: `nets` lacks a network of the options. */
int audit_run(const audit_options *o, const bench_net *nets, const vkt_host *host, FILE *out);

#endif
