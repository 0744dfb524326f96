/* ioctl commands of files on a mounted MDFS volume.
 *
 * All commands take an open file on the mount. The structures hold no pointers and have the same layout on every
 * architecture. Unknown commands return ENOTTY; a structure with non-zero reserved fields returns EINVAL.
 * Arrays of axes go from the slowest axis to the fastest; lengths are in samples, sizes in bytes.
 * Any thread may call them. Errors: errno; the daemon's log and `mdfs window explain` give the reason.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MDFS_IOCTL_H
#define MDFS_IOCTL_H

#include <linux/ioctl.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MDFS_IOC_MAGIC 0xD5
#define MDFS_IOC_MAX_RANK 5
#define MDFS_IOC_MAX_DISKS 64

/* The geometry of an image, to read or to set. Values of type, codec and policy: see ondisk.h (MDFS_TYPE_*,
 * MDFS_CODEC_*, MDFS_POLICY_*). */
struct mdfs_ioc_geometry {
  uint32_t struct_bytes; /* in: sizeof this structure */
  uint8_t rank;          /* 1..5 */
  uint8_t type;
  uint16_t channels; /* 1.. */
  uint8_t codec;
  int8_t codec_level; /* zstd: 1..19 */
  uint8_t policy;     /* MDFS_POLICY_*; 0: policy of the mount */
  uint8_t reserved0[5];
  uint64_t shape[MDFS_IOC_MAX_RANK];
  uint32_t extent[MDFS_IOC_MAX_RANK]; /* in, set: all zero = let MDFS choose; at least 64 bytes, or the image;
                                         sides beyond the image are shortened, except the first (mdfs(1), --extent) */
  uint32_t placed_disks;              /* in, set: 0 = all; out: disks the placement uses */
  char axes[8];                       /* names, slowest first, zero padded; in, set: all zero = by rank */
  double spacing[MDFS_IOC_MAX_RANK];
  char unit[MDFS_IOC_MAX_RANK][8];
  int32_t row_offset;   /* in, set: -1 = default tables */
  int32_t plane_offset; /* in, set: -1 = default tables */
  /* out only; zero on set */
  uint64_t size_bytes;
  uint64_t stored_bytes;
  uint64_t data_generation;
  uint64_t placement_base;
  uint64_t reserved1[8];
};

/* A half-open box, in the samples of its level. Axes beyond the image's rank are zero. */
struct mdfs_ioc_window {
  uint32_t struct_bytes; /* in: sizeof this structure */
  uint32_t rank;         /* must be the image's */
  uint64_t start[MDFS_IOC_MAX_RANK];
  uint64_t length[MDFS_IOC_MAX_RANK]; /* 1.. */
  int32_t channel;                    /* -1 = all, interleaved */
  uint32_t flags;                     /* zero */
  uint64_t bytes;                     /* out: size of the window's canonical layout */
  uint32_t level;                     /* 0: the image itself; others are read-only; ERANGE: the image has fewer */
  uint32_t reserved0;
  uint64_t reserved1[3];
};

/* The requests of a window read; disks beyond disk_count are zero. Of a level that is not stored: those for the samples
 * that it is made of. Extents of a stored level that are not built are holes. */
struct mdfs_ioc_plan {
  struct mdfs_ioc_window window;   /* in */
  uint64_t extents, holes, cached; /* out */
  uint32_t disk_count, reserved0;
  uint64_t largest_request_bytes;
  struct {
    uint64_t bytes, requests, runs;
  } disks[MDFS_IOC_MAX_DISKS];
};

/* Places of extents: call with `next` and `next_row` from the previous call (both 0 first) until count is 0. They are a
 * position in the grid: the daemon keeps nothing for a descriptor, and any descriptor of the image may continue. Rows
 * come in the order of the pages of the extent table; of each page first its extents, then its strips. The first call
 * writes back and commits; later calls see the data written back by then. An extent that is stored all the time is in
 * exactly one row, wherever it moves between two calls. Extents that are consolidated between two calls may be
 * missing. */
#define MDFS_IOC_LAYOUT_ROWS 200
#define MDFS_IOC_LAYOUT_STRIP 1u /* row: bytes appended to a partial extent, in a strip */
#define MDFS_IOC_LAYOUT_COPY 2u  /* row: the second copy of an extent */
#define MDFS_IOC_LAYOUT_PARITY 4u /* row, with _COPY: the parity of a group whose first member the extent is */
#define MDFS_IOC_LAYOUT_LEAVER 8u /* row, with _COPY: an earlier state of an extent that such a parity still needs */
struct mdfs_ioc_layout {
  uint64_t next;       /* in/out: page; beyond the last one: count is 0 */
  uint32_t count;      /* out: rows filled */
  uint32_t block_size; /* out */
  uint32_t disk_count; /* out */
  uint32_t next_row;   /* in/out: row of that page, below 16512, else EINVAL */
  struct {
    uint64_t index[MDFS_IOC_MAX_RANK];
    uint32_t disk, flags; /* MDFS_IOC_LAYOUT_* */
    uint64_t block, stored_bytes;
  } rows[MDFS_IOC_LAYOUT_ROWS];
};

/* Fragmentation: runs of typical windows on their disks (doc/DESIGN.md defines the windows), of an image or over the
 * images of the volume. Each image counts once; a call examines some of the images. */
struct mdfs_ioc_fragmentation {
  uint64_t images;                                   /* with stored extents */
  uint64_t extents;                                  /* examined */
  uint64_t misplaced;                                /* of them: on another disk than the placement names */
  uint64_t scattered;                                /* of them: in several pieces */
  uint64_t windows;                                  /* examined */
  double runs_per_disk, runs_on_busiest;             /* means over windows and disks, and over windows; 1 is ideal */
  double fresh_runs_per_disk, fresh_runs_on_busiest; /* of a fresh copy */
  double read_per_needed;                            /* blocks read for each block of stored bytes */
  double factor;                                     /* of fragmentation: runs over runs of a fresh copy; 1 is as new */
  double worst_factor;                               /* of an image */
  uint64_t worst_inode;                              /* which one */
  uint32_t complete;                                 /* 1: of all images */
  uint32_t reserved0;
  double imbalance; /* blocks on the slowest disk over those of a fresh copy; above 1 where
                       extents lie on other disks than the placement names */
  /* Of the volume, since the mount: rewritten extents that were relocated home, their bytes, and the number of
   * extents that wait for relocation. */
  uint64_t relocated_home, relocated_home_bytes, away_from_home;
  uint64_t reserved1[4];
};

/* State of the volume; on any file or directory of it. */
#define MDFS_VOLUME_ZEROES_LOST 1u /* mounted with errors=zero: data on missing disks read as zeros */
#define MDFS_VOLUME_SPREADING 2u   /* the daemon still looks for metadata with copies on too few disks */
#define MDFS_VOLUME_COPIES 4u      /* files and images may have second copies */
#define MDFS_VOLUME_TO_REBUILD 8u  /* a disk is lost, and its second copies have not been made anew during this mount */
struct mdfs_ioc_volume {
  uint8_t uuid[16];
  char name[64];
  uint32_t block_size, disk_count;
  uint64_t generation, total_blocks, free_blocks, available_blocks, objects;
  uint64_t cache_budget_bytes, cache_bytes, cache_dirty_bytes, cache_hits, cache_misses;
  uint32_t read_only;
  uint32_t policy;            /* MDFS_POLICY_* of this mount, for objects without their own */
  uint32_t flags;             /* MDFS_VOLUME_* */
  uint32_t spare_disks;       /* lost disks for whose rebuild room stays free */
  uint64_t spare_blocks;      /* that are kept for it; free_blocks may be less */
  uint64_t commit_room_bytes; /* no commit begins while room_below_bytes of a disk is less */
  char read_only_reason[512]; /* of a longer text its beginning and end, with an ellipsis between them */
  struct {
    uint8_t uuid[16];
    uint32_t state; /* 0 healthy, 1 missing, 2 stale, 3 failed, 4 none (removed), 5 draining, 6 deleted, 7 out */
    uint32_t weight;
    uint64_t blocks, free_blocks;
    uint64_t device_bytes; /* of the device or file; of one that was truncated while mounted, the smallest size seen */
    uint64_t room_below_bytes; /* left in the filesystem below a file with holes; UINT64_MAX: no such limit */
    char name[168];            /* of a longer path its end, after an ellipsis */
    /* Of a disk that failed and is out, present or not, else 0: the last generation in which it took part, and the
     * time since when commits continue without it. */
    uint64_t out_generation;
    int64_t out_ns; /* since 1970 */
  } disks[MDFS_IOC_MAX_DISKS];
};

/* Files with data on missing or failed disks, in order of their inodes: call with `next` from the previous call (0
 * first) until it is 0. A call examines some of the files. */
#define MDFS_IOC_LOST_ROWS 200
struct mdfs_ioc_lost {
  uint64_t next;             /* in/out: inode */
  uint64_t disks;            /* out: the missing and failed disks, a bit each */
  uint64_t looked_at;        /* out: files with data that this call examined */
  uint64_t unreadable_items; /* out: items of the tree that this call could not read */
  uint64_t looked_at_bytes;  /* out: of the examined files, as stored */
  uint32_t count;            /* out: rows filled */
  uint32_t reserved0;
  uint64_t reserved[3];
  struct {
    uint64_t inode;
    uint64_t lost_bytes, stored_bytes; /* as stored: compressed where the image is */
    uint64_t disks;                    /* bits */
  } rows[MDFS_IOC_LOST_ROWS];
};

/* Occupation of a disk and its zones: call with `next` from the previous call (0 first) until count is 0. A disk that
 * is not healthy has no zones. */
#define MDFS_IOC_ZONES_ROWS 1024
struct mdfs_ioc_zones {
  uint32_t disk;                          /* in */
  uint32_t count;                         /* out: rows filled */
  uint64_t next;                          /* in/out: zone */
  uint64_t zone_blocks, zone_count;       /* out */
  uint64_t data_blocks, data_free_blocks; /* out: of the disk, without the metadata region */
  uint64_t fallback_runs; /* out: fallback allocations on other disks because this one was full, since the mount */
  uint64_t reserved[5];
  struct {
    uint32_t blocks; /* for data; 0: a zone of metadata only */
    uint32_t used_blocks;
  } zones[MDFS_IOC_ZONES_ROWS];
};

/* Figures of the disks and other components of a modelled machine (mount option "model"), since the mount. Longer names
 * are cut, and so is a longer list of components. */
#define MDFS_IOC_MODEL_COMPONENTS 144
struct mdfs_ioc_model {
  char machine[64];
  char hash[24];
  double seconds; /* since the mount */
  uint32_t disk_count, component_count;
  struct {
    uint64_t reads, writes, read_bytes, written_bytes;
    uint64_t max_requests; /* at the same time */
    uint64_t late;         /* answers for which the disk was slower than the model */
    double delay_s;        /* modelled, from submission to completion, summed over requests */
    double max_delay_s, max_late_s;
  } disks[MDFS_IOC_MAX_DISKS];
  struct {
    char name[24];
    uint32_t instance, servers;
    uint64_t served, max_queue;
    double busy_s, mean_queue; /* summed over its servers; waiting, not in service */
  } components[MDFS_IOC_MODEL_COMPONENTS];
};

/* A background operation: an action on it, and its state. Values of kind, state, flags and what: see ondisk.h
 * (MDFS_OPERATION_*, MDFS_ERROR_*). With MDFS_OPERATION_OBJECT the operation is on the open file only. Starting,
 * cancelling and resuming requires root or the owner of the mount, else EPERM. */
#define MDFS_IOC_OPERATION_STATUS 0 /* ENODATA: none of this kind has ever run */
#define MDFS_IOC_OPERATION_START 1  /* EBUSY: one of this kind is running */
                                    /* ESTALE, also of a resume: this would make a missing disk stale */
#define MDFS_IOC_OPERATION_CANCEL 2 /* ENODATA: none is running */
#define MDFS_IOC_OPERATION_RESUME 3 /* a budget other than 0 replaces the old one, also of a running operation */
#define MDFS_IOC_NO_BUDGET UINT64_MAX /* resume: as a budget, no limit */
#define MDFS_IOC_MAX_ERRORS 64
struct mdfs_ioc_operation {
  uint32_t struct_bytes;   /* in: sizeof this structure */
  uint32_t kind;           /* in */
  uint32_t action;         /* in: MDFS_IOC_OPERATION_* */
  uint32_t flags;          /* in: start; out */
  uint64_t budget_bytes_s; /* in: start, resume; 0 = no limit; out */
  uint64_t threshold;      /* in: start; by kind; out */
  uint64_t parameters[4];  /* in: start; by kind; out */
  /* out only; zero in the request */
  uint32_t state;
  uint32_t block_size;
  uint64_t object;    /* inode, 0 = the volume */
  int64_t started_ns; /* since 1970 */
  int64_t updated_ns;
  uint64_t work_ns;     /* time spent running */
  uint64_t bytes_total; /* as far as it is known; may grow */
  uint64_t bytes_done;
  uint64_t items_total;
  uint64_t items_done;
  uint64_t items_changed;
  uint64_t items_failed;
  uint64_t figures[8]; /* by kind */
  char reason[128];    /* why it failed */
  uint32_t disk_count;
  uint32_t error_count; /* rows; items_failed may be more */
  struct {
    uint64_t read_bytes, written_bytes;
    uint64_t repaired; /* pieces that were rewritten or moved */
    uint64_t failed;   /* pieces that stay damaged, or could not be moved */
  } disks[MDFS_IOC_MAX_DISKS];
  struct {
    uint64_t object; /* inode; 0 = none */
    uint64_t offset; /* page * 64 + place of an extent, or first byte of a piece of a file */
    uint64_t block;
    uint16_t disk, what;
    uint32_t reserved;
  } errors[MDFS_IOC_MAX_ERRORS];
  uint64_t reserved[8];
};

/* Requests of the disks since the mount, and their errors since the counts were last set to zero. */
#define MDFS_IOC_DISKS_RESET 1u /* flag: set the counts to zero first; requires root or the owner of the mount */
                                /* ESTALE: a disk is missing, and the reset would make it stale */
struct mdfs_ioc_disks {
  uint32_t struct_bytes; /* in: sizeof this structure */
  uint32_t flags;        /* in: MDFS_IOC_DISKS_* */
  uint32_t disk_count;   /* out, like all that follows; zero in the request */
  uint32_t reserved;
  struct {
    uint64_t reads, writes, flushes, read_bytes, written_bytes; /* since the mount */
    int64_t since_ns;                                           /* start of the following counts, 1970 = 0 */
    uint64_t read_errors, write_errors, flush_errors;           /* requests that failed */
    uint64_t checksum_errors;                                   /* pieces that did not match their checksum */
    uint64_t repaired;                                          /* rewritten copies of metadata */
    /* Of the reads of the last seconds: the time for a byte over the median of the other disks, in percent. 100 as well
     * where it is less than 300, or where too little was read. */
    uint64_t slowness_percent;
  } disks[MDFS_IOC_MAX_DISKS];
};

/* Discards unused blocks, as fstrim(8) does. FITRIM works as well, on the disks one behind another in the order of
 * their numbers. Each call does a part of the work: call it again with the unchanged answer while a disk is in
 * MDFS_IOC_TRIM_MORE. Requires root or the owner of the mount, else EPERM; EROFS where the volume cannot be
 * written. */
#define MDFS_IOC_TRIM_MORE 0
#define MDFS_IOC_TRIM_DONE 1
#define MDFS_IOC_TRIM_REFUSED 2   /* the disk, or the storage below its file, has no discard */
#define MDFS_IOC_TRIM_FAILED 3    /* `why` */
#define MDFS_IOC_TRIM_NOT_THERE 4 /* no disk, or one that is not healthy */
#define MDFS_IOC_TRIM_COMMIT 1u   /* flag, first call: commit first, so that deleted data can be discarded */
struct mdfs_ioc_trim {
  uint32_t struct_bytes;  /* in: sizeof this structure */
  uint32_t flags;         /* in: MDFS_IOC_TRIM_COMMIT; out: zero */
  uint64_t minimum_bytes; /* in: skip shorter free runs */
  uint32_t disk_count;    /* out */
  uint32_t reserved0;
  uint64_t reserved[4];
  struct {
    uint64_t next, hole_end;  /* in/out: block; 0 first */
    uint64_t discarded_bytes; /* in/out: so far; 0 first */
    uint64_t blocks;          /* out: size of the disk */
    uint32_t state;           /* in/out: MDFS_IOC_TRIM_*; MDFS_IOC_TRIM_MORE first */
    uint32_t reserved;
    char why[128]; /* out */
  } disks[MDFS_IOC_MAX_DISKS];
};

/* Access to windows through memory that is shared with the daemon, as libmdfs uses it: src/channel/layout.h. */
struct mdfs_ioc_channel {
  uint32_t struct_bytes; /* in: sizeof this structure */
  uint32_t flags;        /* zero */
  /* out; zero in the request */
  uint8_t token[16]; /* redeemed once, over the socket, by a process of the caller's user */
  char socket[64];   /* abstract name without its leading zero byte, zero padded */
  uint64_t reserved[4];
};

/* Stored resolution levels of an image. Level 1 is made of the image, level 2 of level 1. */
#define MDFS_IOC_MAX_LEVELS 62
#define MDFS_IOC_LEVELS_SHOW 0
#define MDFS_IOC_LEVELS_SET 1 /* needs write access; ERANGE: the image has fewer levels */
/* Up to the first of which one extent holds a plane; with a reduction at least 1, which keeps it. */
#define MDFS_IOC_LEVELS_AUTO UINT32_MAX
struct mdfs_ioc_levels {
  uint32_t struct_bytes; /* in: sizeof this structure */
  uint32_t action;       /* in: MDFS_IOC_LEVELS_SHOW or _SET */
  uint32_t count;        /* in, set: levels, 0 for none, or MDFS_IOC_LEVELS_AUTO; out: stored levels */
  uint32_t reduction;    /* in, set: MDFS_REDUCE_* of ondisk.h, or 0 for the present one; out, if there are levels */
  uint64_t reserved[4];
  struct {
    uint64_t extents;            /* of the level */
    uint64_t built;              /* that are stored; the others are built when they are read */
    uint64_t stored_bytes;       /* of their blocks */
    uint64_t inode;              /* of the level itself, which has no name */
  } levels[MDFS_IOC_MAX_LEVELS]; /* out: level 1, 2, .. */
};

/* Second copies of the extents of an image, or of the cells of another file (MDFS_FILE_CELL bytes, ondisk.h); of a
 * directory: of new files in it. In an image several extents may share a parity in place of their copies. */
#define MDFS_IOC_PROTECTION_USUAL_GROUPS UINT32_MAX
#define MDFS_IOC_PROTECTION_SHOW 0
#define MDFS_IOC_PROTECTION_SET 1 /* needs the right to write, else EACCES; EOPNOTSUPP: the volume has too few disks */
struct mdfs_ioc_protection {
  uint32_t struct_bytes; /* in: sizeof this structure */
  uint32_t action;       /* in: MDFS_IOC_PROTECTION_SHOW or _SET */
  uint32_t copies;       /* in, set: 1 or 2; out */
  uint32_t is_image;     /* out */
  /* out, not of a directory: what is stored now; zero in the request. Extents are cells of an ordinary file. A small
   * file has none: its bytes are with the metadata, which have copies of their own. */
  uint64_t extents;      /* that are stored */
  uint64_t copied;       /* of these, with a copy or a parity, and all that these need on disks that are there */
  uint64_t stored_bytes; /* of the extents, once */
  uint64_t copied_bytes;
  uint64_t lost; /* extents of which no copy is on a disk that can be read */
  uint64_t lost_bytes;
  uint32_t in_strips;     /* 1: appended bytes lie in strips with one copy */
  uint32_t is_converting; /* 1: the operation MDFS_OPERATION_PROTECT runs */
  uint32_t is_directory;  /* out */
  /* in, set: 0; or with 2 copies: extents that share a parity, 2, 4 or 8, or MDFS_IOC_PROTECTION_USUAL_GROUPS: 4, or 2
   * on fewer than six disks; out: 0 or 1 without parities. What was written since has copies, until the image rests. */
  uint32_t group_members;
  uint64_t grouped;      /* out: of the extents, those that share a parity */
  uint64_t grouped_bytes;
  uint64_t reserved[1];
};

/* A stream: a window of an image that advances along an axis at a reserved rate, one frame after another. An open file
 * description has at most one, which ends with it. Times are those of CLOCK_MONOTONIC, in nanoseconds. */
#define MDFS_IOC_STREAM_SHOW 0
#define MDFS_IOC_STREAM_OPEN 1   /* takes a second, in which the disks are measured */
#define MDFS_IOC_STREAM_CLOSE 2  /* with an id: any stream, by root, the owner of the mount or the user of the stream */
#define MDFS_IOC_STREAM_PAUSE 3  /* what is reserved stays so */
#define MDFS_IOC_STREAM_RESUME 4 /* with the frame that is next */
#define MDFS_IOC_STREAM_SEEK 5   /* to `frame` */
#define MDFS_IOC_STREAM_PACE 6   /* `rate` and `step` anew; the old ones stay where they are refused */
#define MDFS_IOC_STREAM_LIST 7   /* on any file or directory: the first stream from `id` on; ENODATA: there is none */
#define MDFS_STREAM_DROP 1u      /* flag: frames whose time is over are left out, so that the stream keeps its time */
#define MDFS_STREAM_UNCHECKED 2u /* flag: accepted whatever the load, by root or the owner of the mount, else EPERM */
#define MDFS_STREAM_PAUSED 4u    /* flag, out */
#define MDFS_STREAM_ENDED 8u     /* flag, out: every frame has been delivered */
/* Flag: frames that are short of time, or cannot be read, are made from a coarser stored level, whose samples are
 * repeated: the frame has the same shape. EINVAL: no such level is stored. */
#define MDFS_STREAM_COARSER 16u
#define MDFS_STREAM_MIN_RATE 0.001 /* frames per second */
#define MDFS_STREAM_MAX_RATE 1e6
#define MDFS_STREAM_MAX_LOOKAHEAD 256u
struct mdfs_ioc_stream {
  uint32_t struct_bytes; /* in: sizeof this structure */
  uint32_t action;       /* in: MDFS_IOC_STREAM_* */
  uint32_t flags;        /* in, open: MDFS_STREAM_DROP, _UNCHECKED, _COARSER; out */
  uint32_t axis;         /* in, open: along which the window advances; out */
  /* in, open: the first frame. It begins at a multiple of its length along the axis. Of a level: a stored one. */
  struct mdfs_ioc_window window;
  int64_t step;    /* in, open, pace: in frames, below 0: backwards; 0: 1; out */
  double rate;     /* in, open, pace: frames per second, MDFS_STREAM_MIN_RATE to _MAX_RATE; out */
  uint64_t frame;  /* in, seek: its number, 0 at the beginning of the axis; out: the next one */
  uint64_t frames; /* out: there are along the axis */
  uint64_t id;     /* in, close and list; out */
  uint32_t lookahead; /* in, open: frames that are read ahead; 0: as many as half a second shows; out */
  uint32_t busiest;   /* out, open, pace: the disk that limits the rate */
  double rate_that_fits;  /* out, open, pace: the highest that is accepted; also with the error EBUSY */
  double load;            /* out, open, pace: of the busiest disk, with this stream at the rate asked for */
  uint64_t in_time, late, dropped, failed; /* out: frames */
  int64_t latest_ns;      /* out: behind its deadline, of the frame that was latest */
  uint64_t inode;         /* out */
  uint32_t uid, pid;      /* out: of the process that opened it */
  uint64_t coarser;       /* out: frames in time or late that were made from a coarser level */
  uint64_t reserved[5];
  /* out: share of the time of each disk, reserved, and used since the opening */
  double reserved_load[MDFS_IOC_MAX_DISKS];
  double used_load[MDFS_IOC_MAX_DISKS];
};

/* Waits for the next frame of this description's stream. read(2) and pread(2) on it then return the bytes of the frame,
 * from offset 0, until the next frame is waited for or the stream is closed. */
struct mdfs_ioc_frame {
  uint32_t struct_bytes; /* in: sizeof this structure */
  uint32_t flags;        /* zero; out: MDFS_STREAM_ENDED: there is no further frame, and the rest is zero */
  uint64_t frame;        /* out, as all below: its number */
  uint64_t bytes;
  uint64_t dropped; /* frames before it that were left out, since the frame that was delivered before */
  int64_t deadline_ns;
  int64_t ready_ns; /* when it had been read: after the deadline, it is late */
  uint32_t level;   /* from which it was made: that of the stream, or with MDFS_STREAM_COARSER a coarser one */
  uint32_t reserved0;
  uint64_t reserved[3];
};

/* Makes an empty ordinary file an image (needs write access). Its size becomes that of the canonical bytes. */
#define MDFS_IOC_SET_GEOMETRY _IOW(MDFS_IOC_MAGIC, 1, struct mdfs_ioc_geometry)
/* EINVAL on a file that is not an image. */
#define MDFS_IOC_GET_GEOMETRY _IOR(MDFS_IOC_MAGIC, 2, struct mdfs_ioc_geometry)
/* Binds a window: read, pread and write on this open file description see only the bytes of the window, from offset 0.
 * The disks start at once. On kernels without mmap of direct_io files (before 6.6) the file must be open with O_DIRECT,
 * else EOPNOTSUPP. Written bytes are staged; MDFS replaces the window atomically when all bytes have been written, or
 * by MDFS_IOC_APPLY. An open file description has one binding: concurrent readers open the file once each. A window of
 * a level is read, or computed, before this returns: EFBIG as of a file PATH@/win/l2; a write to it returns EINVAL. */
#define MDFS_IOC_BIND _IOWR(MDFS_IOC_MAGIC, 3, struct mdfs_ioc_window)
/* Returns to the plain file; staged bytes that were not applied are dropped. */
#define MDFS_IOC_UNBIND _IO(MDFS_IOC_MAGIC, 4)
/* Applies the bytes written to the bound window; all other bytes keep their value. */
#define MDFS_IOC_APPLY _IO(MDFS_IOC_MAGIC, 5)
/* EFBIG: the window has more than 262144 extents, or more than 524288 separate parts of extents. */
#define MDFS_IOC_PLAN _IOWR(MDFS_IOC_MAGIC, 6, struct mdfs_ioc_plan)
/* The first call writes back and commits; holes are left out. This, MDFS_IOC_PLAN, MDFS_IOC_FRAGMENTATION,
 * MDFS_IOC_VOLUME_FRAGMENTATION, MDFS_IOC_ZONES and MDFS_IOC_LOST run on two threads of their own. A request of a
 * killed caller ends with EINTR when its turn comes. */
#define MDFS_IOC_LAYOUT _IOWR(MDFS_IOC_MAGIC, 7, struct mdfs_ioc_layout)
#define MDFS_IOC_VOLUME _IOR(MDFS_IOC_MAGIC, 8, struct mdfs_ioc_volume)
/* Returns when everything written to the volume so far is on its disks. */
#define MDFS_IOC_SYNC _IO(MDFS_IOC_MAGIC, 9)
/* EINVAL on a file that is not an image. The answer is the state after the action. */
#define MDFS_IOC_LEVELS _IOWR(MDFS_IOC_MAGIC, 16, struct mdfs_ioc_levels)
/* The answer is the state after the action. Except of a directory, a change starts the operation
 * MDFS_OPERATION_PROTECT, which converts what is stored. */
#define MDFS_IOC_PROTECTION _IOWR(MDFS_IOC_MAGIC, 17, struct mdfs_ioc_protection)
/* An image that is open for reading. EBUSY: the disks have no time left for the rate asked for, and rate_that_fits says
 * for which they have; EFBIG: the frames ahead need more memory than is left for streams; EMFILE: 64 streams are open,
 * or 32 of a user other than root; EOPNOTSUPP: the mount has none (-o streams=off), or the kernel cannot map direct_io
 * files and this one is not open with O_DIRECT; EEXIST: the description has a stream; ENODATA: it has none. The answer
 * is the state after the action. */
#define MDFS_IOC_STREAM _IOWR(MDFS_IOC_MAGIC, 18, struct mdfs_ioc_stream)
/* ENODATA: no stream; EBUSY: it is paused, or another call waits; EINTR: it was closed, or the caller is being killed;
 * else the error of reading the frame, which the answer names without bytes; the next call gets the frame behind it. */
#define MDFS_IOC_FRAME _IOWR(MDFS_IOC_MAGIC, 19, struct mdfs_ioc_frame)
/* EINVAL on a file that is not an image. Covers data that have been written back. */
#define MDFS_IOC_FRAGMENTATION _IOR(MDFS_IOC_MAGIC, 48, struct mdfs_ioc_fragmentation)
/* On any file or directory. */
#define MDFS_IOC_VOLUME_FRAGMENTATION _IOR(MDFS_IOC_MAGIC, 49, struct mdfs_ioc_fragmentation)
/* On any file or directory. */
#define MDFS_IOC_DISKS _IOWR(MDFS_IOC_MAGIC, 12, struct mdfs_ioc_disks)
/* On any file or directory. The answer is the state after the action. */
#define MDFS_IOC_OPERATION _IOWR(MDFS_IOC_MAGIC, 11, struct mdfs_ioc_operation)
/* On any file or directory. EINVAL: no such disk. */
#define MDFS_IOC_ZONES _IOWR(MDFS_IOC_MAGIC, 40, struct mdfs_ioc_zones)
/* On any file or directory. ENODATA: the disks are not modelled. */
#define MDFS_IOC_MODEL _IOR(MDFS_IOC_MAGIC, 32, struct mdfs_ioc_model)

/* Reads a small window in one call, without a binding. The disks read only the data that the window covers.
 * `size`: bytes of the window, 1..MDFS_IOC_READ_MAX. The argument is a struct mdfs_ioc_window followed by a buffer of
 * `size` bytes. A larger window returns EFBIG; a smaller one leaves the rest of the buffer unchanged. */
#define MDFS_IOC_READ_MAX (16383 - sizeof(struct mdfs_ioc_window))
#define MDFS_IOC_READ_NUMBER 10
#define MDFS_IOC_READ(size) \
  _IOC(_IOC_READ | _IOC_WRITE, MDFS_IOC_MAGIC, MDFS_IOC_READ_NUMBER, sizeof(struct mdfs_ioc_window) + (size))

#define MDFS_IOC_LOST _IOWR(MDFS_IOC_MAGIC, 13, struct mdfs_ioc_lost)
/* On any file or directory. One such call runs at a time. */
#define MDFS_IOC_TRIM _IOWR(MDFS_IOC_MAGIC, 14, struct mdfs_ioc_trim)
/* A one-time token for windows of this open image; needs a descriptor that is open for reading, whose last close
 * withdraws the access. EOPNOTSUPP: the mount has no channel; EINVAL: not an image; EBUSY: too many tokens. */
#define MDFS_IOC_CHANNEL _IOWR(MDFS_IOC_MAGIC, 15, struct mdfs_ioc_channel)

#ifdef __cplusplus
}
#endif

#endif
