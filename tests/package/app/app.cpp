// Builds the same graph as app.c, in C++.
#include <vktrain/vktrain.h>

#include <cstdio>

int main()
{
    vkt_graph *g = nullptr;
    if (vkt_graph_create(nullptr, &g) != VKT_OK) return 1;
    const vkt_tensor w = vkt_param(g, "w", vkt_shape2(3, 5));
    const vkt_shape s = vkt_tensor_shape(g, vkt_relu(g, w));
    std::printf("%u x %u\n", s.dim[0], s.dim[1]);
    vkt_graph_destroy(&g);
    return s.rank == 2 && s.dim[0] == 3 && s.dim[1] == 5 ? 0 : 1;
}
