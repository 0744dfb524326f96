// Which commit is proven: by a committed slot, by its witnesses, or by the commit that came after it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/disk.h"
#include "format/commit.h"
#include "store/labels.h"

namespace mdfs::store {

// A disk that was given, with what its label areas hold; it has a label.
struct Candidate {
  std::unique_ptr<device::Disk> disk;
  DiskLabels labels;
};

// The newest commit that is proven. That a commit with witnesses has been flushed is proven
// - by a slot of the commit after it, which is not written before that flush has succeeded;
// - else, if every disk of it that is here and was there when it was made holds its slot, and all witnesses on these
//   disks hold. A disk that holds neither the commit nor its parent was away, and says nothing; neither does one that
//   is missing: what lay there is lost or not, whatever is decided.
// The slot that is returned is committed if such a slot was found, else prepared. `highest`: the highest generation
// seen anywhere, prepared ones included. Errors: kFork, kCorrupt (none is proven).
Result<format::CommitSlot> find_winner(const std::vector<Candidate>& candidates, std::uint64_t& highest);

}  // namespace mdfs::store
