// Mount points.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/mountpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <mntent.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/real_path.h"
#include "device/unique_fd.h"
#include "mdfs/ioctl.h"

extern char** environ;

namespace mdfs::fuse {
namespace {

constexpr std::array<std::string_view, 13> kSystemDirectories = {
    "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"};

// devtmpfs has the number of tmpfs, and is known by its place.
constexpr std::array<std::uint32_t, 13> kPseudoFilesystems = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,   DEVPTS_SUPER_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
    DEBUGFS_MAGIC,    TRACEFS_MAGIC, SECURITYFS_MAGIC,   BPF_FS_MAGIC,       PSTOREFS_MAGIC,
    EFIVARFS_MAGIC,   SELINUX_MAGIC, NSFS_MAGIC};

Status run_fusermount(const std::string& path, Unmount how) {
  std::vector<std::string> words = {"fusermount3", "-u", "-q"};
  if (how == Unmount::kLazily) words.emplace_back("-z");
  words.emplace_back("--");
  words.push_back(path);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int failure = posix_spawnp(&child, "fusermount3", nullptr, nullptr, arguments.data(), environ))
    return from_errno(failure, "fusermount3");
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return from_errno(errno, "fusermount3");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{Errc::kBusy, path + ": fusermount3 refused; files may be open there"};
}

// The number of the user who mounted what lies on top at the path, in the words of the kernel.
std::optional<std::string> owner_of_mount(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> table(setmntent("/proc/self/mounts", "re"), endmntent);
  if (!table) return std::nullopt;
  std::optional<std::string> owner;
  while (const mntent* mount = getmntent(table.get())) {
    if (path != mount->mnt_dir) continue;
    constexpr std::string_view kOption = "user_id=";
    const char* const found = hasmntopt(mount, "user_id");
    owner.reset();
    if (found == nullptr) continue;
    const std::string_view value = std::string_view(found).substr(kOption.size());
    owner = std::string(value.substr(0, value.find(',')));
  }
  return owner;
}

// Lines of /proc/PID/mountinfo: number, parent, device, root, mount point, ...
std::vector<MountEntry> mount_table(const std::string& process) {
  std::vector<MountEntry> mounts;
  std::ifstream table("/proc/" + process + "/mountinfo");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string parent, root;
    MountEntry mount;
    mount.process = process;
    if (words >> mount.number >> parent >> mount.device >> root >> mount.place) mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::string name_of(const std::string& process) {
  std::string name;
  std::ifstream file("/proc/" + process + "/comm");
  std::getline(file, name);
  return name;
}

// The caller, and of each other mount namespace that it may look into the process with the lowest number.
std::vector<std::string> processes_of_namespaces() {
  const auto space_of = [](const std::string& process) -> std::uint64_t {
    struct stat found {};
    return ::stat(("/proc/" + process + "/ns/mnt").c_str(), &found) == 0 ? found.st_ino : 0;
  };
  std::vector<unsigned long> numbers;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const std::string name = entry.path().filename();
    unsigned long number = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (problem == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  std::vector<std::string> processes{kCaller};
  std::set<std::uint64_t> seen{0, space_of(kCaller)};
  for (const unsigned long number : numbers)
    if (seen.insert(space_of(std::to_string(number))).second) processes.push_back(std::to_string(number));
  return processes;
}

}  // namespace

Result<std::string> absolute_path(const std::string& path) {
  // The last part is not followed into: stat of a dead mount point fails.
  const std::string trimmed = without_last_slashes(path);
  if (std::optional<std::string> whole = real_path(trimmed)) return *std::move(whole);
  if (errno != ENOTCONN) return from_errno(errno, path);
  const std::size_t slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : trimmed.substr(0, slash + 1);
  const std::optional<std::string> base = real_path(parent);
  if (!base) return from_errno(errno, path);
  return (*base == "/" ? "" : *base) + "/" + (slash == std::string::npos ? trimmed : trimmed.substr(slash + 1));
}

bool is_dead_mount(const std::string& path) {
  struct statvfs answer {};  // never cached
  if (statvfs(path.c_str(), &answer) == 0) return false;
  return errno == ENOTCONN || errno == ECONNABORTED || errno == ECANCELED;  // the last: of a ring
}

Status check_mountpoint(const std::string& path) {
  constexpr const char* kAdvice = "; give a directory of its own, such as /mnt/images";
  const bool device = path.starts_with("/dev/") && path != "/dev/shm" && !path.starts_with("/dev/shm/");
  if (device || std::ranges::find(kSystemDirectories, path) != kSystemDirectories.end())
    return {Errc::kInvalidArgument, path + ": a volume here would hide a directory of the system" + kAdvice};
  struct statfs found {};
  if (::statfs(path.c_str(), &found) != 0) return from_errno(errno, path);
  if (std::ranges::find(kPseudoFilesystems, static_cast<std::uint32_t>(found.f_type)) != kPseudoFilesystems.end())
    return {Errc::kInvalidArgument, path + ": lies in a pseudo filesystem of the kernel" + kAdvice};
  return {};
}

void allow_read_ahead(const std::string& mountpoint) {
  struct statx found {};
  if (::statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_DONT_SYNC, 0, &found) != 0) return;
  const std::string file = fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", found.stx_dev_major, found.stx_dev_minor);
  const device::UniqueFd limit(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(kReadAheadBytes >> 10);
  if (limit.open() && ::write(limit.get(), text.data(), text.size()) < 0)
    spdlog::debug("{}: {}", file, std::strerror(errno));
}

Status unmount_path(const std::string& path, Unmount how) {
  if (geteuid() != 0) {
    const auto owner = owner_of_mount(path);
    if (owner && *owner != std::to_string(getuid()))
      return {Errc::kNotPermitted,
              fmt::format("{}: was mounted by the user {}; only that user and root may unmount it", path, *owner)};
    return how == Unmount::kAsk ? Status() : run_fusermount(path, how);
  }
  // The first unmount with MNT_EXPIRE of what is not in use only makes a mark, which the next use takes away.
  const int flags = how == Unmount::kLazily ? MNT_DETACH : how == Unmount::kAsk ? MNT_EXPIRE : 0;
  if (umount2(path.c_str(), UMOUNT_NOFOLLOW | flags) == 0) return {};
  if (errno == EAGAIN && how == Unmount::kAsk) return {};
  if (errno == EBUSY) return Error{Errc::kBusy, path + ": files are open there"};
  if (errno == EINVAL) return Error{Errc::kInvalidArgument, path + ": nothing is mounted there"};
  return from_errno(errno, path);
}

std::vector<MountEntry> other_mounts(const std::string& path) {
  struct statx found {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_MNT_ID, &found) != 0) return {};
  if ((found.stx_mask & STATX_MNT_ID) == 0) return {};  // before Linux 5.8
  const std::string own = std::to_string(found.stx_mnt_id);
  const std::string device = fmt::format("{}:{}", found.stx_dev_major, found.stx_dev_minor);
  std::vector<MountEntry> others;
  for (const std::string& process : processes_of_namespaces())
    for (MountEntry& mount : mount_table(process))
      if (mount.device == device && mount.number != own) others.push_back(std::move(mount));
  return others;
}

// A device number alone would not do: another mount may have got it by now.
std::string place_still_mounted(const std::vector<MountEntry>& mounts) {
  for (const MountEntry& mount : mounts) {
    const std::vector<MountEntry> now = mount_table(mount.process);
    if (std::ranges::find(now, mount) == now.end()) continue;
    if (!mount.is_elsewhere()) return mount.place;
    return fmt::format("{} in the mount namespace of process {} ({})", mount.place, mount.process,
                       name_of(mount.process));
  }
  return {};
}

Result<Uuid> mounted_volume(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return from_errno(errno, path);
  mdfs_ioc_volume answer{};
  const int status = ioctl(fd, MDFS_IOC_VOLUME, &answer);
  const int number = errno;
  ::close(fd);
  if (status != 0) {
    if (number == ENOTTY || number == ENOTDIR) return Error{Errc::kNotTty, path};
    return from_errno(number, path);
  }
  Uuid uuid;
  std::memcpy(uuid.octets.data(), answer.uuid, sizeof answer.uuid);
  return uuid;
}

}  // namespace mdfs::fuse
