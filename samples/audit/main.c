/* audit/main.c - vkt-audit. It runs each op of some networks, or every op of the library, on a device, and compares the
 * results with those of the CPU in double precision. */
#include "audit/audit.h"

#include "common/message.h"
#include "common/outputs.h"

int main(int argc, char **argv)
{
    audit_options o;
    outputs_begin();
    audit_options_parse(&o, argc, argv);
    return audit_run(&o, bench_nets, &(vkt_host){ .log = message_log }, stdout);
}
