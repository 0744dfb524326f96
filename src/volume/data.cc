// The data of files and images as plain bytes: open, read, write, fsync.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "base/log.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

// A write without enough space writes a part of its beginning, if that fits. The caller continues, and gets the error
// then.
constexpr std::size_t kShortWrites[] = {64u << 10, 16u << 10, 4u << 10, 1u << 10, 256};

}  // namespace

Status VolumeImpl::open_file(Ino ino, bool truncate) {
  Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const format::Inode inode, read_inode(*store_, ino));
  if (inode.is_directory()) return Error{Errc::kIsDirectory, "inode " + std::to_string(ino)};
  if (!inode.is_regular()) return Error{Errc::kInvalidArgument, "not a regular file"};
  if (truncate) MDFS_TRY(set_size(ino, 0, {}));
  table_.add_open(*pin);
  return {};
}

void VolumeImpl::release_file(Ino ino) {
  {
    const Pin pin = table_.find(ino);
    if (!pin) return;
    table_.drop_open(ino);
    open_objects_.note_idle(*pin);
  }
  open_objects_.close_idle(OpenObjects::kIdleAgeNs);
}

Result<std::size_t> VolumeImpl::read(Ino ino, std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  const Reading reading(readers_);
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  if (offset >= format::kMaxFileBytes) return std::size_t{0};
  MDFS_TRY_ASSIGN(const std::size_t bytes, engine_->read(*use, offset, into, stop));
  if (keeps_atime()) open_objects_.was_read(*pin);
  return bytes;
}

Result<std::size_t> VolumeImpl::write(Ino ino, std::uint64_t offset, ConstBytes from, bool append,
                                      const engine::Stop& stop) {
  MDFS_TRY(check_writable());
  const Pin pin = table_.pin(ino);
  return write_at(*pin, offset, from, append, stop);
}

Result<std::size_t> VolumeImpl::write_at(Inode& inode, std::uint64_t offset, ConstBytes from, bool append,
                                         const engine::Stop& stop) {
  std::unique_lock extend(inode.extend_mutex, std::defer_lock);
  if (append) extend.lock();
  MDFS_TRY_ASSIGN(ObjectUse use, open_objects_.use(inode));
  if (append) offset = engine_->size_bytes(*use);
  if (from.empty()) return std::size_t{0};
  if (!inside(offset, from.size(), format::kMaxFileBytes)) return Error{Errc::kTooBig, "files have at most 2^62 bytes"};
  if (!append && offset + from.size() > engine_->size_bytes(*use)) {
    use.end();
    extend.lock();
    MDFS_TRY_ASSIGN(use, open_objects_.use(inode));
  }
  MDFS_TRY_ASSIGN(const LevelWrite writing, begin_write_bytes(inode, use, offset, from.size()));
  Status written = with_room([&] { return engine_->write(*use, offset, from, stop); });
  for (const std::size_t bytes : kShortWrites) {
    if (written.ok() || written.error().code != Errc::kNoSpace) break;
    if (from.size() <= bytes) continue;
    from = from.first(bytes);
    written = engine_->write(*use, offset, from, stop);
  }
  if (!written.ok() && written.error().code == Errc::kCancelled)
    open_objects_.data_changed(inode);  // a part is written
  MDFS_TRY(written);
  open_objects_.data_changed(inode);
  return from.size();
}

Status VolumeImpl::fsync(Ino ino, bool data_only) {
  if (opened_read_only_) return {};
  if (const Pin pin = table_.find(ino)) MDFS_TRY(open_objects_.write_back(*pin, data_only));
  return store_->commit();
}

Status VolumeImpl::sync() {
  if (opened_read_only_) return {};
  MDFS_TRY(check_writable());  // after a commit that failed nothing can be written any more
  const Status status = write_back_all(0);
  const Status committed = store_->commit();
  return status.ok() ? committed : status;
}

}  // namespace mdfs::volume
