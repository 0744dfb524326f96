// The frames of one stream that are read ahead: which one is read next, and which one is delivered. Pure: times are
// given, and frames are read elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "streams/course.h"

namespace mdfs::streams {

using FrameBytes = std::shared_ptr<const ByteVector>;

// Frames that are to be read together: `count` of them one after another along the course, whose tickets are one after
// another as well.
struct FrameRead {
  std::uint64_t ticket = 0;      // of the first, for read_ended()
  std::uint64_t frame = 0;       // its index
  std::int64_t deadline_ns = 0;  // likewise
  unsigned coarser = 0;          // levels above that of the stream: there is no time for more
  unsigned count = 1;
  std::int64_t step = 1;  // from one frame to the next
  std::uint64_t frame_number(unsigned i) const {
    return frame + static_cast<std::uint64_t>(step * static_cast<std::int64_t>(i));
  }
};

// Frames that lie in the same extents have the same number. Read together, the extents are read once.
struct Slabs {
  std::uint64_t frame_length = 1, extent_length = 1;  // samples along the axis
  std::uint64_t of(std::uint64_t frame) const { return frame * frame_length / extent_length; }
};

// The levels above its own from which a frame is read that has `left_ns` until its deadline, if frames of its own level
// take `usual_ns`: none if it has that time, else one, and one more for each quarter of the time, because a level has
// about a quarter of the bytes of the one below. At most `most`.
unsigned levels_coarser(std::int64_t left_ns, std::int64_t usual_ns, unsigned most);

// Of frames that were delivered, dropped ones apart.
struct FrameCounts {
  std::uint64_t in_time = 0;  // read by their deadlines
  std::uint64_t late = 0;
  std::uint64_t dropped = 0;   // that were not delivered, because their time was over
  std::uint64_t failed = 0;    // that could not be read
  std::uint64_t coarser = 0;   // of those in time or late: read from a coarser level
  std::int64_t latest_ns = 0;  // behind its deadline, of the frame that was latest
};

// A frame that is delivered.
struct Delivered {
  std::uint64_t frame = 0;
  std::int64_t deadline_ns = 0;
  std::int64_t ready_ns = 0;  // when it had been read
  std::uint64_t dropped = 0;  // frames before it that were dropped since the last delivery
  unsigned coarser = 0;       // levels above that of the stream, from which it was read
  unsigned level = 0;         // this level; the queue does not know it
  Status status;              // of reading it
  FrameBytes bytes;           // null if the status is an error
};

// One thread at a time. At most `lookahead` frames are being read or wait to be delivered, and none is read earlier
// than that many periods before its deadline: a client that takes frames faster than the rate waits. Frames of one slab
// are read together, up to half of the lookahead, once there is room for all of them.
class FrameQueue {
 public:
  // The course has passed check(); lookahead is at least 1. `drops`: frames whose time is over are left out, so that
  // the stream keeps its time; otherwise every frame is delivered, however late. `most_coarser`: levels above that of
  // the stream from which frames may be read that are short of time.
  FrameQueue(const Course& course, unsigned lookahead, bool drops, unsigned most_coarser = 0, const Slabs& slabs = {});

  const Course& course() const { return course_; }
  unsigned lookahead() const { return lookahead_; }
  const FrameCounts& counts() const { return counts_; }
  bool is_paused() const { return paused_; }
  // The index of the frame that is delivered next, if nothing is dropped; absent at the end.
  std::optional<std::uint64_t> next_frame() const;

  // Frames of a read, at most.
  unsigned most_together() const;
  // The time from which on a further read may begin, and its deadline; absent while none may: paused, at the end, or
  // all places are taken.
  struct Opening {
    std::int64_t from_ns = 0, deadline_ns = 0;
  };
  std::optional<Opening> opening() const;
  // Takes the next read. Absent if there is none after all: what remained was dropped.
  std::optional<FrameRead> begin_read(std::int64_t now_ns);
  // The read of one frame has ended, of a level that is so much `coarser`. A ticket from before a change of the course
  // is ignored.
  void read_ended(std::uint64_t ticket, std::int64_t now_ns, Status status, FrameBytes bytes, unsigned coarser = 0);

  // The next frame in order; absent: it has not been read yet, or at_end(), or paused.
  std::optional<Delivered> deliver(std::int64_t now_ns);
  // Every frame of the course has been delivered or dropped.
  bool at_end() const;

  // Another course from now on. Frames that were read ahead are given up.
  void change(const Course& course);
  // The first frame of the course has been delivered already.
  void skip_first();
  // Paused: the frames that were read ahead wait, and their times are over. Resumed: the course continues with the
  // frame that is next, whose deadline is `start_ns`.
  void pause();
  void resume(std::int64_t start_ns);

 private:
  struct Place {
    std::uint64_t ticket = 0;
    std::uint64_t n = 0;  // place in the course
    std::uint64_t frame = 0;
    std::int64_t deadline_ns = 0, begun_ns = 0;
    bool ended = false;
    unsigned coarser = 0;
    std::int64_t ready_ns = 0;
    Status status;
    FrameBytes bytes;
  };
  void give_up();
  unsigned frames_together() const;
  void count(const Place& place);
  void note_time(std::int64_t ns, unsigned coarser);

  Course course_;
  const unsigned lookahead_;
  const bool drops_;
  const unsigned most_coarser_;
  const Slabs slabs_;
  // That frames of the stream's own level take: a running mean, but at least the last one's time. It fades while none
  // is read, so that one is tried.
  std::int64_t usual_ns_ = 0;
  bool paused_ = false;
  std::uint64_t next_ticket_ = 1;
  std::uint64_t next_n_ = 0;     // the next to be read
  std::uint64_t awaited_n_ = 0;  // the next to be delivered, unless it is dropped
  std::deque<Place> places_;     // in the order of the course
  FrameCounts counts_;
};

// All frames of the read, as one window.
geometry::Window window_of(const FrameWindows& windows, const FrameRead& read);
// The queue whose next read has the earliest deadline of those that may begin; absent: none may, and `until_ns` is the
// time at which one may.
std::optional<std::size_t> next_to_read(std::span<const FrameQueue* const> queues, std::int64_t now_ns,
                                        std::int64_t& until_ns);

}  // namespace mdfs::streams
