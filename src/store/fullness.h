// When to say that a disk becomes full, and that its blocks go elsewhere: once, not at every write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mdfs::store {

// Not thread-safe. Every method returns a line for the log where it has something to say.
class Fullness {
 public:
  // Of the data blocks, in percent. Said once each until the disk has been kForgetPercent below again.
  static constexpr std::array<unsigned, 3> kThresholdsPercent = {90, 95, 99};
  static constexpr unsigned kForgetPercent = 5;

  explicit Fullness(std::size_t disks) : disks_(disks) {}

  // After blocks of the disk have been taken. What is in use does not count blocks that will be free two commits later:
  // as what is written over waits for commits, it would go up and down.
  std::optional<std::string> note_use(std::size_t disk, const std::string& name, std::uint64_t used_blocks,
                                      std::uint64_t data_blocks);
  // A fallback allocation: a run was stored on another disk because this one is full. Logged once until the disk has
  // been kForgetPercent below what it was, or below the first threshold if it was fuller.
  std::optional<std::string> note_fallback(std::size_t disk, const std::string& name, std::uint64_t used_blocks,
                                           std::uint64_t data_blocks);
  std::uint64_t fallback_runs(std::size_t disk) const { return disks_[disk].fallback_runs; }

 private:
  struct Disk {
    std::size_t said = 0;                    // thresholds
    std::optional<double> fallback_percent;  // where it was when that was said, or the first threshold
    std::uint64_t fallback_runs = 0;
  };
  std::vector<Disk> disks_;
};

}  // namespace mdfs::store
