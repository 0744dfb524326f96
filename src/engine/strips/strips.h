// The strips of a page, in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "format/strip.h"

namespace mdfs::engine {

// The strips of a page by number, ascending. Strips here never change, so copies share them: a change of a page with a
// hundred strips costs little. A value.
class Strips {
 public:
  struct Entry {
    unsigned number = 0;
    std::uint32_t begin = 0;  // copied from the strip, because each write looks at many
    std::uint32_t end = 0;
    std::uint64_t live = 0;
    std::shared_ptr<const format::Strip> strip;
    bool has(unsigned place) const { return (live >> place & 1) != 0; }
  };
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  // Null if there is none of this number.
  const format::Strip* find(unsigned number) const;
  // The smallest number without a strip.
  unsigned free_number() const;
  // Adds a strip, or replaces the one of this number.
  void set(unsigned number, format::Strip strip);
  void erase(unsigned number);

 private:
  std::vector<Entry> entries_;
};

}  // namespace mdfs::engine
