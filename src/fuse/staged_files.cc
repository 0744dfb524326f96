// The table of staged files.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/staged_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "views/staging.h"

namespace mdfs::fuse {

Status empty_staged(StagedFile& file) {
  const std::lock_guard lock(file.mutex);
  if (!file.writer) return {Errc::kBusy, file.key};
  file.writer->clear();
  file.size_bytes = 0;
  return {};
}

std::uint64_t StagedView::size_bytes() const {
  const std::lock_guard lock(file_->mutex);
  return file_->size_bytes;
}

Result<std::size_t> StagedView::read(std::uint64_t offset, MutableBytes into, const engine::Stop&) {
  const std::lock_guard lock(file_->mutex);
  if (!file_->writer) return Error{Errc::kBusy, file_->key + ": it has become a chunk"};
  return file_->writer->read(offset, into);
}

Result<std::shared_ptr<StagedFile>> StagedFiles::open(const Request& request,
                                                      std::unique_ptr<views::ChunkWriter> writer) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_key_.find(request.key); found != by_key_.end()) {
    if (request.exclusive) return Error{Errc::kExists, request.key};
    ++found->second->opens;
    return found->second;
  }
  const auto has_room = [&] {
    const auto own = std::count_if(by_key_.begin(), by_key_.end(),
                                   [&](const auto& entry) { return entry.second->uid == request.uid; });
    return views::may_have_more(request.uid, static_cast<std::uint64_t>(own), by_key_.size(), 1, kMost);
  };
  while (!has_room())
    if (!drop_oldest_closed(request.uid))
      return Error{Errc::kNoSpace, fmt::format("user {} is writing too many chunks at once; all users together may "
                                               "write {}, and a user half of what the others leave",
                                               request.uid, kMost)};
  auto file = std::make_shared<StagedFile>(next_++, request.key, request.image, request.chunk);
  file->is_lock = request.is_lock;
  file->uid = request.uid;
  file->gid = request.gid;
  file->mode = request.mode;
  file->opens = 1;
  file->writer = std::move(writer);
  by_key_.emplace(request.key, file);
  return file;
}

void StagedFiles::reopen(StagedFile& file) {
  const std::lock_guard lock(mutex_);
  ++file.opens;
}

void StagedFiles::close(const std::shared_ptr<StagedFile>& file) {
  const std::lock_guard lock(mutex_);
  if (--file->opens > 0) return;
  if (!file->named || file->is_lock) take_name(*file);
  if (closed_of(file->uid) > kMostClosed) drop_oldest_closed(file->uid);
}

std::shared_ptr<StagedFile> StagedFiles::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

bool StagedFiles::has_name(const StagedFile& file) const {
  const std::lock_guard lock(mutex_);
  return file.named;
}

void StagedFiles::remove(StagedFile& file) {
  const std::lock_guard lock(mutex_);
  take_name(file);
}

bool StagedFiles::drop_oldest(uid_t uid) {
  const std::lock_guard lock(mutex_);
  return drop_oldest_closed(uid);
}

void StagedFiles::take_name(StagedFile& file) {
  if (file.opens == 0) {  // no descriptor can write the bytes or rename them any more
    const std::lock_guard lock(file.mutex);
    file.writer.reset();
  }
  if (std::exchange(file.named, false)) by_key_.erase(std::string(file.key));
}

std::size_t StagedFiles::closed_of(uid_t uid) const {
  const auto closed = [&](const auto& entry) { return entry.second->uid == uid && entry.second->opens == 0; };
  return static_cast<std::size_t>(std::count_if(by_key_.begin(), by_key_.end(), closed));
}

bool StagedFiles::drop_oldest_closed(uid_t uid) {
  std::shared_ptr<StagedFile> oldest;
  for (const auto& [key, file] : by_key_)
    if (file->uid == uid && file->opens == 0 && (!oldest || file->number < oldest->number)) oldest = file;
  if (!oldest) return false;
  take_name(*oldest);
  return true;
}

}  // namespace mdfs::fuse
