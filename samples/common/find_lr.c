/* common/find_lr.c - see find_lr.h. */
#include "common/find_lr.h"

#include <math.h>
#include <stdio.h>

#include "common/message.h"
#include "common/stop.h"
#include "common/terminal.h"

static bool was_interrupted(void *user)
{
    (void)user;
    return stop_signal() != 0;
}

static void print_test(const vkt_lr_test *x)
{
    printf("rates   %.2g to %.2g in %u steps%s\n", x->rates[0], x->rates[x->n - 1], x->n,
           x->n < VKT_LR_TEST_STEPS ? ", where the loss blew up" : "");
    if (isnan(x->suggested))
        puts("try     another --lr: the loss falls at none of these");
    else
        printf("try     --lr %.2g: there the smoothed loss falls fastest\n", x->suggested);
}

vkt_result find_lr_run(const session *s, vkt_trainer *t)
{
    vkt_lr_test x;
    if (!s->o.quiet)
        terminal_printf(stdout, "looks for a learning rate: %d steps at most, which are forgotten\n",
                        VKT_LR_TEST_STEPS);
    const vkt_result r = vkt_trainer_find_lr(t, &(vkt_fit_callbacks){ .stop = was_interrupted }, &x);
    if (stop_signal()) {
        remark("ended by %s: %s is not written", stop_name(stop_signal()), s->o.find_lr);
        return VKT_OK;
    }
    if (r == VKT_E_DIVERGED) complain("--find-lr: try a smaller --lr (it was %g)", (double)s->o.lr);
    if (r != VKT_OK) return r;
    if (!s->o.quiet) print_test(&x);
    return vkt_rates_plot(&s->host, x.rates, x.losses, x.smoothed, x.n, x.suggested, s->o.find_lr);
}
