// Telling the kernel what it must forget.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/coherence.h"

#include <cerrno>

#include "base/check.h"
#include "base/log.h"
#include "fuse/low_level.h"

namespace mdfs::fuse {
namespace {

// The node or name is no longer known to the kernel, or the mount is gone: nothing is cached.
bool is_gone(int status) { return status == -ENOENT || status == -ENOTCONN || status == -ENODEV || status == -EBADF; }

}  // namespace

PlainRange plain_range(const geometry::Geometry& geometry, const geometry::Window& window) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    first = first * geometry.shape[axis] + window.start[axis];
    last = last * geometry.shape[axis] + window.start[axis] + window.length[axis] - 1;
  }
  const std::uint64_t sample = geometry.sample_bytes();
  return {first * sample, (last - first + 1) * sample};
}

void Coherence::drop_plain(volume::Ino ino, const PlainRange& range) {
  MDFS_CHECK(session_ != nullptr);
  const int status = fuse_lowlevel_notify_inval_inode(session_, ino, static_cast<off_t>(range.offset),
                                                      static_cast<off_t>(range.length));
  if (status != 0 && !is_gone(status)) spdlog::warn("dropping cached bytes of inode {}: errno {}", ino, -status);
}

void Coherence::drop_attributes(volume::Ino ino) {
  const int status = fuse_lowlevel_notify_inval_inode(session_, ino, -1, 0);
  if (status != 0 && !is_gone(status)) spdlog::warn("dropping cached attributes of inode {}: errno {}", ino, -status);
}

void Coherence::drop_views(volume::Ino image) {
  for (const NodeId id : nodes_.take_fresh(image)) drop_plain(id, {0, 0});
  if (!nodes_.has_nodes(image)) return;
  const auto attributes = volume_.attributes(image);
  if (attributes.ok()) drop_names(nodes_.take_names_if_size_changed(image, attributes->size_bytes));
}

void Coherence::trim_nodes() {
  if (wants_trim()) drop_names(nodes_.take_oldest_names(kTrimNodes));
}

void Coherence::drop_names(const std::vector<CachedName>& names) {
  for (const CachedName& name : names) {
    const int status = fuse_lowlevel_notify_inval_entry(session_, name.parent, name.name.c_str(), name.name.size());
    if (status != 0 && !is_gone(status)) spdlog::warn("dropping the name '{}': errno {}", name.name, -status);
  }
}

}  // namespace mdfs::fuse
