// Decides when to log that a disk becomes full or that its blocks go to other disks: once, not at every write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mdfs::store {

// Not thread-safe. Every method returns a line for the log, or nothing.
class Fullness {
 public:
  // Of the data blocks, in percent. Each is logged once, until use has fallen kForgetPercent below it.
  static constexpr std::array<unsigned, 3> kThresholdsPercent = {90, 95, 99};
  static constexpr unsigned kForgetPercent = 5;

  explicit Fullness(std::size_t disks) : disks_(disks) {}

  // Called after blocks of the disk have been taken. The blocks in use do not include blocks that are pending free,
  // because their number goes up and down with commits.
  std::optional<std::string> note_use(std::size_t disk, const std::string& name, std::uint64_t used_blocks,
                                      std::uint64_t data_blocks);
  // A fallback allocation: a run was stored on another disk because this one is full. Logged once until use has fallen
  // kForgetPercent below its value then, or below the first threshold if that is lower.
  std::optional<std::string> note_fallback(std::size_t disk, const std::string& name, std::uint64_t used_blocks,
                                           std::uint64_t data_blocks);
  std::uint64_t fallback_runs(std::size_t disk) const { return disks_[disk].fallback_runs; }

 private:
  struct Disk {
    std::size_t said = 0;                    // number of thresholds that were logged
    std::optional<double> fallback_percent;  // use when the fallback was logged, or the first threshold
    std::uint64_t fallback_runs = 0;
  };
  std::vector<Disk> disks_;
};

}  // namespace mdfs::store
