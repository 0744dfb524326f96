// The transfers of a client, by the profile and a seed. Pure: equal arguments give equal transfers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/checked.h"
#include "meter/profile.h"
#include "model/random.h"

namespace mdfs::meter {

// The files that a client works on.
struct FileSet {
  unsigned files = 1;
  std::uint64_t file_bytes = 0;  // of each; at least kAlignment, and a multiple of it
};

// The files of a profile, made smaller so that all `clients` together have at most `most_bytes`. kInvalidArgument: not
// even kAlignment bytes a file.
Result<FileSet> files_within(const Profile& profile, unsigned clients, std::uint64_t most_bytes);
// Of all files that `clients` clients use.
std::uint64_t all_bytes(const Profile& profile, const FileSet& files, unsigned clients);

struct PlannedTransfer {
  unsigned file = 0;  // in the set
  std::uint64_t offset_bytes = 0;
  std::uint64_t bytes = 0;        // at least kAlignment, and inside of the file
  std::uint64_t block_bytes = 0;  // of all blocks but the last, which may be smaller
  bool write = false;
  bool sequential = false;      // by the definition of meter/transfers.h
  bool empties = false;         // the file is made empty before
  double think_s = 0;           // before it, but for the first
  std::optional<double> due_s;  // with a rate: from the start of the measurement

  std::uint64_t blocks() const { return ceil_div(bytes, block_bytes); }
};

// One client. One thread. The profile must outlive it.
class RequestSource {
 public:
  RequestSource(const Profile& profile, const FileSet& files, std::uint64_t seed, unsigned client);

  PlannedTransfer next();

 private:
  std::uint64_t draw_bytes(const Between<std::uint64_t>& range);
  void place_anywhere(PlannedTransfer& transfer);
  void place_in_order(PlannedTransfer& transfer);
  void next_file();

  const Profile& profile_;
  FileSet files_;
  model::Random random_;
  unsigned file_ = 0;
  std::uint64_t cursor_bytes_ = 0;  // where the next transfer begins; backwards: where it ends
  std::uint64_t shift_bytes_ = 0;   // strided: where this pass over the file began
  std::uint64_t count_ = 0;
  double phase_s_ = 0;  // with a rate: when the first transfer is due
};

}  // namespace mdfs::meter
