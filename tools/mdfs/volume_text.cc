// Parts of a volume's state as text and as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "volume_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/uuid.h"

namespace mdfs::tools {
namespace {

constexpr std::array kDiskStates = {"healthy", "missing", "stale", "failed", "none", "draining", "deleted", "out"};

bool is_state(std::uint32_t state, DiskState wanted) { return state == static_cast<std::uint32_t>(wanted); }

}  // namespace

std::vector<std::uint32_t> disk_numbers(const mdfs_ioc_volume& volume) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS); ++i)
    if (!is_state(volume.disks[i].state, DiskState::kNone)) numbers.push_back(i);
  return numbers;
}

std::vector<std::uint32_t> disk_numbers(std::uint64_t bits) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < MDFS_IOC_MAX_DISKS; ++i)
    if ((bits >> i & 1) != 0) numbers.push_back(i);
  return numbers;
}

std::string state_name(std::uint32_t state) {
  return state < kDiskStates.size() ? kDiskStates[state] : fmt::format("{}", state);
}

bool is_readable(std::uint32_t state) { return is_state(state, DiskState::kHealthy) || is_draining(state); }

bool is_draining(std::uint32_t state) { return is_state(state, DiskState::kDraining); }

std::string time_text(std::int64_t ns) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(ns / 1'000'000'000)));
}

std::string uuid_text(const std::uint8_t (&octets)[16]) {
  Uuid uuid;
  std::memcpy(uuid.octets.data(), octets, sizeof octets);
  return uuid.to_string();
}

using Json = nlohmann::ordered_json;

bool is_out(const mdfs_ioc_volume& volume, std::uint32_t number) {
  const auto& disk = volume.disks[number];
  return is_state(disk.state, DiskState::kOut) || disk.out_generation != 0;
}

nlohmann::ordered_json disk_json(std::uint32_t number, const mdfs_ioc_volume& volume) {
  const auto& disk = volume.disks[number];
  return {{"number", number},
          {"uuid", uuid_text(disk.uuid)},
          {"path", text_of(disk.name)},
          {"state", state_name(disk.state)},
          {"out_generation", is_out(volume, number) ? Json(disk.out_generation) : Json()},
          {"out_since_s", is_out(volume, number) ? Json(disk.out_ns / 1'000'000'000) : Json()},
          {"weight", disk.weight},
          {"blocks", disk.blocks},
          {"device_bytes", disk.device_bytes},
          {"free_blocks", disk.free_blocks},
          {"room_below_bytes", disk.room_below_bytes == UINT64_MAX ? nlohmann::ordered_json()
                                                                   : nlohmann::ordered_json(disk.room_below_bytes)}};
}

}  // namespace mdfs::tools
