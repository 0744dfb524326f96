// The strips of a page, in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "format/strip.h"

namespace mdfs::engine {

// The strips of a page by number, ascending. Strips do not change once they are here: copies share them, so that a page
// with a hundred of them costs little to change. A value.
class Strips {
 public:
  struct Entry {
    unsigned number = 0;
    std::uint32_t begin = 0;  // as in the strip: many are gone through for each write
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
  // The smallest that no strip has.
  unsigned free_number() const;
  // Adds a strip, or replaces the one of this number.
  void set(unsigned number, format::Strip strip);
  void erase(unsigned number);

 private:
  std::vector<Entry> entries_;
};

}  // namespace mdfs::engine
