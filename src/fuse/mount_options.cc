// The table of mount options.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "alloc/policy.h"
#include "base/environment.h"
#include "base/text.h"

namespace mdfs::fuse {
namespace {

constexpr std::uint64_t kMinCacheBytes = 16u << 20;
constexpr std::uint64_t kMaxCacheBytes = std::uint64_t{1} << 44;
constexpr std::uint64_t kMaxCommitSeconds = 3600;
constexpr std::uint64_t kMaxRebuildSeconds = 604800;
constexpr std::uint64_t kMinWindowBytes = 1u << 20;
constexpr std::uint64_t kMaxWindowBytes = std::uint64_t{1} << 44;

Error usage(std::string where) { return {Errc::kUsage, "mount option " + std::move(where)}; }

Result<std::uint64_t> size_between(std::string_view name, std::string_view value, std::uint64_t low,
                                   std::uint64_t high) {
  const auto bytes = parse_size(value, name);
  if (!bytes.ok() || *bytes < low || *bytes > high)
    return usage(fmt::format("{}={}: must be a size from {} to {}, such as 64M", name, value, format_size(low),
                             format_size(high)));
  return *bytes;
}

Status set_cache(std::string_view value, MountOptions& options) {
  MDFS_TRY_ASSIGN(options.cache_bytes, size_between("cache", value, kMinCacheBytes, kMaxCacheBytes));
  return {};
}

Status set_rebuild(std::string_view value, MountOptions& options) {
  if (value == "never") {
    options.rebuild_delay_ns.reset();
    return {};
  }
  const auto seconds = parse_number(value, "rebuild");
  if (!seconds.ok() || *seconds < 1 || *seconds > kMaxRebuildSeconds)
    return usage(fmt::format("rebuild={}: must be 1 to {} seconds, or never", value, kMaxRebuildSeconds));
  options.rebuild_delay_ns = static_cast<std::int64_t>(*seconds) * kNsPerSecond;
  return {};
}

Status set_streams(std::string_view value, MountOptions& options) {
  if (value == "off") {
    options.streams_limit.reset();
    return {};
  }
  double limit = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), limit);
  if (error != std::errc() || end != value.data() + value.size() || !(limit >= streams::kLeastLimit) ||
      !(limit <= streams::kMostLimit))
    return usage(fmt::format("streams={}: must be a share of the disks' time from {} to {}, or off", value,
                             streams::kLeastLimit, streams::kMostLimit));
  options.streams_limit = limit;
  return {};
}

Status set_commit(std::string_view value, MountOptions& options) {
  const auto seconds = parse_number(value, "commit");
  if (!seconds.ok() || *seconds < 1 || *seconds > kMaxCommitSeconds)
    return usage(fmt::format("commit={}: must be 1 to {} seconds", value, kMaxCommitSeconds));
  options.commit_interval_ns = static_cast<std::int64_t>(*seconds) * kNsPerSecond;
  return {};
}

Status set_rollback(std::string_view value, MountOptions& options) {
  options.rollback = 0;
  if (value.empty()) return {};
  const auto generation = parse_number(value, "rollback");
  if (!generation.ok() || *generation < 1)
    return usage(fmt::format("rollback={}: must be a generation of mdfsck --list-commits, from 1 on", value));
  options.rollback = *generation;
  return {};
}

Status set_errors(std::string_view value, MountOptions& options) {
  if (value != "eio" && value != "zero")
    return usage(fmt::format("errors={}: must be eio, or zero together with ro", value));
  options.zeros_for_lost = value == "zero";
  return {};
}

Status set_max_window(std::string_view value, MountOptions& options) {
  MDFS_TRY_ASSIGN(options.max_window_bytes, size_between("max_window", value, kMinWindowBytes, kMaxWindowBytes));
  return {};
}

Status set_policy(std::string_view value, MountOptions& options) {
  const auto policy = alloc::parse_policy(value);
  if (!policy.ok()) return usage(fmt::format("policy={}: {}", value, alloc::policy_names()));
  options.policy = *policy;
  return {};
}

Status set_io_uring(std::string_view value, MountOptions& options) {
  constexpr std::array<std::pair<std::string_view, RingUse>, 3> kUses = {
      {{"auto", RingUse::kAuto}, {"on", RingUse::kOn}, {"off", RingUse::kOff}}};
  const auto use = std::find_if(kUses.begin(), kUses.end(), [&](const auto& known) { return known.first == value; });
  if (use == kUses.end()) return usage(fmt::format("io_uring={}: must be auto, on or off", value));
  options.io_uring = use->second;
  return {};
}

Status set_channel(std::string_view value, MountOptions& options) {
  if (value != "on" && value != "off") return usage(fmt::format("channel={}: must be on or off", value));
  options.channel = value == "on";
  return {};
}

Status set_log(std::string_view value, MountOptions& options) {
  constexpr std::array<std::string_view, 7> kLevels = {"trace", "debug", "info", "warning", "error", "critical", "off"};
  if (std::find(kLevels.begin(), kLevels.end(), value) == kLevels.end())
    return usage(fmt::format("log={}: must be one of {}", value, fmt::join(kLevels, ", ")));
  options.log_level = value;
  return {};
}

Status set_staging(std::string_view value, MountOptions& options) {
  if (value.empty() || value[0] != '/')
    return usage(fmt::format("staging={}: must be an absolute path of a directory", value));
  options.staging_directory = value;
  return {};
}

Status set_model(std::string_view value, MountOptions& options) {
  if (value.empty()) return usage("model=: give the name or file of a machine, see mdfs-machine(5)");
  options.model = value;
  return {};
}

Status set_trace(std::string_view value, MountOptions& options) {
  if (value.empty()) return usage("trace=: give a file to write");
  options.trace = value;
  return {};
}

Status set_ceph_conf(std::string_view value, MountOptions& options) {
  if (value.empty()) return usage("ceph_conf=: give the ceph.conf of the cluster");
  options.ceph_conf = value;
  return {};
}

Status set_ceph_id(std::string_view value, MountOptions& options) {
  if (value.empty() || value.starts_with("client."))
    return usage(fmt::format("ceph_id={}: must be the name of a user of the cluster, without \"client.\"", value));
  options.ceph_id = value;
  return {};
}

struct RowText {
  std::string_view name, value, help, choices = {};  // of MountOptionInfo
};

struct Row {
  RowText text;
  Status (*set)(std::string_view value, MountOptions& options);
  std::string (*values)() = nullptr;   // replace {} in the help
  std::string (*choices)() = nullptr;  // of a table elsewhere
};

constexpr std::array kRows = {
    Row{{"ro", "", "mount read-only: write nothing to the disks"},
        [](std::string_view, MountOptions& options) -> Status {
          options.read_only = true;
          return {};
        }},
    Row{{"rw", "", "mount for reading and writing (the default)"},
        [](std::string_view, MountOptions& options) -> Status {
          options.read_only = false;
          return {};
        }},
    Row{{"allow_other", "", "let all users access the volume, within its permissions (the default for root)"},
        [](std::string_view, MountOptions& options) -> Status {
          options.allow_other = true;
          return {};
        }},
    Row{{"noallow_other", "", "let only the mounting user access the volume (the default for users)"},
        [](std::string_view, MountOptions& options) -> Status {
          options.allow_other = false;
          return {};
        }},
    Row{{"cache", "SIZE", "memory for extents and dirty data (16M to 16T, default: a quarter of the machine's)"},
        set_cache},
    Row{{"commit", "SECONDS", "longest time until changes reach the disks without fsync (1 to 3600, default 5)"},
        set_commit},
    Row{{"rebuild", "SECONDS",
         "time for which a disk is lost until the rebuild starts by itself, where spare room is "
         "kept (1 to 604800, default 600), or never"},
        set_rebuild},
    Row{{"streams", "SHARE",
         "of the time of each disk, at most so much is reserved for streams (0.05 to 0.9, default 0.8); off: none"},
        set_streams},
    Row{{"degraded", "", "write without a majority of the disks, or without a disk that the newest commit needs"},
        [](std::string_view, MountOptions& options) -> Status {
          options.degraded = true;
          return {};
        }},
    Row{{"rollback", "[GENERATION]", "with ro: mount an older commit, by default the one before the newest"},
        set_rollback},
    Row{{"errors", "HOW", "reads from a missing disk return an error (eio, the default) or zeros (zero, only with ro)",
         "eio,zero"},
        set_errors},
    Row{{"noatime", "", "do not update access times on read"},
        [](std::string_view, MountOptions& options) -> Status {
          options.atime = volume::AtimeMode::kNoAtime;
          options.kernel_options.emplace_back("noatime");
          return {};
        }},
    Row{{"relatime", "", "update access times after changes, or once a day (the default)"},
        [](std::string_view, MountOptions& options) -> Status {
          options.atime = volume::AtimeMode::kRelatime;
          return {};
        }},
    Row{{"nodiratime", "", "do not update access times of directories"},
        [](std::string_view, MountOptions& options) -> Status {
          if (options.atime == volume::AtimeMode::kRelatime) options.atime = volume::AtimeMode::kNoDirAtime;
          return {};
        }},
    Row{{"max_window", "SIZE", "largest window of one atomic write (1M to 16T, default 4G)"}, set_max_window},
    Row{{"staging", "DIRECTORY", "directory for windows that are being written (default /var/tmp)"}, set_staging},
    Row{{"policy", "POLICY", "allocation policy: {} (default: the policy of the volume)"},
        set_policy,
        alloc::policy_names,
        alloc::policy_list},
    Row{{"no_grouping", "", "for measurements: store extents in the order of their arrival"},
        [](std::string_view, MountOptions& options) -> Status {
          options.grouping = false;
          return {};
        }},
    Row{{"discard", "", "tell the disks about freed blocks, a few commits later; see mdfs volume trim"},
        [](std::string_view, MountOptions& options) -> Status {
          options.discard = true;
          return {};
        }},
    Row{{"nodiscard", "", "do not discard freed blocks (the default)"},
        [](std::string_view, MountOptions& options) -> Status {
          options.discard = false;
          return {};
        }},
    Row{{"model", "MACHINE", "simulate the response time of this machine, see mdfs-machine(5)"}, set_model},
    Row{{"ceph_conf", "FILE", "configuration of the RADOS cluster, for disks that are rados:POOL/NAME"}, set_ceph_conf},
    Row{{"ceph_id", "NAME", "user of the RADOS cluster (default: admin)"}, set_ceph_id},
    Row{{"trace", "FILE", "record the requests to the mount, for mdfs-sim replay"}, set_trace},
    Row{{"cached_images", "", "let images use the kernel's page cache; binding then requires O_DIRECT"},
        [](std::string_view, MountOptions& options) -> Status {
          options.cached_images = true;
          return {};
        }},
    Row{{"io_uring", "USE",
         "get requests through io_uring: auto, where the kernel has it switched on (the default), on or off",
         "auto,on,off"},
        set_io_uring},
    Row{{"channel", "USE", "let libmdfs read windows through shared memory: on (the default) or off", "on,off"},
        set_channel},
    Row{{"standby", "", "wait while another program uses the disks, then mount: to take over from a writer that fails"},
        [](std::string_view, MountOptions& options) -> Status {
          options.standby = true;
          return {};
        }},
    Row{{"foreground", "", "stay in the foreground, and log to standard error"},
        [](std::string_view, MountOptions& options) -> Status {
          options.foreground = true;
          return {};
        }},
    Row{{"log", "LEVEL", "trace, debug, info, warning (the default), error, critical or off",
         "trace,debug,info,warning,error,critical,off"},
        set_log},
};

std::vector<MountOptionInfo> make_table() {
  std::vector<MountOptionInfo> infos;
  for (const Row& row : kRows)
    infos.push_back({row.text.name, row.text.value,
                     row.values ? fmt::format(fmt::runtime(row.text.help), row.values()) : std::string(row.text.help),
                     row.choices ? row.choices() : std::string(row.text.choices)});
  return infos;
}

// Of mount(8): passed on to the kernel.
constexpr std::array<std::string_view, 8> kPassedOn = {"suid", "nosuid", "dev",   "nodev",
                                                       "exec", "noexec", "async", "sync"};
// Of mount(8), fstab(5) and the helpers of libmount: for others, or already so.
constexpr std::array<std::string_view, 24> kIgnored = {
    "defaults",      "auto",       "noauto",   "user",       "nouser",   "users", "nousers", "owner",
    "noowner",       "group",      "nogroup",  "_netdev",    "nofail",   "loud",  "silent",  "strictatime",
    "nostrictatime", "norelatime", "lazytime", "nolazytime", "diratime", "atime", "nomand",  "noiversion"};
// The same with a value.
constexpr std::array<std::string_view, 4> kIgnoredValues = {"comment", "helper", "uhelper", "subtype"};

template <typename Words>
bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Status parse_word(std::string_view word, MountOptions& options) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const bool has_value = equals != std::string_view::npos;
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& known) { return known.text.name == name; });
  if (row != kRows.end()) {
    if (has_value && row->text.value.empty()) return usage(fmt::format("{} takes no value", name));
    if (!has_value && !row->text.value.empty() && !row->text.value.starts_with('['))
      return usage(fmt::format("{} wants a value: {}={}", name, name, row->text.value));
    return row->set(has_value ? word.substr(equals + 1) : std::string_view{}, options);
  }
  if (contains(kPassedOn, word)) {
    options.kernel_options.emplace_back(word);
    return {};
  }
  if (contains(kIgnored, word) || word.starts_with("x-") || word.starts_with("X-")) return {};
  if (has_value && contains(kIgnoredValues, name)) return {};
  return usage(fmt::format("'{}' is not known", word));
}

}  // namespace

std::span<const MountOptionInfo> mount_option_table() {
  static const std::vector<MountOptionInfo> table = make_table();
  return table;
}

Status parse_mount_options(std::string_view list, MountOptions& options) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    if (!word.empty()) MDFS_TRY(parse_word(word, options));
  }
  return {};
}

Status check_mount_options(const MountOptions& options) {
  if (options.zeros_for_lost && !options.read_only)
    return usage("errors=zero: only together with ro, since what is written beside such zeros would make them last");
  if (options.standby && options.read_only) return usage("standby: not together with ro");
  return {};
}

}  // namespace mdfs::fuse
