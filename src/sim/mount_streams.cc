// Trials of disks, clients, and the threads that read frames, in simulated time.
// SPDX-License-Identifier: Apache-2.0
#include "sim/mount_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/background_pace.h"
#include "base/check.h"
#include "base/checked.h"
#include "device/disk.h"
#include "device/read_pace.h"
#include "geometry/extent_grid.h"
#include "sim/disk_schedules.h"
#include "sim/experiment.h"
#include "sim/slots.h"
#include "streams/demand.h"

namespace mdfs::sim {
namespace {

using device::Urgency;

constexpr std::uint64_t kWrittenAtOnce = 64u << 20;  // by a writer, before the next
constexpr std::int64_t kOpeningNs = streams::kTrialNs + streams::kTrialNs / streams::kTrialPartBefore;
constexpr double kLooksEveryS = 0.1;  // whether all have ended
constexpr double kNs = 1e9;

std::int64_t ns_of(double seconds) { return static_cast<std::int64_t>(seconds * kNs); }

streams::Course course_of(const streams::FrameWindows& windows, const MountStream& stream) {
  return {windows.frames, windows.first, stream.step, stream.rate, 0};
}

streams::Slabs slabs_of(const System& system, const MountStream& stream) {
  return {stream.window.length[stream.axis], system.setup().image.extent[stream.axis]};
}

// Requests of a disk, by their number and bytes.
std::vector<streams::DiskReads> reads_of(const Split& split, unsigned disks) {
  std::vector<streams::DiskReads> reads(disks);
  for (const Request& request : split.requests) {
    reads[request.disk].requests += 1;
    reads[request.disk].bytes += request.full_bytes;
  }
  return reads;
}

// Random extents of one disk after another, so many at a time, as the trial of a mount reads them.
class Trial final : public Listener {
 public:
  Trial(const System& system, const std::vector<streams::DiskReads>& reads, std::uint64_t seed)
      : system_(system), reads_(reads), engine_(system.route().max_steps(), seed), random_(seed + 1) {
    system.route().add_stations(engine_);
    disks_.resize(reads.size());
    find_extents();
  }

  // For a byte, requests counted as device::kRequestBytes; 0: no reads.
  std::vector<double> run() {
    for (unsigned disk = 0; disk < disks_.size(); ++disk)
      if (reads_[disk].requests > 0 && !disks_[disk].extents.empty()) begin(disk);
    engine_.run(*this);
    std::vector<double> ns_per_byte;
    for (const Disk& disk : disks_) ns_per_byte.push_back(disk.ns_per_byte);
    const double slowest = *std::max_element(ns_per_byte.begin(), ns_per_byte.end());
    for (unsigned disk = 0; disk < disks_.size(); ++disk)
      if (reads_[disk].requests > 0 && ns_per_byte[disk] <= 0) ns_per_byte[disk] = slowest;
    return ns_per_byte;
  }

 private:
  static constexpr double kBeginS = static_cast<double>(streams::kTrialNs / streams::kTrialPartBefore) / kNs;
  static constexpr double kEndS = kBeginS + static_cast<double>(streams::kTrialNs) / kNs;
  static constexpr std::uint64_t kMostExtents = 1u << 16;  // of the image that are looked at

  struct Disk {
    std::vector<std::uint64_t> extents;  // numbers
    std::size_t left = 0;
    double work = 0, counted_s = -1, work_before = 0, ns_per_byte = 0;
  };

  void find_extents() {
    const geometry::Geometry& image = system_.setup().image;
    const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
    const std::uint64_t count = std::min(kMostExtents, geometry::extent_count(image.rank, image.grid()));
    for (std::uint64_t number = 0; number < count; ++number)
      disks_[system_.layout().disk_of(geometry::extent_coord(bytes, number), 0)].extents.push_back(number);
  }
  void begin(unsigned number) {
    Disk& disk = disks_[number];
    if (disk.counted_s < 0 && engine_.now_s() >= kBeginS) {
      disk.counted_s = engine_.now_s();
      disk.work_before = disk.work;
    }
    if (engine_.now_s() >= kEndS) {
      const double work = disk.work - disk.work_before;
      if (work > 0) disk.ns_per_byte = (engine_.now_s() - disk.counted_s) * kNs / work;
      return;
    }
    const std::uint64_t bytes = std::min(streams::trial_request_bytes(reads_[number]), system_.step_bytes());
    for (std::size_t i = 0; i < streams::kTrialRequests; ++i) {
      const std::uint64_t extent = disk.extents[random_.below(disk.extents.size())];
      system_.route().steps(Route::Phase::kExtent,
                            system_.request_of(number, system_.layout().offset_of(extent), bytes), engine_.random(),
                            steps_);
      disk.work += static_cast<double>(bytes + device::kRequestBytes);
      if (steps_.empty()) continue;
      ++disk.left;
      engine_.start(steps_, number);
    }
    // A machine that answers some requests in no time at all must come to an end as well.
    if (disk.left == 0) engine_.alarm(engine_.now_s() + 1e-6, number);
  }
  void job_done(Engine&, std::uint64_t token) override {
    if (--disks_[token].left == 0) begin(static_cast<unsigned>(token));
  }
  void alarm(Engine&, std::uint64_t token) override { begin(static_cast<unsigned>(token)); }

  const System& system_;
  const std::vector<streams::DiskReads>& reads_;
  Engine engine_;
  Random random_;
  std::vector<Disk> disks_;
  std::vector<Step> steps_;
};

Result<streams::FrameWindows> check_stream(const System& system, const MountStream& stream) {
  MDFS_TRY_ASSIGN(const streams::FrameWindows windows,
                  streams::frame_windows(system.setup().image, stream.window, stream.axis));
  MDFS_TRY(streams::check(course_of(windows, stream)));
  if (stream.lookahead > streams::kMostLookahead)
    return Error{Errc::kInvalidArgument,
                 fmt::format("lookahead {}: must be 1 to {} frames, or 0", stream.lookahead, streams::kMostLookahead)};
  return windows;
}

Result<std::vector<streams::DiskReads>> plan_frames(const System& system, const MountStream& stream,
                                                    const streams::FrameWindows& windows) {
  const auto plan = [&](const geometry::Window& window) -> Result<std::vector<streams::DiskReads>> {
    return reads_of(system.split(window, 0), system.setup().disks);
  };
  return streams::mean_reads(windows, course_of(windows, stream), system.setup().image.extent[stream.axis], plan,
                             [] { return false; });
}

// Clients, readers, writers and a scrub, on one engine.
class Run final : public Listener {
 public:
  Run(const System& system, const MountStreamsOptions& options, const std::vector<StreamAnswer>& answers,
      Reservation reservation)
      : system_(system),
        options_(options),
        reserved_(reservation == Reservation::kReserved),
        engine_(system.route().max_steps(), options.seed),
        disks_(system, engine_, reserved_, trial_of(answers)),
        random_(options.seed + 1) {
    system.route().add_stations(engine_);
    result_.streams.resize(options.streams.size());
    for (std::size_t i = 0; i < options.streams.size(); ++i)
      if (answers[i].runs) open(i, answers[i].lookahead);
  }

  MountStreamsResult run() {
    for (Client& client : clients_) ask(client);
    read_frames();
    for (unsigned i = 0; i < options_.other.readers; ++i) begin_window();
    for (unsigned i = 0; i < options_.other.writers; ++i) begin_write();
    if (options_.other.scrub) nap();
    drain();
    while (open_ > 0 && engine_.now_s() < end_s())
      engine_.run_until(std::min(end_s(), engine_.now_s() + kLooksEveryS), *this);
    for (const Client& client : clients_) {
      StreamFrames& frames = result_.streams[client.stream];
      frames.counts = client.queue.counts();
      frames.overdue = client.frames - std::min(client.frames, client.next_n);
    }
    result_.seconds = engine_.now_s();
    result_.use = use_of(engine_, system_);
    return std::move(result_);
  }

 private:
  enum class Kind : std::uint8_t { kFrames, kWindow, kWrite, kScrub };
  // Requests that are waited for together.
  struct Work {
    Kind kind = Kind::kFrames;
    std::uint64_t left = 0;
    std::size_t client = 0;
    streams::FrameRead read;
    double bytes = 0;
  };
  struct Client {
    std::size_t stream = 0;
    streams::FrameWindows windows;
    streams::FrameQueue queue;
    std::map<std::uint64_t, std::int64_t> begun_ns;  // of frames that were read, by frame number
    bool waits = false;                              // for a frame
    std::uint64_t next_n = 0;                        // that it asks for
    std::uint64_t frames = 0;                        // that it takes
  };
  enum Alarm : std::uint64_t { kThreads, kNap, kFirstClient };

  static std::vector<double> trial_of(const std::vector<StreamAnswer>& answers) {
    std::vector<double> slowest;
    for (const StreamAnswer& answer : answers) {
      slowest.resize(std::max(slowest.size(), answer.ns_per_byte.size()));
      for (std::size_t disk = 0; disk < answer.ns_per_byte.size(); ++disk)
        if (answer.ns_per_byte[disk] > 0) slowest[disk] = answer.ns_per_byte[disk];
    }
    return slowest;
  }

  std::int64_t now_ns() const { return ns_of(engine_.now_s()); }
  // Frames that are later than all of the time count as late all the same.
  double end_s() const { return start_s_ + 2 * options_.seconds; }
  double no_earlier(std::int64_t at_ns) const {
    return std::max(engine_.now_s(), (static_cast<double>(at_ns) + 1) / kNs);
  }

  void open(std::size_t i, unsigned lookahead) {
    const MountStream& stream = options_.streams[i];
    const auto windows = streams::frame_windows(system_.setup().image, stream.window, stream.axis);
    MDFS_CHECK(windows.ok());
    streams::Course course = course_of(*windows, stream);
    course.start_ns = streams::prefill_ns(lookahead, course) + ns_of(random_.uniform(0, 1 / stream.rate));
    // Each opening has its trial.
    course.start_ns += static_cast<std::int64_t>(clients_.size()) * kOpeningNs;
    start_s_ = std::max(start_s_, static_cast<double>(course.start_ns) / kNs);
    // Programs without a reservation read frame by frame.
    const streams::Slabs slabs = reserved_ ? slabs_of(system_, stream) : streams::Slabs{};
    const auto wanted = static_cast<std::uint64_t>(std::ceil(options_.seconds * stream.rate));
    clients_.push_back({i,
                        *windows,
                        streams::FrameQueue(course, lookahead, stream.drops, 0, slabs),
                        {},
                        false,
                        0,
                        std::min(wanted, streams::frame_count(course))});
    ++open_;
  }

  // ---- frames

  // As the threads of a mount: the read with the earliest deadline of those that may begin. Programs have threads of
  // their own.
  void read_frames() {
    while (!reserved_ || threads_ < streams::kReadThreads) {
      std::vector<const streams::FrameQueue*> queues;
      for (const Client& client : clients_) queues.push_back(&client.queue);
      std::int64_t until_ns = INT64_MAX;
      const auto chosen = streams::next_to_read(queues, now_ns(), until_ns);
      if (!chosen) {
        if (until_ns < woken_ns_ || woken_ns_ <= now_ns()) {
          woken_ns_ = until_ns;
          if (until_ns < INT64_MAX && static_cast<double>(until_ns) / kNs < end_s())
            engine_.alarm(no_earlier(until_ns), kThreads);
        }
        return;
      }
      Client& client = clients_[*chosen];
      const auto read = client.queue.begin_read(now_ns());
      if (!read) {  // all that remained was dropped
        if (client.waits) deliver(client);
        continue;
      }
      ++threads_;
      Work work = work_of(Kind::kFrames);
      work.client = *chosen;
      work.read = *read;
      for (unsigned n = 0; n < read->count; ++n) client.begun_ns[read->frame_number(n)] = now_ns();
      submit(std::move(work), system_.split(streams::window_of(client.windows, *read), 0).requests,
             {Urgency::Kind::kReserved, read->deadline_ns, nullptr});
    }
  }
  void frames_read(const Work& work) {
    --threads_;
    Client& client = clients_[work.client];
    for (unsigned n = 0; n < work.read.count; ++n) client.queue.read_ended(work.read.ticket + n, now_ns(), {}, nullptr);
    if (client.waits) deliver(client);
    read_frames();
  }
  // A client takes each frame at its deadline.
  void ask(Client& client) {
    const std::int64_t deadline_ns = streams::deadline_ns(client.queue.course(), client.next_n);
    if (client.next_n >= client.frames) {
      client.queue.pause();  // closed
      --open_;
      return;
    }
    engine_.alarm(no_earlier(deadline_ns), kFirstClient + static_cast<std::uint64_t>(&client - clients_.data()));
  }
  void deliver(Client& client) {
    const auto delivered = client.queue.deliver(now_ns());
    client.waits = !delivered && !client.queue.at_end();
    if (!delivered) return;
    StreamFrames& frames = result_.streams[client.stream];
    frames.ahead_s.push_back(static_cast<double>(delivered->deadline_ns - delivered->ready_ns) / kNs);
    if (const auto begun = client.begun_ns.find(delivered->frame); begun != client.begun_ns.end()) {
      frames.read_s.push_back(static_cast<double>(delivered->ready_ns - begun->second) / kNs);
      client.begun_ns.erase(begun);
    }
    client.next_n += 1 + delivered->dropped;
    ask(client);
  }

  // ---- other load

  void begin_window() {
    const geometry::Window window = random_window(system_.setup().image, options_.other.reader_length, random_);
    ++readers_;
    submit(work_of(Kind::kWindow), system_.split(window, 0).requests, {});
  }
  void begin_write() {
    const unsigned disks = system_.setup().disks;
    const std::uint64_t most = ReadRules{}.max_request_bytes;
    std::vector<Request> requests;
    for (unsigned disk = 0; disk < disks; ++disk)
      for (std::uint64_t left = ceil_div(kWrittenAtOnce, std::uint64_t{disks} * 4096) * 4096; left > 0;) {
        const std::uint64_t bytes = std::min(left, most);
        requests.push_back(system_.request_of(disk, written_offset_, bytes));
        left -= bytes;
        written_offset_ += bytes;
      }
    submit(work_of(Kind::kWrite), requests, {});
  }
  // The scrub waits for readers before each of its steps.
  void nap() {
    const bool waits = (readers_ > 0 || threads_ > 0) && napped_ns_ < kMostYieldNs;
    if (waits) {
      napped_ns_ += kYieldNapNs;
      engine_.alarm(engine_.now_s() + static_cast<double>(kYieldNapNs) / kNs, kNap);
      return;
    }
    napped_ns_ = 0;
    std::vector<Request> requests;
    for (unsigned disk = 0; disk < system_.setup().disks; ++disk)
      requests.push_back(system_.request_of(disk, scrubbed_offset_, kScrubReadBytes));
    scrubbed_offset_ += kScrubReadBytes;
    submit(work_of(Kind::kScrub), requests, device::in_background());
  }

  // ---- requests

  static Work work_of(Kind kind) {
    Work work;
    work.kind = kind;
    return work;
  }
  void submit(Work work, const std::vector<Request>& requests, const Urgency& urgency) {
    const std::uint32_t number = take_slot(works_, free_);
    work.left = requests.size() + 1;
    for (const Request& request : requests) work.bytes += request.full_bytes;
    const bool is_write = work.kind == Kind::kWrite;
    works_[number] = std::move(work);
    for (const Request& request : requests) disks_.submit(request, urgency, is_write, number);
    finished_.push_back(number);  // without requests the work is done; never from within its beginning
  }
  void note_ended(std::uint64_t number) {
    if (--works_[number].left > 0) return;
    const Work work = std::exchange(works_[number], {});
    free_.push_back(static_cast<std::uint32_t>(number));
    switch (work.kind) {
      case Kind::kFrames:
        return frames_read(work);
      case Kind::kWindow:
        --readers_;
        ++result_.windows;
        return begin_window();
      case Kind::kWrite:
        result_.written_bytes += work.bytes;
        return begin_write();
      case Kind::kScrub:
        result_.scrubbed_bytes += work.bytes;
        return nap();
    }
  }
  void drain() {
    for (;;) {
      std::vector<std::uint64_t> ended = disks_.take_ended_at_once();
      ended.insert(ended.end(), finished_.begin(), finished_.end());
      finished_.clear();
      if (ended.empty()) return;
      for (const std::uint64_t number : ended) note_ended(number);
    }
  }
  void job_done(Engine&, std::uint64_t token) override {
    note_ended(disks_.ended(token));
    drain();
  }
  void alarm(Engine&, std::uint64_t token) override {
    if (token == kThreads) {
      read_frames();
    } else if (token == kNap) {
      nap();
    } else {
      deliver(clients_[token - kFirstClient]);
      read_frames();  // a place may be free
    }
    drain();
  }

  const System& system_;
  const MountStreamsOptions& options_;
  const bool reserved_;
  Engine engine_;
  DiskSchedules disks_;
  Random random_;
  std::vector<Client> clients_;
  std::vector<Work> works_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint64_t> finished_;
  double start_s_ = 0;    // the latest first deadline
  std::size_t open_ = 0;  // clients that want further frames
  std::size_t threads_ = 0;
  std::int64_t woken_ns_ = INT64_MAX, napped_ns_ = 0;
  std::uint64_t readers_ = 0, written_offset_ = 0, scrubbed_offset_ = 0;
  MountStreamsResult result_;
};

}  // namespace

Result<std::vector<StreamAnswer>> ask_admission(const System& system, const MountStreamsOptions& options) {
  if (options.streams.size() > streams::kMostStreams)
    return Error{Errc::kTooManyFiles,
                 fmt::format("{} streams: a mount opens at most {}", options.streams.size(), streams::kMostStreams)};
  std::vector<StreamAnswer> answers;
  streams::Loads loads;
  std::uint64_t memory_bytes = 0;
  for (const MountStream& stream : options.streams) {
    MDFS_TRY_ASSIGN(const streams::FrameWindows windows, check_stream(system, stream));
    MDFS_TRY_ASSIGN(const std::vector<streams::DiskReads> reads, plan_frames(system, stream, windows));
    const std::uint64_t frame_bytes = geometry::window_bytes(system.setup().image, stream.window);
    StreamAnswer answer;
    answer.lookahead = streams::lookahead_of(stream.lookahead, stream.rate, frame_bytes, streams::kDefaultMemoryBytes);
    answer.ns_per_byte = Trial(system, reads, options.seed).run();
    for (std::size_t disk = 0; disk < reads.size(); ++disk)
      answer.cost_ns.push_back(streams::cost_ns(reads[disk], answer.ns_per_byte[disk]));
    answer.admission = streams::admit(loads, answer.cost_ns, stream.rate, options.limit);
    answer.runs = answer.admission.accepted || stream.unchecked;
    if (answer.runs) {
      streams::add_load(loads, answer.cost_ns, stream.rate);
      const streams::FrameQueue queue(course_of(windows, stream), answer.lookahead, stream.drops, 0,
                                      slabs_of(system, stream));
      memory_bytes += (std::uint64_t{answer.lookahead} + queue.most_together()) * frame_bytes;
      if (memory_bytes > streams::kDefaultMemoryBytes)
        return Error{Errc::kTooBig, fmt::format("stream {}: the frames that are read ahead take {} bytes; a mount has "
                                                "{} for all streams",
                                                answers.size(), memory_bytes, streams::kDefaultMemoryBytes)};
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

streams::Loads reserved_loads(const MountStreamsOptions& options, const std::vector<StreamAnswer>& answers) {
  streams::Loads loads;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i].runs) streams::add_load(loads, answers[i].cost_ns, options.streams[i].rate);
  return loads;
}

MountStreamsResult run_mount_streams(const System& system, const MountStreamsOptions& options,
                                     const std::vector<StreamAnswer>& answers, Reservation reservation) {
  MDFS_CHECK(answers.size() == options.streams.size());
  return Run(system, options, answers, reservation).run();
}

}  // namespace mdfs::sim
