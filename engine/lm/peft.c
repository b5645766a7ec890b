/* lm/peft.c - saves the adapters of a store to a folder of PEFT, and loads them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/paths.h"
#include "io/safetensors.h"
#include "ir/ir.h"
#include "lm/peft.h"

enum { NAME_ROOM = 600, SHAPE_ROOM = 24 * VKT_ST_MAX_RANK };

/* The adapters of a store, with host memory for their values. `values` has A and B of the first adapter, then A and B
 * of the next adapter, and so on. */
typedef struct adapters {
    const vkt_host *h;
    vkt_store *s;
    vkt_adapter *list;
    uint32_t n;
    uint64_t elements;
    float *values;
} adapters;

static vkt_result adapters_open(const vkt_host *h, vkt_store *s, adapters *all)
{
    *all = (adapters){ .h = h, .s = s };
    VKT_TRY(vkt_adapters_of(h, s, &all->list, &all->n));
    for (uint32_t i = 0; i < all->n; i++) all->elements += vkt_adapter_elements(&all->list[i]);
    all->values = vkt_alloc_array(h, all->elements, sizeof *all->values);
    return all->values ? VKT_OK : vkt_fail_nomem(h, "adapters", all->elements * sizeof *all->values);
}

static void adapters_close(adapters *all)
{
    vkt_free(all->h, all->list);
    vkt_free(all->h, all->values);
}

/* ---- saving ---- */

typedef struct tensors {
    vkt_blob *blobs;
    char (*names)[NAME_ROOM];
    uint32_t n;
} tensors;

static void add_tensor(tensors *to, const vkt_store *s, uint32_t i, const float *values)
{
    const vkt_shape shape = vkt_store_shape(s, i);
    snprintf(to->names[to->n], NAME_ROOM, "%s%s", VKT_PEFT_PREFIX, vkt_store_name(s, i));
    to->blobs[to->n] = (vkt_blob){
        .name = to->names[to->n], .dtype = VKT_ST_F32, .rank = 2, .dims = { shape.dim[0], shape.dim[1] }, .data = values
    };
    to->n++;
}

static vkt_result make_folder(const vkt_host *h, const char *folder)
{
    const int error = vkt_folder_make(folder, false);
    return error && error != EEXIST ? vkt_file_fail(h, "make the folder", folder, error) : VKT_OK;
}

static vkt_result write_folder(const adapters *all, vkt_store_part part, const vkt_peft_params *p, const char *folder,
                               tensors *to)
{
    float *at = all->values;
    vkt_peft_params full = *p;
    VKT_TRY(vkt_adapters_check(all->h, all->list, all->n, &p->lora, &full.lora));
    for (uint32_t i = 0; i < all->n; i++) {
        const vkt_adapter *a = &all->list[i];
        VKT_TRY(vkt_adapter_read(all->h, all->s, part, a, at));
        add_tensor(to, all->s, a->a, at);
        add_tensor(to, all->s, a->b, at + (uint64_t)a->rank * a->in);
        at += vkt_adapter_elements(a);
    }
    char *data = vkt_peft_path(all->h, folder, VKT_PEFT_TENSORS),
         *config = vkt_peft_path(all->h, folder, VKT_PEFT_CONFIG), *text = NULL;
    vkt_result r = data && config ? vkt_peft_config_text(all->h, config, &full, all->list, all->n, &text)
                                  : vkt_fail_nomem(all->h, "paths", strlen(folder));
    if (r == VKT_OK) r = make_folder(all->h, folder);
    if (r == VKT_OK) r = vkt_safetensors_write(all->h, data, to->blobs, to->n, &(vkt_meta){ "format", "pt" }, 1);
    if (r == VKT_OK) r = vkt_file_write(all->h, config, text, strlen(text));
    free(text);
    vkt_free(all->h, data);
    vkt_free(all->h, config);
    return r;
}

vkt_result vkt_peft_save(const vkt_host *host, vkt_store *s, vkt_store_part part, const vkt_peft_params *params,
                         const char *folder)
{
    VKT_WANT(host, s);
    VKT_WANT(host, params);
    VKT_WANT(host, folder);
    const vkt_host h = vkt_host_resolve(host);
    adapters all;
    vkt_result r = adapters_open(&h, s, &all);
    const size_t n = 2 * (size_t)all.n;
    tensors to = { .blobs = vkt_alloc_array(&h, n, sizeof *to.blobs),
                   .names = vkt_alloc_array(&h, n, sizeof *to.names) };
    if (r == VKT_OK && (!to.blobs || !to.names)) r = vkt_fail_nomem(&h, "names of tensors", n * sizeof *to.names);
    if (r == VKT_OK) r = write_folder(&all, part, params, folder, &to);
    vkt_free(&h, to.blobs);
    vkt_free(&h, to.names);
    adapters_close(&all);
    return r;
}

/* ---- loading ---- */

/* Compares the options of a folder with those of the network. */
static vkt_result check_config(const vkt_host *h, const vkt_lora_params *lora, const char *folder)
{
    vkt_peft_config *c;
    VKT_TRY(vkt_peft_config_open(h, folder, &c));
    const vkt_result r = vkt_adapters_match(h, folder, lora, vkt_peft_config_lora(c));
    vkt_peft_config_destroy(&c);
    return r;
}

static vkt_result read_tensor(const adapters *all, const vkt_safetensors *st, const char *path, uint32_t i, float *to)
{
    char name[NAME_ROOM], want[80], got[SHAPE_ROOM];
    const vkt_shape shape = vkt_store_shape(all->s, i);
    snprintf(name, sizeof name, "%s%s", VKT_PEFT_PREFIX, vkt_store_name(all->s, i));
    const vkt_st_entry *e = vkt_safetensors_find(st, name);
    if (!e) return vkt_fail(all->h, VKT_E_NOT_FOUND, "%s: there is no tensor \"%s\"", path, name);
    if (e->rank == 2 && e->dims[0] == shape.dim[0] && e->dims[1] == shape.dim[1])
        return vkt_safetensors_read_f32(st, e, to, e->elements);
    got[0] = '\0';
    for (uint32_t d = 0, at = 0; d < e->rank; d++)
        at += (uint32_t)snprintf(got + at, sizeof got - at, "%s%llu", d ? "," : "", (unsigned long long)e->dims[d]);
    return vkt_fail(all->h, VKT_E_SHAPE, "%s: want tensor \"%s\" of shape %s, got (%s)", path, name,
                    vkt_shape_text(shape, want), got);
}

static bool is_adapter(const adapters *all, const char *name)
{
    uint32_t at;
    if (!vkt_store_find(all->s, name, &at)) return false;
    for (uint32_t i = 0; i < all->n; i++)
        if (all->list[i].a == at || all->list[i].b == at) return true;
    return false;
}

/* Refuses a file with a tensor that is not matrix A or B of an adapter of the store. Without this tensor, the model
 * would differ from the saved one. */
static vkt_result check_all_used(const adapters *all, const vkt_safetensors *st, const char *path)
{
    for (size_t i = 0; i < vkt_safetensors_count(st); i++) {
        const char *name = vkt_safetensors_entry(st, i)->name, *own = name + sizeof VKT_PEFT_PREFIX - 1;
        if (strncmp(name, VKT_PEFT_PREFIX, sizeof VKT_PEFT_PREFIX - 1) != 0 || !is_adapter(all, own))
            return vkt_fail(all->h, VKT_E_UNSUPPORTED, "%s: the tensor \"%.200s\" is no adapter of this network", path,
                            name);
    }
    return VKT_OK;
}

static vkt_result read_tensors(const adapters *all, const char *path)
{
    vkt_safetensors *st;
    float *at = all->values;
    VKT_TRY(vkt_safetensors_open(all->h, path, &st));
    vkt_result r = check_all_used(all, st, path);
    for (uint32_t i = 0; r == VKT_OK && i < all->n; i++) {
        const vkt_adapter *a = &all->list[i];
        r = read_tensor(all, st, path, a->a, at);
        if (r == VKT_OK) r = read_tensor(all, st, path, a->b, at + (uint64_t)a->rank * a->in);
        at += vkt_adapter_elements(a);
    }
    vkt_safetensors_close(&st);
    return r;
}

vkt_result vkt_peft_load(const vkt_host *host, vkt_store *s, const vkt_lora_params *lora, const char *folder)
{
    VKT_WANT(host, s);
    VKT_WANT(host, lora);
    VKT_WANT(host, folder);
    const vkt_host h = vkt_host_resolve(host);
    adapters all;
    vkt_lora_params full;
    char *path = vkt_peft_path(&h, folder, VKT_PEFT_TENSORS);
    vkt_result r = adapters_open(&h, s, &all);
    if (r == VKT_OK && !path) r = vkt_fail_nomem(&h, "a path", strlen(folder));
    if (r == VKT_OK) r = vkt_adapters_check(&h, all.list, all.n, lora, &full);
    if (r == VKT_OK) r = check_config(&h, &full, folder);
    if (r == VKT_OK) r = read_tensors(&all, path);
    if (r == VKT_OK) r = vkt_adapters_write(s, all.list, all.n, all.values);
    adapters_close(&all);
    vkt_free(&h, path);
    return r;
}
