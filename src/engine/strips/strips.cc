// The strips of a page, in memory.
// SPDX-License-Identifier: Apache-2.0
#include "engine/strips/strips.h"

#include <algorithm>

namespace mdfs::engine {

namespace {

auto at_or_after(auto& entries, unsigned number) {
  return std::ranges::lower_bound(entries, number, {}, &Strips::Entry::number);
}

}  // namespace

const format::Strip* Strips::find(unsigned number) const {
  const auto found = at_or_after(entries_, number);
  return found != entries_.end() && found->number == number ? found->strip.get() : nullptr;
}

unsigned Strips::free_number() const {
  // Numbers are distinct and ascend: up to the first gap the i-th is i.
  const auto gap = std::partition_point(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.number == static_cast<unsigned>(&entry - entries_.data());
  });
  return static_cast<unsigned>(gap - entries_.begin());
}

void Strips::set(unsigned number, format::Strip strip) {
  const auto found = at_or_after(entries_, number);
  Entry entry{number, strip.begin, strip.end(), strip.live, {}};
  entry.strip = std::make_shared<const format::Strip>(std::move(strip));
  if (found != entries_.end() && found->number == number)
    *found = std::move(entry);
  else
    entries_.insert(found, std::move(entry));
}

void Strips::erase(unsigned number) {
  const auto found = at_or_after(entries_, number);
  if (found != entries_.end() && found->number == number) entries_.erase(found);
}

}  // namespace mdfs::engine
