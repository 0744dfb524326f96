// Fragmentation: of one image, and of all of them in turn.
// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::int64_t kWalkNs = 200'000'000;  // of one question about the volume

}  // namespace

Result<layout::Fragmentation> VolumeImpl::fragmentation(Ino ino, const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  if (!use.geometry()) return Error{Errc::kNotImage, "inode " + std::to_string(ino)};
  return engine_->fragmentation(*use, stop);
}

Result<engine::MoveOutcome> VolumeImpl::move_data(Ino ino, const engine::MoveRequest& request) {
  MDFS_TRY(check_writable());
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  return engine_->move(*use, request);
}

Status VolumeImpl::walk_fragmentation(std::int64_t until_ns, const engine::Stop& stop) {
  do {
    if (fragmentation_next_ == 0) fragmentation_so_far_ = {};
    MDFS_TRY_ASSIGN(const std::vector<FileItem> files, next_files(*store_, fragmentation_next_));
    for (const FileItem& file : files) {
      if (!file.inode.is_image() || file.inode.stored_bytes == 0) continue;
      const Result<layout::Fragmentation> found = fragmentation(file.ino, stop);
      if (!found.ok() && found.error().code == Errc::kCancelled) {
        fragmentation_next_ = file.ino;  // the next caller looks at this one again
        return found.error();
      }
      if (!found.ok() || found->windows == 0) continue;  // removed meanwhile; what is damaged others report
      ++fragmentation_so_far_.images;
      fragmentation_so_far_.fragmentation += *found;
      if (found->factor() <= fragmentation_so_far_.worst_factor) continue;
      fragmentation_so_far_.worst_factor = found->factor();
      fragmentation_so_far_.worst = file.ino;
    }
    if (fragmentation_next_ != 0) continue;
    fragmentation_so_far_.complete = true;
    fragmentation_ = fragmentation_so_far_;
    return {};
  } while (environment_.monotonic_ns() < until_ns);
  return {};
}

Result<VolumeFragmentation> VolumeImpl::volume_fragmentation(const engine::Stop& stop) {
  const std::lock_guard lock(fragmentation_mutex_);
  const std::int64_t until_ns = environment_.monotonic_ns() + kWalkNs;
  // A disk that does not answer ends the walk as well.
  const StopScope scope([&] { return (stop && stop()) || environment_.monotonic_ns() >= until_ns; });
  const Status walked = walk_fragmentation(until_ns, stop);
  if (!walked.ok() && (walked.error().code != Errc::kCancelled || (stop && stop()))) return walked.error();
  return fragmentation_.complete ? fragmentation_ : fragmentation_so_far_;
}

}  // namespace mdfs::volume
