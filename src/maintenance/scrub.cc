// The scrub, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/scrub.h"

#include <utility>

#include "base/log.h"

namespace mdfs::maintenance {

void Scrub::move_on(OperationRecord& record, What what, const format::Key& key) {
  record.cursor = {what | key.kind << 32, key.object, key.offset, 0};
}

format::Key Scrub::key_of(const OperationRecord& record) {
  return {record.cursor[1], record.cursor[0] >> 32, record.cursor[2]};
}

void Scrub::forget() {
  reader_.forget();
  pieces_.clear();
  piece_bytes_ = 0;
  collecting_ = true;
  last_batch_ = false;
  checkpoint_ = true;
}

Status Scrub::begin(OperationRun& run) {
  OperationRecord& record = run.record;
  if (record.object != 0) return {Errc::kNotSupported, "a scrub takes no file"};
  if (record.threshold != 0 || record.parameters != decltype(record.parameters){})
    return {Errc::kInvalidArgument, "a scrub has no parameters"};
  for (unsigned i = 0; i < store_.disk_count(); ++i) {
    const store::DiskInfo disk = store_.disk_info(i);
    if (disk.is_there()) record.bytes_total += (disk.blocks - disk.free_blocks) * store_.block_size();
  }
  move_on(record, kLabels, {});
  forget();
  return {};
}

Status Scrub::resume(OperationRun& run) {
  forget();
  next_ = key_of(run.record);
  return {};
}

Status Scrub::step_labels(OperationRun& run) {
  const std::uint64_t disk = run.record.cursor[1];
  if (disk >= store_.disk_count()) {
    move_on(run.record, kSpace, {});
    return {};
  }
  MDFS_TRY(verifier_.verify_labels(static_cast<unsigned>(disk), run.may_write(), run.record));
  move_on(run.record, kLabels, {disk + 1, 0, 0});
  return {};
}

Status Scrub::step_space(OperationRun& run) {
  const auto [disk, kind, page] = key_of(run.record);
  if (disk >= store_.disk_count()) {
    move_on(run.record, kNodes, {});
    return {};
  }
  const auto number = static_cast<unsigned>(disk);
  if (page >= verifier_.space_pages(number)) {
    move_on(run.record, kSpace, {disk + 1, 0, 0});
    return {};
  }
  MDFS_TRY(verifier_.verify_space(number, page, kPagesAtOnce, run.may_write(), run.record));
  move_on(run.record, kSpace, {disk, 0, page + kPagesAtOnce});
  return {};
}

Status Scrub::step_nodes(OperationRun& run) {
  MDFS_TRY_ASSIGN(const auto next, verifier_.verify_nodes(key_of(run.record), run.may_write(), run.record));
  if (next) {
    move_on(run.record, kNodes, *next);
  } else {
    next_ = {};
    move_on(run.record, kData, {});
  }
  return {};
}

// Collects a batch, or reads some of it.
Result<bool> Scrub::step_data(OperationRun& run) {
  checkpoint_ = false;
  if (collecting_) {
    const std::size_t before = pieces_.size();
    const bool more = collector_.collect(next_, pieces_, run.record);
    for (std::size_t i = before; i < pieces_.size(); ++i) piece_bytes_ += pieces_[i].stored_bytes;
    last_batch_ = !more;
    if (more && pieces_.size() < kBatchPieces && piece_bytes_ < kBatchBytes) return false;
    reader_.begin(std::exchange(pieces_, {}), run.record);
    piece_bytes_ = 0;
    collecting_ = false;
  }
  reader_.step(run.record, [&](const StoredPiece& piece) {
    if (!run.may_write()) return false;
    if (piece.is_protected()) {
      const std::uint64_t number = piece.is_extent ? piece.where : piece.where / MDFS_FILE_CELL;
      const auto repaired = volume_.repair_copies(piece.object, number);
      if (!repaired.ok()) spdlog::error("scrub: inode {}: {}", piece.object, repaired.error().message());
      return repaired.ok() && *repaired;
    }
    const auto forgotten = volume_.forget_level_extents(piece.object, {piece.where});
    if (!forgotten.ok()) spdlog::error("scrub: inode {}: {}", piece.object, forgotten.error().message());
    return forgotten.ok() && *forgotten;
  });
  if (!reader_.done()) return false;
  collecting_ = true;
  checkpoint_ = true;
  move_on(run.record, kData, next_);
  return last_batch_;
}

Result<bool> Scrub::step(OperationRun& run) {
  const std::uint64_t before = run.record.bytes_done;
  Result<bool> done = false;
  const auto what = static_cast<std::uint32_t>(run.record.cursor[0]);
  checkpoint_ = true;
  Status status;
  if (what == kLabels) status = step_labels(run);
  if (what == kSpace) status = step_space(run);
  if (what == kNodes) status = step_nodes(run);
  if (what >= kData) done = step_data(run);
  if (!status.ok()) return status.error();
  run.spend(run.record.bytes_done - before);
  if (run.record.bytes_total < run.record.bytes_done || (done.ok() && *done))
    run.record.bytes_total = run.record.bytes_done;
  return done;
}

}  // namespace mdfs::maintenance
