// Clients that read windows of an image: on a mount, each in a thread, and the same in the simulator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "sim/experiment.h"

namespace mdfs::tools {

inline constexpr unsigned kMostReaders = 256;

// A client reads its windows in the order of the list. It begins one when the one before has come, and not before
// time_s from the start.
struct Reading {
  geometry::Window window;
  std::uint64_t client = 0;
  double time_s = 0;
};

// The windows dealt out to clients 0, 1 .. in turn, all from the start on.
std::vector<Reading> dealt_out(std::span<const geometry::Window> windows, unsigned clients);
// The windows of a trace, without its writes. All of them are of `image`: they name no object, or one of its shape.
// kInvalidArgument: bytes of the plain file, several images, or more than kMostReaders clients.
Result<std::vector<Reading>> read_clients(const std::string& trace, const geometry::Geometry& image);
// For sim::replay().
std::vector<sim::TraceEntry> entries_of(std::span<const Reading> readings);
// Reads them on the mount, where the image is at `path`. Seconds of each, in the order of the list. kCancelled soon
// after `interrupted` has become true.
Result<std::vector<double>> timed_reads(const std::string& path, std::span<const Reading> readings,
                                        const std::atomic<bool>& interrupted);

}  // namespace mdfs::tools
