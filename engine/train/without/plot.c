/* train/without/plot.c - replaces plot.c, rates.c and confusion_figure.c in a build without cairo. */
#include "train/plot.h"

#include "train/confusion.h"
#include "vktrain/train.h"

vkt_result vkt_history_plot(const vkt_host *h, const vkt_epoch_record *records, size_t n, size_t best,
                            const char *title, const char *path)
{
    (void)records, (void)n, (void)best, (void)title;
    return vkt_fail_without(h, path, "cairo", "CAIRO");
}

vkt_result vkt_rates_plot(const vkt_host *host, const double *rates, const double *losses, const double *smoothed,
                          uint32_t n, double suggested, const char *path)
{
    (void)rates, (void)losses, (void)smoothed, (void)n, (void)suggested;
    const vkt_host h = vkt_host_resolve(host);
    VKT_WANT(&h, path);
    return vkt_fail_without(&h, path, "cairo", "CAIRO");
}

vkt_result vkt_confusion_draw(const vkt_host *h, const uint64_t *counts, uint32_t classes, const char *const *names,
                              const char *title, const char *path)
{
    (void)counts, (void)classes, (void)names, (void)title;
    return vkt_fail_without(h, path, "cairo", "CAIRO");
}
