// Trials of disks.
// SPDX-License-Identifier: Apache-2.0
#include "streams/disk_trial.h"

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "device/disk.h"
#include "device/read_pace.h"
#include "device/urgency.h"
#include "store/store.h"

namespace mdfs::streams {
namespace {

constexpr std::size_t kMostRows = 131072;  // of the layout that are looked at
constexpr std::size_t kRowsAtOnce = 2048;
constexpr std::size_t kAtOnce = 2;  // requests of a disk, as a schedule lets start
constexpr std::uint64_t kMostRequestBytes = 1u << 20;
// Of a trial: before it, in which a disk may do at once what it has saved up while it rested; and the least for which
// it must have been busy.
constexpr std::int64_t kPartBefore = 5, kLeastPart = 50;

struct Place {
  std::uint64_t offset = 0, bytes = 0;
};
using Places = std::vector<std::vector<Place>>;  // by disk

// Where extents of the image lie.
Result<Places> find_places(volume::Volume& volume, volume::Ino ino, std::size_t disks, const engine::Stop& stop) {
  Places places(disks);
  engine::LayoutCursor from{0, 0};
  for (std::size_t rows = 0; rows < kMostRows; rows += kRowsAtOnce) {
    MDFS_TRY(engine::stopped(stop));
    MDFS_TRY_ASSIGN(const volume::LayoutPage page, volume.layout(ino, from, kRowsAtOnce, stop));
    for (const layout::ExtentPlace& row : page.rows) {
      if (row.disk >= disks || row.pieces != 1 || row.stored_bytes == 0) continue;
      places[row.disk].push_back({row.block * page.block_size, align_up(row.stored_bytes, device::kAlignment)});
    }
    if (page.at_end) break;
    from = page.next;
  }
  return places;
}

// Reads of one disk, in a random order of the places.
class DiskReader {
 public:
  DiskReader(device::Disk& disk, std::vector<Place> places, std::uint64_t request_bytes)
      : disk_(disk), places_(std::move(places)), request_bytes_(request_bytes) {
    std::shuffle(places_.begin(), places_.end(), std::mt19937_64(kSeed));
    for (std::size_t i = 0; i < kAtOnce; ++i) buffers_.emplace_back(request_bytes_);
  }

  void add_next(std::vector<device::Addressed>& requests) {
    ios_ = std::vector<device::Io>(kAtOnce);
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const Place& place = places_[next_];
      next_ = (next_ + 1) % places_.size();
      ios_[i].offset = place.offset;
      ios_[i].buffers = {buffers_[i].bytes().first(std::min(place.bytes, request_bytes_))};
      requests.push_back({&disk_, &ios_[i]});
    }
  }
  // Of the reads that add_next() made, as cost_ns() counts bytes; 0 if one failed.
  double bytes() const {
    double sum = 0;
    for (const device::Io& io : ios_) {
      if (!io.status.ok()) return 0;
      sum += static_cast<double>(io.bytes() + device::kRequestBytes);
    }
    return sum;
  }

 private:
  static constexpr std::uint64_t kSeed = 1;

  device::Disk& disk_;
  std::vector<Place> places_;
  const std::uint64_t request_bytes_;
  std::size_t next_ = 0;
  std::vector<AlignedBuffer> buffers_;
  std::vector<device::Io> ios_;
};

std::uint64_t request_bytes(const DiskReads& reads) {
  const double mean = reads.requests > 0 ? reads.bytes / reads.requests : 0;
  return std::clamp<std::uint64_t>(align_up(static_cast<std::uint64_t>(mean), device::kAlignment), device::kAlignment,
                                   kMostRequestBytes);
}

// One disk of a trial: its thread reads until the time is over.
void read_for_trial(DiskReader& reader, unsigned disk, const std::shared_ptr<device::BusyTime>& busy,
                    std::int64_t trial_ns, const engine::Stop& stop, double& ns_per_byte) {
  const std::int64_t before_ns = trial_ns / kPartBefore;
  const device::UrgencyScope scope({device::Urgency::Kind::kReserved, INT64_MAX, busy});
  const std::int64_t begun_ns = device::ReadPace::now_ns();
  double bytes = 0;
  std::int64_t busy_before_ns = 0;
  bool counts = false;
  for (;;) {
    const std::int64_t now_ns = device::ReadPace::now_ns();
    if (now_ns - begun_ns >= before_ns + trial_ns || (stop && stop())) break;
    if (!counts && now_ns - begun_ns >= before_ns) {
      counts = true;
      busy_before_ns = busy->ns(disk);
      bytes = 0;
    }
    std::vector<device::Addressed> requests;
    reader.add_next(requests);
    if (!device::run(requests).ok()) break;
    bytes += reader.bytes();
  }
  const std::int64_t busy_ns = busy->ns(disk) - busy_before_ns;
  if (counts && bytes > 0 && busy_ns >= trial_ns / kLeastPart) ns_per_byte = static_cast<double>(busy_ns) / bytes;
}

}  // namespace

double cost_ns(const DiskReads& reads, double ns_per_byte) {
  return (reads.requests * static_cast<double>(device::kRequestBytes) + reads.bytes) * ns_per_byte;
}

Result<std::vector<double>> measure_disks(volume::Volume& volume, volume::Ino ino, const std::vector<DiskReads>& reads,
                                          std::int64_t trial_ns, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const Places places, find_places(volume, ino, reads.size(), stop));
  std::vector<double> ns_per_byte(reads.size(), 0);
  const auto busy = std::make_shared<device::BusyTime>();
  {
    std::vector<std::unique_ptr<DiskReader>> readers;
    std::vector<std::thread> threads;
    for (unsigned disk = 0; disk < reads.size(); ++disk) {
      if (reads[disk].requests <= 0 || places[disk].empty()) continue;
      readers.push_back(
          std::make_unique<DiskReader>(volume.store().disk(disk), places[disk], request_bytes(reads[disk])));
      threads.emplace_back([&reader = *readers.back(), disk, &busy, trial_ns, &stop, &ns = ns_per_byte[disk]] {
        read_for_trial(reader, disk, busy, trial_ns, stop, ns);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  MDFS_TRY(engine::stopped(stop));
  const double slowest = *std::max_element(ns_per_byte.begin(), ns_per_byte.end());
  if (slowest <= 0) return Error{Errc::kNoData, "the disks could not be measured: their reads failed"};
  for (unsigned disk = 0; disk < reads.size(); ++disk)
    if (reads[disk].requests > 0 && ns_per_byte[disk] <= 0) ns_per_byte[disk] = slowest;
  return ns_per_byte;
}

}  // namespace mdfs::streams
