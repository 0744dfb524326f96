// The profiles that are built in, and their words.
// SPDX-License-Identifier: Apache-2.0
#include "meter/profile.h"

#include <array>

namespace mdfs::meter {

const std::vector<BuiltIn>& built_in_profiles() {
  static const std::vector<BuiltIn> kProfiles = {
#include "meter/profiles.inc"
  };
  return kProfiles;
}

const char* name_of(Order order) {
  return std::array{"sequential", "random", "strided", "backwards"}[static_cast<std::size_t>(order)];
}
const char* name_of(Sync sync) { return std::array{"none", "transfer", "end"}[static_cast<std::size_t>(sync)]; }
const char* name_of(Open open) { return std::array{"transfer", "client"}[static_cast<std::size_t>(open)]; }
const char* name_of(Begin begin) { return std::array{"full", "empty"}[static_cast<std::size_t>(begin)]; }

}  // namespace mdfs::meter
