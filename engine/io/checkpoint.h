/* io/checkpoint.h - writes the full state of a training run to one file, atomically, and opens such a file.
 *
 * A checkpoint is a safetensors file: any program that reads this format gets the parameters under their own names. The
 * file also has the other tensors that are needed to continue: their names begin with "vktrain" (train/state.c). The
 * metadata describe a trainer's run (train/identity.h, train/state.c), or a store without a trainer
 * (train/store_state.c). Three metadata keys make the file a checkpoint. checkpoint.c writes and checks these keys.
 * They come first in the header:
 *
 *   vktrain.crc32    CRC-32 (zlib) of the whole file without the eight lower-case hexadecimal digits of this value. The
 *                    position and meaning of the digits are the same in every version, so that damage is never mistaken
 *                    for a newer version.
 *   vktrain.kind     "training-state"
 *   vktrain.version  VKT_CHECKPOINT_VERSION, decimal. It grows if a new trainer could misread a file of an earlier
 *                    library, or could not find out whether the file belongs to its run. A checkpoint of another
 *                    version, older or newer, is refused. Its weights can be loaded as from any safetensors file.
 *                    Version 1 has the settings in one line. Version 2 has settings, data and network by name
 *                    (train/identity.h). */
#ifndef VKT_CHECKPOINT_H
#define VKT_CHECKPOINT_H

#include "io/safetensors.h"

#define VKT_CHECKPOINT_VERSION 2

/* Writes the state. An old checkpoint at `path` is replaced as a whole or not changed. VKT_E_ARG if `meta` has one of
 * the three keys above. Other errors are those of vkt_safetensors_write. */
vkt_result vkt_checkpoint_write(const vkt_host *h, const char *path, const vkt_blob *blobs, size_t n_blobs,
                                const vkt_meta *meta, size_t n_meta);

/* Opens a checkpoint, reads all of it once to verify the checksum, and returns its reader. The caller owns the reader
 * and closes it with vkt_safetensors_close. VKT_E_FORMAT for a file that is truncated, damaged or no checkpoint;
 * VKT_E_UNSUPPORTED for another version. Other errors are those of vkt_safetensors_open. On an error *out is NULL. */
vkt_result vkt_checkpoint_open(const vkt_host *h, const char *path, vkt_safetensors **out);

#endif
