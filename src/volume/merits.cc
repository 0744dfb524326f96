// Figures of merit: of one image, and of all of them in turn.
// SPDX-License-Identifier: Apache-2.0
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::int64_t kWalkNs = 200'000'000;  // of one question about the volume
constexpr std::size_t kImagesAtOnce = 64;

}  // namespace

Result<layout::Merit> VolumeImpl::data_merit(Ino ino) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
  return engine_->merit(*use, {});
}

Result<layout::Merit> VolumeImpl::merit(Ino ino, const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
  if (!use.geometry()) return Error{Errc::kNotImage, "inode " + std::to_string(ino)};
  return engine_->merit(*use, stop);
}

Result<layout::DefragPlan> VolumeImpl::plan_defrag(Ino ino, std::uint64_t from) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
  return engine_->plan_defrag(*use, from);
}

Result<engine::MoveOutcome> VolumeImpl::move_data(Ino ino, const engine::MoveRequest& request) {
  MDFS_TRY(check_writable());
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
  return engine_->move(*use, request);
}

// The inode is the first item of its object; behind the last object that was seen the next one begins.
Result<std::vector<VolumeImpl::FileItem>> VolumeImpl::next_files(Ino& next) {
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  store_->scan({next, 0, 0}, {UINT64_MAX, UINT64_MAX, UINT64_MAX}, kImagesAtOnce));
  std::vector<FileItem> files;
  for (const store::Item& item : items) {
    if (item.key.object == MDFS_OBJECT_VOLUME || item.key.kind != MDFS_KIND_INODE) continue;
    const Result<format::Inode> inode = format::decode_inode(item.value);
    if (!inode.ok()) continue;  // what is damaged others report
    if (inode->is_regular() && inode->links > 0) files.push_back({item.key.object, *inode});
  }
  next = items.size() < kImagesAtOnce ? 0 : items.back().key.object + 1;
  return files;
}

Status VolumeImpl::walk_merits(std::int64_t until_ns, const engine::Stop& stop) {
  do {
    if (merits_next_ == 0) merits_so_far_ = {};
    MDFS_TRY_ASSIGN(const std::vector<FileItem> files, next_files(merits_next_));
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
