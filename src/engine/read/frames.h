// Frames of extents, as they are stored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/core.h"
#include "engine/read/loader.h"

namespace mdfs::engine {

// The frame of one extent at one moment, as it is stored. Later writes do not change it: a hold keeps its blocks. Space
// bounds the held blocks; beyond the bound, reads fail with ESTALE, unless a relocation alone has moved the frame. Any
// thread; ends before the engine.
class StoredFrame {
 public:
  StoredFrame(std::shared_ptr<OpenObject> object, const geometry::Coord& extent, MappedExtent stored,
              std::shared_ptr<const store::BlockHold> hold);

  std::uint32_t size_bytes() const { return size_bytes_; }

 private:
  friend class Frames;
  struct Place {
    MappedExtent extent;  // a record without strips
    std::shared_ptr<const store::BlockHold> hold;
  };
  std::shared_ptr<const Place> place() const;
  void move_to(std::shared_ptr<const Place> place);

  const std::shared_ptr<OpenObject> object_;
  const geometry::Coord extent_;
  const std::uint32_t size_bytes_;
  mutable std::mutex mutex_;  // guards place_
  std::shared_ptr<const Place> place_;
};

// Any thread. The cache has frames beside decoded extents, each named by its first block and the generation of that: no
// other frame ever has the same name.
class Frames {
 public:
  Frames(Core& core, Loader& loader) : core_(core), loader_(loader) {}

  // Null: the extent has dirty bytes, bytes in strips, no record, is stored raw, or lies on a lost disk of which bytes
  // read as zeros or the object is a level.
  Result<std::shared_ptr<StoredFrame>> find(OpenObject& object, const geometry::Coord& extent, const Stop& stop);
  // Bytes [offset, offset + into.size()), which lie within the frame (abort). Verified when they come from a disk.
  Status read(StoredFrame& frame, std::uint64_t offset, MutableBytes into, const Stop& stop);

 private:
  Status read_at(const StoredFrame& frame, const StoredFrame::Place& place, std::uint64_t offset, MutableBytes into,
                 const Stop& stop);

  Core& core_;
  Loader& loader_;
};

}  // namespace mdfs::engine
