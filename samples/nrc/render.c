/* nrc/render.c - see render.h. */
#include "nrc/render.h"

#include <math.h>

#include "graphics/pipeline.h"
#include "shaders.h"

enum { GROUP = 8 }; /* side of a work group of trace.comp */

/* Push constants of trace.comp. */
typedef struct trace_push {
    float eye[4], centre[4];
    uint32_t seed, samples;
    float keep, scale;
    uint32_t reference;
} trace_push;

vkt_result renderer_create(const gbuffer *p, const network_at *at, VkFormat format, renderer *r)
{
    static const uint32_t shown[] = {
        [RENDER_LIGHT] = NRC_LIGHT, [RENDER_INFERRED] = NRC_INFERRED, [RENDER_REFERENCE] = NRC_REFERENCE
    };
    drawing_params drawing = { .d = p->d,
                               .layout = p->layout,
                               .format = format,
                               .vertex = SHADER_CODE(whole),
                               .fragment = SHADER_CODE(light),
                               .constants = { format_encodes(format), 0 } };
    *r = (renderer){ .p = p, .at = *at };
    TRY(compute_create(p->d, SHADER_CODE(trace), p->layout, &r->traces));
    for (uint32_t i = 0; i < RENDER_NETWORK; i++) {
        drawing.constants[1] = shown[i];
        TRY(drawing_create(&drawing, &r->draws[i]));
    }
    drawing.fragment = SHADER_CODE(network);
    return drawing_create(&drawing, &r->draws[RENDER_NETWORK]);
}

void renderer_destroy(renderer *r)
{
    if (!r->p) return;
    const device *d = r->p->d;
    if (r->traces) d->vk.DestroyPipeline(d->handle, r->traces, NULL);
    for (uint32_t i = 0; i < RENDER_VIEWS; i++)
        if (r->draws[i]) d->vk.DestroyPipeline(d->handle, r->draws[i], NULL);
    r->p = NULL;
}

static void push(const renderer *r, VkCommandBuffer cmd, const void *data, size_t bytes)
{
    r->p->d->vk.CmdPushConstants(cmd, r->p->layout, VK_SHADER_STAGE_FRAGMENT_BIT | VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 (uint32_t)bytes, data);
}

/* Sets the camera of frame number `camera`. The camera swings slowly from side to side. */
static void place_camera(uint64_t camera, trace_push *t)
{
    /* An angle in radians. After 62832 frames it is about 400 pi and restarts at 0. The sine and the cosine below have
     * no jump there. */
    const float turn = 0.02f * (float)(camera % 62832);
    t->eye[0] = 0.65f + 0.3f * sinf(turn);
    t->eye[1] = 0.52f + 0.1f * cosf(0.7f * turn);
    t->eye[2] = 0.02f;
    t->centre[0] = 0.65f;
    t->centre[1] = 0.5f;
    t->centre[2] = 0.9f;
}

static void trace(const renderer *r, VkCommandBuffer cmd, const trace_push *t)
{
    const vk_table *vk = &r->p->d->vk;
    const VkExtent2D e = r->p->extent;
    gbuffer_barrier(r->p, cmd);
    vk->CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, r->traces);
    vk->CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, r->p->layout, 0, 1, &r->p->set, 0, NULL);
    push(r, cmd, t, sizeof *t);
    vk->CmdDispatch(cmd, (e.width + GROUP - 1) / GROUP, (e.height + GROUP - 1) / GROUP, 1);
    gbuffer_barrier(r->p, cmd);
}

void renderer_trace(const renderer *r, VkCommandBuffer cmd, uint64_t camera, uint64_t number, uint64_t seed)
{
    trace_push t = { .seed = (uint32_t)(number + 7919 * seed), .samples = 1 };
    place_camera(camera, &t);
    trace(r, cmd, &t);
}

void renderer_trace_reference(const renderer *r, VkCommandBuffer cmd, uint64_t camera, uint32_t samples, uint32_t part,
                              uint32_t parts)
{
    trace_push t = { .seed = 0x80000000u + part,
                     .samples = samples,
                     .keep = part > 0,
                     .scale = 1.0f / (float)(samples * parts),
                     .reference = 1 };
    place_camera(camera, &t);
    trace(r, cmd, &t);
}

void renderer_draw(const renderer *r, VkCommandBuffer cmd, render_view view, rect at)
{
    r->p->d->vk.CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_GRAPHICS, r->p->layout, 0, 1, &r->p->set, 0, NULL);
    if (view == RENDER_NETWORK) push(r, cmd, &r->at, sizeof r->at);
    canvas_draw(r->p->d, cmd, r->draws[view], at);
}
