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
#include "device/disk_counters.h"
#include "device/read_pace.h"
#include "store/store.h"

namespace mdfs::streams {
namespace {

constexpr std::size_t kMostRows = 131072;  // of the layout that are looked at
constexpr std::size_t kRowsAtOnce = 2048;

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
      if (row.disk >= disks || row.stored_bytes == 0) continue;
      // Of an extent in several pieces the row has the first one, which has one block at least.
      const std::uint64_t bytes = row.pieces == 1 ? row.stored_bytes : page.block_size;
      places[row.disk].push_back({row.block * page.block_size, align_up(bytes, device::kAlignment)});
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
    for (std::size_t i = 0; i < kTrialRequests; ++i) buffers_.emplace_back(request_bytes_);
  }

  void add_next(std::vector<device::Addressed>& requests) {
    ios_ = std::vector<device::Io>(kTrialRequests);
    for (std::size_t i = 0; i < kTrialRequests; ++i) {
      const Place& place = places_[next_];
      next_ = (next_ + 1) % places_.size();
      ios_[i].offset = place.offset;
      ios_[i].buffers = {buffers_[i].bytes().first(std::min(place.bytes, request_bytes_))};
      requests.push_back({&disk_, &ios_[i]});
    }
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

// A stream of a level may read disks on which the image itself does not lie. Other disks are measured then.
std::vector<bool> disks_to_measure(const std::vector<DiskReads>& reads, const Places& places) {
  std::vector<bool> measured(reads.size());
  for (std::size_t disk = 0; disk < reads.size(); ++disk)
    measured[disk] = reads[disk].requests > 0 && !places[disk].empty();
  if (std::find(measured.begin(), measured.end(), true) == measured.end())
    for (std::size_t disk = 0; disk < reads.size(); ++disk) measured[disk] = !places[disk].empty();
  return measured;
}

// What a disk has done so far, in bytes as cost_ns() counts them.
double work_of(const device::DiskCounters& counters) {
  return static_cast<double>((counters.reads + counters.writes) * device::kRequestBytes + counters.read_bytes +
                             counters.written_bytes);
}

// One disk of a trial: its thread reads until the time is over. The disk is busy all the time, so its time is shared by
// all that it does meanwhile, whoever asked for it.
void read_for_trial(DiskReader& reader, const device::DiskCounters& counters, std::int64_t trial_ns,
                    const engine::Stop& stop, double& ns_per_byte) {
  const std::int64_t begin_ns = device::ReadPace::now_ns() + trial_ns / kTrialPartBefore;
  std::int64_t counted_ns = 0;
  double before = 0;
  for (;;) {
    const std::int64_t now_ns = device::ReadPace::now_ns();
    if (counted_ns == 0 && now_ns >= begin_ns) {
      counted_ns = now_ns;
      before = work_of(counters);
    }
    if (now_ns >= begin_ns + trial_ns || (stop && stop())) break;
    std::vector<device::Addressed> requests;
    reader.add_next(requests);
    if (!device::run(requests).ok()) return;
  }
  const double work = work_of(counters) - before;
  if (counted_ns > 0 && work > 0) ns_per_byte = static_cast<double>(device::ReadPace::now_ns() - counted_ns) / work;
}

}  // namespace

Result<std::vector<double>> measure_disks(volume::Volume& volume, volume::Ino ino, const std::vector<DiskReads>& reads,
                                          std::int64_t trial_ns, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const Places places, find_places(volume, ino, reads.size(), stop));
  const std::vector<bool> measured = disks_to_measure(reads, places);
  std::vector<double> ns_per_byte(reads.size(), 0);
  {
    std::vector<std::unique_ptr<DiskReader>> readers;
    std::vector<std::thread> threads;
    for (unsigned disk = 0; disk < reads.size(); ++disk) {
      const device::DiskCounters* const counters = volume.store().counters(disk);
      if (!measured[disk] || counters == nullptr) continue;
      readers.push_back(
          std::make_unique<DiskReader>(volume.store().disk(disk), places[disk], trial_request_bytes(reads[disk])));
      threads.emplace_back([&reader = *readers.back(), counters, trial_ns, &stop, &ns = ns_per_byte[disk]] {
        read_for_trial(reader, *counters, trial_ns, stop, ns);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  MDFS_TRY(engine::stopped(stop));
  const double slowest = *std::max_element(ns_per_byte.begin(), ns_per_byte.end());
  if (slowest <= 0) return Error{Errc::kNoData, "the disks could not be measured: their reads failed"};
  for (unsigned disk = 0; disk < reads.size(); ++disk) {
    if (ns_per_byte[disk] > 0) volume.store().note_trial(disk, ns_per_byte[disk]);
    if (reads[disk].requests > 0 && ns_per_byte[disk] <= 0) ns_per_byte[disk] = slowest;
  }
  return ns_per_byte;
}

}  // namespace mdfs::streams
