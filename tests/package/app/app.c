/* Builds a graph, which needs no device, and lists the devices. */
#include <vktrain/vktrain.h>

#include <stdio.h>

int main(void)
{
    vkt_graph *g;
    vkt_device_info info;
    uint32_t n = 0;
    if (vkt_graph_create(NULL, &g) != VKT_OK) return 1;
    const vkt_tensor w = vkt_param(g, "w", vkt_shape2(3, 5));
    const vkt_shape s = vkt_tensor_shape(g, vkt_relu(g, w));
    const vkt_result r = vkt_list_devices(NULL, &info, 1, &n);
    printf("%u x %u, %u devices (%s)\n", s.dim[0], s.dim[1], n, vkt_result_name(r));
    vkt_graph_destroy(&g);
    return s.rank == 2 && s.dim[0] == 3 && s.dim[1] == 5 ? 0 : 1;
}
