// Figures of merit: of one image, and of all of them in turn.
// SPDX-License-Identifier: Apache-2.0
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::int64_t kWalkNs = 200'000'000;  // of one question about the volume

}  // namespace

Result<layout::Merit> VolumeImpl::merit(Ino ino, const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
  if (!use.geometry()) return Error{Errc::kNotImage, "inode " + std::to_string(ino)};
  return engine_->merit(*use, stop);
}

Result<engine::MoveOutcome> VolumeImpl::move_data(Ino ino, const engine::MoveRequest& request) {
  MDFS_TRY(check_writable());
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
  return engine_->move(*use, request);
}

Status VolumeImpl::walk_merits(std::int64_t until_ns, const engine::Stop& stop) {
  do {
    if (merits_next_ == 0) merits_so_far_ = {};
    MDFS_TRY_ASSIGN(const std::vector<FileItem> files, next_files(*store_, merits_next_));
    for (const FileItem& file : files) {
      if (!file.inode.is_image() || file.inode.stored_bytes == 0) continue;
      const Result<layout::Merit> found = merit(file.ino, stop);
      if (!found.ok() && found.error().code == Errc::kCancelled) {
        merits_next_ = file.ino;  // the next caller looks at this one again
        return found.error();
      }
      if (!found.ok() || found->windows == 0) continue;  // removed meanwhile; what is damaged others report
      ++merits_so_far_.images;
      merits_so_far_.merit += *found;
      if (found->score() <= merits_so_far_.worst_score) continue;
      merits_so_far_.worst_score = found->score();
      merits_so_far_.worst = file.ino;
    }
    if (merits_next_ != 0) continue;
    merits_so_far_.complete = true;
    merits_ = merits_so_far_;
    return {};
  } while (environment_.monotonic_ns() < until_ns);
  return {};
}

Result<VolumeMerit> VolumeImpl::volume_merit(const engine::Stop& stop) {
  const std::lock_guard lock(merits_mutex_);
  MDFS_TRY(walk_merits(environment_.monotonic_ns() + kWalkNs, stop));
  return merits_.complete ? merits_ : merits_so_far_;
}

}  // namespace mdfs::volume
