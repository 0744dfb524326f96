// Unmounting, from outside the daemon.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "fuse/control.h"
#include "fuse/daemon.h"
#include "fuse/mountpoint.h"
#include "mdfs/ioctl.h"

namespace mdfs::fuse {
namespace {

// Programs that have just ended may hold their files a moment longer.
constexpr std::chrono::milliseconds kBusyGrace{1000};
constexpr std::chrono::milliseconds kAskStep{10};

Status when_free(const std::string& path, Unmount how) {
  for (auto waited = kAskStep;; waited += kAskStep) {
    const Status status = unmount_path(path, how);
    if (status.ok() || status.error().code != Errc::kBusy || waited > kBusyGrace) return status;
    std::this_thread::sleep_for(kAskStep);
  }
}

// Where one of these mounts is still there after a while: a program that is ending may take its namespace along.
std::string place_held(const std::vector<MountEntry>& mounts) {
  for (auto waited = kAskStep;; waited += kAskStep) {
    std::string place = place_still_mounted(mounts);
    if (place.empty() || waited > kBusyGrace) return place;
    std::this_thread::sleep_for(kAskStep);
  }
}

// Data that cannot be written now keep a volume mounted.
Error stays_mounted(const std::string& path, const Status& synced) {
  if (synced.error().code != Errc::kIo) return synced.error();
  return {
      Errc::kBusy,
      fmt::format("{}: not unmounted, because written data cannot be stored now ({}): a disk returns errors, or the "
                  "other bytes of an extent cannot be read. Nothing is lost: mdfs volume status names disks with "
                  "errors, and the log the inodes. Write such extents whole, or delete their files; or unmount with "
                  "--force, which loses these data",
                  path, info(Errc::kIo).text)};
}

}  // namespace

Status unmount(const std::string& mountpoint, bool by_force, const Notice& notice) {
  MDFS_TRY_ASSIGN(const std::string path, absolute_path(mountpoint));
  if (is_dead_mount(path)) {
    notice(path + ": its daemon has died; uncommitted data are lost");
    return unmount_path(path, Unmount::kLazily);
  }
  MDFS_TRY_ASSIGN(const Uuid uuid, mounted_volume(path));
  auto control = ControlClient::connect(uuid);
  if (!control.ok() && control.error().code != Errc::kNotFound) return control.error();
  if (control.ok()) MDFS_TRY(control->ask_for_end());
  // Most of the work is done while the mount is still there, and errors name what they are about. What went wrong
  // before is told once: does it still stand? What can be written later (when there is room) keeps the volume mounted;
  // what never will, since the volume has turned read-only, is told by the daemon at its end.
  Status synced = sync_mount(path);
  if (!synced.ok()) {
    const std::string before = synced.error().message();
    synced = sync_mount(path);
    if (synced.ok() || synced.error().message() != before) notice(before);
  }
  const bool is_told_later = !synced.ok() && synced.error().code == Errc::kReadOnly && control.ok();
  if (!synced.ok() && !is_told_later) {
    if (!by_force) return stays_mounted(path, synced);
    notice(fmt::format("{}: written data that cannot be stored are lost ({})", path, synced.error().message()));
  }
  std::vector<MountEntry> others = other_mounts(path);
  MDFS_TRY(when_free(path, Unmount::kNow));
  const auto elsewhere = std::ranges::stable_partition(others, std::not_fn(&MountEntry::is_elsewhere)).begin();
  const std::vector<MountEntry> of_others(elsewhere, others.end());
  others.erase(elsewhere, others.end());
  if (const std::string other = place_still_mounted(others); !other.empty())
    return Error{Errc::kBusy,
                 fmt::format("{}: unmounted; the volume stays mounted at {}, and its daemon runs until nothing is "
                             "mounted there",
                             path, other)};
  if (const std::string other = place_held(of_others); !other.empty())
    notice(fmt::format("{}: unmounted; the volume stays mounted at {}, and is waited for", path, other));
  if (control.ok()) {
    const Status outcome = control->wait_for_end(notice);
    remove_runtime_directory(uuid);
    return outcome;
  }
  notice("no control socket: cannot tell when the daemon has ended");
  return {};
}

Status wait_until_free(const std::string& mountpoint) {
  MDFS_TRY_ASSIGN(const std::string path, absolute_path(mountpoint));
  if (is_dead_mount(path)) return {};
  MDFS_TRY(mounted_volume(path));
  return when_free(path, Unmount::kAsk);
}

Status sync_mount(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return from_errno(errno, path);
  const int status = ioctl(fd, MDFS_IOC_SYNC);
  const int number = errno;
  close(fd);
  if (status == 0) return {};
  if (number == ENOTTY) return Error{Errc::kNotTty, path};
  return from_errno(number, path);
}

}  // namespace mdfs::fuse
