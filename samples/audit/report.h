/* audit/report.h - what vkt-audit tells: lines for readers as they come, and all of it as JSON at the end. */
#ifndef AUDIT_REPORT_H
#define AUDIT_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "vktrain/audit.h"

typedef struct audit_report {
    FILE *out;
    bool quiet;
    json_t *runs, *entries; /* of all networks; of the one at hand */
} audit_report;

/* A network, or all ops, begins: its name, and what it is. */
void audit_report_begin(audit_report *r, const char *name, const char *what);
/* For vkt_audit_params.on_entry; user is the report. */
void audit_report_entry(void *user, const vkt_audit_entry *e);
/* It is done: totals, and the status if the audit could not go on. */
void audit_report_end(audit_report *r, const vkt_audit_totals *t, vkt_result status);

#endif
