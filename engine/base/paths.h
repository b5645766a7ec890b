/* base/paths.h - folders, and files that are opened by their path. On Windows a path is UTF-8, '/' and '\\'
 * separate its parts, and it may be longer than 260 characters.
 *
 * A function that can fail returns 0 or an errno; vkt_error_text (system.h) gives its text. Nothing is logged. Threads:
 * any; one call at a time per object. */
#ifndef VKT_PATHS_H
#define VKT_PATHS_H

#include <stdbool.h>
#include <stdio.h>

/* Returns the part of a path after its last separator. On Windows, the ':' after the letter of a drive counts as a
 * separator here. */
const char *vkt_path_name(const char *path);
/* Returns whether a path is absolute. On POSIX, such a path begins with a separator. On Windows it begins with a
 * separator, or with the letter of a drive and ':'. */
bool vkt_path_is_absolute(const char *path);
/* Returns the first separator behind the first character of a path; NULL: there is none. */
char *vkt_path_next(char *path);

/* Returns the number of bytes of the first path in a list. Between two paths is a ':' on POSIX, and a ';' on Windows.
 */
size_t vkt_path_list_first(const char *list);

/* Returns whether something exists at this path. */
bool vkt_path_exists(const char *path);
/* Returns whether this process may read the file. */
bool vkt_path_is_readable(const char *path);
/* Finds out whether a path is a folder. A link counts as its target. ENOENT: there is nothing at this path. */
int vkt_path_is_folder(const char *path, bool *is);
/* Removes a file or an empty folder. */
int vkt_path_remove(const char *path);

/* Makes a folder. EEXIST: something exists at this path. `is_private`: only this user may read it (POSIX). */
int vkt_folder_make(const char *path, bool is_private);
/* Makes each folder above `path`, but not `path` itself. Errors are ignored: the next use of the path reports them.
 * The call leaves `path` unchanged. */
void vkt_folder_make_above(char *path, bool is_private);

/* A reader of the names in a folder. */
typedef struct vkt_folder vkt_folder;
int vkt_folder_open(const char *path, vkt_folder **out);
/* Sets *name to the next name, which is valid until the next call; NULL: there are no more. The names may include
 * "." and "..". The system chooses their order. */
int vkt_folder_next(vkt_folder *folder, const char **name);
void vkt_folder_close(vkt_folder *folder);

/* Opens a new file for writing. EEXIST: something exists at this path. */
int vkt_file_create(const char *path, FILE **out);
/* Opens a file to append text, and makes it if it does not exist. EWOULDBLOCK: another call of this function, in any
 * process, has opened the file, and the file is not closed yet. On Windows also: another program writes the file. (On a
 * file system without locks, the call succeeds nevertheless.) */
int vkt_file_append(const char *path, FILE **out);

#endif
