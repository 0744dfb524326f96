// Parts of a volume's state as text and JSON, for the commands that show them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "mdfs/ioctl.h"

namespace mdfs::tools {

// Of mdfs_ioc_volume.disks[].state.
enum class DiskState : std::uint32_t { kHealthy, kMissing, kStale, kFailed, kNone, kDraining, kDeleted, kOut };

template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}
// As a line of a message shows it.
template <std::size_t N>
std::string shown(const char (&field)[N]) {
  return printable(text_of(field));
}

// The disks of the volume by number, without the holes of removed disks.
std::vector<std::uint32_t> disk_numbers(const mdfs_ioc_volume& volume);
// Of disks that are given as a bit each.
std::vector<std::uint32_t> disk_numbers(std::uint64_t bits);
std::string state_name(std::uint32_t state);
// Healthy, or draining.
bool is_readable(std::uint32_t state);
bool is_draining(std::uint32_t state);
// It failed, and commits continue without it; it may be present or not.
bool is_out(const mdfs_ioc_volume& volume, std::uint32_t number);
// Local time, to the second.
std::string time_text(std::int64_t ns);
std::string uuid_text(const std::uint8_t (&octets)[16]);
// One disk of the volume; `number` is below disk_count.
nlohmann::ordered_json disk_json(std::uint32_t number, const mdfs_ioc_volume& volume);

}  // namespace mdfs::tools
