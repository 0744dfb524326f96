/* libmdfs: images and windows on a mounted MDFS volume.
 *
 * Functions return 0 or a positive count, or -errno; mdfs_last_error() then gives one line for a person. Any number
 * of threads may use one mdfs_image at once; each window call opens a description of its own from a small pool.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MDFS_MDFS_H
#define MDFS_MDFS_H

#include <mdfs/ioctl.h>
#include <mdfs/version.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mdfs_image mdfs_image; /* an open image; owned by the caller until mdfs_close */

/* The library's version, "0.1.0". */
const char* mdfs_version(void);
/* What went wrong in this thread's last failing call; never null; valid until the next call in this thread. */
const char* mdfs_last_error(void);

/* flags: O_RDONLY or O_RDWR. ENOTTY: not on an MDFS mount; EISDIR: a directory; EINVAL: not an image. */
int mdfs_open(const char* path, int flags, mdfs_image** image);
int mdfs_close(mdfs_image* image); /* null is fine */

/* Makes PATH (which must not exist) an image; geometry as MDFS_IOC_SET_GEOMETRY takes it. mode as open(2). */
int mdfs_create(const char* path, const struct mdfs_ioc_geometry* geometry, mode_t mode);

int mdfs_info(mdfs_image* image, struct mdfs_ioc_geometry* geometry);

/* Reads a window spec ("y50+30,x100+40", "100,50,40,30") into *window. */
int mdfs_parse_window(mdfs_image* image, const char* spec, struct mdfs_ioc_window* window);

/* Reads the window into `buffer`. strides: bytes from one sample to the next along each axis, slowest first, `rank`
 * entries; null = packed canonical layout (then buffer_bytes must be at least the window's bytes). Channels of a sample
 * are always contiguous. buffer_bytes bounds what is touched. Returns the window's bytes. */
ssize_t mdfs_read_window(mdfs_image* image, const struct mdfs_ioc_window* window, void* buffer, size_t buffer_bytes,
                         const int64_t* strides);
/* Replaces the window from `buffer`, atomically. Returns the window's bytes. */
ssize_t mdfs_write_window(mdfs_image* image, const struct mdfs_ioc_window* window, const void* buffer,
                          size_t buffer_bytes, const int64_t* strides);
/* What reading the window would ask of each disk. */
int mdfs_plan(mdfs_image* image, const struct mdfs_ioc_window* window, struct mdfs_ioc_plan* plan);
/* Data and names on the disks, as fsync(2). */
int mdfs_sync(mdfs_image* image);

#ifdef __cplusplus
}
#endif

#endif
