// What a pool of a RADOS cluster can still take, from the answer of a monitor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace mdfs::device {

// The command of which the answer is read.
inline constexpr const char* kPoolRoomCommand = R"({"prefix": "df", "detail": "detail", "format": "json"})";

// Bytes of new objects: what the OSDs of the pool have free (all replicas counted), and what its quotas of bytes and
// objects leave. Nothing: the answer does not say it.
std::optional<std::uint64_t> pool_room(std::string_view answer, const std::string& pool, std::uint64_t object_bytes);

// What is left after writes that the cluster may not have counted yet. Any thread.
class RoomEstimate {
 public:
  void wrote(std::uint64_t bytes);
  // What a monitor says now. Its figures are some seconds old: writes since the measurement before this one may be
  // missing in them.
  void measured(std::uint64_t bytes);
  // UINT64_MAX before the first measurement.
  std::uint64_t bytes() const;

 private:
  mutable std::mutex mutex_;  // guards all below
  std::uint64_t measured_ = UINT64_MAX;
  std::uint64_t since_ = 0, before_ = 0;  // written since the last measurement, and between the last two
};

}  // namespace mdfs::device
