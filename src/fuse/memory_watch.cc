// Watches the memory of the machine.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/memory_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/log.h"

namespace mdfs::fuse {

namespace {

using device::UniqueFd;

constexpr int kLookMs = 5000;     // when nothing happens
constexpr int kBetweenMs = 1000;  // looks under pressure
// Tasks that waited for memory 150 ms of 2 s: less often than a second needs CAP_SYS_RESOURCE.
constexpr std::string_view kTrigger = "some 150000 2000000";
constexpr std::size_t kMostBytes = 16384;  // of a file that is read

std::string read_at_once(int fd) {
  std::array<char, kMostBytes> buffer{};
  const ssize_t count = ::pread(fd, buffer.data(), buffer.size(), 0);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

std::string read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.open() ? read_at_once(fd.get()) : std::string();
}

// Those of the group and of all above it, as far as they are seen here.
std::optional<std::uint64_t> unified_limit(const std::string& root, const std::string& path) {
  std::optional<std::uint64_t> least;
  for (std::filesystem::path group = path;; group = group.parent_path()) {
    const auto limit = parse_cgroup_limit(read_file(root + "/sys/fs/cgroup" + group.string() + "/memory.max"));
    if (limit) least = std::min(*limit, least.value_or(*limit));
    if (!group.has_relative_path()) return least;
  }
}

UniqueFd open_trigger(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (fd.open() && ::write(fd.get(), kTrigger.data(), kTrigger.size()) < 0) fd.reset();
  return fd;
}

}  // namespace

UsableMemory usable_memory() { return usable_memory({}); }

UsableMemory usable_memory(const std::string& root) {
  UsableMemory usable;
  if (const auto info = parse_meminfo(read_file(root + "/proc/meminfo"))) usable.machine_bytes = info->total_bytes;
  const CgroupPaths paths = parse_cgroups(read_file(root + "/proc/self/cgroup"));
  if (paths.unified) usable.cgroup_limit_bytes = unified_limit(root, *paths.unified);
  if (paths.memory) {
    // In a container the own group may be the root of what is seen.
    for (const std::string& group : {*paths.memory, std::string()}) {
      const auto limit = parse_hierarchical_limit(read_file(root + "/sys/fs/cgroup/memory" + group + "/memory.stat"));
      if (limit) usable.cgroup_limit_bytes = std::min(*limit, usable.cgroup_limit_bytes.value_or(*limit));
    }
  }
  return usable;
}

PressureFiles PressureFiles::open(const std::string& root) {
  PressureFiles files;
  files.meminfo_.reset(::open((root + "/proc/meminfo").c_str(), O_RDONLY | O_CLOEXEC));
  const CgroupPaths paths = parse_cgroups(read_file(root + "/proc/self/cgroup"));
  if (paths.unified && *paths.unified != "/")
    files.trigger_ = open_trigger(root + "/sys/fs/cgroup" + *paths.unified + "/memory.pressure");
  if (!files.trigger_.open()) files.trigger_ = open_trigger(root + "/proc/pressure/memory");
  return files;
}

std::optional<MemoryInfo> PressureFiles::meminfo() const {
  return meminfo_.open() ? parse_meminfo(read_at_once(meminfo_.get())) : std::nullopt;
}

MemoryWatch::MemoryWatch(PressureFiles files, UniqueFd wake, std::uint64_t budget_bytes, WatchedCache cache,
                         Environment& environment)
    : files_(std::move(files)),
      wake_(std::move(wake)),
      policy_(budget_bytes),
      cache_(std::move(cache)),
      environment_(environment),
      limit_bytes_(budget_bytes),
      thread_([this] { run(); }) {}

MemoryWatch::~MemoryWatch() {
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

bool MemoryWatch::scarce() const {
  const auto info = files_.meminfo();
  return info && is_scarce(*info);
}

void MemoryWatch::run() {
  bool pressed = true;  // the first look comes soon
  for (;;) {
    std::array<pollfd, 2> waits{pollfd{wake_.get(), POLLIN, 0}, pollfd{files_.trigger(), POLLPRI, 0}};
    ::poll(waits.data(), waits.size(), pressed ? kBetweenMs : kLookMs);
    if ((waits[0].revents & POLLIN) != 0) return;
    // The trigger of a group that is gone.
    const bool broken = (waits[1].revents & (POLLERR | POLLNVAL)) != 0;
    if (broken) files_.forget_trigger();
    pressed = (!broken && (waits[1].revents & POLLPRI) != 0) || scarce();
    const MemoryDecision decision = policy_.decide(
        {pressed, cache_.used_bytes(), cache_.idle_ns(), environment_.monotonic_ns(), cache_.freed_bytes()});
    if (decision.limit_bytes != limit_bytes_) {
      if (pressed) spdlog::info("memory is short: the cache shrinks to {} MiB", decision.limit_bytes >> 20);
      limit_bytes_ = decision.limit_bytes;
      cache_.set_limit(limit_bytes_);
    }
    if (decision.trims_to) cache_.trim_to(*decision.trims_to);
    if (decision.gives_back) cache_.give_back();
    if (decision.trims_allocator) cache_.trim_allocator();
  }
}

}  // namespace mdfs::fuse
