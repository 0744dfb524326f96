// Invalidates the kernel's caches when an image changes through one of its other views.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuse/node_table.h"
#include "geometry/geometry.h"
#include "volume/volume.h"

struct fuse_session;

namespace mdfs::fuse {

// A byte range of the plain file that contains the whole window.
struct PlainRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
PlainRange plain_range(const geometry::Geometry& geometry, const geometry::Window& window);

// Notifications wait for pages that the kernel is reading or writing back, which needs a thread that
// serves requests: make them only on a WorkQueue, without a lock. A node that the kernel has forgotten is no error.
class Coherence {
 public:
  // Largest number of virtual nodes. Beyond it, the kernel is told to drop the oldest names.
  static constexpr std::size_t kMaxNodes = 16384;
  static constexpr std::size_t kTrimNodes = 512;

  Coherence(volume::Volume& volume, NodeTable& nodes) : volume_(volume), nodes_(nodes) {}
  void start(fuse_session* session) { session_ = session; }

  // True if a change of the image's bytes or attributes concerns a virtual node. Never blocks.
  bool has_views(volume::Ino image) const { return nodes_.has_nodes(image); }

  // ---- on a work queue
  // Writes back and drops the plain file's cached and mapped bytes in the range, and its attributes.
  void drop_plain(volume::Ino ino, const PlainRange& range);
  void drop_attributes(volume::Ino ino);
  // Drops bytes and attributes of the image's virtual files, and their names if the image's size has changed.
  void drop_views(volume::Ino image);
  // Drops names while there are more nodes than kMaxNodes.
  void trim_nodes();
  bool wants_trim() const { return nodes_.size() > kMaxNodes; }

 private:
  void drop_names(const std::vector<CachedName>& names);

  volume::Volume& volume_;
  NodeTable& nodes_;
  fuse_session* session_ = nullptr;
};

}  // namespace mdfs::fuse
