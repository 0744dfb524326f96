// An open image and windows of it, for the timer: where they lie, what they should cost, what they should hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mdfs/ioctl.h>

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace bench {

// Ends the program with one line; the second adds the text of errno.
[[noreturn]] void die(const std::string& what);
[[noreturn]] void die_errno(const std::string& what);

// A file mapped for reading, for the life of the program.
std::span<const char> map_file(const std::string& path);
void read_whole(int fd, char* out, std::uint64_t bytes, std::uint64_t offset);

using DiskTimes = std::array<double, MDFS_IOC_MAX_DISKS>;

// One length for each axis, as in "512x512"; 0 is the whole axis.
class TimedImage {
 public:
  // `fd` is borrowed.
  TimedImage(int fd, const std::string& lengths);

  std::uint64_t window_bytes() const;
  // `count` windows at random, beginning at multiples of `align` samples. Where `apart` is not 0 they keep that many
  // samples between them in at least one axis, so that none finds what an earlier one has left in a cache.
  std::vector<mdfs_ioc_window> place(std::mt19937_64& generator, std::uint64_t count, std::uint64_t apart,
                                     std::uint64_t align) const;
  // Milliseconds that each disk needs at `rate` bytes and `iops` requests a second; 0 = no limit. Reads the extent
  // table.
  DiskTimes disk_times_ms(int fd, const mdfs_ioc_window& window, double rate, double iops) const;
  // Copies the window out of the image's canonical bytes.
  void copy(const mdfs_ioc_window& window, std::span<const char> source, char* out) const;
  bool equal(const mdfs_ioc_window& window, std::span<const char> source, const char* found) const;

 private:
  template <typename Each>
  void for_each_row(const mdfs_ioc_window& window, Each each) const;
  std::uint64_t sample_bytes() const;
  bool too_near(const mdfs_ioc_window& a, const mdfs_ioc_window& b, std::uint64_t apart) const;

  mdfs_ioc_geometry geometry_{};
  std::array<std::uint64_t, MDFS_IOC_MAX_RANK> lengths_{};
};

}  // namespace bench
