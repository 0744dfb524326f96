// Mounted volumes seen from outside: images and ioctls on a path.
// SPDX-License-Identifier: Apache-2.0
#include "mounted.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "disk_paths.h"
#include "support/file.h"
#include "support/text.h"
#include "volume_errors.h"
#include "volume_text.h"

namespace mdfs::tools {

Error library_error(long result, const std::string& path) {
  const auto number = static_cast<int>(-result);
  const std::string words = mdfs_last_error();
  if (words.empty()) return from_errno(number, path);
  // The library's line begins with the text of its error: the exit code is that error's.
  for (const ErrcInfo& row : error_table())
    if (row.posix_errno == number && words.starts_with(std::string(row.text) + ": "))
      return {row.code, words.substr(row.text.size() + 2)};
  return {Errc::kUsage, words};  // printed as it is
}

Result<Image> open_image(const std::string& path, int flags) {
  mdfs_image* image = nullptr;
  const int result = mdfs_open(path.c_str(), flags, &image);
  if (result < 0) return library_error(result, path);
  return Image(image);
}

Result<mdfs_ioc_geometry> image_info(mdfs_image& image, const std::string& path) {
  mdfs_ioc_geometry info{};
  const int result = mdfs_info(&image, &info);
  if (result < 0) return library_error(result, path);
  return info;
}

Result<mdfs_ioc_volume> volume_info(const std::string& path) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY | O_NONBLOCK));
  mdfs_ioc_volume volume{};
  if (::ioctl(file.fd(), MDFS_IOC_VOLUME, &volume) == 0) return volume;
  if (errno == ENOTTY || errno == EINVAL || errno == EOPNOTSUPP) return Error{Errc::kNotTty, path};
  return from_errno(errno, path);
}

Result<mdfs_ioc_disks> disk_counters(const std::string& path, bool reset) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY | O_NONBLOCK));
  mdfs_ioc_disks disks{};
  disks.struct_bytes = sizeof disks;
  disks.flags = reset ? MDFS_IOC_DISKS_RESET : 0;
  if (::ioctl(file.fd(), MDFS_IOC_DISKS, &disks) == 0) return disks;
  if (errno == ENOTTY) return Error{Errc::kNotTty, path};
  if (errno == EPERM) return Error{Errc::kNotPermitted, path + ": requires root or the owner of the mount"};
  if (errno == ESTALE) return stale_disk_error(path);
  return from_errno(errno, path);
}

Error stale_disk_error(const std::string& path) {
  return {Errc::kNotPermitted,
          path +
              ": a disk is missing, and this would make it stale: attach it and mount again, or give it up with "
              "'mdfs disk remove'; 'mdfs volume status' names it"};
}

std::vector<std::string> all_errors(const mdfs_ioc_volume& volume, const std::string& path) {
  std::vector<std::string> all = volume_errors(volume);
  for (std::string& line : rescues(volume)) all.push_back(std::move(line));
  if (const auto counted = disk_counters(path); counted.ok()) {
    const std::vector<std::string> errors = disk_errors(volume, *counted);
    all.insert(all.end(), errors.begin(), errors.end());
  }
  return all;
}

Result<std::optional<mdfs_ioc_model>> model_info(const std::string& path) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY | O_NONBLOCK));
  mdfs_ioc_model model{};
  if (::ioctl(file.fd(), MDFS_IOC_MODEL, &model) == 0) return std::optional(model);
  if (errno == ENODATA) return std::optional<mdfs_ioc_model>();
  return from_errno(errno, path);
}

Result<mdfs_ioc_fragmentation> image_fragmentation(const std::string& path) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY | O_NONBLOCK));
  mdfs_ioc_fragmentation fragmentation{};
  if (::ioctl(file.fd(), MDFS_IOC_FRAGMENTATION, &fragmentation) == 0) return fragmentation;
  return from_errno(errno, path);
}

std::optional<mdfs_ioc_fragmentation> volume_fragmentation(const std::string& path) {
  const auto file = File::open(path, O_RDONLY | O_NONBLOCK);
  mdfs_ioc_fragmentation fragmentation{};
  if (!file.ok() || ::ioctl(file->fd(), MDFS_IOC_VOLUME_FRAGMENTATION, &fragmentation) != 0) return {};
  return fragmentation;
}

std::string fragmentation_json(const mdfs_ioc_fragmentation& fragmentation, bool of_volume) {
  std::string json = fmt::format(
      "{{\"factor\": {:.4f}, \"imbalance\": {:.4f}, \"runs_per_disk\": {:.4f}, \"runs_on_busiest\": {:.4f}, "
      "\"fresh_runs_per_disk\": {:.4f}, "
      "\"fresh_runs_on_busiest\": {:.4f}, \"read_per_needed\": {:.4f}, \"extents\": {}, \"misplaced\": {}, "
      "\"scattered\": {}, \"windows\": {}",
      fragmentation.factor, fragmentation.imbalance, fragmentation.runs_per_disk, fragmentation.runs_on_busiest,
      fragmentation.fresh_runs_per_disk, fragmentation.fresh_runs_on_busiest, fragmentation.read_per_needed,
      fragmentation.extents, fragmentation.misplaced, fragmentation.scattered, fragmentation.windows);
  if (of_volume)
    json += fmt::format(
        ", \"images\": {}, \"complete\": {}, \"worst_factor\": {:.4f}, \"worst_inode\": {}, "
        "\"relocated_home\": {}, \"relocated_home_bytes\": {}, \"away_from_home\": {}",
        fragmentation.images, fragmentation.complete != 0, fragmentation.worst_factor, fragmentation.worst_inode,
        fragmentation.relocated_home, fragmentation.relocated_home_bytes, fragmentation.away_from_home);
  return json + "}";
}

std::string fragmentation_text(const mdfs_ioc_fragmentation& fragmentation) {
  return fmt::format(
      "fragmentation {:.2f}, imbalance {:.2f}: a typical window has {:.2f} runs on a disk, {:.2f} on the busiest "
      "({:.2f} and "
      "{:.2f} in a fresh copy)",
      fragmentation.factor, fragmentation.imbalance, fragmentation.runs_per_disk, fragmentation.runs_on_busiest,
      fragmentation.fresh_runs_per_disk, fragmentation.fresh_runs_on_busiest);
}

}  // namespace mdfs::tools
