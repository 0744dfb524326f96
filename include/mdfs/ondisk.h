/* The on-disk structures of an MDFS volume. doc/FORMAT.md is normative; a test compares the two.
 * All numbers are little endian. src/format decodes these structures field by field; no code casts disk bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MDFS_ONDISK_H
#define MDFS_ONDISK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define MDFS_STATIC_ASSERT(condition, text) static_assert(condition, text)
extern "C" {
#else
#define MDFS_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* ---- sizes and limits ---------------------------------------------------------------------------------------- */
#define MDFS_FORMAT_VERSION 3u
#define MDFS_MAX_DISKS 64u
#define MDFS_MIN_BLOCK_SIZE 4096u
#define MDFS_MAX_BLOCK_SIZE 65536u
#define MDFS_MIN_DISK_SIZE 4194304u
#define MDFS_LABEL_AREA 131072u /* one label with its ring; two at each end of a disk */
#define MDFS_LABELS_PER_DISK 4u /* labels 0, 1 from the front; 2, 3 end at the last whole block */
#define MDFS_SECTOR 4096u       /* label, space page; unit of checksum records */
#define MDFS_SLOT_SIZE 8192u    /* commit slot */
#define MDFS_RING_SLOTS 8u      /* commit slots in a label area, at 8192 * (1 + i) of it */
#define MDFS_NODE_SIZE 16384u
#define MDFS_MAX_COPIES 3u
#define MDFS_CHECKSUM_ROOM 32u /* bytes for the checksum in a pointer */
#define MDFS_MAX_ROOTS 4u
#define MDFS_MAX_RANK 5u
#define MDFS_MAX_ITEM 6144u /* largest leaf item, so that a node holds two */
#define MDFS_MAX_NAME 255u
#define MDFS_MAX_INLINE 2048u /* ordinary file kept in the tree */
#define MDFS_MAX_SYMLINK 4095u
#define MDFS_MAX_XATTR 65536u     /* value */
#define MDFS_XATTR_FIRST 4096u    /* of the value, in the item of its name; the rest has items of its own */
#define MDFS_SUB_BLOCK 16384u     /* checksummed part of a raw extent */
#define MDFS_MAX_EXTENT 16777216u /* decoded bytes of one extent */
#define MDFS_FILE_CELL 131072u    /* ordinary files are placed by cells of this size */
#define MDFS_STRIPS_PER_PAGE 256u /* of the extents of one page of an extent table */

/* Allocation policy: where on a disk a new group of extents begins. */
#define MDFS_POLICY_DEFAULT 0u /* image: policy of the mount; volume: scatter */
#define MDFS_POLICY_SCATTER 1u /* in a zone drawn over the whole disk, by free space */
#define MDFS_POLICY_FIRST 2u   /* in the lowest zone with room */
#define MDFS_POLICY_NEAR 3u    /* behind the object's last group on the disk, else behind the last write */

#define MDFS_LABEL_MAGIC "MDFSLABL"
#define MDFS_COMMIT_MAGIC "MDFSCMIT"
#define MDFS_NODE_MAGIC "MDFSNODE"

/* ---- features: unknown bits mean, in turn: nothing; mount read-only; do not mount ---------------------------- */
#define MDFS_COMPAT_KNOWN 0ull
#define MDFS_RO_COMPAT_KNOWN (MDFS_RO_COMPAT_PROTECTION | MDFS_RO_COMPAT_LEVELS)
#define MDFS_INCOMPAT_KNOWN (MDFS_INCOMPAT_RANK5 | MDFS_INCOMPAT_STRIPS | MDFS_INCOMPAT_CHECKSUM_RECORDS)
/* Set when the first image with more than three axes is made. */
#define MDFS_INCOMPAT_RANK5 (1ull << 4)
/* Set when a volume is made: images may have MDFS_KIND_STRIP items. */
#define MDFS_INCOMPAT_STRIPS (1ull << 5)
/* Set when a volume is made: commits may be validated by their checksum records. */
#define MDFS_INCOMPAT_CHECKSUM_RECORDS (1ull << 6)
/* Set when the first image gets MDFS_KIND_LEVEL items: a writer removes extents of levels above what it changes. */
#define MDFS_RO_COMPAT_LEVELS (1ull << 1)
/* Set when the first file is protected: there may be items of parities or copies, whose blocks are in use. */
#define MDFS_RO_COMPAT_PROTECTION (1ull << 0)
/* Reserved bits, set by no version yet. */
#define MDFS_RO_COMPAT_SNAPSHOTS (1ull << 2)
#define MDFS_RO_COMPAT_LEASE (1ull << 3)
#define MDFS_INCOMPAT_CHECKSUMS (1ull << 0)
#define MDFS_INCOMPAT_ENCRYPTION (1ull << 1)
#define MDFS_INCOMPAT_MOVED (1ull << 2)
#define MDFS_INCOMPAT_INTENT_LOG (1ull << 3)

/* ---- checksums of the bytes that a pointer or record leads to ------------------------------------------------- */
/* The type determines the size of a checksum in a list. A pointer has room for every type. */
#define MDFS_CHECKSUM_CRC32C 1u  /* 4 bytes; the only type in use */
#define MDFS_CHECKSUM_XXH3 2u    /* reserved: XXH3-128, 16 bytes */
#define MDFS_CHECKSUM_BLAKE3 3u  /* reserved: BLAKE3, 32 bytes */
#define MDFS_CHECKSUM_AES_GCM 4u /* reserved: CRC-32C of the stored bytes, nonce (12), tag (16): 32 bytes */

/* ---- pointer: addresses and checksum of a block of metadata ---------------------------------------------------- */
/* address = disk index << 48 | block number. */
struct mdfs_pointer {
  uint8_t checksum[MDFS_CHECKSUM_ROOM]; /* of the `length` bytes; unused bytes are zero */
  uint64_t birth;                       /* generation that wrote it; 0: the pointer is null */
  uint32_t length;                      /* bytes */
  uint8_t copies;                       /* 1..3 */
  uint8_t checksum_type;                /* MDFS_CHECKSUM_* */
  uint8_t reserved[2];                  /* zero */
  uint64_t address[3];                  /* zero beyond `copies` */
};
MDFS_STATIC_ASSERT(offsetof(struct mdfs_pointer, address) == 48, "pointer address");
MDFS_STATIC_ASSERT(sizeof(struct mdfs_pointer) == 72, "pointer");

/* ---- label: the static part ------------------------------------------------------------------------------------ */
struct mdfs_member {
  uint8_t uuid[16];
  uint64_t blocks; /* size of the disk in blocks */
  uint16_t weight; /* slots in placements; 1 for equal disks, 0: tree nodes alone */
  uint16_t flags;  /* MDFS_MEMBER_* */
  uint32_t marks;  /* MDFS_MARK_*; unknown bits are kept */
};
#define MDFS_MEMBER_HOLE 1u     /* the disk of this index has left; all other fields are zero */
#define MDFS_MEMBER_DRAINING 2u /* is being drained: gets no new blocks, and its data move to other disks */
#define MDFS_MARK_OUT 1u        /* commits continue without the disk, because it failed */
MDFS_STATIC_ASSERT(sizeof(struct mdfs_member) == 32, "member");

struct mdfs_label {
  uint8_t magic[8];
  uint32_t crc32c; /* of the 4096 bytes, this field taken as zero */
  uint32_t format_version;
  uint64_t features_compat;
  uint64_t features_ro_compat;
  uint64_t features_incompat;
  uint8_t volume_uuid[16];
  uint8_t disk_uuid[16];
  uint16_t disk_index;
  uint16_t disk_count;
  uint32_t block_size;
  uint64_t disk_blocks; /* this disk */
  uint64_t zone_blocks;
  uint64_t metadata_blocks; /* blocks kept for tree nodes on this disk, after the space pages */
  int64_t created_ns;
  uint16_t label_number; /* 0..3 */
  uint16_t ring_slots;
  uint32_t membership; /* counts changes of the member table */
  uint8_t name[64];    /* UTF-8, zero padded */
  uint8_t policy;      /* MDFS_POLICY_*, for objects without their own */
  uint8_t reserved0[7];
  uint64_t room_blocks; /* room of the space pages: largest size of the disk */
  uint8_t reserved1[312];
  struct mdfs_member members[64];
  uint8_t reserved2[1536];
};
MDFS_STATIC_ASSERT(offsetof(struct mdfs_label, members) == 512, "label members");
MDFS_STATIC_ASSERT(sizeof(struct mdfs_label) == 4096, "label");

/* ---- commit slot ------------------------------------------------------------------------------------------------ */
/* Generation g uses ring slots 2 * (g mod 4) (prepared) and 2 * (g mod 4) + 1 (committed) of the labels. */
#define MDFS_SLOT_PREPARED 1u
#define MDFS_SLOT_COMMITTED 2u

#define MDFS_ROOT_NONE 0u
#define MDFS_ROOT_MAIN 1u

struct mdfs_root {
  uint32_t kind;
  uint16_t level; /* of the root node; 0 = leaf */
  uint16_t reserved0;
  uint64_t nodes; /* nodes in the tree */
  uint64_t id;    /* of what the tree stands for; 0: the main tree */
  uint8_t reserved1[32];
  struct mdfs_pointer pointer;
};
MDFS_STATIC_ASSERT(offsetof(struct mdfs_root, pointer) == 56, "root pointer");
MDFS_STATIC_ASSERT(sizeof(struct mdfs_root) == 128, "root");

/* The top space page of one disk. */
struct mdfs_space_top {
  uint32_t crc32c;
  uint32_t slot;        /* 0 or 1: which of the page's two places is valid */
  uint64_t free_blocks; /* of the disk */
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_space_top) == 16, "space top");

/* A write that a commit relies on and that no flush had followed when its slot was written. */
#define MDFS_MAX_CHECKSUM_RECORDS 96u
#define MDFS_MAX_RECORDED_SECTORS 256u
struct mdfs_checksum_record {
  uint16_t disk;
  uint16_t sectors; /* of MDFS_SECTOR bytes, 1..256 */
  uint32_t crc32c;  /* of these bytes */
  uint64_t sector;  /* the first, from the start of the disk */
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_checksum_record) == 16, "checksum_record");

/* The newest commit of a member: tells a disk that was absent from a disk that was written apart. */
struct mdfs_member_state {
  uint8_t commit_id[16]; /* zero in a hole, and before the first commit */
  uint64_t generation;
  uint64_t out_ns; /* time of the commit that marked the member out; 0: it is not out */
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_member_state) == 32, "member state");

/* The writer of a volume whose disks several machines can reach. Reserved: no version writes it. */
struct mdfs_writer {
  uint8_t host_id[16];
  uint8_t session_id[16];
  uint64_t fencing_epoch;
  int64_t lease_end_ns;
  uint8_t reserved[16];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_writer) == 64, "writer");

#define MDFS_COMMIT_DEGRADED 1u /* written with disks missing, on explicit request */

struct mdfs_commit_slot {
  uint8_t magic[8];
  uint32_t crc32c; /* of the 8192 bytes, this field taken as zero */
  uint32_t state;  /* MDFS_SLOT_* */
  uint8_t volume_uuid[16];
  uint8_t commit_id[16]; /* random */
  uint8_t parent_id[16]; /* zero for the first */
  uint64_t generation;   /* 1 for the first */
  int64_t time_ns;
  uint64_t participants; /* bit i: disk i takes part */
  uint64_t next_object;  /* lowest unused number; numbers are never reused */
  uint64_t objects;      /* inodes in use */
  uint32_t flags;        /* MDFS_COMMIT_* */
  uint16_t disk_count;
  uint16_t root_count;
  uint32_t membership; /* counts changes of the member table; at least 1 */
  uint16_t checksum_record_count;
  uint16_t reserved0;
  uint64_t features_compat; /* of the volume, with those of its labels */
  uint64_t features_ro_compat;
  uint64_t features_incompat;
  struct mdfs_writer writer; /* reserved */
  uint32_t key_epoch;        /* reserved: of the newest key */
  uint32_t oldest_key_epoch; /* reserved: of the oldest key in use */
  uint8_t intent_log[64];    /* reserved */
  uint8_t reserved1[232];
  struct mdfs_root roots[4];
  struct mdfs_space_top space[64];
  struct mdfs_member members[64];             /* disks from this commit on; the first disk_count are in use */
  struct mdfs_member_state member_states[64]; /* the first disk_count are in use */
  struct mdfs_checksum_record checksum_records[MDFS_MAX_CHECKSUM_RECORDS];
  uint8_t reserved2[512];
};
MDFS_STATIC_ASSERT(offsetof(struct mdfs_commit_slot, features_compat) == 120, "commit features");
MDFS_STATIC_ASSERT(offsetof(struct mdfs_commit_slot, roots) == 512, "commit roots");
MDFS_STATIC_ASSERT(offsetof(struct mdfs_commit_slot, space) == 1024, "commit space");
MDFS_STATIC_ASSERT(offsetof(struct mdfs_commit_slot, members) == 2048, "commit members");
MDFS_STATIC_ASSERT(offsetof(struct mdfs_commit_slot, member_states) == 4096, "commit member states");
MDFS_STATIC_ASSERT(offsetof(struct mdfs_commit_slot, checksum_records) == 6144, "commit checksum_records");
MDFS_STATIC_ASSERT(sizeof(struct mdfs_commit_slot) == MDFS_SLOT_SIZE, "commit slot");

/* ---- space pages ------------------------------------------------------------------------------------------------- */
/* Level 0: 32768 bits, bit set = block in use; no header. Level n > 0: 256 entries for pages of level n - 1. A page has
 * two places; the entry above it names the valid one, its CRC and its free blocks. Level 0 comes first on the disk. */
#define MDFS_BITS_PER_PAGE 32768u
#define MDFS_ENTRIES_PER_PAGE 256u
struct mdfs_space_entry {
  uint32_t crc32c;
  uint32_t slot;
  uint64_t free_blocks;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_space_entry) == 16, "space entry");

/* ---- tree nodes -------------------------------------------------------------------------------------------------- */
struct mdfs_key {
  uint64_t object;
  uint64_t kind; /* MDFS_KIND_* */
  uint64_t offset;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_key) == 24, "key");

struct mdfs_node_header {
  uint8_t magic[8];
  uint8_t volume_uuid[16];
  uint64_t generation; /* generation that wrote the node: the pointer's birth */
  uint64_t owner;      /* root kind */
  uint64_t address[3]; /* of all its copies, so that every copy has the same bytes */
  uint16_t level;      /* 0 = leaf */
  uint16_t item_count;
  uint32_t used; /* bytes of item data at the end of a leaf; 0 in an interior node */
  uint8_t reserved[24];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_node_header) == 96, "node header");

/* Interior node: item_count branches follow the header, in key order. key = smallest key below (first: or smaller). */
struct mdfs_branch {
  struct mdfs_key key;
  struct mdfs_pointer pointer;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_branch) == 96, "branch");

/* Leaf: item_count slots follow the header, in key order; data lies at [data_offset, + length) of the node. */
struct mdfs_leaf_slot {
  struct mdfs_key key;
  uint32_t data_offset;
  uint32_t length;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_leaf_slot) == 32, "leaf slot");

/* ---- objects and kinds of items ---------------------------------------------------------------------------------- */
#define MDFS_OBJECT_NONE 0u /* its items come first in the tree; a reader needs them before all others */
#define MDFS_OBJECT_ROOT_DIRECTORY 1u
#define MDFS_OBJECT_VOLUME 2u     /* placements, orphans */
#define MDFS_OBJECT_LOST_FOUND 3u /* directory lost+found, made when first needed */
#define MDFS_OBJECT_FIRST 16u     /* first number of a new inode */

#define MDFS_KIND_INODE 1u        /* (ino, 0): mdfs_inode */
#define MDFS_KIND_INLINE 2u       /* (ino, 0): bytes of a small ordinary file */
#define MDFS_KIND_SYMLINK 3u      /* (ino, 0): target, no terminator */
#define MDFS_KIND_DIRENT 4u       /* (directory, cookie): mdfs_dirent + name */
#define MDFS_KIND_XATTR 5u        /* (ino, cookie): mdfs_xattr + name + value */
#define MDFS_KIND_GEOMETRY 6u     /* (ino, 0): mdfs_geometry */
#define MDFS_KIND_EXTENTS 7u      /* (ino, box index): mdfs_extent_page + records */
#define MDFS_KIND_FILE_CELL 8u    /* (ino, cell index): mdfs_file_cell + runs */
#define MDFS_KIND_ORPHAN 9u       /* (MDFS_OBJECT_VOLUME, ino): empty; unlinked, to be freed */
#define MDFS_KIND_PLACEMENT 10u   /* (MDFS_OBJECT_VOLUME, id): mdfs_placement + tables */
#define MDFS_KIND_EXTENT_RUNS 11u /* (ino, box index * 64 + place): mdfs_extent_run[]; only of scattered extents */
/* Reserved, not written by this version: 12, 13, 15, 17, 23. */
#define MDFS_KIND_SNAPSHOT 12u   /* (MDFS_OBJECT_VOLUME, id): a named root */
#define MDFS_KIND_STRIP_PARITY 13u /* (ino, box index * 256 + number): parities of a strip */
#define MDFS_KIND_PARITY 14u     /* (ino, box index): mdfs_group_page, groups; a copy is the parity of one extent */
#define MDFS_KIND_GROUP_REVERSE 15u
#define MDFS_KIND_FILE_PARITY 21u /* (ino, first cell of a group): mdfs_group, mdfs_file_cell of the parity, runs */
#define MDFS_KIND_PARITY_RUNS 22u /* (ino, box index * 64 + lowest place of the group): mdfs_extent_run[] */
#define MDFS_KIND_MOVED 23u       /* (MDFS_OBJECT_VOLUME, address): new places of shared blocks of a drained disk */
#define MDFS_KIND_OPERATION 16u   /* (MDFS_OBJECT_VOLUME, MDFS_OPERATION_*): mdfs_operation, disks, error records */
#define MDFS_KIND_ALIAS 17u       /* names of an inode, for path look-up by number */
#define MDFS_KIND_DISK_ERRORS 18u /* (MDFS_OBJECT_VOLUME, index of the disk): mdfs_disk_errors */
#define MDFS_KIND_STRIP 19u /* (ino, box index * 256 + number): mdfs_strip + checksums */
#define MDFS_KIND_LEVEL 24u /* (ino of an image, n = 1..): mdfs_level; the object with the samples of level n */
#define MDFS_MAX_LEVELS 62u
#define MDFS_REDUCE_MEAN 1u    /* of the samples below a sample of a level, rounded half to even */
#define MDFS_REDUCE_NEAREST 2u /* the first one */
#define MDFS_REDUCE_MAX 3u
struct mdfs_level {
  uint64_t object;   /* an image of its own, whose one name is this item */
  uint8_t reduction; /* MDFS_REDUCE_* */
  uint8_t halved;    /* bit i: axis i of the level below is halved */
  uint8_t reserved[6];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_level) == 16, "level");

#define MDFS_KIND_SECRET 20u /* (MDFS_OBJECT_NONE, 0): mdfs_secret */
struct mdfs_secret {
  uint8_t key[16]; /* of the hash of names: random, made with the volume, never changed */
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_secret) == 16, "secret");

#define MDFS_KIND_XATTR_REST 32u /* 32 + n: (ino, cookie): rest of a long value, from byte n * 6144 on */
#define MDFS_MAX_XATTR_RESTS 10u /* items for the rest of one value */
MDFS_STATIC_ASSERT(MDFS_XATTR_FIRST + MDFS_MAX_XATTR_RESTS * MDFS_MAX_ITEM == MDFS_MAX_XATTR, "rest of a value");

#define MDFS_INODE_IMAGE 1u  /* has a geometry item; data in MDFS_KIND_EXTENTS */
#define MDFS_INODE_INLINE 2u /* data in MDFS_KIND_INLINE */
#define MDFS_INODE_LEVEL 4u  /* with MDFS_INODE_IMAGE: of a MDFS_KIND_LEVEL item; can be made again */

struct mdfs_inode {
  uint32_t mode; /* as st_mode */
  uint32_t links;
  uint32_t uid;
  uint32_t gid;
  uint64_t size;         /* bytes */
  uint64_t stored_bytes; /* bytes of the blocks of its data (st_blocks * 512) */
  int64_t atime_ns;
  int64_t mtime_ns;
  int64_t ctime_ns;
  int64_t btime_ns;
  uint64_t device;          /* st_rdev of device nodes */
  uint64_t flags;           /* MDFS_INODE_* */
  uint64_t parent;          /* directories: where .. leads; else 0 */
  uint64_t base;            /* placement: the object's rotation */
  uint64_t placement;       /* id of the placement, 0 for objects without data blocks */
  uint64_t data_generation; /* generation of the commit that last changed the data */
  uint64_t entries;         /* directories: names in it, without . and .. */
  uint32_t reach;           /* largest distance of a name's cookie from its first one; see mdfs_dirent */
  uint8_t protection;       /* lost disks that the data survive: 0, or 1 with copies; a directory: of new names in it */
  uint8_t group_members;    /* extents of a group; 1: copies; 0 without protection */
  uint8_t spare_disks;      /* of the root: lost disks for whose rebuild room stays free; else 0 */
  uint8_t reserved[17];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_inode) == 144, "inode");

/* A name's cookie: 256 + SipHash-2-4 of the name modulo 2^63 - 2^33, or if that is taken the lowest free one above. */
struct mdfs_dirent {
  uint64_t inode;
  uint8_t type;        /* as d_type */
  uint8_t name_length; /* 1..255 */
  uint8_t reserved[6];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_dirent) == 16, "dirent");

struct mdfs_xattr {
  uint16_t name_length;
  uint16_t value_length; /* in this item */
  uint32_t rest_length;  /* in items MDFS_KIND_XATTR_REST; 0 unless value_length is MDFS_XATTR_FIRST */
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_xattr) == 8, "xattr");

#define MDFS_CODEC_RAW 0u
#define MDFS_CODEC_ZSTD 1u

#define MDFS_TYPE_U8 1u
#define MDFS_TYPE_U16 2u
#define MDFS_TYPE_U32 3u
#define MDFS_TYPE_U64 4u
#define MDFS_TYPE_I8 5u
#define MDFS_TYPE_I16 6u
#define MDFS_TYPE_I32 7u
#define MDFS_TYPE_I64 8u
#define MDFS_TYPE_F16 9u
#define MDFS_TYPE_F32 10u
#define MDFS_TYPE_F64 11u

struct mdfs_geometry {
  uint8_t rank;         /* 1..5 */
  uint8_t element_type; /* MDFS_TYPE_* */
  uint16_t channels;    /* 1..65535, interleaved, fastest */
  uint8_t codec;        /* MDFS_CODEC_* */
  int8_t codec_level;
  uint8_t level;      /* 0 */
  uint8_t policy;     /* MDFS_POLICY_* */
  uint64_t shape[5];  /* slowest axis first, zero beyond rank; shape[0] is ceil(size / slab) */
  uint32_t extent[5]; /* samples, slowest axis first, zero beyond rank */
  uint32_t reserved1;
  uint8_t axis[8];    /* names, slowest first: 'z' 'y' 'x' or 't' 'y' 'x' ..., zero padded */
  double spacing[5];  /* sample distance, slowest first; 0 = unknown. IEEE-754 binary64 */
  uint8_t unit[5][8]; /* UTF-8 unit of each spacing, zero padded: "um", "s" */
  uint8_t reserved2[24];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_geometry) == 184, "geometry");

/* The records of a box of extents, in order of the bits of `present`: places of the box, slowest axis first. */
struct mdfs_extent_page {
  uint16_t record_bytes; /* 28 + size of the checksums, rounded up to 8 */
  uint16_t count;        /* present records */
  uint8_t checksum_type; /* MDFS_CHECKSUM_*, of all records of the page */
  uint8_t reserved[3];
  uint64_t present;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_extent_page) == 16, "extent page");

/* zstd: one checksum over the frame. raw: one for each 16 KiB sub-block, the first here, the others behind. */
struct mdfs_extent_record {
  uint64_t address;      /* disk << 48 | block */
  uint64_t birth;        /* generation that allocated the blocks; a move changes it, with the address */
  uint64_t written;      /* generation that wrote the contents; a move keeps it; at most birth */
  uint32_t stored_bytes; /* 1.. ; blocks = ceil(stored_bytes / block size), contiguous */
  uint32_t crc32c[1];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_extent_record) == 32, "extent record");

/* A scattered extent (record.address is MDFS_SCATTERED): its MDFS_KIND_EXTENT_RUNS item lists its blocks in order. */
#define MDFS_SCATTERED UINT64_MAX
struct mdfs_extent_run {
  uint64_t address;
  uint32_t blocks;
  uint32_t reserved;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_extent_run) == 16, "extent run");

struct mdfs_group_page { /* then the groups: doc/FORMAT.md, section 9 */
  uint16_t count;        /* of groups */
  uint8_t checksum_type; /* MDFS_CHECKSUM_* */
  uint8_t reserved[13];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_group_page) == 16, "group page");
struct mdfs_group {
  uint64_t members;     /* bit i: the extent at place i of the page; of files: cell i from the first one on */
  uint8_t parity_count; /* 1 */
  uint8_t leaver_count; /* with the members 8 at most */
  uint8_t reserved[6];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_group) == 16, "group");
struct mdfs_parity {
  uint64_t address; /* as of an extent record; MDFS_SCATTERED: the MDFS_KIND_PARITY_RUNS item has the runs */
  uint64_t birth;   /* generation of the blocks */
  uint32_t stored_bytes;
  uint32_t reserved;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_parity) == 24, "parity");
/* Appended bytes [begin, begin + bytes) of extents of a page, one after another; checksums of the blocks follow. */
struct mdfs_strip {
  uint64_t address; /* disk << 48 | block, of the first part */
  uint64_t birth;   /* as of an extent record */
  uint64_t written;
  uint64_t places;       /* bit i: there is a part of the extent at place i; parts lie in order of i */
  uint64_t live;         /* parts that count; the blocks of the others no longer belong to the strip */
  uint32_t begin;        /* byte of the extent */
  uint32_t bytes;        /* of each part */
  uint8_t checksum_type; /* MDFS_CHECKSUM_* */
  uint8_t copies;        /* 1: struct mdfs_strip_copy lies behind this one */
  uint8_t reserved[6];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_strip) == 56, "strip");
struct mdfs_strip_copy {
  uint64_t address; /* of the first part's second copy; the others follow as in the strip */
  uint64_t birth;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_strip_copy) == 16, "strip copy");

/* 128 KiB of an ordinary file: raw runs of blocks, ascending and disjoint; bytes without a run are a hole. */
struct mdfs_file_cell {
  uint16_t run_count; /* 1..32 */
  uint16_t reserved[3];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_file_cell) == 8, "file cell");

struct mdfs_file_run {
  uint64_t address; /* of its first block */
  uint64_t birth;   /* as of an extent record */
  uint64_t written;
  uint16_t first; /* block within the cell */
  uint16_t blocks;
  uint8_t checksum_type; /* MDFS_CHECKSUM_* */
  uint8_t reserved[3];
  /* uint32_t crc32c[blocks], then padding to 8 */
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_file_run) == 32, "file run");

/* disk = slot[(base + x + R[y mod K] + Q[z mod K] + fourth * v + fifth * w) mod K] for an extent (w, v, z, y, x), x
   fastest; an image has the last `rank` of these. Tables follow: uint16_t R[K], Q[K], slot[K]. */
struct mdfs_placement {
  uint16_t disks;  /* k */
  uint16_t slots;  /* K */
  uint16_t fourth; /* below K; zero unless made for images of four or five axes */
  uint16_t fifth;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_placement) == 8, "placement");

/* Background operations on the volume, one item for each kind: the request and its progress. */
#define MDFS_OPERATION_SCRUB 1u
#define MDFS_OPERATION_DEFRAG 2u
#define MDFS_OPERATION_DRAIN 3u
#define MDFS_OPERATION_BALANCE 4u
#define MDFS_OPERATION_PROTECT 5u
#define MDFS_OPERATION_RUNNING 1u   /* resumes at the next mount */
#define MDFS_OPERATION_CANCELLED 2u /* resumes on request */
#define MDFS_OPERATION_DONE 3u
#define MDFS_OPERATION_FAILED 4u /* see `reason`; resumes on request */
#define MDFS_OPERATION_DRY_RUN 1u /* flag: count changes, make none */
#define MDFS_OPERATION_OBJECT 2u  /* flag: for `object` only, not the volume */

#define MDFS_ERROR_DATA 1u       /* data do not match their checksum */
#define MDFS_ERROR_UNREADABLE 2u /* data cannot be read */
#define MDFS_ERROR_NODE 3u       /* no copy of a tree node is good; object and offset of its smallest key */
#define MDFS_ERROR_SPACE 4u      /* page `block` of the bitmap of `disk` */
#define MDFS_ERROR_LABEL 5u      /* label `block` of `disk` */
#define MDFS_ERROR_SKIPPED 6u    /* left unchanged: no space, or in use */
#define MDFS_MAX_ERRORS 64u

/* Errors of a disk since its counts were last set to zero. */
struct mdfs_disk_errors {
  uint8_t disk_uuid[16]; /* if it is another disk, the counts are void */
  int64_t since_ns;
  uint64_t read_errors;
  uint64_t write_errors;
  uint64_t flush_errors;
  uint64_t checksum_errors;
  uint64_t repaired; /* rewritten copies */
  uint8_t reserved[32];
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_disk_errors) == 96, "disk errors");

struct mdfs_operation {
  uint32_t state; /* MDFS_OPERATION_RUNNING.. */
  uint32_t flags;
  uint64_t budget_bytes_s; /* bytes read and written a second; 0 = no limit */
  uint64_t threshold;      /* by kind */
  uint64_t object;
  uint64_t parameters[4]; /* by kind */
  uint64_t cursor[4];     /* where it resumes, by kind */
  int64_t started_ns;
  int64_t updated_ns;
  uint64_t work_ns;     /* time spent */
  uint64_t bytes_total; /* as far as it is known; may grow */
  uint64_t bytes_done;
  uint64_t items_total;
  uint64_t items_done; /* examined */
  uint64_t items_changed;
  uint64_t items_failed;
  uint64_t figures[8];  /* by kind */
  uint8_t reason[128];  /* UTF-8, zero padded: why it failed */
  uint16_t disk_count;  /* number of mdfs_operation_disk that follow */
  uint16_t error_count; /* number of mdfs_operation_error after them, the first ones found */
  uint32_t reserved;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_operation) == 368, "operation");

struct mdfs_operation_disk {
  uint64_t read_bytes;
  uint64_t written_bytes;
  uint64_t repaired; /* pieces that were rewritten or moved */
  uint64_t failed;   /* pieces that stay damaged, or could not be moved */
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_operation_disk) == 32, "operation disk");

struct mdfs_operation_error {
  uint64_t object; /* 0: none */
  uint64_t offset; /* page * 64 + place of an extent, or first byte of a piece of a file */
  uint64_t block;  /* first one */
  uint16_t disk;
  uint16_t what; /* MDFS_ERROR_* */
  uint32_t reserved;
};
MDFS_STATIC_ASSERT(sizeof(struct mdfs_operation_error) == 32, "operation error");

#ifdef __cplusplus
}
#endif

#endif
