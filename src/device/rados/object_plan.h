// Splits requests to a disk into operations on the objects that it consists of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mdfs::device {

// A request: bytes of the disk.
struct DiskRange {
  std::uint64_t offset = 0, length = 0;
  bool operator==(const DiskRange&) const = default;
};

// The part of a request that lies in one object.
struct ObjectPiece {
  std::size_t request = 0;   // place in the list of requests
  std::uint64_t within = 0;  // from the start of the request
  std::uint64_t length = 0;
  bool operator==(const ObjectPiece&) const = default;
};

// Pieces behind one another in an object: one transfer.
struct ObjectExtent {
  std::uint64_t offset = 0, length = 0;  // in the object
  std::vector<ObjectPiece> pieces;
  bool operator==(const ObjectExtent&) const = default;
};

// The transfers of one operation on one object.
struct ObjectOperation {
  std::uint64_t object = 0;
  std::vector<ObjectExtent> extents;  // by offset
  std::uint64_t bytes() const;
  bool operator==(const ObjectOperation&) const = default;
};

inline constexpr std::size_t kMaxObjectExtents = 64;  // of one operation

// All requests, as operations in order of objects: those on one object together, up to kMaxObjectExtents. Pieces that
// touch become one extent; pieces that overlap stay apart, in the order of the requests if they begin together.
// object_bytes > 0 and no length is 0; ends do not overflow.
std::vector<ObjectOperation> plan_objects(std::span<const DiskRange> requests, std::uint64_t object_bytes);

// The change of one object by a discard.
struct ObjectDiscard {
  enum class Kind : std::uint8_t { kRemove, kTruncate, kZero };
  std::uint64_t object = 0;
  Kind kind = Kind::kRemove;
  std::uint64_t offset = 0, length = 0;  // in the object; kRemove: all of it
  bool operator==(const ObjectDiscard&) const = default;
};

// The first step of discarding a range that is not empty, which then begins behind it. An object goes if the range
// covers all of its bytes on a disk of this size, and is cut if the range covers its end.
ObjectDiscard next_discard(DiskRange& range, std::uint64_t object_bytes, std::uint64_t disk_bytes);

}  // namespace mdfs::device
