// Streams of frames with request patterns and time-slices.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "sim/experiment.h"

namespace mdfs::sim {
namespace {

constexpr std::uint64_t kMaxFrames = 100'000'000;
constexpr std::size_t kStreamBatches = 20;

struct Frames {
  std::uint64_t count = 0;
  std::uint64_t step = 0;  // along the slowest axis
};

Result<Frames> frames_of(const geometry::Geometry& image, const StreamsOptions& options) {
  Frames frames;
  frames.step = image.rank == 1 ? options.frame_extents * image.extent[0] : 1;
  if (frames.step == 0 || frames.step > image.shape[0])
    return Error{Errc::kInvalidArgument, "a frame is larger than the image, or empty"};
  if (image.rank == 2)
    return Error{Errc::kInvalidArgument, "streams read an image of one axis (frames of extents) or three (t, y, x)"};
  frames.count = image.shape[0] / frames.step;
  return frames;
}

// Frame n of the image, beginning again at the end.
geometry::Window frame_window(const geometry::Geometry& image, const Frames& frames, std::uint64_t n) {
  geometry::Window window = geometry::whole(image);
  window.start[0] = (n % frames.count) * frames.step;
  window.length[0] = frames.step;
  return window;
}

// Keeps what was used until the last slice ended.
class Horizon final : public Workload {
 public:
  void window_done(Simulation&, std::size_t) override {}
  void alarm(Simulation& simulation, std::uint64_t) override { use = simulation.use(); }
  std::vector<ResourceUse> use;
};

struct Due {
  double time_s;
  unsigned stream;
  std::uint64_t slice;
  double next_s;  // when the stream's next frame is due
};

std::vector<Due> schedule(const StreamsOptions& options) {
  std::vector<Due> all;
  for (unsigned s = 0; s < options.streams.size(); ++s) {
    const Stream& stream = options.streams[s];
    for (std::uint64_t slice = 0; slice < options.slices; ++slice)
      for (unsigned i = 0; i < stream.frames_per_slice; ++i) {
        const double gap = options.slice_s / stream.frames_per_slice;
        const double at = stream.phase_s + static_cast<double>(slice) * options.slice_s + i * gap;
        all.push_back({at, s, slice, at + gap});
      }
  }
  std::stable_sort(all.begin(), all.end(), [](const Due& a, const Due& b) { return a.time_s < b.time_s; });
  return all;
}

}  // namespace

Result<StreamsResult> run_streams(const System& system, const StreamsOptions& options) {
  const geometry::Geometry& image = system.setup().image;
  MDFS_TRY_ASSIGN(const Frames frames, frames_of(image, options));
  std::uint64_t per_slice = 0;
  for (const Stream& stream : options.streams) per_slice += stream.frames_per_slice;
  if (per_slice == 0 || per_slice * options.slices > kMaxFrames || options.slices <= options.skipped)
    return Error{Errc::kInvalidArgument,
                 fmt::format("streams ask for 1..{} frames in more than {} slices", kMaxFrames, options.skipped)};
  const std::vector<Due> due = schedule(options);
  Simulation simulation(system, options.seed);
  simulation.alarm_at(options.slices * options.slice_s, 0);
  std::vector<std::uint64_t> frame(options.streams.size());
  for (const Due& one : due)
    simulation.submit_at(one.time_s, frame_window(image, frames, frame[one.stream]++), one.stream,
                         options.own_images ? one.stream : 0);
  Horizon horizon;
  simulation.run(&horizon);

  StreamsResult result;
  result.use = std::move(horizon.use);
  result.delays_s.resize(options.streams.size());
  double bytes = 0;
  for (std::size_t i = 0; i < due.size(); ++i) {
    const WindowRecord& record = simulation.records()[i];
    bytes += record.window_bytes;
    if (due[i].slice < options.skipped) continue;
    result.delays_s[due[i].stream].push_back(record.delay_s());
    result.all_delays_s.push_back(record.delay_s());
    if (record.done_s > due[i].next_s) ++result.late;
  }
  const double span = options.slices * options.slice_s;
  result.frames_per_s = static_cast<double>(due.size()) / span;
  result.bytes_per_s = bytes / span;
  result.mean = confidence_interval(batch_means(result.all_delays_s, kStreamBatches));
  result.mean.mean = summarize(result.all_delays_s).mean;  // the batches leave a remainder out
  return result;
}

}  // namespace mdfs::sim
