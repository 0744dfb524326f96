// Streams: their admission, and the threads that read.
// SPDX-License-Identifier: Apache-2.0
#include "streams/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "base/environment.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/text.h"
#include "device/read_pace.h"
#include "geometry/copy_box.h"
#include "geometry/level.h"
#include "store/store.h"
#include "streams/coarser_frame.h"
#include "views/level_view.h"

namespace mdfs::streams {
namespace {

constexpr std::int64_t kMostPlanningNs = 1'000'000'000;
constexpr unsigned kMostCoarser = 3;  // levels, each with about a quarter of the bytes

std::int64_t now_ns() { return device::ReadPace::now_ns(); }

}  // namespace

struct Streams::Stream {
  Stream(const StreamRequest& asked, const FrameWindows& frames, FrameCost disk_time, const Course& course,
         unsigned lookahead, const geometry::Geometry& of_level, unsigned coarser_levels)
      : request(asked),
        geometry(of_level),
        most_coarser(coarser_levels),
        windows(frames),
        cost(std::move(disk_time)),
        frame_bytes(geometry::window_bytes(of_level, asked.window)),
        queue(course, lookahead, asked.drops, coarser_levels,
              {frames.window.length[frames.axis], of_level.extent[frames.axis]}) {}

  std::uint64_t id = 0;
  const StreamRequest request;
  const geometry::Geometry geometry;  // of the level
  const unsigned most_coarser;        // levels above it
  const FrameWindows windows;
  const FrameCost cost;
  const std::uint64_t frame_bytes;
  const std::int64_t begun_ns = now_ns();
  const std::shared_ptr<device::BusyTime> busy = std::make_shared<device::BusyTime>();
  std::atomic<bool> closed{false};
  // Guarded by mutex_ of the streams:
  FrameQueue queue;
  bool failing = false;  // the last read was one that failed
  FrameAnswer waiting;   // for a frame; empty: no call waits
  engine::Stop stop;     // of that call

  // Frames that are read together are cut apart.
  std::uint64_t memory_bytes() const {
    return (std::uint64_t{queue.lookahead()} + queue.most_together()) * frame_bytes;
  }
};

Streams::Streams(volume::Volume& volume, const StreamOptions& options) : volume_(volume), options_(options) {}

Streams::~Streams() {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, stream] : streams_) ids.push_back(id);
  }
  for (const std::uint64_t id : ids) close(id);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// ---- opening

// Of one frame, on average.
Result<std::vector<DiskReads>> Streams::plan_reads(const StreamRequest& request, const FrameWindows& windows,
                                                   const Course& course, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const geometry::Geometry image, volume_.image_geometry(request.ino));
  const std::uint64_t extent_length = geometry::level_geometry(image, request.level).extent[windows.axis];
  // Plans are made of records: writes the image back.
  MDFS_TRY(volume_.layout(request.ino, {}, 1, stop));
  const std::int64_t begun_ns = now_ns();
  const auto plan = [&](const geometry::Window& window) -> Result<std::vector<DiskReads>> {
    MDFS_TRY_ASSIGN(const engine::WindowPlan found, request.level == 0
                                                        ? volume_.plan_window(request.ino, window, stop)
                                                        : volume_.plan_level(request.ino, request.level, window, stop));
    std::vector<DiskReads> reads;
    for (const auto& disk : found.disks)
      reads.push_back({static_cast<double>(disk.requests), static_cast<double>(disk.bytes)});
    return reads;
  };
  MDFS_TRY_ASSIGN(std::vector<DiskReads> reads, mean_reads(windows, course, extent_length, plan,
                                                           [&] { return now_ns() - begun_ns >= kMostPlanningNs; }));
  reads.resize(std::max<std::size_t>(reads.size(), volume_.store().disk_count()));
  return reads;
}

Result<FrameCost> Streams::cost_of(const StreamRequest& request, const FrameWindows& windows, const Course& course,
                                   const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const std::vector<DiskReads> reads, plan_reads(request, windows, course, stop));
  FrameCost cost(reads.size(), 0);
  if (std::all_of(reads.begin(), reads.end(), [](const DiskReads& one) { return one.requests <= 0; })) return cost;
  const std::lock_guard one_trial(trial_mutex_);
  count_trials(1);
  const Result<std::vector<double>> measured = measure_disks(volume_, request.ino, reads, options_.trial_ns, stop);
  count_trials(-1);
  if (!measured.ok()) return measured.error();
  for (std::size_t disk = 0; disk < cost.size(); ++disk) cost[disk] = cost_ns(reads[disk], (*measured)[disk]);
  return cost;
}

void Streams::count_trials(int change) {
  const std::lock_guard lock(mutex_);
  trials_ += change;
  keep_schedules();
}

// The stored levels from which frames can be made.
Result<unsigned> Streams::levels_above(const StreamRequest& request) {
  if (!request.coarser) return 0u;
  MDFS_TRY_ASSIGN(const auto stored, volume_.stored_levels(request.ino));
  if (stored.first <= request.level)
    return Error{Errc::kInvalidArgument,
                 fmt::format("coarser frames: the image has {} stored levels, none of them coarser than level {}",
                             stored.first, request.level)};
  return std::min(stored.first - request.level, kMostCoarser);
}

Result<Opened> Streams::open(const StreamRequest& request, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const geometry::Geometry image, volume_.image_geometry(request.ino));
  if (request.level > 0) {
    MDFS_TRY_ASSIGN(const auto stored, volume_.stored_levels(request.ino));
    if (request.level > stored.first)
      return Error{Errc::kOutOfRange,
                   fmt::format("level {}: the image has {} stored levels", request.level, stored.first)};
  }
  const geometry::Geometry geometry = geometry::level_geometry(image, request.level);
  MDFS_TRY_ASSIGN(const FrameWindows windows, frame_windows(geometry, request.window, request.axis));
  Course course{windows.frames, windows.first, request.step, request.rate, 0};
  MDFS_TRY(check(course));
  if (request.lookahead > kMostLookahead)
    return Error{Errc::kInvalidArgument,
                 fmt::format("lookahead {}: must be 1 to {} frames, or 0", request.lookahead, kMostLookahead)};
  MDFS_TRY_ASSIGN(const unsigned coarser, levels_above(request));
  const std::uint64_t frame_bytes = geometry::window_bytes(geometry, request.window);
  const unsigned lookahead = lookahead_of(request.lookahead, request.rate, frame_bytes, options_.memory_bytes);
  MDFS_TRY_ASSIGN(FrameCost cost, cost_of(request, windows, course, stop));

  Opened opened;
  {
    const std::lock_guard lock(mutex_);
    if (streams_.size() >= kMostStreams)
      return Error{Errc::kTooManyFiles, fmt::format("{} streams are open, and no more can be", kMostStreams)};
    const auto stream =
        std::make_shared<Stream>(request, windows, std::move(cost), course, lookahead, geometry, coarser);
    MDFS_TRY(check_bounds(*stream));
    opened.admission = admit(loads_, stream->cost, request.rate, options_.limit);
    if (!opened.admission.accepted && !request.unchecked) return opened;
    course.start_ns = start_of(*stream, course);
    stream->queue.change(course);
    stream->id = ++last_id_;
    memory_bytes_ += stream->memory_bytes();
    add_load(loads_, stream->cost, request.rate);
    streams_.emplace(stream->id, stream);
    keep_schedules();
    start_threads();
    opened.stream = info_of(*stream);
  }
  changed_.notify_one();
  return opened;
}

// A user other than root gets half of all streams and of their memory, so that others can have some.
Status Streams::check_bounds(const Stream& stream) const {
  const std::uint64_t bytes = stream.memory_bytes();
  std::uint64_t left = options_.memory_bytes - memory_bytes_;
  if (stream.request.uid != 0) {
    std::size_t of_user = 0;
    std::uint64_t their_bytes = 0;
    for (const auto& [id, other] : streams_)
      if (other->request.uid == stream.request.uid) {
        ++of_user;
        their_bytes += other->memory_bytes();
      }
    if (of_user >= kMostOfUser)
      return {Errc::kTooManyFiles, fmt::format("{} streams of one user are open, and no more can be", kMostOfUser)};
    left = std::min(left, options_.memory_bytes / 2 - std::min(their_bytes, options_.memory_bytes / 2));
  }
  if (bytes <= left) return {};
  return {Errc::kTooBig, fmt::format("{} frames of {} that are read ahead: {} of memory are left for streams",
                                     bytes / stream.frame_bytes, format_size(stream.frame_bytes), format_size(left))};
}

std::int64_t Streams::start_of(const Stream& stream, const Course& course) const {
  return now_ns() + prefill_ns(stream.queue.lookahead(), course);
}

void Streams::keep_schedules() { volume_.store().keep_schedules(!streams_.empty() || trials_ > 0); }

void Streams::start_threads() {
  std::size_t wanted = 0;
  for (const auto& [id, stream] : streams_) wanted += stream->queue.lookahead();
  while (threads_.size() < std::min(wanted, kReadThreads)) threads_.emplace_back([this] { run(); });
}

void Streams::close(std::uint64_t id) {
  std::shared_ptr<Stream> stream;
  FrameAnswer waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    stream = std::move(found->second);
    streams_.erase(found);
    stream->closed = true;
    memory_bytes_ -= stream->memory_bytes();
    take_load(loads_, stream->cost, stream->queue.course().rate);
    waiting = std::exchange(stream->waiting, nullptr);
    keep_schedules();
  }
  if (waiting) waiting(Error{Errc::kCancelled, "the stream was closed"});
}

// ---- the course

std::shared_ptr<Streams::Stream> Streams::look_up(std::uint64_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

namespace {

Error no_stream() { return {Errc::kNoData, "no stream is open"}; }

}  // namespace

Status Streams::pause(std::uint64_t id) {
  FrameAnswer waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto stream = look_up(id);
    if (!stream) return no_stream();
    stream->queue.pause();
    waiting = std::exchange(stream->waiting, nullptr);
  }
  if (waiting) waiting(Error{Errc::kBusy, "the stream is paused"});
  return {};
}

Status Streams::change_stream(std::uint64_t id, const std::function<Status(Stream&)>& change) {
  {
    const std::lock_guard lock(mutex_);
    const auto stream = look_up(id);
    if (!stream) return no_stream();
    MDFS_TRY(change(*stream));
  }
  changed_.notify_one();
  return {};
}

Status Streams::resume(std::uint64_t id) {
  return change_stream(id, [&](Stream& stream) -> Status {
    stream.queue.resume(start_of(stream, stream.queue.course()));
    return {};
  });
}

Status Streams::seek(std::uint64_t id, std::uint64_t frame) {
  return change_stream(id, [&](Stream& stream) -> Status {
    Course course = stream.queue.course();
    course.first = frame;
    MDFS_TRY(check(course));
    course.start_ns = start_of(stream, course);
    stream.queue.change(course);
    return {};
  });
}

Result<Admission> Streams::set_pace(std::uint64_t id, double rate, std::int64_t step) {
  Admission admission;
  const Status changed = change_stream(id, [&](Stream& stream) -> Status {
    const Course before = stream.queue.course();
    Course course = before;
    const std::optional<std::uint64_t> next = stream.queue.next_frame();
    course.first = next.value_or(*frame_at(before, frame_count(before) - 1));
    course.rate = rate;
    course.step = step;
    MDFS_TRY(check(course));
    take_load(loads_, stream.cost, before.rate);
    admission = admit(loads_, stream.cost, rate, options_.limit);
    admission.accepted = admission.accepted || stream.request.unchecked;
    add_load(loads_, stream.cost, admission.accepted ? rate : before.rate);
    if (!admission.accepted) return {};
    course.start_ns = start_of(stream, course);
    stream.queue.change(course);
    if (!next) stream.queue.skip_first();
    return {};
  });
  if (!changed.ok()) return changed.error();
  return admission;
}

// ---- information

StreamInfo Streams::info_of(const Stream& stream) const {
  StreamInfo info;
  info.id = stream.id;
  info.request = stream.request;
  info.rank = stream.geometry.rank;
  info.course = stream.queue.course();
  info.lookahead = stream.queue.lookahead();
  info.frame_bytes = stream.frame_bytes;
  info.paused = stream.queue.is_paused();
  info.at_end = stream.queue.at_end();
  info.next_frame = stream.queue.next_frame().value_or(info.course.frames);
  info.counts = stream.queue.counts();
  add_load(info.loads, stream.cost, info.course.rate);
  const auto elapsed_ns = static_cast<double>(std::max<std::int64_t>(1, now_ns() - stream.begun_ns));
  for (unsigned disk = 0; disk < stream.cost.size(); ++disk)
    info.measured.push_back(static_cast<double>(stream.busy->ns(disk)) / elapsed_ns);
  return info;
}

std::optional<StreamInfo> Streams::find_from(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.lower_bound(id);
  if (found == streams_.end()) return std::nullopt;
  return info_of(*found->second);
}

std::optional<StreamInfo> Streams::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto stream = look_up(id);
  if (!stream) return std::nullopt;
  return info_of(*stream);
}

// ---- frames

void Streams::next(std::uint64_t id, const engine::Stop& stop, FrameAnswer answer) {
  std::vector<Call> calls;
  Status refused;
  {
    const std::lock_guard lock(mutex_);
    const auto stream = look_up(id);
    if (!stream) {
      refused = no_stream();
    } else if (stream->queue.is_paused()) {
      refused = Error{Errc::kBusy, "the stream is paused"};
    } else if (stream->waiting) {
      refused = Error{Errc::kBusy, "another call waits for a frame of the stream"};
    } else {
      stream->waiting = std::move(answer);
      stream->stop = stop;
      answer_if_ready(*stream, now_ns(), calls);
    }
  }
  if (!refused.ok()) return answer(refused.error());
  changed_.notify_one();  // a place may be free
  for (const Call& call : calls) call();
}

void Streams::answer_if_ready(Stream& stream, std::int64_t now, std::vector<Call>& calls) {
  if (!stream.waiting) return;
  std::optional<Delivered> frame = stream.queue.deliver(now);
  if (!frame && !stream.queue.at_end()) return;
  if (frame) frame->level = stream.request.level + frame->coarser;
  calls.emplace_back([answer = std::exchange(stream.waiting, nullptr), frame = std::move(frame)] { answer(frame); });
}

// The read with the earliest deadline of those that may begin; else the time at which one may.
std::optional<Streams::Job> Streams::choose_job(std::int64_t now, std::int64_t& until_ns, std::vector<Call>& calls) {
  for (;;) {
    std::vector<std::shared_ptr<Stream>> all;
    std::vector<const FrameQueue*> queues;
    for (const auto& [id, stream] : streams_) {
      all.push_back(stream);
      queues.push_back(&stream->queue);
    }
    const std::optional<std::size_t> first = next_to_read(queues, now, until_ns);
    if (!first) return std::nullopt;
    const std::shared_ptr<Stream>& chosen = all[*first];
    if (const auto read = chosen->queue.begin_read(now); read) return Job{chosen, *read};
    answer_if_ready(*chosen, now, calls);  // all that remained was dropped
  }
}

Result<FrameBytes> Streams::read_at(const Stream& stream, const geometry::Window& window, unsigned coarser,
                                    const engine::Stop& stop) {
  const CoarserFrame source = coarser_frame(stream.geometry, window, coarser);
  const unsigned level = stream.request.level + coarser;
  const auto size = static_cast<std::size_t>(geometry::window_bytes(source.geometry, source.window));
  auto bytes = std::make_shared<ByteVector>(size);
  if (level == 0)
    MDFS_TRY(volume_.read_window(stream.request.ino, window, 0, *bytes, stop));
  else
    MDFS_TRY(views::read_stored_level(volume_, stream.request.ino, level, source.window, 0, *bytes,
                                      views::kStoredAttempts, stop));
  if (coarser == 0) return FrameBytes(std::move(bytes));
  auto repeated =
      std::make_shared<ByteVector>(static_cast<std::size_t>(geometry::window_bytes(stream.geometry, window)));
  repeat_samples(stream.geometry, window, source, *bytes, *repeated);
  return FrameBytes(std::move(repeated));
}

// From the level that the queue has chosen. What that does not have, another one may: a coarser level lies elsewhere,
// and one that is not built yet is no reason to show nothing.
Result<Streams::ReadFrame> Streams::read_frame(const Stream& stream, std::uint64_t frame, unsigned coarser,
                                               const engine::Stop& stop) {
  const geometry::Window window = stream.windows.at(frame);
  Result<FrameBytes> bytes = read_at(stream, window, coarser, stop);
  if (bytes.ok()) return ReadFrame{std::move(*bytes), coarser};
  for (unsigned other = 0; other <= stream.most_coarser && !stream.closed; ++other) {
    if (other == coarser) continue;
    Result<FrameBytes> instead = read_at(stream, window, other, stop);
    if (instead.ok()) return ReadFrame{std::move(*instead), other};
  }
  return bytes.error();
}

namespace {

// One of `count` frames that lie together along an axis.
FrameBytes cut_frame(const geometry::Window& all, unsigned rank, unsigned axis, std::uint64_t number,
                     std::uint64_t count, const ByteVector& bytes) {
  geometry::Coord whole = all.length, part = all.length, start{};
  part[axis] /= count;
  start[axis] = number * part[axis];
  std::uint64_t samples = 1;
  for (unsigned i = 0; i < rank; ++i) samples *= all.length[i];
  for (geometry::Coord* const coord : {&whole, &part, &start}) (*coord)[rank - 1] *= bytes.size() / samples;
  auto frame = std::make_shared<ByteVector>(bytes.size() / count);
  geometry::copy_box(rank, part, bytes, whole, start, *frame, part, {});
  return frame;
}

}  // namespace

// Together, and each by itself if that fails: a bad extent is one of some frames.
std::vector<Result<Streams::ReadFrame>> Streams::read_frames(const Stream& stream, const FrameRead& read) {
  const device::UrgencyScope urgency({device::Urgency::Kind::kReserved, read.deadline_ns, stream.busy});
  const engine::Stop stop = [&stream] { return stream.closed.load(); };
  const StopScope scope(stop);
  const bool backwards = read.step < 0;
  std::vector<Result<ReadFrame>> frames;
  if (read.count > 1) {
    const unsigned axis = stream.windows.axis;
    const geometry::Window all = window_of(stream.windows, read);
    const Result<FrameBytes> bytes = read_at(stream, all, read.coarser, stop);
    for (unsigned i = 0; bytes.ok() && i < read.count; ++i) {
      const std::uint64_t number = backwards ? read.count - 1 - i : i;
      frames.emplace_back(
          ReadFrame{cut_frame(all, stream.geometry.rank, axis, number, read.count, **bytes), read.coarser});
    }
    if (bytes.ok()) return frames;
  }
  for (unsigned i = 0; i < read.count; ++i)
    frames.push_back(read_frame(stream, read.frame_number(i), read.coarser, stop));
  return frames;
}

void Streams::note_frames(Stream& stream, const FrameRead& read, std::vector<Result<ReadFrame>> frames) {
  const std::int64_t now = now_ns();
  for (unsigned i = 0; i < read.count; ++i) {
    const Result<ReadFrame>& frame = frames[i];
    // Of many one after another the first.
    if (!std::exchange(stream.failing, !frame.ok()) && !frame.ok() && !stream.closed)
      spdlog::warn("stream {}: frame {}: {}", stream.id, read.frame_number(i), frame.error().message());
    stream.queue.read_ended(read.ticket + i, now, frame.ok() ? Status() : Status(frame.error()),
                            frame.ok() ? frame->bytes : nullptr, frame.ok() ? frame->coarser : 0);
  }
}

bool Streams::any_waits() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return entry.second->waiting && entry.second->stop; });
}

// An answered call must not be asked, and calls are answered after they have been taken from here.
void Streams::end_stopped(std::unique_lock<std::mutex>& lock) {
  std::vector<Call> calls;
  for (const auto& [id, stream] : streams_)
    if (stream->waiting && stream->stop && stream->stop())
      calls.emplace_back([answer = std::exchange(stream->waiting, nullptr)] { answer(Error{interrupted()}); });
  call_without_lock(lock, calls);
}

void Streams::call_without_lock(std::unique_lock<std::mutex>& lock, std::vector<Call>& calls) {
  if (calls.empty()) return;
  lock.unlock();
  for (const Call& call : calls) call();
  calls.clear();
  lock.lock();
}

void Streams::run() {
  constexpr std::int64_t kPollNs = std::chrono::nanoseconds(kStopPoll).count();
  std::unique_lock lock(mutex_);
  while (!ending_) {
    std::vector<Call> calls;
    std::int64_t until_ns = INT64_MAX;
    const std::optional<Job> job = choose_job(now_ns(), until_ns, calls);
    const bool calls_back = !calls.empty();
    if (job || calls_back) changed_.notify_one();  // there may be a further one
    call_without_lock(lock, calls);
    if (job) {
      lock.unlock();
      std::vector<Result<ReadFrame>> frames = read_frames(*job->stream, job->read);
      lock.lock();
      note_frames(*job->stream, job->read, std::move(frames));
      answer_if_ready(*job->stream, now_ns(), calls);
      call_without_lock(lock, calls);
      continue;
    }
    if (calls_back) continue;  // a change made while the lock was released has woken no thread
    if (any_waits()) until_ns = std::min(until_ns, now_ns() + kPollNs);
    if (until_ns >= timer_ns_) {  // another thread wakes up earlier
      changed_.wait(lock);
      continue;
    }
    timer_ns_ = until_ns;
    const bool is_over =
        changed_.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(0, until_ns - now_ns()))) ==
        std::cv_status::timeout;
    if (timer_ns_ == until_ns) timer_ns_ = INT64_MAX;
    if (is_over) end_stopped(lock);
  }
}

}  // namespace mdfs::streams
