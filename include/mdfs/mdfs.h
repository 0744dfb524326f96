/* libmdfs: images and windows on a mounted MDFS volume.
 *
 * Functions return 0 or a positive count, or -errno; mdfs_last_error() then returns a message of one line. Any number
 * of threads may use one mdfs_image at the same time: each window call takes a file description from a small pool.
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
/* Message of this thread's last failed call; never null; valid until the next call in this thread. */
const char* mdfs_last_error(void);

/* The codec and the level of an image as text: "raw", "zstd:7", or "codec 9" if the library does not know the codec.
 * Never null; valid until the next call of this function in this thread. */
const char* mdfs_codec_text(uint8_t codec, int8_t level);
/* Parses "raw", "zstd" (at its default level) or "zstd:7" for the geometry of a new image. EINVAL: the text is none of
 * a codec that the library knows, and mdfs_last_error() lists them. */
int mdfs_parse_codec(const char* text, uint8_t* codec, int8_t* level);

/* Opens an image. flags: O_RDONLY or O_RDWR. ENOTTY: not on a mount; EISDIR: a directory; EINVAL: not an image. */
int mdfs_open(const char* path, int flags, mdfs_image** image);
int mdfs_close(mdfs_image* image); /* frees the image; null is allowed */
/* The descriptor of the open image, for fstat(2), fgetxattr(2) and the like. The image owns it: do not close it, move
 * its offset or bind a window to it. */
int mdfs_fd(const mdfs_image* image);

/* Creates an image at a path that must not exist. geometry: as for MDFS_IOC_SET_GEOMETRY; mode: as for open(2). */
int mdfs_create(const char* path, const struct mdfs_ioc_geometry* geometry, mode_t mode);

int mdfs_info(mdfs_image* image, struct mdfs_ioc_geometry* geometry);
/* The same of a resolution level, stored or not: its shape and spacing. size_bytes: that whole slabs of the image make;
 * stored_bytes: 0, as mdfs_levels() has them. Level 0 is the image. ERANGE: the image has fewer levels. */
int mdfs_level_info(mdfs_image* image, uint32_t level, struct mdfs_ioc_geometry* geometry);
/* Shows or sets the stored levels: MDFS_IOC_LEVELS. */
int mdfs_levels(mdfs_image* image, struct mdfs_ioc_levels* levels);

/* Parses a window specification ("y50+30,x100+40", "100,50,40,30", "l2,y0+512" of level 2) into *window. */
int mdfs_parse_window(mdfs_image* image, const char* spec, struct mdfs_ioc_window* window);

/* Reads the window, also one of a level, into `buffer` and touches at most buffer_bytes. strides: bytes from one sample
 * to the next along each axis, slowest first, `rank` entries; null = packed canonical layout, for which buffer_bytes
 * must be at least the bytes of the window. Channels of a sample are always contiguous. Returns the bytes of the
 * window. */
ssize_t mdfs_read_window(mdfs_image* image, const struct mdfs_ioc_window* window, void* buffer, size_t buffer_bytes,
                         const int64_t* strides);
/* One window of mdfs_read_windows(). window, buffer, buffer_bytes and strides: as for mdfs_read_window(). */
struct mdfs_window_read {
  struct mdfs_ioc_window window;
  void* buffer;
  size_t buffer_bytes;
  const int64_t* strides;
  ssize_t result; /* out: bytes of the window, or -errno */
};
/* Reads many windows, several of them at the same time, in any order. Each is one version of the image. Returns 0, or
 * the error of the first read in the array that has one; mdfs_last_error() then has its message. All others are done.
 * Without a channel, threads read that end with the call. */
int mdfs_read_windows(mdfs_image* image, struct mdfs_window_read* reads, size_t count);
/* Memory for windows that the daemon shares with the caller: it puts the samples of packed windows (strides null) there
 * itself, so that they are copied once. The memory differs from ordinary memory in two things: bytes of a window may be
 * mixed while the call that reads it runs, and a child process that was forked shares the memory with its parent. If
 * the daemon refuses, the buffer is ordinary memory of the process, and reads copy windows into it. The buffer may be
 * freed after the image. */
typedef struct mdfs_buffer mdfs_buffer;
int mdfs_buffer_new(mdfs_image* image, size_t bytes, mdfs_buffer** buffer);
void* mdfs_buffer_data(const mdfs_buffer* buffer); /* its first byte; at a page */
int mdfs_buffer_free(mdfs_buffer* buffer);         /* null is allowed */
/* Replaces the window by `buffer`, atomically. Returns the bytes of the window. EINVAL: it is one of a level. */
ssize_t mdfs_write_window(mdfs_image* image, const struct mdfs_ioc_window* window, const void* buffer,
                          size_t buffer_bytes, const int64_t* strides);
/* Returns the requests to each disk that a read of the window would make. */
int mdfs_plan(mdfs_image* image, const struct mdfs_ioc_window* window, struct mdfs_ioc_plan* plan);
/* A stream: a window that advances along an axis at a reserved rate, as MDFS_IOC_STREAM describes. It ends with its
 * close, or with the process. Its functions are called by one thread at a time. */
typedef struct mdfs_stream mdfs_stream;
/* request: the fields of an opening, the others zero; struct_bytes and action are set. The answer replaces it. EBUSY:
 * request->rate_that_fits is the highest rate that the disks have time for. */
int mdfs_stream_open(mdfs_image* image, struct mdfs_ioc_stream* request, mdfs_stream** stream);
/* Waits for the next frame, and copies its canonical bytes into `buffer`. Returns their number; 0: the course has
 * ended. -EBUSY: the stream is paused. After the error of one frame, whose number
 * is in `frame`, the next call gets the frame behind it. */
ssize_t mdfs_stream_next(mdfs_stream* stream, void* buffer, size_t buffer_bytes, struct mdfs_ioc_frame* frame);
/* request->action: MDFS_IOC_STREAM_SHOW, _PAUSE, _RESUME, _SEEK or _PACE, with its fields, the others zero. The answer
 * replaces it, also with the error EBUSY of another rate. */
int mdfs_stream_change(mdfs_stream* stream, struct mdfs_ioc_stream* request);
int mdfs_stream_close(mdfs_stream* stream); /* null is allowed */
/* Makes data and names of the image durable, as fsync(2) does. */
int mdfs_sync(mdfs_image* image);

#ifdef __cplusplus
}
#endif

#endif
