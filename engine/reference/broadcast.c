/* reference/broadcast.c - finds the element of a small tensor that broadcasting copies to an element of a large one. */
#include "reference/families.h"

size_t vkt_ref_broadcast(vkt_shape large, vkt_shape small, size_t i)
{
    size_t at = 0, stride = 1;
    for (uint32_t k = 0; k < small.rank; k++) { /* k counts dimensions from the right */
        const size_t n = small.dim[small.rank - 1 - k], index = i % large.dim[large.rank - 1 - k];
        i /= large.dim[large.rank - 1 - k];
        if (n > 1) at += index * stride;
        stride *= n;
    }
    return at;
}
