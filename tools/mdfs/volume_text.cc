// Parts of a volume's state in words and as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "volume_text.h"

#include <fmt/format.h>

#include <array>

#include "base/uuid.h"

namespace mdfs::tools {
namespace {

constexpr std::array kStates = {"healthy", "missing", "stale", "failed"};

}  // namespace

std::string state_name(std::uint32_t state) {
  return state < kStates.size() ? kStates[state] : fmt::format("{}", state);
}

std::string uuid_text(const std::uint8_t (&octets)[16]) {
  Uuid uuid;
  std::memcpy(uuid.octets.data(), octets, sizeof octets);
  return uuid.to_string();
}

nlohmann::ordered_json disk_json(std::uint32_t number, const mdfs_ioc_volume& volume) {
  const auto& disk = volume.disks[number];
  return {{"number", number},
          {"uuid", uuid_text(disk.uuid)},
          {"path", text_of(disk.name)},
          {"state", state_name(disk.state)},
          {"weight", disk.weight},
          {"blocks", disk.blocks},
          {"free_blocks", disk.free_blocks}};
}

}  // namespace mdfs::tools
