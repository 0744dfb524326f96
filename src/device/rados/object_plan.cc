// Arithmetic of objects.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/object_plan.h"

#include <algorithm>

#include "base/check.h"

namespace mdfs::device {
namespace {

struct Placed {
  std::uint64_t object = 0, offset = 0;
  ObjectPiece piece;
};

std::vector<Placed> split(std::span<const DiskRange> requests, std::uint64_t object_bytes) {
  std::vector<Placed> all;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    MDFS_CHECK(requests[i].length > 0);
    for (std::uint64_t done = 0; done < requests[i].length;) {
      const std::uint64_t at = requests[i].offset + done;
      const std::uint64_t offset = at % object_bytes;
      const std::uint64_t length = std::min(requests[i].length - done, object_bytes - offset);
      all.push_back({at / object_bytes, offset, {i, done, length}});
      done += length;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) {
    return a.object != b.object ? a.object < b.object : a.offset < b.offset;
  });
  return all;
}

}  // namespace

std::uint64_t ObjectOperation::bytes() const {
  std::uint64_t sum = 0;
  for (const ObjectExtent& extent : extents) sum += extent.length;
  return sum;
}

std::vector<ObjectOperation> plan_objects(std::span<const DiskRange> requests, std::uint64_t object_bytes) {
  std::vector<ObjectOperation> operations;
  for (const Placed& placed : split(requests, object_bytes)) {
    const bool same = !operations.empty() && operations.back().object == placed.object;
    if (same) {
      ObjectExtent& last = operations.back().extents.back();
      if (last.offset + last.length == placed.offset) {
        last.length += placed.piece.length;
        last.pieces.push_back(placed.piece);
        continue;
      }
    }
    if (!same || operations.back().extents.size() == kMaxObjectExtents) operations.push_back({placed.object, {}});
    operations.back().extents.push_back({placed.offset, placed.piece.length, {placed.piece}});
  }
  return operations;
}

ObjectDiscard next_discard(DiskRange& range, std::uint64_t object_bytes, std::uint64_t disk_bytes) {
  MDFS_CHECK(range.length > 0);
  ObjectDiscard step;
  step.object = range.offset / object_bytes;
  step.offset = range.offset % object_bytes;
  step.length = std::min(range.length, object_bytes - step.offset);
  const std::uint64_t used = std::min(object_bytes, disk_bytes - step.object * object_bytes);
  const bool to_the_end = step.offset + step.length >= used;
  step.kind = !to_the_end        ? ObjectDiscard::Kind::kZero
              : step.offset == 0 ? ObjectDiscard::Kind::kRemove
                                 : ObjectDiscard::Kind::kTruncate;
  range.offset += step.length;
  range.length -= step.length;
  return step;
}

}  // namespace mdfs::device
