// The memory of the cache: its default, and changes under memory pressure and in idle times. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mdfs::fuse {

// ---- contents of the kernel's files

struct MemoryInfo {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
};
// Of /proc/meminfo; nothing if a line is missing.
std::optional<MemoryInfo> parse_meminfo(std::string_view text);

// The cgroups of a process, relative to the root of their hierarchy.
struct CgroupPaths {
  std::optional<std::string> unified;  // version 2
  std::optional<std::string> memory;   // the memory controller of version 1
};
CgroupPaths parse_cgroups(std::string_view text);  // of /proc/self/cgroup

// Of memory.max: nothing without a limit ("max").
std::optional<std::uint64_t> parse_cgroup_limit(std::string_view text);
// Of memory.stat of version 1, whose limit includes those of the parent groups.
std::optional<std::uint64_t> parse_hierarchical_limit(std::string_view text);

// ---- decisions

inline constexpr std::uint64_t kLeastDefaultCacheBytes = std::uint64_t{64} << 20;

// A quarter of the memory that the daemon may use, in whole MiB, but at least 64 MiB.
std::uint64_t default_cache_bytes(std::uint64_t machine_bytes, std::optional<std::uint64_t> cgroup_limit_bytes);

// The observations of one look at the machine.
struct MemoryLook {
  bool pressure = false;          // tasks wait for memory, or little is available
  std::uint64_t used_bytes = 0;   // by the cache
  std::int64_t idle_ns = 0;       // since the last read or write
  std::int64_t now_ns = 0;        // never goes back
  std::uint64_t freed_bytes = 0;  // that the allocator of the C library keeps
};

struct MemoryDecision {
  std::uint64_t limit_bytes = 0;            // of the cache, from now on
  std::optional<std::uint64_t> trims_to{};  // once; the cache may grow again
  bool gives_back = false;                  // the memory of released buffers
  bool trims_allocator = false;             // its freed memory goes back to the system
};

// Under pressure the limit falls to three quarters of what the cache holds, at each look, down to a floor. Half a
// minute without pressure later, the limit rises by an eighth of the budget at each look. After some seconds without
// reads or writes, the memory of released buffers is given back; after ten minutes, all but the floor. The allocator
// may keep 32 MiB of freed memory, and none where released buffers go.
//
// One thread.
class MemoryPolicy {
 public:
  explicit MemoryPolicy(std::uint64_t budget_bytes);
  MemoryDecision decide(const MemoryLook& look);

 private:
  const std::uint64_t budget_bytes_, floor_bytes_;
  std::uint64_t limit_bytes_;  // under pressure
  std::optional<std::int64_t> last_pressure_ns_;
};

// True if less than a sixteenth of all memory, at most 1 GiB, is available.
bool is_scarce(const MemoryInfo& info);

}  // namespace mdfs::fuse
