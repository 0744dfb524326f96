// Files that have data on disks which are missing or have failed.
// SPDX-License-Identifier: Apache-2.0
#include "volume/piece_collector.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::int64_t kLookNs = 200'000'000;  // of one call

}  // namespace

// A call ends between two files.
Result<LostFiles> VolumeImpl::lost_files(Ino from, std::size_t most, const engine::Stop& stop) {
  LostFiles found;
  found.disks = store_->lost_disks();
  store::Verifier* const verifier = store_->verifier();
  if (found.disks == 0 || verifier == nullptr) return found;
  PieceCollector collector(*store_, *verifier, false);
  format::OperationRecord unread;
  LostFile file;
  const std::int64_t until_ns = environment_.monotonic_ns() + kLookNs;
  const auto end_file = [&] {
    if (file.ino == 0) return;
    ++found.looked_at;
    found.looked_at_bytes += file.stored_bytes;
    if (file.lost_bytes > 0) found.files.push_back(file);
  };
  format::Key next{from, 0, 0};
  for (bool more = true; more;) {
    MDFS_TRY(engine::stopped(stop));
    std::vector<StoredPiece> pieces;
    more = collector.collect(next, pieces, unread);
    found.unreadable_items = unread.items_failed;
    for (const StoredPiece& piece : pieces) {
      if (piece.object != file.ino) {
        end_file();
        file = {.ino = piece.object};
        if (found.files.size() >= most || environment_.monotonic_ns() > until_ns) {
          found.next = piece.object;
          return found;
        }
      }
      // What has a copy, or is in a group, is lost with two pieces.
      const bool has_other = piece.is_protected() && (piece.other_disks() & found.disks) == 0;
      const std::uint64_t lost = has_other ? 0
                                 : (format::StoredExtent::disks_of(piece.runs) & found.disks) != 0
                                     ? (piece.disks() | piece.others.disks()) & found.disks
                                     : 0;
      file.stored_bytes += piece.stored_bytes;
      if (lost != 0) file.lost_bytes += piece.stored_bytes;
      file.disks |= lost;
    }
  }
  end_file();
  return found;
}

}  // namespace mdfs::volume
