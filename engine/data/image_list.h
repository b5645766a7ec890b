/* data/image_list.h - which pictures a data set has: the table `path,label` or the class folders that name them. */
#ifndef VKT_IMAGE_LIST_H
#define VKT_IMAGE_LIST_H

#include "base/base.h"
#include "vktrain/data.h"

/* Owned by whoever asked for it; zeroed: empty. */
typedef struct vkt_image_list {
    const vkt_host *h; /* lent */
    uint32_t n;
    char **paths;     /* n, as files are opened */
    uint32_t *labels; /* n; NULL: the table has no column of labels */
    uint32_t classes; /* 0: as many as the labels ask for */
    char **names;     /* `classes` of them; NULL: labels are numbers */
    size_t cap;
} vkt_image_list;

/* See vkt_dataset_from_image_table and vkt_dataset_from_image_folders. On failure *out is empty. */
vkt_result vkt_image_list_from_table(const vkt_host *h, const char *csv_path, const vkt_image_params *p,
                                     vkt_image_list *out);
vkt_result vkt_image_list_from_folders(const vkt_host *h, const char *folder, const vkt_image_params *p,
                                       vkt_image_list *out);
void vkt_image_list_free(vkt_image_list *l);

#endif
