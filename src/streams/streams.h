// The streams of a mounted volume: windows that advance along an axis at a reserved rate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "device/urgency.h"
#include "geometry/geometry.h"
#include "streams/admission.h"
#include "streams/demand.h"
#include "streams/disk_trial.h"
#include "streams/frame_queue.h"
#include "volume/volume.h"

namespace mdfs::streams {

struct StreamOptions {
  double limit = 0.8;                                // of the time of each disk, for all streams together
  std::uint64_t memory_bytes = kDefaultMemoryBytes;  // for frames that are read ahead, of all streams together
  std::int64_t trial_ns = kTrialNs;                  // in which the disks are measured for a new stream
};
inline constexpr std::size_t kMostOfUser = 32;

struct StreamRequest {
  volume::Ino ino = 0;
  unsigned level = 0;       // a stored one, or 0: the image
  geometry::Window window;  // the first frame, in the samples of the level; checked
  unsigned axis = 0;
  std::int64_t step = 1;   // in frames
  double rate = 0;         // frames per second
  unsigned lookahead = 0;  // frames; 0: as many as half a second shows, within bounds
  bool drops = false;      // frames whose time is over are left out
  bool coarser = false;    // frames that are short of time, or cannot be read, are made from coarser stored levels
  bool unchecked = false;  // accepted without admission, and counted in the loads
  uid_t uid = 0;
  pid_t pid = 0;
};

struct StreamInfo {
  std::uint64_t id = 0;
  StreamRequest request;  // as it was made
  unsigned rank = 0;      // of the window
  Course course;          // the present one
  unsigned lookahead = 0;
  std::uint64_t frame_bytes = 0;
  bool paused = false, at_end = false;
  std::uint64_t next_frame = 0;  // to be delivered
  FrameCounts counts;
  Loads loads;     // that are reserved, by disk
  Loads measured;  // the share of the time since the stream began that disks spent on it
};

// Of an admission that was refused, and of one that was not.
struct Opened {
  Admission admission;
  std::optional<StreamInfo> stream;  // absent: refused
};

// A frame, which may have an error of its own, or nothing at the end of the course.
using FrameAnswer = std::function<void(Result<std::optional<Delivered>>)>;

// Any thread may call any method; the volume outlives the streams. Frames are read by threads of their own, the
// earliest deadline first, with requests that disks take before all others.
class Streams {
 public:
  Streams(volume::Volume& volume, const StreamOptions& options);
  // Streams that are still open end; who waits for a frame of them gets kCancelled.
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Measures the disks, which takes about a second, and admits the stream. The first frame is due once some frames can
  // have been read. kOutOfRange, kInvalidArgument: a value in the request, or no level is stored that is coarser;
  // kTooBig: its frames, or what is read ahead, are larger than the memory; kTooManyFiles: too many streams, or of one
  // user.
  Result<Opened> open(const StreamRequest& request, const engine::Stop& stop);
  // Frees what was reserved. Who waits for a frame gets kCancelled. No such stream: nothing.
  void close(std::uint64_t id);
  // Calls `answer` with the next frame, at once or when it has been read, from any thread. One call of a stream waits
  // at a time, others get kBusy, as calls of a paused one do. kNoData: no such stream. A frame that could not be
  // read has the error, and the next call gets the frame behind it. kCancelled: `stop`, which is asked now and then
  // while the call waits and must not wait itself, or the stream was closed.
  void next(std::uint64_t id, const engine::Stop& stop, FrameAnswer answer);

  Status pause(std::uint64_t id);
  Status resume(std::uint64_t id);
  // Continues with this frame.
  Status seek(std::uint64_t id, std::uint64_t frame);
  // Another rate and direction, which are admitted as those of a new stream are; if they are not, the old ones stay.
  Result<Admission> set_pace(std::uint64_t id, double rate, std::int64_t step);

  // The stream with the smallest number from `id` on.
  std::optional<StreamInfo> find_from(std::uint64_t id);
  std::optional<StreamInfo> find(std::uint64_t id);

 private:
  struct Stream;
  struct Job {
    std::shared_ptr<Stream> stream;
    FrameRead read;
  };
  using Call = std::function<void()>;

  Result<std::vector<DiskReads>> plan_reads(const StreamRequest& request, const FrameWindows& windows,
                                            const Course& course, const engine::Stop& stop);
  Result<FrameCost> cost_of(const StreamRequest& request, const FrameWindows& windows, const Course& course,
                            const engine::Stop& stop);
  void count_trials(int change);
  struct ReadFrame {
    FrameBytes bytes;
    unsigned coarser = 0;
  };
  Result<FrameBytes> read_at(const Stream& stream, const geometry::Window& window, unsigned coarser,
                             const engine::Stop& stop);
  Result<ReadFrame> read_frame(const Stream& stream, std::uint64_t frame, unsigned coarser, const engine::Stop& stop);
  std::vector<Result<ReadFrame>> read_frames(const Stream& stream, const FrameRead& read);
  void note_frames(Stream& stream, const FrameRead& read, std::vector<Result<ReadFrame>> frames);
  Result<unsigned> levels_above(const StreamRequest& request);
  // `change` gets the stream, with the lock held; what it lets be read begins.
  Status change_stream(std::uint64_t id, const std::function<Status(Stream&)>& change);
  std::shared_ptr<Stream> look_up(std::uint64_t id);  // null: there is none
  // All below: mutex_ is held. Answers are put into calls, and are called without it.
  StreamInfo info_of(const Stream& stream) const;
  std::optional<Job> choose_job(std::int64_t now_ns, std::int64_t& until_ns, std::vector<Call>& calls);
  void answer_if_ready(Stream& stream, std::int64_t now_ns, std::vector<Call>& calls);
  bool any_waits() const;
  // Ends the calls whose callers want no answer any more.
  void end_stopped(std::unique_lock<std::mutex>& lock);
  void call_without_lock(std::unique_lock<std::mutex>& lock, std::vector<Call>& calls);
  Status check_bounds(const Stream& stream) const;
  std::int64_t start_of(const Stream& stream, const Course& course) const;
  void keep_schedules();
  void start_threads();

  void run();

  volume::Volume& volume_;
  const StreamOptions options_;
  std::mutex trial_mutex_;  // one trial at a time; taken first

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<Stream>> streams_;
  std::uint64_t last_id_ = 0;
  std::uint64_t memory_bytes_ = 0;  // promised to streams
  Loads loads_;
  int trials_ = 0;                     // under way
  std::int64_t timer_ns_ = INT64_MAX;  // when the first thread wakes up that waits for a time
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mdfs::streams
