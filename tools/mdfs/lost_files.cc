// Files that have data on disks which are missing or have failed.
// SPDX-License-Identifier: Apache-2.0
#include "lost_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>

#include "mounted.h"
#include "support/file.h"
#include "support/progress.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

Result<mdfs_ioc_lost> next_page(const File& file, std::uint64_t from) {
  mdfs_ioc_lost page{};
  page.next = from;
  if (::ioctl(file.fd(), MDFS_IOC_LOST, &page) != 0) return from_errno(errno, file.name() + ": lost files");
  if (page.count > MDFS_IOC_LOST_ROWS || (page.next != 0 && page.next <= from))
    return Error{Errc::kCorrupt, file.name() + ": the daemon's answer is invalid"};
  return page;
}

// Of one file: those of its disks that are not there, bits.
std::uint64_t lost_disks_of(const std::string& path) {
  const auto file = File::open(path, O_RDONLY | O_NONBLOCK);
  struct stat found {};
  if (!file.ok() || ::fstat(file->fd(), &found) != 0) return 0;
  const auto page = next_page(*file, found.st_ino);
  return page.ok() && page->count > 0 && page->rows[0].inode == found.st_ino ? page->rows[0].disks : 0;
}

}  // namespace

Result<LostFiles> lost_files(const std::string& path, const mdfs_ioc_volume& volume) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY));
  Progress bar("looking at files", (volume.total_blocks - volume.free_blocks) * volume.block_size);
  LostFiles all;
  std::uint64_t from = 0;
  do {
    MDFS_TRY_ASSIGN(const mdfs_ioc_lost page, next_page(file, from));
    for (std::uint32_t i = 0; i < page.count; ++i)
      all.files[page.rows[i].inode] = {page.rows[i].lost_bytes, page.rows[i].stored_bytes, page.rows[i].disks};
    all.disks |= page.disks;
    all.looked_at += page.looked_at;
    all.unreadable_items += page.unreadable_items;
    bar.add(page.looked_at_bytes);
    from = page.next;
  } while (from != 0);
  return all;
}

std::string lost_disk_text(const mdfs_ioc_volume& volume, std::uint32_t number) {
  const std::string name = text_of(volume.disks[number].name);
  return fmt::format("disk {} ({}{}) is {}", number, uuid_text(volume.disks[number].uuid),
                     name.empty() ? "" : ", " + name, state_name(volume.disks[number].state));
}

Error with_lost_disks(Error error, const std::string& path) {
  if (error.posix_errno() != EIO) return error;
  const auto volume = volume_info(path);
  const std::uint64_t lost = volume.ok() ? lost_disks_of(path) : 0;
  if (lost == 0) return error;
  std::string disks;
  for (const std::uint32_t number : disk_numbers(lost))
    disks += (disks.empty() ? "" : ", ") + lost_disk_text(*volume, number);
  return {
      Errc::kMissingDisk,
      fmt::format("{}: {}; attach it and mount again, or take what is there with 'mdfs image salvage'", path, disks)};
}

}  // namespace mdfs::tools
