// The findings of the checker: one table of numbers and names that never change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace mdfs::store {

// The numbers are part of the interface: never changed, never reused.
enum class FindingId : std::uint16_t {
  kDiskMissing = 101,
  kDiskStale = 102,
  kDiskFailed = 103,
  kLabelDamaged = 104,
  kCommitSlotMissing = 105,
  kObjectCount = 106,
  kNextObject = 107,
  kDiskOut = 108,
  kNodeCopyDamaged = 201,
  kNodeLost = 202,
  kNodeCount = 203,
  kNodeMisplaced = 204,
  kSpacePageDamaged = 301,
  kBlockMarkedFree = 302,
  kBlockLeaked = 303,
  kBlockUsedTwice = 304,
  kInodeDamaged = 401,
  kInodeMissing = 402,
  kLinkCount = 403,
  kItemMisplaced = 404,
  kItemDamaged = 405,
  kUnreachable = 406,
  kOrphan = 407,
  kOrphanStray = 408,
  kRootMissing = 409,
  kPlacementMissing = 410,
  kContentMissing = 411,
  kOperationDamaged = 412,
  kDiskErrorsDamaged = 413,
  kSecretMissing = 414,
  kEntryToNothing = 501,
  kEntryType = 502,
  kEntryCookie = 503,
  kEntryDuplicate = 504,
  kDirectoryParent = 505,
  kDirectoryEntries = 506,
  kDirectoryCycle = 507,
  kDirectoryNamedTwice = 508,
  kStoredBytes = 601,
  kImageSize = 602,
  kBeyondEnd = 603,
  kAddressOutside = 604,
  kRunsMissing = 605,
  kStripTwice = 606,
  kLevelsOutdated = 607,
  kCopyStray = 608,
  kPiecesTogether = 609,
  kDataDamaged = 701,
  kDataUnreadable = 702,
  kPieceDamaged = 703,
};

// A note is no error. A warning costs nothing; an error is damage.
enum class Severity : std::uint8_t { kNote, kWarning, kError };
// kSafe: from a good copy, or derived (-p and -y). kForced: something is moved or given up (-y).
enum class Repair : std::uint8_t { kNever, kSafe, kForced };

struct FindingInfo {
  FindingId id;
  std::string_view name;
  Severity severity;
  Repair repair;
  std::string_view text;

  unsigned number() const { return static_cast<unsigned>(id); }
};

std::string_view name(Severity severity);
// In ascending order of number.
std::span<const FindingInfo> finding_table();
const FindingInfo& info(FindingId id);

// The object that a finding is about, or an entry of that directory; object 0: neither.
struct About {
  std::uint64_t object = 0;
  std::uint64_t cookie = 0;  // of the entry; 0: the object itself
};

struct Finding {
  FindingId id;
  std::string where;
  bool repaired = false;
  About about;
  std::string path;  // of that object from the root directory, as far as names lead there; else empty
  // Compares what was found, and not what was learned later.
  auto operator<=>(const Finding& other) const {
    return std::tie(id, where, repaired) <=> std::tie(other.id, other.where, other.repaired);
  }
  bool operator==(const Finding& other) const { return (*this <=> other) == 0; }
};

// The findings of one pass. Keeps at most kLimit of them, and counts all. Not thread-safe.
class Findings {
 public:
  static constexpr std::size_t kLimit = 10000;

  void add(FindingId id, std::string where, About about = {});
  const std::vector<Finding>& list() const { return list_; }
  std::uint64_t count(FindingId id) const;
  std::uint64_t total() const { return total_; }
  // True if such a repair would repair any finding other than a note.
  bool any(Repair repair) const;
  // True if there is any finding other than a note.
  bool any() const { return any(Repair::kNever) || any(Repair::kSafe) || any(Repair::kForced); }

 private:
  std::vector<Finding> list_;
  std::map<FindingId, std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

}  // namespace mdfs::store
