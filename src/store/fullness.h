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

  // After blocks of the disk have been taken.
  std::optional<std::string> note_use(std::size_t disk, const std::string& name, std::uint64_t used_blocks,
                                      std::uint64_t data_blocks);
  // What was wished for on the disk has been stored on another for want of room.
  std::optional<std::string> note_spill(std::size_t disk, const std::string& name);
  std::uint64_t spilled(std::size_t disk) const { return disks_[disk].spilled; }

 private:
  struct Disk {
    std::size_t said = 0;  // thresholds
    bool said_spill = false;
    std::uint64_t spilled = 0;  // runs
  };
  std::vector<Disk> disks_;
};

}  // namespace mdfs::store
