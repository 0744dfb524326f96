// Staged window writes.
// SPDX-License-Identifier: Apache-2.0
#include "views/staging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/checked.h"

namespace mdfs::views {
namespace {

constexpr std::uint32_t kRoot = 0;

}  // namespace

bool may_have_more(std::uint32_t owner, std::uint64_t own, std::uint64_t all, std::uint64_t more, std::uint64_t limit) {
  if (all > limit || more > limit - all) return false;
  const std::uint64_t left_by_others = limit - (all - own);
  return owner == kRoot || own + more <= left_by_others / 2;
}

Result<std::unique_ptr<StagingPool>> StagingPool::open(const std::string& directory, const StagingLimits& limits) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return from_errno(errno, "staging directory " + directory);
  return std::unique_ptr<StagingPool>(new StagingPool(directory, fd, limits));
}

StagingPool::~StagingPool() { ::close(directory_fd_); }

bool StagingPool::take_memory(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > limits_.memory_bytes - std::min(memory_used_, limits_.memory_bytes)) return false;
  memory_used_ += bytes;
  return true;
}

void StagingPool::give_back_memory(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  memory_used_ -= bytes;
}

Status StagingPool::take_file(std::uint32_t owner, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = by_owner_.find(owner);
  const Files own = found == by_owner_.end() ? Files{} : found->second;
  const bool few = may_have_more(owner, own.count, all_.count, 1, limits_.files);
  if (!few || !may_have_more(owner, own.bytes, all_.bytes, bytes, limits_.file_bytes))
    return Error{Errc::kNoSpace,
                 fmt::format("user {} is writing {} windows of {} bytes, all users {} of {}; {} of {} are possible, of "
                             "which a user may have half of what the others leave",
                             owner, own.count, own.bytes, all_.count, all_.bytes, limits_.files, limits_.file_bytes)};
  for (Files* of : {&by_owner_[owner], &all_}) {
    ++of->count;
    of->bytes += bytes;
  }
  return {};
}

void StagingPool::give_back_file(std::uint32_t owner, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  for (Files* of : {&by_owner_[owner], &all_}) {
    --of->count;
    of->bytes -= bytes;
  }
  if (by_owner_[owner].count == 0) by_owner_.erase(owner);
}

Status StagingPool::try_file() {
  const auto file = new_file();
  if (file.ok()) ::close(*file);
  if (!file.ok() && file.error().code == Errc::kAccessDenied)
    return Error{file.error().code,
                 fmt::format("staging directory {}: uid {} cannot create files there", directory_, ::geteuid())};
  return {};
}

Result<int> StagingPool::new_file() {
  const int fd = ::openat(directory_fd_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return from_errno(errno, "staging file");
  return fd;
}

Staging::Staging(StagingPool& pool, std::uint32_t owner, std::uint64_t capacity, bool in_memory)
    : pool_(pool), owner_(owner), capacity_(capacity), memory_(in_memory ? capacity : 0) {}

Result<std::unique_ptr<Staging>> Staging::create(StagingPool& pool, std::uint32_t owner, std::uint64_t capacity) {
  MDFS_CHECK(capacity > 0);
  if (pool.take_memory(capacity)) return std::unique_ptr<Staging>(new Staging(pool, owner, capacity, true));
  MDFS_TRY(pool.take_file(owner, capacity));
  std::unique_ptr<Staging> staging(new Staging(pool, owner, capacity, false));
  MDFS_TRY_ASSIGN(staging->file_, pool.new_file());
  return staging;
}

Staging::~Staging() {
  if (file_ >= 0) ::close(file_);
  if (memory_.empty()) {
    pool_.give_back_file(owner_, capacity_);
  } else {
    pool_.give_back_memory(capacity_);
  }
}

Status Staging::write(std::uint64_t offset, ConstBytes from) {
  MDFS_CHECK(inside(offset, from.size(), capacity_));
  if (written_.count() >= kMaxPieces) return Error{Errc::kNoSpace, "the window is written in too many pieces"};
  const ByteRange range{offset, offset + from.size()};
  if (file_ < 0) {
    std::copy(from.begin(), from.end(), memory_.data() + offset);
  } else {
    while (!from.empty()) {
      const ssize_t count = ::pwrite(file_, from.data(), from.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return from_errno(count < 0 ? errno : EIO, "staging file");
      from = from.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
  }
  written_.add(range);
  return {};
}

Status Staging::read(std::uint64_t offset, MutableBytes into) const {
  MDFS_CHECK(inside(offset, into.size(), capacity_));
  if (file_ < 0) {
    std::copy_n(memory_.data() + offset, into.size(), into.begin());
    return {};
  }
  while (!into.empty()) {
    const ssize_t count = ::pread(file_, into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return from_errno(count < 0 ? errno : EIO, "staging file");
    into = into.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

}  // namespace mdfs::views
