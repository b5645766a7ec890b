/* autodiff/again.h - computes the nodes of a block a second time (vkt_recompute_begin). */
#ifndef VKT_AGAIN_H
#define VKT_AGAIN_H

#include "ir/ir.h"

/* The nodes and values that are computed a second time for the gradients of one reverse traversal (autodiff.c). A
 * second node computes the same as a first node, and its outputs are the second values of the first node's outputs. The
 * arrays have an element for each value and each node that the graph had before the traversal. Both members are NULL if
 * the graph has no blocks. */
typedef struct vkt_again {
    vkt_tensor *value; /* [id of a value]: its second value; {0}: none */
    vkt_node **node;   /* [index of a node]: its second node; NULL: none */
} vkt_again;

/* Allocates the arrays for the values and nodes that the graph has now. The caller calls vkt_again_end, also after a
 * failure. */
vkt_result vkt_again_begin(vkt_again *a, vkt_graph *g);
void vkt_again_end(vkt_again *a, vkt_graph *g);

/* Appends the second nodes of a block to the graph. Their dispatches will run behind the dispatches of the node with
 * index `after` - 1 (`after` 0: in any order). Sets entries of a->value and a->node.
 * VKT_E_STATE: a node of the block reads a state that a later node of the graph changes. The message names the node,
 * the state and the op that changes the state. */
vkt_result vkt_compute_again(vkt_again *a, vkt_graph *g, const vkt_block *block, uint32_t after);

/* Returns the node whose inputs and outputs the gradients of n read: the second node of n, or n itself if there is no
 * second node. */
static inline const vkt_node *vkt_again_node(const vkt_again *a, const vkt_node *n)
{
    return a->node && a->node[n->index] ? a->node[n->index] : n;
}

#endif
