// The streams of a mount: admission, the schedules of the disks, and how late frames come beside other load. The rules
// are those of streams/ and device/; only time is simulated. Deterministic in the seed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "sim/simulation.h"
#include "sim/system.h"
#include "streams/admission.h"
#include "streams/course.h"
#include "streams/frame_queue.h"

namespace mdfs::sim {

// As of `mdfs stream open`.
struct MountStream {
  geometry::Window window;  // the first frame
  unsigned axis = 0;
  std::int64_t step = 1;
  double rate = 0;         // frames a second
  unsigned lookahead = 0;  // frames; 0: as on a mount
  bool drops = false;
  bool unchecked = false;  // accepted whatever admission says
};

// What others do, each as fast as it can.
struct OtherLoad {
  unsigned readers = 0;
  geometry::Coord reader_length{};  // of a window at a random position
  unsigned writers = 0;             // of files of 64 MiB, each flushed, evenly over the disks
  bool scrub = false;               // 1 MiB of each disk at once, in the background
};

struct StreamAnswer {
  streams::FrameCost cost_ns;       // of a frame, by disk
  std::vector<double> ns_per_byte;  // by disk, as the trial has found
  streams::Admission admission;
  bool runs = false;  // accepted, or unchecked
  unsigned lookahead = 0;
};

struct StreamFrames {
  streams::FrameCounts counts;
  std::uint64_t overdue = 0;  // frames that had not been read at the end, after twice the time
  std::uint64_t late() const { return counts.late + counts.dropped + overdue; }
  std::uint64_t all() const { return counts.in_time + late(); }
  std::vector<double> read_s;   // from the beginning of a frame's read to its end
  std::vector<double> ahead_s;  // from its end to the deadline; below 0: late
};

struct MountStreamsOptions {
  std::vector<MountStream> streams;
  OtherLoad other;
  double limit = 0.8;
  double seconds = 20;  // for which each stream runs
  std::uint64_t seed = 1;
};

// Asks admission about the streams, one after another, as a mount does: disks are tried with reads like those of the
// frames. kInvalidArgument, kOutOfRange: a stream that a mount would not open either; kTooBig: its frames ahead take
// more than the memory of streams; kTooManyFiles: too many streams.
Result<std::vector<StreamAnswer>> ask_admission(const System& system, const MountStreamsOptions& options);
// What admission reserves on each disk for the streams that run.
streams::Loads reserved_loads(const MountStreamsOptions& options, const std::vector<StreamAnswer>& answers);

enum class Reservation : std::uint8_t {
  kReserved,  // the disks keep schedules, and frames come first
  kNone,      // the same frames are read as far ahead by programs, and wait with all others
};
struct MountStreamsResult {
  std::vector<StreamFrames> streams;  // empty for those that do not run
  double seconds = 0;                 // until the last stream has ended
  std::uint64_t windows = 0;          // that the other readers got
  double written_bytes = 0, scrubbed_bytes = 0;
  std::vector<ResourceUse> use;
};
// The streams are opened one after another, as long apart as a trial takes; each begins at a random moment of its
// period. Frames and windows find nothing in a cache. Stages of whole windows are left out, as on modelled disks.
MountStreamsResult run_mount_streams(const System& system, const MountStreamsOptions& options,
                                     const std::vector<StreamAnswer>& answers, Reservation reservation);

}  // namespace mdfs::sim
