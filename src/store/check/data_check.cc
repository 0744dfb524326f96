// Checksums of data.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "store/read_stored.h"

namespace mdfs::store {
namespace {

std::string name_of(const StoredData& data) {
  const format::Run& at = data.first();
  const std::string part = data.is_extent ? fmt::format("page {}, place {}", data.where / 64, data.where % 64)
                                          : fmt::format("byte {}", data.where);
  const std::string copy = data.is_copy ? ", second copy" : "";
  return fmt::format("object {}, {}{}: block {} of disk {}", data.object, part, copy, at.block, at.disk);
}

}  // namespace

void DataChecker::add(StoredData data) {
  // With its pointers among those of its disk, and twice for the table that grows.
  bytes_ += 2 * sizeof(StoredData) + 64 + data.runs.heap_bytes() + data.copy.heap_bytes() + data.crc32c.heap_bytes();
  pieces_.push_back(std::move(data));
  if (bytes_ >= most_bytes_) finish();
}

// A piece by itself, run by run.
Status DataChecker::check_piece(const StoredData& data) const {
  return verify_stored(data, block_size_, [this](unsigned disk) { return volume_.members[disk].disk.get(); });
}

Result<ByteVector> DataChecker::read_piece(const format::StoredExtent& extent) const {
  AlignedBuffer buffer(extent.piece_blocks() * block_size_);
  std::size_t done = 0;
  for (const format::Run& run : extent.runs) {
    const MemberDisk& member = volume_.members[run.disk];
    if (!member.is_readable()) return Error{Errc::kMissingDisk, fmt::format("disk {}", run.disk)};
    const std::uint64_t bytes = std::uint64_t{run.blocks} * block_size_;
    MDFS_TRY(device::read(*member.disk, run.block * block_size_, buffer.bytes().subspan(done, bytes)));
    done += bytes;
  }
  if (!extent.matches(buffer.bytes())) return Error{Errc::kCorrupt, "data.checksum"};
  return ByteVector(buffer.bytes().begin(), buffer.bytes().end());
}

Result<ByteVector> DataChecker::read_elsewhere(const format::StoredExtent& extent) const {
  if (extent.has_copy()) return read_piece(extent.by_copy());
  return read_from_others(extent, block_size_, [&](unsigned disk) -> device::Disk* {
    const bool is_there = disk < volume_.members.size() && volume_.members[disk].is_readable();
    return is_there ? volume_.members[disk].disk.get() : nullptr;
  });
}

void DataChecker::check_disk(std::size_t index, std::vector<const StoredData*> pieces,
                             std::vector<Verdict>& verdicts) const {
  std::sort(pieces.begin(), pieces.end(),
            [](const StoredData* a, const StoredData* b) { return a->first().block < b->first().block; });
  const auto first_byte = [&](const StoredData& data) { return data.first().block * block_size_; };
  const auto end_byte = [&](const StoredData& data) {
    return first_byte(data) + align_up(data.stored_bytes, device::kAlignment);
  };
  const auto judge = [&](const StoredData& data, const Status& status) {
    if (status.ok()) return;
    const bool damaged = status.error().code == Errc::kCorrupt;
    verdicts.push_back({damaged ? FindingId::kDataDamaged : FindingId::kDataUnreadable, &data,
                        damaged ? std::string() : ": " + status.error().message()});
  };
  AlignedBuffer buffer(kReadBytes);
  for (std::size_t i = 0; i < pieces.size();) {
    // As many pieces as lie in one read; a gap is read over if it is small.
    constexpr std::uint64_t kLargestGap = 65536;
    const std::uint64_t start = first_byte(*pieces[i]);
    std::uint64_t end = end_byte(*pieces[i]);
    std::size_t next = i + 1;
    while (next < pieces.size() && pieces[next]->is_contiguous() && first_byte(*pieces[next]) <= end + kLargestGap &&
           end_byte(*pieces[next]) <= start + kReadBytes)
      end = std::max(end, end_byte(*pieces[next++]));
    const bool fits = pieces[i]->is_contiguous() && end - start <= kReadBytes;
    if (!fits) next = i + 1;
    Status status;
    if (fits) status = device::read(*volume_.members[index].disk, start, buffer.bytes().first(end - start));
    std::uint64_t bytes = 0;
    for (; i < next; ++i) {
      const StoredData& data = *pieces[i];
      bytes += data.stored_bytes;
      if (!fits || !status.ok()) {
        judge(data, check_piece(data));
        continue;
      }
      format::PassingBytes passing(data);
      passing.take(buffer.bytes().subspan(first_byte(data) - start, data.stored_bytes));
      judge(data, passing.match() ? Status() : Status(Errc::kCorrupt, "data.checksum"));
    }
    if (on_bytes_) on_bytes_(bytes);
  }
}

void DataChecker::finish() {
  const std::size_t disks = volume_.members.size();
  std::vector<std::vector<const StoredData*>> of_disk(disks);
  for (const StoredData& data : pieces_) {
    const bool here = std::all_of(data.runs.begin(), data.runs.end(),
                                  [&](const format::Run& run) { return volume_.members[run.disk].is_readable(); });
    if (here) of_disk[data.first().disk].push_back(&data);
  }
  std::vector<std::vector<Verdict>> verdicts(disks);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < disks; ++i)
    if (!of_disk[i].empty())
      threads.emplace_back([this, i, &of_disk, &verdicts] { check_disk(i, std::move(of_disk[i]), verdicts[i]); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& list : verdicts)
    for (const Verdict& verdict : list) {
      std::string where = name_of(*verdict.data) + verdict.where;
      if (bad_.size() < Findings::kLimit)
        bad_.push_back({verdict.id, *verdict.data, std::move(where)});
      else
        findings_.add(verdict.id, std::move(where), {verdict.data->object});
    }
  pieces_.clear();
  bytes_ = 0;
}

}  // namespace mdfs::store
