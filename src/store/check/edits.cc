// Which keys the changes of a repair touch.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/edits.h"

#include "mdfs/ondisk.h"

namespace mdfs::store {

bool Edits::touches(const format::Key& lower, const format::Key& upper) const {
  const auto item = items.lower_bound(lower);
  if (item != items.end() && item->first <= upper) return true;
  for (auto fix = inodes.lower_bound(lower.object); fix != inodes.end() && fix->first <= upper.object; ++fix) {
    const format::Key key{fix->first, MDFS_KIND_INODE, 0};
    if (key >= lower && key <= upper) return true;
  }
  // All keys of an object: some lie in the range if the object does.
  const auto object = erased_objects.lower_bound(lower.object);
  return object != erased_objects.end() && *object <= upper.object;
}

}  // namespace mdfs::store
