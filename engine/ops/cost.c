/* ops/cost.c - the least cost of a node: see vkt_cost in ops.h. */
#include "ops/ops.h"

double vkt_elements_in(const vkt_node *n, uint32_t i)
{
    return i < n->n_in && n->in[i].id ? (double)vkt_shape_elements(vkt_node_in(n, i)->shape) : 0;
}

double vkt_elements_out(const vkt_node *n, uint32_t i)
{
    return i < n->n_out ? (double)vkt_shape_elements(vkt_node_out(n, i)->shape) : 0;
}

double vkt_flops_none(const vkt_node *n)
{
    (void)n;
    return 0;
}

double vkt_flops_an_output(const vkt_node *n)
{
    return vkt_elements_out(n, 0);
}

double vkt_flops_an_input(const vkt_node *n)
{
    return vkt_elements_in(n, 0);
}

double vkt_flops_of_scores(const vkt_node *n)
{
    return 4 * vkt_elements_in(n, 0);
}

/* Returns the bytes of all inputs, each read once, and of all outputs, each written once. */
static double all_bytes(const vkt_node *n)
{
    double bytes = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i].id) bytes += vkt_elements_in(n, i) * vkt_dtype_bytes(vkt_node_in(n, i)->dtype);
    for (uint32_t i = 0; i < n->n_out; i++)
        bytes += vkt_elements_out(n, i) * vkt_dtype_bytes(vkt_node_out(n, i)->dtype);
    return bytes;
}

vkt_cost vkt_node_cost(const vkt_node *n)
{
    return (vkt_cost){ .flops = n->op->flops(n), .bytes = n->op->bytes ? n->op->bytes(n) : all_bytes(n) };
}
