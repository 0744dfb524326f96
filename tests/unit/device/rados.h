// The cluster for tests: MDFS_TEST_RADOS names a pool, CEPH_CONF the configuration. `./dev rados` sets both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace mdfs::test {

inline constexpr const char* kNoRados = "no cluster: MDFS_TEST_RADOS is not set (./dev rados starts one)";

inline bool has_rados() { return std::getenv("MDFS_TEST_RADOS") != nullptr; }

// The name of a disk that does not exist yet.
inline std::string new_rados_disk() {
  static std::atomic<unsigned> next{0};
  return "rados:" + std::string(std::getenv("MDFS_TEST_RADOS")) + "/test/disk-" + std::to_string(::getpid()) + "-" +
         std::to_string(next++);
}

}  // namespace mdfs::test
