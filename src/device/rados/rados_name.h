// The names of disks in a RADOS cluster: rados:POOL[/NAMESPACE]/NAME.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mdfs::device {

inline constexpr std::string_view kRadosPrefix = "rados:";

struct RadosName {
  std::string pool, name_space, name;  // name_space: empty for the default one

  // kInvalidArgument names the text and what is allowed. Parts have 1 to 100 letters, digits, '.', '_' and '-'. The
  // name may not look like a data object of another disk.
  static Result<RadosName> parse(const std::string& text);
  // The object that holds the size and the lock.
  const std::string& header_object() const { return name; }
  std::string data_object(std::uint64_t number) const;
  bool is_data_object(std::string_view object) const;
};

// True if a user means a disk of RADOS, well formed or not.
bool is_rados_name(std::string_view text);

}  // namespace mdfs::device
