// How much memory the cache takes.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/memory_policy.h"

#include <algorithm>
#include <charconv>

#include "base/environment.h"
#include "base/text.h"

namespace mdfs::fuse {

namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::int64_t kCalmNs = 30 * kNsPerSecond;        // after pressure
constexpr std::int64_t kIdleBuffersNs = 5 * kNsPerSecond;  // released buffers are given back
constexpr std::int64_t kIdleCacheNs = 600 * kNsPerSecond;  // cached extents too
constexpr std::uint64_t kMostScarceBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostFreedBytes = 32 * kMiB;

std::optional<std::uint64_t> number_of(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// What follows the first line that begins so.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view name) {
  for (const std::string& line : lines_of(text))
    if (line.starts_with(name)) return number_of(std::string_view(line).substr(name.size()));
  return std::nullopt;
}

}  // namespace

std::optional<MemoryInfo> parse_meminfo(std::string_view text) {
  const auto total = number_after(text, "MemTotal:"), available = number_after(text, "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return MemoryInfo{*total * 1024, *available * 1024};
}

CgroupPaths parse_cgroups(std::string_view text) {
  CgroupPaths paths;
  for (const std::string& line : lines_of(text)) {  // number:controllers:path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers == ",,") paths.unified = line.substr(second + 1);
    if (controllers.find(",memory,") != std::string::npos) paths.memory = line.substr(second + 1);
  }
  return paths;
}

std::optional<std::uint64_t> parse_cgroup_limit(std::string_view text) { return number_of(text); }

std::optional<std::uint64_t> parse_hierarchical_limit(std::string_view text) {
  return number_after(text, "hierarchical_memory_limit ");
}

std::uint64_t default_cache_bytes(std::uint64_t machine_bytes, std::optional<std::uint64_t> cgroup_limit_bytes) {
  const std::uint64_t usable = std::min(machine_bytes, cgroup_limit_bytes.value_or(machine_bytes));
  return std::max(usable / 4 / kMiB * kMiB, kLeastDefaultCacheBytes);
}

bool is_scarce(const MemoryInfo& info) {
  return info.available_bytes < std::min(info.total_bytes / 16, kMostScarceBytes);
}

MemoryPolicy::MemoryPolicy(std::uint64_t budget_bytes)
    : budget_bytes_(budget_bytes),
      floor_bytes_(std::min(budget_bytes, kLeastDefaultCacheBytes)),
      limit_bytes_(budget_bytes) {}

MemoryDecision MemoryPolicy::decide(const MemoryLook& look) {
  if (look.pressure) {
    last_pressure_ns_ = look.now_ns;
    limit_bytes_ = std::max(floor_bytes_, std::min(limit_bytes_, look.used_bytes) / 4 * 3);
  } else if (last_pressure_ns_ && look.now_ns - *last_pressure_ns_ >= kCalmNs) {
    limit_bytes_ = std::min(budget_bytes_, limit_bytes_ + budget_bytes_ / 8);
  }
  MemoryDecision decision{limit_bytes_, std::nullopt, look.pressure || look.idle_ns >= kIdleBuffersNs};
  decision.trims_allocator = decision.gives_back || look.freed_bytes > kMostFreedBytes;
  if (look.idle_ns >= kIdleCacheNs && look.used_bytes > floor_bytes_) decision.trims_to = floor_bytes_;
  return decision;
}

}  // namespace mdfs::fuse
