// The kernel's files of memory, and the thread that follows them.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/memory_watch.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace mdfs::fuse {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

// Files as below /.
class Root {
 public:
  Root() {
    std::string name = (std::filesystem::temp_directory_path() / "mdfs-memory-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Root() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = path_ + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string meminfo(std::uint64_t available) {
  return "MemTotal: 8388608 kB\nMemAvailable: " + std::to_string(available / 1024) + " kB\n";
}

TEST(MemoryWatchTest, TheStrictestLimitOfTheGroupsAboveCounts) {
  const Root root;
  root.write("/proc/meminfo", meminfo(kMiB));
  root.write("/proc/self/cgroup", "0::/a/b\n");
  EXPECT_FALSE(usable_memory(root.path()).cgroup_limit_bytes.has_value());
  root.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("/sys/fs/cgroup/a/memory.max", "1073741824\n");
  const UsableMemory usable = usable_memory(root.path());
  EXPECT_EQ(usable.machine_bytes, 8192 * kMiB);
  EXPECT_EQ(usable.cgroup_limit_bytes, 1024 * kMiB);
  root.write("/sys/fs/cgroup/a/b/memory.max", "536870912\n");
  EXPECT_EQ(usable_memory(root.path()).cgroup_limit_bytes, 512 * kMiB);
}

TEST(MemoryWatchTest, TheLimitOfVersionOneIsRead) {
  const Root root;
  root.write("/proc/meminfo", meminfo(kMiB));
  root.write("/proc/self/cgroup", "4:memory:/docker/1\n0::/\n");
  root.write("/sys/fs/cgroup/memory/memory.stat", "cache 1\nhierarchical_memory_limit 268435456\n");
  EXPECT_EQ(usable_memory(root.path()).cgroup_limit_bytes, 256 * kMiB);
}

TEST(MemoryWatchTest, AMachineWithoutTheseFilesHasNoTriggerAndNoLimit) {
  const Root root;
  EXPECT_EQ(usable_memory(root.path()).machine_bytes, 0u);
  const PressureFiles files = PressureFiles::open(root.path());
  EXPECT_EQ(files.trigger(), -1);
  EXPECT_FALSE(files.meminfo().has_value());
}

TEST(MemoryWatchTest, ScarceMemoryShrinksTheCacheAndTheWatchEndsAtOnce) {
  const Root root;
  root.write("/proc/meminfo", meminfo(100 * kMiB));
  std::atomic<std::uint64_t> limit{1024 * kMiB}, given_back{0}, trimmed{0};
  SystemEnvironment environment;
  const auto start = std::chrono::steady_clock::now();
  {
    const MemoryWatch watch(
        PressureFiles::open(root.path()), device::UniqueFd(::eventfd(0, EFD_CLOEXEC)), 1024 * kMiB,
        {[&] { return limit.load(); }, [] { return std::int64_t{0}; }, [&](std::uint64_t bytes) { limit = bytes; },
         [](std::uint64_t) {}, [&] { ++given_back; }, [] { return std::uint64_t{0}; }, [&] { ++trimmed; }},
        environment);
    while (limit == 1024 * kMiB && std::chrono::steady_clock::now() - start < std::chrono::seconds(60))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(limit, 768 * kMiB);
  EXPECT_GE(limit, 64 * kMiB);
  EXPECT_GE(given_back, 1u);
  EXPECT_EQ(trimmed, given_back);
}

}  // namespace
}  // namespace mdfs::fuse
