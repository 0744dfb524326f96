// Long operations on the volume: the item that says where one stands.
// SPDX-License-Identifier: Apache-2.0
#include "format/operation.h"

#include <algorithm>

#include "base/text.h"
#include "format/fields.h"

namespace mdfs::format {
namespace {

constexpr std::size_t kRecordHeader = sizeof(mdfs_operation);
constexpr std::size_t kDiskRow = sizeof(mdfs_operation_disk);
constexpr std::size_t kErrorRow = sizeof(mdfs_operation_error);
static_assert(kRecordHeader + MDFS_MAX_DISKS * kDiskRow + MDFS_MAX_ERRORS * kErrorRow <= MDFS_MAX_ITEM);

template <std::size_t N>
void put_numbers(MutableBytes out, std::size_t offset, const std::array<std::uint64_t, N>& numbers) {
  for (std::size_t i = 0; i < N; ++i) store_le<std::uint64_t>(out, offset + 8 * i, numbers[i]);
}

template <std::size_t N>
void get_numbers(ConstBytes value, std::size_t offset, std::array<std::uint64_t, N>& numbers) {
  for (std::size_t i = 0; i < N; ++i) numbers[i] = load_le<std::uint64_t>(value, offset + 8 * i);
}

void put_disk(MutableBytes out, std::size_t base, const OperationDisk& disk) {
  MDFS_PUT(out, base, mdfs_operation_disk, read_bytes, disk.read_bytes);
  MDFS_PUT(out, base, mdfs_operation_disk, written_bytes, disk.written_bytes);
  MDFS_PUT(out, base, mdfs_operation_disk, repaired, disk.repaired);
  MDFS_PUT(out, base, mdfs_operation_disk, failed, disk.failed);
}

OperationDisk get_disk(ConstBytes value, std::size_t base) {
  return {MDFS_GET(value, base, mdfs_operation_disk, read_bytes),
          MDFS_GET(value, base, mdfs_operation_disk, written_bytes),
          MDFS_GET(value, base, mdfs_operation_disk, repaired), MDFS_GET(value, base, mdfs_operation_disk, failed)};
}

void put_error(MutableBytes out, std::size_t base, const OperationError& error) {
  MDFS_PUT(out, base, mdfs_operation_error, object, error.object);
  MDFS_PUT(out, base, mdfs_operation_error, offset, error.offset);
  MDFS_PUT(out, base, mdfs_operation_error, block, error.block);
  MDFS_PUT(out, base, mdfs_operation_error, disk, error.disk);
  MDFS_PUT(out, base, mdfs_operation_error, what, error.what);
}

OperationError get_error(ConstBytes value, std::size_t base) {
  return {MDFS_GET(value, base, mdfs_operation_error, object), MDFS_GET(value, base, mdfs_operation_error, offset),
          MDFS_GET(value, base, mdfs_operation_error, block), MDFS_GET(value, base, mdfs_operation_error, disk),
          MDFS_GET(value, base, mdfs_operation_error, what)};
}

Status check(const OperationRecord& record) {
  MDFS_FORMAT_REQUIRE(record.state >= MDFS_OPERATION_RUNNING && record.state <= MDFS_OPERATION_FAILED,
                      "operation.state");
  MDFS_FORMAT_REQUIRE((record.flags & ~kOperationFlags) == 0, "operation.flags");
  MDFS_FORMAT_REQUIRE(((record.flags & MDFS_OPERATION_OBJECT) != 0) == (record.object != 0), "operation.flags");
  for (const OperationError& error : record.errors)
    MDFS_FORMAT_REQUIRE(
        error.disk < MDFS_MAX_DISKS && error.what >= MDFS_ERROR_DATA && error.what <= MDFS_ERROR_SKIPPED,
        "operation.error");
  return {};
}

}  // namespace

void OperationRecord::note_error(const OperationError& error) {
  ++items_failed;
  if (error.what != MDFS_ERROR_SKIPPED && error.disk < disks.size()) ++disks[error.disk].failed;
  if (errors.size() < MDFS_MAX_ERRORS) {
    errors.push_back(error);
    return;
  }
  // An object that has no row takes one of an object that has several: each is named while there is room for that.
  const auto is_its = [&](const OperationError& row) { return row.object == error.object; };
  if (std::any_of(errors.begin(), errors.end(), is_its)) return;
  for (std::size_t last = errors.size(); last-- > 1;) {
    const auto same = [&](const OperationError& row) { return row.object == errors[last].object; };
    const auto end = errors.begin() + static_cast<std::ptrdiff_t>(last);
    if (std::none_of(errors.begin(), end, same)) continue;
    errors.erase(end);
    errors.push_back(error);
    return;
  }
}

ByteVector encode(const OperationRecord& record) {
  MDFS_CHECK(record.disks.size() <= MDFS_MAX_DISKS && record.errors.size() <= MDFS_MAX_ERRORS && check(record).ok());
  ByteVector out(kRecordHeader + record.disks.size() * kDiskRow + record.errors.size() * kErrorRow);
  MDFS_PUT(out, 0, mdfs_operation, state, record.state);
  MDFS_PUT(out, 0, mdfs_operation, flags, record.flags);
  MDFS_PUT(out, 0, mdfs_operation, budget_bytes_s, record.budget_bytes_s);
  MDFS_PUT(out, 0, mdfs_operation, threshold, record.threshold);
  MDFS_PUT(out, 0, mdfs_operation, object, record.object);
  put_numbers(out, offsetof(mdfs_operation, parameters), record.parameters);
  put_numbers(out, offsetof(mdfs_operation, cursor), record.cursor);
  MDFS_PUT(out, 0, mdfs_operation, started_ns, record.started_ns);
  MDFS_PUT(out, 0, mdfs_operation, updated_ns, record.updated_ns);
  MDFS_PUT(out, 0, mdfs_operation, work_ns, record.work_ns);
  MDFS_PUT(out, 0, mdfs_operation, bytes_total, record.bytes_total);
  MDFS_PUT(out, 0, mdfs_operation, bytes_done, record.bytes_done);
  MDFS_PUT(out, 0, mdfs_operation, items_total, record.items_total);
  MDFS_PUT(out, 0, mdfs_operation, items_done, record.items_done);
  MDFS_PUT(out, 0, mdfs_operation, items_changed, record.items_changed);
  MDFS_PUT(out, 0, mdfs_operation, items_failed, record.items_failed);
  put_numbers(out, offsetof(mdfs_operation, figures), record.figures);
  put_text(out, offsetof(mdfs_operation, reason), shortened(record.reason, sizeof mdfs_operation::reason - 1));
  MDFS_PUT(out, 0, mdfs_operation, disk_count, static_cast<std::uint16_t>(record.disks.size()));
  MDFS_PUT(out, 0, mdfs_operation, error_count, static_cast<std::uint16_t>(record.errors.size()));
  std::size_t base = kRecordHeader;
  for (const OperationDisk& disk : record.disks) {
    put_disk(out, base, disk);
    base += kDiskRow;
  }
  for (const OperationError& error : record.errors) {
    put_error(out, base, error);
    base += kErrorRow;
  }
  return out;
}

Result<OperationRecord> decode_operation(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() >= kRecordHeader, "operation.length");
  const std::size_t disks = MDFS_GET(value, 0, mdfs_operation, disk_count);
  const std::size_t errors = MDFS_GET(value, 0, mdfs_operation, error_count);
  MDFS_FORMAT_REQUIRE(disks <= MDFS_MAX_DISKS && errors <= MDFS_MAX_ERRORS, "operation.rows");
  MDFS_FORMAT_REQUIRE(value.size() == kRecordHeader + disks * kDiskRow + errors * kErrorRow, "operation.rows");
  OperationRecord record;
  record.state = MDFS_GET(value, 0, mdfs_operation, state);
  record.flags = MDFS_GET(value, 0, mdfs_operation, flags);
  record.budget_bytes_s = MDFS_GET(value, 0, mdfs_operation, budget_bytes_s);
  record.threshold = MDFS_GET(value, 0, mdfs_operation, threshold);
  record.object = MDFS_GET(value, 0, mdfs_operation, object);
  get_numbers(value, offsetof(mdfs_operation, parameters), record.parameters);
  get_numbers(value, offsetof(mdfs_operation, cursor), record.cursor);
  record.started_ns = MDFS_GET(value, 0, mdfs_operation, started_ns);
  record.updated_ns = MDFS_GET(value, 0, mdfs_operation, updated_ns);
  record.work_ns = MDFS_GET(value, 0, mdfs_operation, work_ns);
  record.bytes_total = MDFS_GET(value, 0, mdfs_operation, bytes_total);
  record.bytes_done = MDFS_GET(value, 0, mdfs_operation, bytes_done);
  record.items_total = MDFS_GET(value, 0, mdfs_operation, items_total);
  record.items_done = MDFS_GET(value, 0, mdfs_operation, items_done);
  record.items_changed = MDFS_GET(value, 0, mdfs_operation, items_changed);
  record.items_failed = MDFS_GET(value, 0, mdfs_operation, items_failed);
  get_numbers(value, offsetof(mdfs_operation, figures), record.figures);
  const std::string_view reason =
      get_padded_text(value, offsetof(mdfs_operation, reason), sizeof mdfs_operation::reason);
  MDFS_FORMAT_REQUIRE(reason.size() < sizeof mdfs_operation::reason &&
                          is_zero_padded(value, offsetof(mdfs_operation, reason), sizeof mdfs_operation::reason),
                      "operation.reason");
  record.reason = reason;
  for (std::size_t i = 0; i < disks; ++i) record.disks.push_back(get_disk(value, kRecordHeader + i * kDiskRow));
  for (std::size_t i = 0; i < errors; ++i)
    record.errors.push_back(get_error(value, kRecordHeader + disks * kDiskRow + i * kErrorRow));
  MDFS_TRY(check(record));
  return record;
}

}  // namespace mdfs::format
