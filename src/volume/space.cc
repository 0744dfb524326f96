// The size of files and the holes in them: truncate, fallocate, lseek, copy_file_range.
// SPDX-License-Identifier: Apache-2.0
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>

#include "base/checked.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {

Status VolumeImpl::set_size(Ino ino, std::uint64_t size_bytes, const engine::Stop& stop) {
  MDFS_TRY(check_writable());
  if (size_bytes > format::kMaxFileBytes) return Error{Errc::kTooBig, "files have at most 2^62 bytes"};
  const Pin pin = table_.pin(ino);
  MDFS_TRY(resize(*pin, size_bytes, false, stop));
  open_objects_.data_changed(*pin);
  return {};
}

// Growing needs the extend lock only; nothing else sees a file that gets smaller.
Status VolumeImpl::resize(Inode& inode, std::uint64_t size_bytes, bool only_grow, const engine::Stop& stop) {
  const std::lock_guard extend(inode.extend_mutex);
  std::unique_lock shrink(inode.shrink_mutex, std::defer_lock);
  MDFS_TRY_ASSIGN(ObjectUse use, open_objects_.use(inode));
  const std::uint64_t now_bytes = engine_->size_bytes(*use);
  if (size_bytes == now_bytes || (only_grow && size_bytes < now_bytes)) return {};
  if (size_bytes < now_bytes) {
    use.end();
    shrink.lock();
    MDFS_TRY_ASSIGN(use, open_objects_.use(inode));
  }
  MDFS_TRY_ASSIGN(const LevelWrite writing, begin_resize(inode, use, size_bytes));
  // An image of very many extents is shortened in steps. On a full volume each step frees the room for the next.
  while (true) {
    const std::uint64_t before = engine_->size_bytes(*use);
    Status status = with_room(
        [&] { return only_grow ? engine_->grow(*use, size_bytes) : engine_->truncate(*use, size_bytes, stop); });
    if (status.ok() || status.error().code != Errc::kNoSpace || engine_->size_bytes(*use) >= before) return status;
  }
}

// Zeroes what is inside the file.
Status VolumeImpl::zero_range(Inode& inode, std::uint64_t offset, std::uint64_t length, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(inode));
  const std::uint64_t size_bytes = engine_->size_bytes(*use);
  if (offset >= size_bytes) return {};
  const std::uint64_t bytes = std::min(length, size_bytes - offset);
  MDFS_TRY_ASSIGN(const LevelWrite writing, begin_write_bytes(inode, use, offset, bytes));
  return with_room([&] { return engine_->punch(*use, offset, bytes, stop); });
}

// Allocates no blocks, because a copy-on-write store needs new ones for every write. The benefit is an early ENOSPC.
Status VolumeImpl::allocate(Ino ino, int mode, std::uint64_t offset, std::uint64_t length, const engine::Stop& stop) {
  MDFS_TRY(check_writable());
  constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const bool zeroes = (mode & ~FALLOC_FL_KEEP_SIZE) == FALLOC_FL_ZERO_RANGE;
  if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0 && !zeroes && mode != kPunch)
    return Error{Errc::kNotSupported, "mode of fallocate"};
  if (length == 0) return Error{Errc::kInvalidArgument, "fallocate: the length must be at least 1"};
  if (!inside(offset, length, format::kMaxFileBytes)) return Error{Errc::kTooBig, "files have at most 2^62 bytes"};
  const Pin pin = table_.pin(ino);
  std::uint64_t size_bytes = 0;
  {
    MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
    size_bytes = engine_->size_bytes(*use);
  }
  const std::uint64_t end = offset + length;
  if (zeroes || mode == kPunch) {
    MDFS_TRY(zero_range(*pin, offset, length, stop));
  } else if (end > size_bytes) {
    const std::uint64_t new_blocks = ceil_div(end - std::max(offset, size_bytes), store_->block_size());
    MDFS_TRY(with_room([&]() -> Status {
      MDFS_TRY_ASSIGN(const std::uint64_t available, available_blocks(ino));
      if (new_blocks <= available) return {};
      return Error{Errc::kNoSpace, "fallocate"};
    }));
  }
  if (!keeps_size) MDFS_TRY(resize(*pin, end, true));
  open_objects_.data_changed(*pin);  // the times change even if no byte does
  return {};
}

Result<std::uint64_t> VolumeImpl::available_blocks(Ino ino) {
  MDFS_TRY_ASSIGN(const format::Inode inode, read_inode(*store_, ino));
  const store::SpaceInfo space = store_->space();
  const bool twice = inode.has_copies();
  return twice ? space.available_pairs : space.available_blocks;
}

Result<std::uint64_t> VolumeImpl::seek(Ino ino, std::uint64_t offset, int whence) {
  if (whence != SEEK_DATA && whence != SEEK_HOLE) return Error{Errc::kInvalidArgument, "whence of lseek"};
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  if (offset >= engine_->size_bytes(*use)) return Error{Errc::kNoDevice, "beyond the end of the file"};
  return whence == SEEK_DATA ? engine_->next_data(*use, offset) : engine_->next_hole(*use, offset);
}

Result<std::size_t> VolumeImpl::copy_range(Ino from, std::uint64_t from_offset, Ino to, std::uint64_t to_offset,
                                           std::size_t length, const engine::Stop& stop) {
  MDFS_TRY(check_writable());
  constexpr std::uint64_t kMax = format::kMaxFileBytes;
  if (!inside(to_offset, length, kMax)) return Error{Errc::kTooBig, "files have at most 2^62 bytes"};
  if (from_offset >= kMax) return std::size_t{0};
  const std::uint64_t apart = from_offset < to_offset ? to_offset - from_offset : from_offset - to_offset;
  if (from == to && apart < length) return Error{Errc::kInvalidArgument, "the ranges overlap"};
  const Pin source = table_.pin(from);
  const Pin target = table_.pin(to);
  ByteVector buffer;
  std::size_t copied = 0;
  while (copied < length) {
    auto piece = copy_piece(*source, from_offset + copied, *target, to_offset + copied, length - copied, buffer, stop);
    if (!piece.ok() && copied == 0) return piece.error();
    if (!piece.ok() || *piece == 0) break;
    copied += *piece;
  }
  return copied;
}

// One hole, or one piece of data; how many bytes, 0 at the end of the source.
Result<std::size_t> VolumeImpl::copy_piece(Inode& from, std::uint64_t from_offset, Inode& to, std::uint64_t to_offset,
                                           std::size_t length, ByteVector& buffer, const engine::Stop& stop) {
  constexpr std::size_t kPieceBytes = 1u << 20;
  std::uint64_t hole = 0;
  std::size_t bytes = 0;
  {
    MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(from));
    const std::uint64_t size_bytes = engine_->size_bytes(*use);
    if (from_offset >= size_bytes) return std::size_t{0};
    const std::uint64_t left = std::min<std::uint64_t>(length, size_bytes - from_offset);
    const auto data = engine_->next_data(*use, from_offset);
    if (!data.ok() && data.error().code != Errc::kNoDevice) return data.error();
    hole = std::min(left, data.ok() ? *data - from_offset : left);
    if (hole == 0) {
      buffer.resize(std::min<std::uint64_t>(left, kPieceBytes));
      MDFS_TRY_ASSIGN(bytes, engine_->read(*use, from_offset, buffer, stop));
    }
  }
  if (hole == 0) return write_at(to, to_offset, ConstBytes(buffer).first(bytes), false, stop);
  MDFS_TRY(zero_range(to, to_offset, hole, stop));
  MDFS_TRY(resize(to, to_offset + hole, true));
  open_objects_.data_changed(to);
  return static_cast<std::size_t>(hole);
}

}  // namespace mdfs::volume
