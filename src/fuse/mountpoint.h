// Mount points: dead ones, and unmounting with and without privileges.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"

namespace mdfs::fuse {

// The path from /, without links; works on a mount point whose daemon is dead.
Result<std::string> absolute_path(const std::string& path);

// How far the kernel reads a file ahead that a program reads from start to end.
inline constexpr std::uint64_t kReadAheadBytes = 1u << 20;
// Lets it do so on a FUSE mount, whose limit is 128 KiB. For root alone, who may write to sysfs; after the mounting,
// and before the daemon has answered FUSE_INIT. Asks the daemon nothing. Without the right the limit stays.
void allow_read_ahead(const std::string& mountpoint);

// True if its daemon has died: every request that the kernel does not answer from its caches fails with ENOTCONN.
bool is_dead_mount(const std::string& path);

// kInvalidArgument where a volume would hide what the system needs: the root, its own directories such as /usr and
// /run, everything below /dev but /dev/shm, and everywhere in a pseudo filesystem such as procfs. The path is absolute
// and without links.
Status check_mountpoint(const std::string& path);

enum class Unmount { kNow, kLazily, kAsk };
// umount2(2) for root, fusermount3 for others. kBusy: files are open there; kInvalidArgument: nothing is mounted there.
// kAsk changes nothing: is it busy? It is known for root alone, others are told no.
Status unmount_path(const std::string& path, Unmount how);

inline constexpr const char* kCaller = "self";
// A mount, as a process sees it.
struct MountEntry {
  std::string process;                // its number; kCaller
  std::string number, device, place;  // as proc(5) writes them
  bool is_elsewhere() const { return process != kCaller; }
  bool operator==(const MountEntry&) const = default;
};
// The other mounts of the filesystem at the path: those that the caller's namespace shows, then those of other
// namespaces, each once, as far as the caller may look into them. Asks the daemon nothing.
std::vector<MountEntry> other_mounts(const std::string& path);
// Where one of these mounts still exists: its path, and a process of its namespace. Empty: none does.
std::string place_still_mounted(const std::vector<MountEntry>& mounts);

// The volume mounted at the path. kNotTty: not an MDFS volume.
Result<Uuid> mounted_volume(const std::string& path);

}  // namespace mdfs::fuse
