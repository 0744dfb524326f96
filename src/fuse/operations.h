// The operations of the kernel, by topic. Each answers its request exactly once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "fuse/low_level.h"

namespace mdfs::fuse {

// names.cc
// Checks that a real entry may be made, moved to or removed here. Virtual directories are read-only; names of views
// are reserved.
Status check_new_name(fuse_ino_t parent, const char* name);
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char* name);
void op_forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t lookups);
void op_forget_multi(fuse_req_t req, std::size_t count, struct fuse_forget_data* forgets);
void op_readlink(fuse_req_t req, fuse_ino_t ino);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode);
void op_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name);
void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char* new_name);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char* name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
               unsigned flags);

// attributes.cc
void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info* fi);
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat* attributes, int which, struct fuse_file_info* fi);
void op_statfs(fuse_req_t req, fuse_ino_t ino);
void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, std::size_t size, int flags);
void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size);
void op_listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char* name);

// directories.cc
void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info* fi);
void op_readdir(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, struct fuse_file_info* fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, struct fuse_file_info* fi);
void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info* fi);
void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info* fi);

// files.cc
void op_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, struct fuse_file_info* fi);
void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info* fi);
void op_read(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, struct fuse_file_info* fi);
void op_write(fuse_req_t req, fuse_ino_t ino, const char* bytes, std::size_t size, off_t offset,
              struct fuse_file_info* fi);
void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info* fi);
void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info* fi);
void op_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info* fi);
void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info* fi);
void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info* fi);
void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_offset, struct fuse_file_info* from_fi,
                        fuse_ino_t to, off_t to_offset, struct fuse_file_info* to_fi, std::size_t length, int flags);

// ioctls.cc
void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void* argument, struct fuse_file_info* fi,
              unsigned flags, const void* in, std::size_t in_size, std::size_t out_size);

}  // namespace mdfs::fuse
