// Keeps what the kernel caches in step when an image changes through one of its other views.
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

// A range of the plain file's bytes that holds all of a window's.
struct PlainRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
PlainRange plain_range(const geometry::Geometry& geometry, const geometry::Window& window);

// The calls that notify the kernel wait for pages that the kernel is reading or writing back, which needs a thread that
// serves requests: they may only be made on a WorkQueue, holding no lock. A kernel that has forgotten the node is fine.
class Coherence {
 public:
  // Virtual nodes kept at most; beyond, the oldest names are taken back from the kernel.
  static constexpr std::size_t kMaxNodes = 16384;
  static constexpr std::size_t kTrimNodes = 512;

  Coherence(volume::Volume& volume, NodeTable& nodes) : volume_(volume), nodes_(nodes) {}
  void start(fuse_session* session) { session_ = session; }

  // Does a change of the image's bytes or attributes concern any virtual node? Never blocks.
  bool has_views(volume::Ino image) const { return nodes_.has_nodes(image); }

  // ---- on a work queue
  // The plain file's cached and mapped bytes in the range are written back and dropped; so are its attributes.
  void drop_plain(volume::Ino ino, const PlainRange& range);
  void drop_attributes(volume::Ino ino);
  // The image's virtual files: their bytes and attributes; their names too, if the image's size has changed.
  void drop_views(volume::Ino image);
  // Takes names back while there are more nodes than kMaxNodes.
  void trim_nodes();
  bool wants_trim() const { return nodes_.size() > kMaxNodes; }

 private:
  void drop_names(const std::vector<CachedName>& names);

  volume::Volume& volume_;
  NodeTable& nodes_;
  fuse_session* session_ = nullptr;
};

}  // namespace mdfs::fuse
