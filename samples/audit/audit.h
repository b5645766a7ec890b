/* audit/audit.h - vkt-audit without its command line, so that tests can hand it networks of their own. */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include <stdio.h>

#include "audit/options.h"
#include "bench/nets.h"

/* The exit status: 0 all is right, 1 something is wrong or could not be run, 2 a network's name is none of `nets`. */
int audit_run(const audit_options *o, const bench_net *nets, const vkt_host *host, FILE *out);

#endif
