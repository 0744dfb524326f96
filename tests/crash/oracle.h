// What a volume may hold after a power cut, given what had been done and promised before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "memory_volume.h"
#include "workload.h"

namespace mdfs::crash {

// What the running volume showed: states[0] before the first operation, states[i] after operation i (counted from 1).
// Operation 0 stands for the base, which is durable.
class History {
 public:
  explicit History(test::Tree base) { states_.push_back(std::move(base)); }
  // `succeeded`: what was refused promises nothing.
  void add(const Operation& operation, volume::Ino target, bool succeeded, test::Tree after);
  std::size_t operations() const { return operations_.size(); }

  // Is `found` a state that may be left when operations [1, returned] had returned and [1, started] been started?
  // "" if so, else the first thing that nothing explains.
  //
  // Names and attributes are those after some operation j, at least the last fsync or sync that had returned. A
  // file's data are those after some operation v, at least the last fsync of it or sync that had returned; if a rename
  // over another file is among the j operations, its source has at least the data of then. Of plain writes and
  // punched holes in a row, each block of 4 KiB may be there or not; all other changes of data are there as a whole or
  // not at all.
  std::string explain(const test::Tree& found, std::size_t returned, std::size_t started) const;

 private:
  struct Done {
    Operation operation;
    volume::Ino target = 0;
    Effect effect = Effect::kNames;
  };
  std::string explain_names(const test::Tree& found, std::size_t state) const;
  std::string explain_data(const test::Tree& found, std::size_t state, std::size_t returned, std::size_t started) const;
  bool data_fit(const test::Seen& found, std::size_t first, std::size_t last) const;
  bool is_mixture(const std::string& text, const std::vector<const std::string*>& versions) const;
  // The bytes of an inode after operation `state`; null if no name led to it.
  const std::string* data_after(volume::Ino ino, std::size_t state) const;

  std::vector<test::Tree> states_;
  std::vector<Done> operations_;
};

}  // namespace mdfs::crash
