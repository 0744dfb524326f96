// Asking a mount about an image, through its ioctls.
// SPDX-License-Identifier: Apache-2.0
#include "mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "convert.h"
#include "geometry/extent_grid.h"
#include "mdfs/ondisk.h"

namespace mdfs::tools {
namespace {

constexpr std::size_t kReadBytes = 1u << 20;                    // the kernel asks for no more at a time
constexpr std::uint64_t kMostExtents = std::uint64_t{1} << 20;  // of an image that is compared
constexpr std::uint64_t kMostWindowBytes = std::uint64_t{4} << 30;
static_assert(sim::ReadRules{}.sub_block_bytes == MDFS_SUB_BLOCK);

template <typename T>
Status ask(const File& file, unsigned long command, T& value) {
  if (::ioctl(file.fd(), command, &value) == 0) return {};
  if (errno == ENOTTY) return Error{Errc::kInvalidArgument, file.name() + ": not on a mounted MDFS volume"};
  if (errno == EINVAL && command == MDFS_IOC_GET_GEOMETRY)
    return Error{Errc::kInvalidArgument, file.name() + ": not an image"};
  return from_errno(errno, file.name());
}

}  // namespace

Result<MountedImage> MountedImage::open(const std::string& path) {
  MountedImage image;
  // Where the kernel cannot map direct_io files, windows are bound with O_DIRECT only.
  MDFS_TRY_ASSIGN(image.file_, File::open(path, O_RDONLY | O_DIRECT));
  MDFS_TRY(image.look());
  return image;
}

Status MountedImage::look() {
  MDFS_TRY(ask(file_, MDFS_IOC_GET_GEOMETRY, info_));
  MDFS_TRY_ASSIGN(geometry_, client::to_geometry(info_));
  mdfs_ioc_volume volume{};
  MDFS_TRY(ask(file_, MDFS_IOC_VOLUME, volume));
  disks_ = volume.disk_count;
  block_size_ = volume.block_size;
  cache_bytes_ = volume.cache_budget_bytes;
  if (disks_ == 0 || disks_ > MDFS_IOC_MAX_DISKS)
    return Error{Errc::kNotSupported, fmt::format("{}: the volume has {} disks; this program supports 1 to {}",
                                                  file_.name(), disks_, MDFS_IOC_MAX_DISKS)};
  if (block_size_ == 0) return Error{Errc::kCorrupt, file_.name() + ": the daemon's answer is invalid"};
  for (unsigned i = 0; i < disks_; ++i)
    disk_bytes_.push_back(static_cast<double>(volume.disks[i].blocks) * block_size_);
  mdfs_ioc_model model{};
  if (::ioctl(file_.fd(), MDFS_IOC_MODEL, &model) == 0)
    modelled_hash_ = std::string(model.hash, strnlen(model.hash, sizeof model.hash));
  return {};
}

Result<std::shared_ptr<const sim::StoredImage>> MountedImage::stored() {
  auto stored = std::make_shared<sim::StoredImage>();
  const geometry::ByteGeometry bytes = geometry::byte_geometry(geometry_);
  const std::uint64_t extents = geometry::extent_count(geometry_.rank, geometry_.grid());
  if (extents > kMostExtents)
    return Error{Errc::kTooBig, fmt::format("{}: more than {} extents", file_.name(), kMostExtents)};
  stored->places.resize(extents);
  stored->disk_bytes = disk_bytes_;
  stored->rules.block_bytes = block_size_;
  stored->rules.sub_block_bytes = geometry_.codec == geometry::Codec::kRaw ? MDFS_SUB_BLOCK : 0;
  auto page = std::make_unique<mdfs_ioc_layout>();
  for (;;) {
    MDFS_TRY(ask(file_, MDFS_IOC_LAYOUT, *page));
    if (page->count == 0) break;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(page->count, MDFS_IOC_LAYOUT_ROWS); ++i) {
      const auto& row = page->rows[i];
      if ((row.flags & (MDFS_IOC_LAYOUT_STRIP | MDFS_IOC_LAYOUT_COPY)) != 0) continue;
      geometry::Coord at{};
      std::copy_n(row.index, geometry_.rank, at.begin());
      const std::uint64_t index = geometry::extent_index(bytes, at);
      if (index >= extents) return Error{Errc::kCorrupt, file_.name() + ": a layout beyond the image"};
      stored->places[index] = {row.disk, row.block * page->block_size, row.stored_bytes};
    }
  }
  geometry::Window corner;
  for (unsigned axis = 0; axis < geometry_.rank; ++axis) corner.length[axis] = 1;
  mdfs_ioc_plan plan{};
  plan.window = client::from_window(geometry_, corner);
  MDFS_TRY(ask(file_, MDFS_IOC_PLAN, plan));
  stored->rules.max_request_bytes = plan.largest_request_bytes;
  if (stored->rules.max_request_bytes == 0)
    return Error{Errc::kNotSupported, file_.name() + ": the mount does not say how large its requests are"};
  return std::shared_ptr<const sim::StoredImage>(std::move(stored));
}

Result<MountPlan> MountedImage::plan(const geometry::Window& window) {
  mdfs_ioc_plan plan{};
  plan.window = client::from_window(geometry_, window);
  MDFS_TRY(ask(file_, MDFS_IOC_PLAN, plan));
  MountPlan result{.cached_extents = plan.cached, .requests = {}, .bytes = {}};
  for (unsigned i = 0; i < disks_; ++i) {
    result.requests.push_back(plan.disks[i].requests);
    result.bytes.push_back(plan.disks[i].bytes);
  }
  return result;
}

Result<std::uint64_t> MountedImage::late_requests() const {
  std::uint64_t late = 0;
  if (!modelled_hash_) return late;
  mdfs_ioc_model model{};
  MDFS_TRY(ask(file_, MDFS_IOC_MODEL, model));
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(model.disk_count, MDFS_IOC_MAX_DISKS); ++i)
    late += model.disks[i].late;
  return late;
}

Result<double> MountedImage::timed_read(const geometry::Window& window) {
  using Clock = std::chrono::steady_clock;
  const std::uint64_t bytes = geometry::window_bytes(geometry_, window);
  if (bytes > kMostWindowBytes)
    return Error{Errc::kTooBig,
                 fmt::format("a window of {} bytes; at most {} are read at a time", bytes, kMostWindowBytes)};
  const std::size_t room = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  if (buffer_.size() < room) {
    buffer_ = AlignedBuffer(room);
    std::memset(buffer_.data(), 0, room);  // its pages are there before the clock runs
  }
  mdfs_ioc_window bound = client::from_window(geometry_, window);
  const Clock::time_point begun = Clock::now();
  MDFS_TRY(ask(file_, MDFS_IOC_BIND, bound));
  for (std::uint64_t at = 0; at < bytes; at += kReadBytes) {
    const std::size_t wanted = std::min<std::uint64_t>(kReadBytes, bytes - at);
    MDFS_TRY_ASSIGN(const std::size_t got, file_.read_at(at, buffer_.bytes().subspan(at, wanted)));
    if (got != wanted) return Error{Errc::kIo, fmt::format("{}: a window ends after {} bytes", file_.name(), at + got)};
  }
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

}  // namespace mdfs::tools
