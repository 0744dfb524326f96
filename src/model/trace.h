// Lines of a trace: the requests to a mounted volume with their times. A mount records them, mdfs-sim replays them.
//
// A line is one of
//   image OBJECT axes=tyx shape=10x2160x4096 extent=1x512x512 bytes=3 base=5 [compressed=0.4]
//                                                                 an image; later lines of an object win
//   cache BYTES                                                               of the mount
//   file OBJECT                                                               an ordinary or unknown file
//   SECONDS WINDOW [CLIENT] [object=N] [op=read|write] [bytes=N]              a window of an image: y50+30,x100+40
//   SECONDS @OFFSET+LENGTH [CLIENT] [object=N] [op=..] [bytes=N]              bytes of the plain file
// SECONDS count from the start of the trace; # begins a comment. Without `object` the window is one of the image that
// the reader of the trace knows of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::model {

inline constexpr std::string_view kTraceHeader = "# mdfs-trace 1: SECONDS WINDOW CLIENT object op bytes\n";

// Incompressible samples take a little more than their size, and whole blocks.
inline constexpr double kMaxCompressedShare = 2;

struct TraceImage {
  std::uint64_t object = 0;
  // Samples of bytes: `channels` bytes each, raw. Absent: an ordinary file.
  std::optional<geometry::Geometry> geometry;
  std::uint64_t base = 0;  // of its placement
  // Stored bytes over the image's bytes, above 0 and at most kMaxCompressedShare. Absent: not compressed.
  std::optional<double> compressed_share;
};

struct TraceCache {
  std::uint64_t bytes = 0;
};

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct TraceRequest {
  double time_s = 0;
  std::string window;              // a spec; empty: `range`
  std::optional<ByteRange> range;  // of the plain file
  std::uint64_t client = 0;
  std::optional<std::uint64_t> object;
  bool write = false;
  std::uint64_t bytes = 0;  // that were moved; 0: unknown
};

// With a newline at the end.
std::string to_line(const TraceImage& image);
std::string to_line(const TraceCache& cache);
std::string to_line(const TraceRequest& request);

// An empty line or comment: monostate. kInvalidArgument names the problem, without the line.
using TraceLine = std::variant<std::monostate, TraceImage, TraceCache, TraceRequest>;
Result<TraceLine> parse_trace_line(std::string_view line);

}  // namespace mdfs::model
