// The options of a mount: one table for parsing, --help and the man page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse/ring_use.h"
#include "streams/streams.h"
#include "volume/volume.h"

namespace mdfs::fuse {

struct MountOptions {
  std::vector<std::string> disks;  // member disks, or directories that hold them
  std::string mountpoint;

  bool read_only = false;
  bool degraded = false;
  std::optional<bool> allow_other;        // absent: where root mounts
  bool zeros_for_lost = false;            // with ro: data on a missing disk read as zeros
  std::optional<std::uint64_t> rollback;  // to this generation; 0: to the commit before the newest
  bool foreground = false;
  bool standby = false;  // waits until the writer has gone
  bool cached_images = false;
  bool discard = false;
  RingUse io_uring = RingUse::kAuto;
  bool channel = true;  // windows through shared memory
  volume::AtimeMode atime = volume::AtimeMode::kRelatime;
  geometry::AllocationPolicy policy = geometry::AllocationPolicy::kDefault;
  bool grouping = true;
  std::optional<std::uint64_t> cache_bytes;  // absent: a part of the memory (memory_policy.h)
  std::int64_t commit_interval_ns = 5'000'000'000;
  std::optional<std::int64_t> rebuild_delay_ns = volume::VolumeOptions().rebuild_delay_ns;
  std::optional<double> streams_limit = streams::StreamOptions().limit;  // absent: no streams
  std::uint64_t max_window_bytes = std::uint64_t{4} << 30;
  std::string log_level = "warning";
  std::string staging_directory = "/var/tmp";
  std::string model;               // name or file of the machine to model; empty: none
  std::string ceph_conf, ceph_id;  // of the RADOS cluster; empty: as device::RadosCluster
  std::string trace;               // file for the record of requests; empty: none
  // As mount(2) and fusermount3 take them: "noatime", "noexec", ...
  std::vector<std::string> kernel_options;
};

struct MountOptionInfo {
  std::string_view name;   // "cache"
  std::string_view value;  // "SIZE"; empty for a flag, "[SIZE]" where it may be left out
  std::string help;        // one line
  // The values there are, "eio,zero", where it takes no others.
  std::string choices = {};
};
// MDFS's own options, in the order of the man page. Options of mount(8) itself (nosuid, noauto, _netdev, x-..) are
// accepted as well, and passed on or ignored.
std::span<const MountOptionInfo> mount_option_table();

// Parses "ro,cache=1G,.." into `options`; later words win. kUsage names the word and the allowed values.
Status parse_mount_options(std::string_view list, MountOptions& options);
// Checks that the options are compatible, after all are parsed.
Status check_mount_options(const MountOptions& options);

}  // namespace mdfs::fuse
