// Ways to damage a small volume, and what the checker says of each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "lab.h"

namespace mdfs::store {

struct Case {
  std::string name;                   // of the test
  std::vector<std::string> findings;  // all of these, and no others
  bool preen;                         // -p mends it
  std::function<void(Lab&)> damage;
  bool data_survive = true;
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases();

}  // namespace mdfs::store
