// Reads the answer of a monitor.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/pool_room.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mdfs::device {
namespace {

std::optional<std::uint64_t> number_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->is_number_unsigned() ? found->get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(std::max(found->get<double>(), 0.0));
}

}  // namespace

std::optional<std::uint64_t> pool_room(std::string_view answer, const std::string& pool, std::uint64_t object_bytes) {
  const nlohmann::json all = nlohmann::json::parse(answer, nullptr, false);
  if (!all.is_object() || !all.contains("pools") || !all["pools"].is_array()) return std::nullopt;
  for (const nlohmann::json& one : all["pools"]) {
    if (!one.is_object() || !one.contains("name") || one["name"] != pool) continue;
    if (!one.contains("stats") || !one["stats"].is_object()) return std::nullopt;
    const nlohmann::json& stats = one["stats"];
    std::optional<std::uint64_t> room = number_in(stats, "max_avail");
    if (!room) return std::nullopt;
    const auto limit = [&](const char* quota, const char* used, std::uint64_t each) {
      const std::uint64_t most = number_in(stats, quota).value_or(0), now = number_in(stats, used).value_or(0);
      if (most == 0) return;  // no quota
      const std::uint64_t left = most > now ? most - now : 0;
      room = std::min(*room, left > UINT64_MAX / each ? UINT64_MAX : left * each);
    };
    limit("quota_bytes", "stored", 1);
    limit("quota_objects", "objects", object_bytes);
    return room;
  }
  return std::nullopt;
}

void RoomEstimate::wrote(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  since_ += bytes;
}

void RoomEstimate::measured(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  measured_ = bytes;
  before_ = since_;
  since_ = 0;
}

std::uint64_t RoomEstimate::bytes() const {
  const std::lock_guard lock(mutex_);
  if (measured_ == UINT64_MAX) return UINT64_MAX;
  const std::uint64_t written = since_ + before_;
  return measured_ > written ? measured_ - written : 0;
}

}  // namespace mdfs::device
