/* support/temp_dir.h - an empty directory for one test. */
#ifndef VKT_TEST_TEMP_DIR_H
#define VKT_TEST_TEMP_DIR_H

typedef struct vkt_temp_dir {
    char path[256];
} vkt_temp_dir;

/* Makes the directory in $TMPDIR. Without this variable, makes it in /dev/shm, where fsync costs nothing, or in /tmp if
 * there is no /dev/shm. Fails the test if the directory cannot be made. */
vkt_temp_dir vkt_temp_dir_make(void);
/* Returns "<dir>/<name>". The text is valid until the calling thread has called this function four more times. */
const char *vkt_temp_dir_file(const vkt_temp_dir *dir, const char *name);
/* Returns the number of files and folders in the directory. */
unsigned vkt_temp_dir_count(const vkt_temp_dir *dir);
/* Removes the directory with its content. */
void vkt_temp_dir_remove(const vkt_temp_dir *dir);

#endif
