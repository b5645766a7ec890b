/* audit/report.h - the output of vkt-audit: lines during the audit, and all results as JSON at the end. */
#ifndef AUDIT_REPORT_H
#define AUDIT_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "vktrain/audit.h"

typedef struct audit_report {
    FILE *out;
    bool quiet;
    /* `runs` has an object for each network, and one for all ops (--all). `entries` is the array "entries" of the
     * newest of these objects. */
    json_t *runs, *entries;
} audit_report;

/* Begins the report of a network or of all ops. `name` and `what` describe this network or the ops. */
void audit_report_begin(audit_report *r, const char *name, const char *what);
/* Is the callback for vkt_audit_params.on_entry. Adds the entry to `user`, an audit_report. Prints the entry, unless
 * `quiet` is set and the entry is right. */
void audit_report_entry(void *user, const vkt_audit_entry *e);
/* Ends the report. Prints the totals, and `status` if it is an error that ended the audit early. */
void audit_report_end(audit_report *r, const vkt_audit_totals *t, vkt_result status);

#endif
