/* data/image_list.h - the list of the images of a data set, from a table `path,label` or from class folders. */
#ifndef VKT_IMAGE_LIST_H
#define VKT_IMAGE_LIST_H

#include "base/base.h"
#include "vktrain/data.h"

/* A list of images. The caller of the functions below owns it. A zeroed list is empty. */
typedef struct vkt_image_list {
    const vkt_host *h; /* not owned */
    uint32_t n;
    char **paths;     /* n of them: paths by which the files can be opened */
    uint32_t *labels; /* n of them; NULL: the table has no column of labels */
    uint32_t classes; /* number of classes; 0: there are no labels, or the number is the largest label + 1 */
    char **names;     /* `classes` of them; NULL: the classes have no names */
    size_t cap;
} vkt_image_list;

/* Fill *out; see vkt_dataset_from_image_table and vkt_dataset_from_image_folders. On failure *out is empty. */
vkt_result vkt_image_list_from_table(const vkt_host *h, const char *csv_path, const vkt_image_params *p,
                                     vkt_image_list *out);
vkt_result vkt_image_list_from_folders(const vkt_host *h, const char *folder, const vkt_image_params *p,
                                       vkt_image_list *out);
void vkt_image_list_free(vkt_image_list *l);

#endif
