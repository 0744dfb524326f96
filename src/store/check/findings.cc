// The table of findings.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/findings.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace mdfs::store {
namespace {

using enum Severity;
using enum Repair;
using Id = FindingId;

constexpr FindingInfo kTable[] = {
    {Id::kDiskMissing, "disk-missing", kError, kNever, "a disk of the volume was not given"},
    {Id::kDiskStale, "disk-stale", kError, kNever, "the disk does not hold the newest commit and counts as missing"},
    {Id::kDiskFailed, "disk-failed", kError, kNever, "the disk cannot be used"},
    {Id::kLabelDamaged, "label-damaged", kWarning, kSafe, "one of the disk's four labels is damaged"},
    {Id::kCommitSlotMissing, "commit-slot-missing", kWarning, kSafe, "a ring does not hold the newest commit"},
    {Id::kObjectCount, "object-count", kWarning, kSafe, "the number of objects in the commit is wrong"},
    {Id::kNextObject, "next-object", kError, kSafe, "an object has a number that is not yet assigned"},
    {Id::kDiskOut, "disk-out", kNote, kNever, "the disk failed; commits continue without it, and it is only read"},
    {Id::kNodeCopyDamaged, "node-copy-damaged", kWarning, kSafe, "a copy of a tree node is damaged; another is good"},
    {Id::kNodeLost, "node-lost", kError, kForced, "no copy of a tree node is good; its contents are lost"},
    {Id::kNodeCount, "node-count", kWarning, kSafe, "the number of tree nodes in the commit is wrong"},
    {Id::kNodeMisplaced, "node-misplaced", kError, kForced, "a tree node has an invalid place, or overlaps another"},
    {Id::kSpacePageDamaged, "space-page-damaged", kWarning, kSafe, "a page of the map of blocks in use is damaged"},
    {Id::kBlockMarkedFree, "block-marked-free", kError, kSafe, "blocks in use are marked free"},
    {Id::kBlockLeaked, "block-leaked", kWarning, kSafe, "blocks that nothing uses are marked in use"},
    {Id::kBlockUsedTwice, "block-used-twice", kError, kForced, "blocks belong to two owners; the second gets a copy"},
    {Id::kInodeDamaged, "inode-damaged", kError, kForced, "an inode is invalid; the object is removed"},
    {Id::kInodeMissing, "inode-missing", kError, kForced, "an object has no inode; its remains are removed"},
    {Id::kLinkCount, "link-count", kWarning, kSafe, "the link count of an object is wrong"},
    {Id::kItemMisplaced, "item-misplaced", kWarning, kForced, "an item does not belong to its object; it is removed"},
    {Id::kItemDamaged, "item-damaged", kError, kForced, "an item is invalid and is removed; its data read as zeros"},
    {Id::kUnreachable, "unreachable", kError, kForced, "an object has no name; it is moved to lost+found"},
    {Id::kOrphan, "orphan", kNote, kSafe, "an unlinked object, or unneeded data of an object, waits to be freed"},
    {Id::kOrphanStray, "orphan-stray", kWarning, kSafe, "an object on the orphan list does not exist or has a name"},
    {Id::kRootMissing, "root-missing", kError, kForced, "the root directory is missing; an empty one is made"},
    {Id::kPlacementMissing, "placement-missing", kError, kForced,
     "an object's placement is missing; a default is made"},
    {Id::kContentMissing, "content-missing", kError, kForced,
     "an image has no geometry, or a symbolic link no target; the object is removed"},
    {Id::kOperationDamaged, "operation-damaged", kWarning, kSafe,
     "the record of a background operation is invalid; it is removed"},
    {Id::kDiskErrorsDamaged, "disk-errors-damaged", kWarning, kSafe,
     "the error counts of a disk are invalid; they restart at zero"},
    {Id::kSecretMissing, "secret-missing", kError, kForced,
     "the secret of the name hashes is missing; a new one is made, and all names are rehashed"},
    {Id::kEntryToNothing, "entry-to-nothing", kError, kForced, "a name leads to no object; it is removed"},
    {Id::kEntryType, "entry-type", kWarning, kSafe, "a name gives the wrong type of its object"},
    {Id::kEntryCookie, "entry-cookie", kError, kForced, "a name lies under the wrong hash"},
    {Id::kEntryDuplicate, "entry-duplicate", kError, kForced,
     "a name occurs twice in a directory; the second is removed"},
    {Id::kDirectoryParent, "directory-parent", kWarning, kSafe, "a directory's .. leads to the wrong directory"},
    {Id::kDirectoryEntries, "directory-entries", kWarning, kSafe, "the number of names in a directory is wrong"},
    {Id::kDirectoryCycle, "directory-cycle", kError, kForced,
     "directories contain each other; one is moved to lost+found"},
    {Id::kDirectoryNamedTwice, "directory-named-twice", kError, kForced, "a directory has two names; one is removed"},
    {Id::kStoredBytes, "stored-bytes", kWarning, kSafe, "the number of bytes that an object occupies is wrong"},
    {Id::kImageSize, "image-size", kWarning, kSafe, "the shape of an image does not agree with its size"},
    {Id::kBeyondEnd, "beyond-end", kWarning, kSafe, "data beyond the end of an object; they are removed"},
    {Id::kAddressOutside, "address-outside", kError, kForced,
     "data have an invalid address; the record is removed and reads as zeros"},
    {Id::kRunsMissing, "runs-missing", kError, kForced,
     "the list of blocks of a scattered extent is missing or wrong; the record is removed and reads as zeros"},
    {Id::kStripTwice, "strip-twice", kError, kForced, "bytes of an extent lie in two strips; the second is removed"},
    {Id::kLevelsOutdated, "levels-outdated", kWarning, kForced,
     "an image loses samples by another repair; its resolution levels are removed"},
    {Id::kCopyStray, "copy-stray", kWarning, kSafe,
     "a second copy or parity without its extents or block, or without a list of its blocks; it is removed"},
    {Id::kPiecesTogether, "pieces-together", kWarning, kSafe,
     "two pieces of an extent, block or parity group lie on one disk; the copy or parity is removed"},
    {Id::kDataDamaged, "data-damaged", kError, kNever, "data do not match their checksum; reading them fails"},
    {Id::kDataUnreadable, "data-unreadable", kError, kNever, "data cannot be read from the disk"},
    {Id::kPieceDamaged, "piece-damaged", kWarning, kSafe,
     "a copy of an extent or block is damaged or cannot be read; the other copy is good"},
};

constexpr bool ascending() {
  for (std::size_t i = 1; i < std::size(kTable); ++i)
    if (kTable[i - 1].id >= kTable[i].id) return false;
  return true;
}
static_assert(ascending());

}  // namespace

std::string_view name(Severity severity) {
  static constexpr std::array<std::string_view, 3> kNames = {"note", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::span<const FindingInfo> finding_table() { return kTable; }

const FindingInfo& info(FindingId id) {
  const auto row = std::lower_bound(std::begin(kTable), std::end(kTable), id,
                                    [](const FindingInfo& a, FindingId b) { return a.id < b; });
  MDFS_CHECK(row != std::end(kTable) && row->id == id);
  return *row;
}

void Findings::add(FindingId id, std::string where, About about) {
  ++counts_[id];
  ++total_;
  if (list_.size() < kLimit) list_.push_back({id, std::move(where), false, about, {}});
}

std::uint64_t Findings::count(FindingId id) const {
  const auto found = counts_.find(id);
  return found == counts_.end() ? 0 : found->second;
}

bool Findings::any(Repair repair) const {
  return std::any_of(counts_.begin(), counts_.end(), [&](const auto& entry) {
    const FindingInfo& row = info(entry.first);
    return row.repair == repair && row.severity != Severity::kNote;
  });
}

}  // namespace mdfs::store
