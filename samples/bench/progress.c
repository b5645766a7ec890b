/* bench/progress.c - selects experiments, prints the name of the current experiment, and collects results. */
#include <stdio.h>
#include <unistd.h>

#include "base/terminal.h"
#include "bench/ops.h"
#include "bench/table.h"
#include "common/message.h"

bool bench_wanted(const bench *b, const char *name)
{
    return !b->o->filter || regexec(b->o->filter, name, 0, NULL, 0) == 0;
}

void bench_progress(const bench *b, const char *name)
{
    const uint32_t columns = vkt_terminal_columns(stderr); /* the text must fit in one line, because \r
                                                            * returns only to the start of a line */
    if (vkt_terminal_rewrites(stderr) && columns > 10)
        fprintf(stderr, "\r%4u  %.*s\033[K", b->done + 1, (int)columns - 10, name);
}

vkt_result bench_report(bench *b, const bench_result *r)
{
    char name[320], time[16];
    const bench_stat *t = bench_time(r);
    b->done++;
    b->failed += r->check == BENCH_WRONG;
    if (!isatty(STDERR_FILENO))
        complain("%4u  %s  %s", b->done, bench_name(r, name),
                 r->check == BENCH_WRONG ? "WRONG" : bench_time_text(t->median, time));
    return bench_add(&b->results, r) ? VKT_OK : VKT_E_NOMEM;
}
