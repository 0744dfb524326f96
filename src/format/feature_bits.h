// Feature bits of a volume: labels have those of its creation, each commit the current ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

struct Features {
  std::uint64_t compat = 0;     // unknown bits mean nothing to a reader or writer
  std::uint64_t ro_compat = 0;  // unknown bits: do not write
  std::uint64_t incompat = 0;   // unknown bits: do not read
  bool operator==(const Features&) const = default;
  std::uint64_t unknown_incompat() const { return incompat & ~MDFS_INCOMPAT_KNOWN; }
};

// All bits of both.
constexpr Features united(const Features& a, const Features& b) {
  return {a.compat | b.compat, a.ro_compat | b.ro_compat, a.incompat | b.incompat};
}

// The access to a volume that this version may have, by the bits that it does not know.
enum class Access : std::uint8_t { kReadWrite, kReadOnly };
// kNewerFormat for an unknown incompatible bit.
Result<Access> access_allowed(const Features& features);

}  // namespace mdfs::format
