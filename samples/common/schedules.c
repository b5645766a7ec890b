/* common/schedules.c - see schedules.h. */
#include "common/schedules.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char schedules_help[] =
    "how the learning rate changes: constant; cosine (falls to 0 over the run); one-cycle (rises to --lr, then falls); "
    "plateau (a tenth when nothing improves); step=N (a tenth every N epochs); multi-step=N,N,... (a tenth at each of "
    "these epochs); exponential=X (X times the rate, every epoch)";

/* Reads a whole number above 0 that ends at a comma or at the end of the text. Moves *text behind the number. */
static bool number(const char **text, uint32_t *out)
{
    char *end;
    errno = 0;
    const unsigned long n = strtoul(*text, &end, 10);
    if (!isdigit((unsigned char)**text) || errno || n == 0 || n > UINT32_MAX || (*end && *end != ',')) return false;
    *out = (uint32_t)n;
    *text = end;
    return true;
}

static bool step(const char *value, vkt_schedule *s)
{
    return number(&value, &s->step_size) && !*value;
}

static bool multi_step(const char *value, vkt_schedule *s)
{
    enum { MOST = sizeof s->milestones / sizeof *s->milestones };
    while (s->n_milestones < MOST && number(&value, &s->milestones[s->n_milestones])) {
        const uint32_t i = s->n_milestones++;
        if (i > 0 && s->milestones[i] <= s->milestones[i - 1]) return false;
        if (!*value) return true;
        value++;
    }
    return false;
}

static bool exponential(const char *value, vkt_schedule *s)
{
    char *end;
    s->gamma = strtod(value, &end);
    return end != value && !*end && s->gamma > 0 && s->gamma <= 1;
}

bool schedule_parse(const char *text, vkt_schedule *out)
{
    static const struct {
        const char *name;
        vkt_schedule_kind kind;
        bool (*read)(const char *value, vkt_schedule *s); /* NULL: no value follows the name */
    } kinds[] = {
        { "constant", VKT_SCHEDULE_CONSTANT, NULL },
        { "cosine", VKT_SCHEDULE_COSINE, NULL },
        { "one-cycle", VKT_SCHEDULE_ONE_CYCLE, NULL },
        { "plateau", VKT_SCHEDULE_PLATEAU, NULL },
        { "step", VKT_SCHEDULE_STEP, step },
        { "multi-step", VKT_SCHEDULE_MULTI_STEP, multi_step },
        { "exponential", VKT_SCHEDULE_EXPONENTIAL, exponential },
    };
    const size_t n = strcspn(text, "=");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].name) != n || strncmp(text, kinds[i].name, n) != 0) continue;
        *out = (vkt_schedule){ .kind = kinds[i].kind, .by_epoch = kinds[i].read != NULL };
        return kinds[i].read ? text[n] == '=' && kinds[i].read(text + n + 1, out) : !text[n];
    }
    return false;
}

void schedule_set_warmup(vkt_schedule *s, uint32_t warmup)
{
    const uint64_t end = s->total + s->warmup;
    s->warmup = warmup;
    if (s->kind == VKT_SCHEDULE_COSINE || s->kind == VKT_SCHEDULE_ONE_CYCLE) s->total = end > warmup ? end - warmup : 1;
}
