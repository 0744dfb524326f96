// Calibration of disks, and the weights that follow.
// SPDX-License-Identifier: Apache-2.0
#include "support/read_rate.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "geometry/weights.h"

namespace mdfs::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWarmUp = std::chrono::milliseconds(300);
constexpr auto kMeasured = std::chrono::milliseconds(1000);
constexpr unsigned kFewestRanges = 3;
constexpr double kSizeTolerance = 1.0 / 16;
constexpr double kGolden = 0.6180339887498949;  // places that are spread evenly however many there are

// One range, its requests all at once.
Status read_range(device::Disk& disk, std::uint64_t offset, AlignedBuffer& buffer, std::uint64_t bytes) {
  std::vector<device::Io> ios(ceil_div(bytes, kStretchRequestBytes));
  std::vector<device::Addressed> requests;
  for (std::size_t i = 0; i < ios.size(); ++i) {
    const std::uint64_t begin = i * kStretchRequestBytes;
    ios[i].offset = offset + begin;
    ios[i].buffers = {buffer.bytes().subspan(begin, std::min(kStretchRequestBytes, bytes - begin))};
    requests.push_back({&disk, &ios[i]});
  }
  return device::run(requests);
}

Status measure(device::Disk& disk, Clock::time_point begin, ReadRate& rate) {
  const std::uint64_t bytes = std::min(kStretchBytes, align_down(disk.size_bytes(), device::kAlignment));
  const std::uint64_t places = (disk.size_bytes() - bytes) / device::kAlignment + 1;
  AlignedBuffer buffer(bytes);
  std::optional<Clock::time_point> counted_from;
  double place = 0;
  for (;;) {
    const auto offset = static_cast<std::uint64_t>(place * static_cast<double>(places)) * device::kAlignment;
    place = std::fmod(place + kGolden, 1.0);
    MDFS_TRY(read_range(disk, offset, buffer, bytes));
    const Clock::time_point now = Clock::now();
    if (!counted_from) {
      if (now >= begin + kWarmUp) counted_from = now;
      continue;
    }
    ++rate.ranges;
    if (rate.ranges < kFewestRanges || now < *counted_from + kMeasured) continue;
    rate.bytes_per_second =
        static_cast<double>(rate.ranges * bytes) / std::chrono::duration<double>(now - *counted_from).count();
    return {};
  }
}

// Whether the kernel takes a block device for a rotating one; nothing for files.
std::optional<bool> rotates(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) return std::nullopt;
  const std::string base = fmt::format("/sys/dev/block/{}:{}", major(status.st_rdev), minor(status.st_rdev));
  for (const char* place : {"/queue/rotational", "/../queue/rotational"})  // of a disk, of a partition
    if (std::ifstream in(base + place); in) return in.get() == '1';
  return std::nullopt;
}

bool look_alike(std::span<device::Disk* const> disks) {
  std::uint64_t least = UINT64_MAX, most = 0;
  std::set<bool> kinds;
  for (const device::Disk* disk : disks) {
    least = std::min(least, disk->size_bytes());
    most = std::max(most, disk->size_bytes());
    if (const auto kind = rotates(disk->name())) kinds.insert(*kind);
  }
  return static_cast<double>(most - least) <= kSizeTolerance * static_cast<double>(most) && kinds.size() <= 1;
}

bool all_devices(std::span<device::Disk* const> disks) {
  return std::all_of(disks.begin(), disks.end(), [](const device::Disk* disk) {
    struct stat status {};
    return ::stat(disk->name().c_str(), &status) == 0 && S_ISBLK(status.st_mode);
  });
}

Status set_weights(DiskWeights& found, std::span<const double> figures) {
  MDFS_TRY_ASSIGN(const std::vector<unsigned> weights, geometry::whole_weights(figures));
  found.weights.assign(weights.begin(), weights.end());
  return {};
}

}  // namespace

Result<std::vector<ReadRate>> measure_read_rates(std::span<device::Disk* const> disks) {
  std::vector<ReadRate> rates(disks.size());
  std::vector<Status> outcomes(disks.size());
  std::vector<std::thread> threads;
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < disks.size(); ++i)
    threads.emplace_back([&, i] { outcomes[i] = measure(*disks[i], begin, rates[i]); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& outcome : outcomes) MDFS_TRY(outcome);
  return rates;
}

Status check_weights(std::string_view how, std::size_t disks) {
  if (how == "auto" || how == "equal" || how == "by-capacity" || how == "measure") return {};
  const auto weights = geometry::parse_weights(how, disks);
  if (weights.ok()) return {};
  return {Errc::kUsage, fmt::format("--weights {}: {}", how, weights.error().where)};
}

Result<DiskWeights> weigh_disks(std::string_view how, std::span<device::Disk* const> disks) {
  MDFS_TRY(check_weights(how, disks.size()));
  DiskWeights found;
  found.alike = look_alike(disks);
  found.weights.assign(disks.size(), 1);
  std::vector<double> figures;
  if (how == "by-capacity") {
    for (const device::Disk* disk : disks) figures.push_back(static_cast<double>(disk->size_bytes()));
    MDFS_TRY(set_weights(found, figures));
  } else if (how == "measure" || (how == "auto" && !found.alike && all_devices(disks))) {
    MDFS_TRY_ASSIGN(found.rates, measure_read_rates(disks));
    for (const ReadRate& rate : found.rates) figures.push_back(rate.bytes_per_second);
    MDFS_TRY(set_weights(found, figures));
  } else if (how != "auto" && how != "equal") {
    MDFS_TRY_ASSIGN(const std::vector<unsigned> weights, geometry::parse_weights(how, disks.size()));
    found.weights.assign(weights.begin(), weights.end());
  }
  return found;
}

std::string explain(const DiskWeights& weights, std::span<device::Disk* const> disks, std::string_view how) {
  if (weights.rates.empty()) {
    if (weights.alike || how != "auto") return {};
    return "disks differ but have the same weight, so each gets the same share; see --weights\n";
  }
  std::string text =
      fmt::format("measured: reads of {} MiB spread over each disk, all disks at once\n", kStretchBytes >> 20);
  for (std::size_t i = 0; i < disks.size(); ++i)
    text += fmt::format("  {}: {:.1f} MB/s over {} reads: weight {}\n", disks[i]->name(),
                        weights.rates[i].bytes_per_second / 1e6, weights.rates[i].ranges, weights.weights[i]);
  return text;
}

}  // namespace mdfs::tools
