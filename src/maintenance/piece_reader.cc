// Pieces of data: read, and compared with their checksums.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/piece_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/log.h"
#include "device/disk.h"
#include "device/urgency.h"
#include "store/read_stored.h"

namespace mdfs::maintenance {
namespace {

constexpr std::uint64_t kLargestGap = 65536;  // read over rather than around

std::string name_of(const StoredPiece& piece) {
  const store::Run& at = piece.first();
  const std::string part = piece.is_extent ? fmt::format("page {}, place {}", piece.where / 64, piece.where % 64)
                                           : fmt::format("byte {}", piece.where);
  return fmt::format("inode {}, {}{}: block {} of disk {}", piece.object, part, piece.is_copy ? ", second copy" : "",
                     at.block, at.disk);
}

}  // namespace

void PieceReader::forget() {
  pieces_.clear();
  disks_.clear();
}

std::uint64_t PieceReader::first_byte(const StoredPiece& piece) const { return piece.first().block * block_size_; }

std::uint64_t PieceReader::end_byte(const StoredPiece& piece) const {
  return first_byte(piece) + align_up(piece.stored_bytes, device::kAlignment);
}

// An address from the tree is checked before it is used.
PieceReader::Where PieceReader::place_of(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks) {
  Where where = Where::kHere;
  for (const store::Run& run : piece.runs) {
    if (run.disk >= disks.size()) return Where::kNowhere;
    const store::DiskInfo& disk = disks[run.disk];
    if (!inside(run.block, run.blocks, disk.blocks)) return Where::kNowhere;
    if (disk.is_lost()) return Where::kLost;
    if (!disk.is_there()) where = Where::kLeftOut;
  }
  return where;
}

bool PieceReader::is_there(const format::Runs& runs, const std::vector<store::DiskInfo>& disks) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const store::Run& run) { return run.disk < disks.size() && disks[run.disk].is_there(); });
}

bool PieceReader::are_others_there(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks) {
  const auto& others = piece.others.pieces();
  return is_there(piece.copy, disks) && std::all_of(others.begin(), others.end(), [&](const format::GroupPiece& other) {
           return is_there({other.run}, disks);
         });
}

void PieceReader::note_lost(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks,
                            format::OperationRecord& record) {
  const auto run = std::find_if(piece.runs.begin(), piece.runs.end(),
                                [&](const store::Run& one) { return disks[one.disk].is_lost(); });
  record.note_error({piece.object, piece.where, run->block, run->disk, MDFS_ERROR_UNREADABLE});
}

void PieceReader::begin(std::vector<StoredPiece> pieces, format::OperationRecord& record) {
  pieces_ = std::move(pieces);
  disks_.assign(members_.disk_count(), {});
  std::vector<store::DiskInfo> disks;
  for (unsigned i = 0; i < members_.disk_count(); ++i) disks.push_back(members_.disk_info(i));
  for (std::uint32_t i = 0; i < pieces_.size(); ++i) {
    const StoredPiece& piece = pieces_[i];
    const Where where = place_of(piece, disks);
    if (where == Where::kHere) disks_[piece.first().disk].order.push_back(i);
    if (where == Where::kHere || where == Where::kLeftOut || !collector_.is_current(piece)) continue;
    if (where == Where::kLost && piece.is_protected() && are_others_there(piece, disks))
      continue;  // degraded, not lost
    if (where == Where::kLost) {
      note_lost(piece, disks, record);
      continue;
    }
    spdlog::error("scrub: {}: there is no such place; run mdfsck", name_of(piece));
    record.note_error({piece.object, piece.where, piece.first().block, 0, MDFS_ERROR_SKIPPED});
  }
  for (Disk& disk : disks_)
    std::sort(disk.order.begin(), disk.order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return pieces_[a].first().block < pieces_[b].first().block; });
}

bool PieceReader::done() const {
  return std::all_of(disks_.begin(), disks_.end(), [](const Disk& disk) { return disk.next == disk.order.size(); });
}

PieceReader::Span PieceReader::next_span(unsigned index) const {
  const Disk& disk = disks_[index];
  const auto piece = [&](std::size_t i) -> const StoredPiece& { return pieces_[disk.order[i]]; };
  Span span;
  span.disk = index;
  span.first = disk.next;
  span.last = disk.next + 1;
  span.start = first_byte(piece(span.first));
  span.end = end_byte(piece(span.first));
  span.together = piece(span.first).is_contiguous() && span.end - span.start <= kReadBytes;
  if (!span.together) return span;
  while (span.last < disk.order.size()) {
    const StoredPiece& next = piece(span.last);
    if (!next.is_contiguous() || first_byte(next) > span.end + kLargestGap || end_byte(next) > span.start + kReadBytes)
      break;
    span.end = std::max(span.end, end_byte(next));
    ++span.last;
  }
  return span;
}

// Run by run.
Status PieceReader::check_alone(const StoredPiece& piece) {
  return store::verify_stored(piece, block_size_, [this](unsigned disk) { return &members_.disk(disk); });
}

// Blocks that were freed or moved meanwhile may hold other data. A piece is therefore damaged only if the tree still
// names it. It is read once more, because the error may have come from the path to the disk.
void PieceReader::judge(const StoredPiece& piece, Status status, format::OperationRecord& record,
                        const Repair& repair) {
  if (status.ok() || !collector_.is_current(piece)) return;
  status = check_alone(piece);
  if (status.ok() || !collector_.is_current(piece)) return;
  const bool damaged = status.error().code == Errc::kCorrupt;
  spdlog::error("scrub: {}: {}", name_of(piece),
                damaged ? "does not match its checksum" : "cannot be read: " + status.error().message());
  const store::Run& at = piece.first();
  if (damaged) members_.note_checksum_error(at.disk);
  if ((piece.is_extent || piece.is_protected()) && repair(piece)) {
    if (at.disk < record.disks.size()) ++record.disks[at.disk].repaired;
    ++record.items_changed;
    return;
  }
  if (!collector_.is_current(piece)) return;  // a reader of it has had it repaired meanwhile
  record.note_error({piece.object, piece.where, at.block, at.disk,
                     static_cast<std::uint16_t>(damaged ? MDFS_ERROR_DATA : MDFS_ERROR_UNREADABLE)});
}

std::uint64_t PieceReader::step(format::OperationRecord& record, const Repair& repair) {
  std::vector<Span> spans;
  for (unsigned i = 0; i < disks_.size(); ++i)
    if (disks_[i].next < disks_[i].order.size()) spans.push_back(next_span(i));
  // A disk that has become smaller meanwhile may have been cut off: what lay behind its end has moved.
  for (Span& span : spans)
    span.together = span.together && span.end <= members_.disk_info(span.disk).blocks * block_size_;
  AlignedBuffer buffer(std::max<std::size_t>(1, spans.size()) * kReadBytes);
  std::vector<device::Io> ios(spans.size());
  std::vector<device::Addressed> requests;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i].together) continue;
    ios[i].offset = spans[i].start;
    ios[i].buffers = {buffer.bytes().subspan(i * kReadBytes, spans[i].end - spans[i].start)};
    requests.push_back({&members_.disk(spans[i].disk), &ios[i]});
  }
  {
    const device::UrgencyScope scope(device::in_background());
    (void)device::run(requests);  // each request's own status counts
  }
  std::uint64_t read_bytes = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    Disk& disk = disks_[span.disk];
    std::uint64_t bytes = 0;
    for (; disk.next < span.last; ++disk.next) {
      const StoredPiece& piece = pieces_[disk.order[disk.next]];
      bytes += align_up(piece.stored_bytes, std::uint64_t{block_size_});
      ++record.items_done;
      if (!span.together || !ios[i].status.ok()) {
        if (collector_.is_current(piece)) judge(piece, check_alone(piece), record, repair);
        continue;
      }
      format::PassingBytes passing(piece);
      passing.take(ConstBytes(ios[i].buffers[0]).subspan(first_byte(piece) - span.start, piece.stored_bytes));
      judge(piece, passing.match() ? Status() : Status(Errc::kCorrupt, "data.checksum"), record, repair);
    }
    record.bytes_done += bytes;
    if (span.disk < record.disks.size()) record.disks[span.disk].read_bytes += bytes;
    read_bytes += bytes;
  }
  return read_bytes;
}

}  // namespace mdfs::maintenance
