// A trace of a mount, or one written by hand, as requests to simulated images.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"
#include "sim/experiment.h"

namespace mdfs::tools {

// A request with the number of its image, not yet cut into windows: a file's length is known at the end of the trace.
struct Asked {
  model::TraceRequest request;
  std::size_t image = 0;
  std::size_t line = 0;
  bool ahead = false;  // of an ordinary file, which the kernel reads ahead: no request waits for the one before
};

// Every image has a geometry: files are rows of cells, as long as the trace reaches.
struct ReplayTrace {
  std::vector<model::TraceImage> images;  // 0: the one of the machine and the options
  std::vector<Asked> requests;
  std::optional<std::uint64_t> cache_bytes;  // of the mount that recorded it
};

// `own`: the image of lines without an object. Errors: "path:line: problem".
Result<ReplayTrace> read_trace(const std::string& path, bool reads_only, const geometry::Geometry& own);
// The requests in the order of the trace; kInvalidArgument, with the line, for one beyond its image. A client that the
// trace names reads a window only when it has got its last one, unless `independent`.
Result<std::vector<sim::TraceEntry>> entries_of(const ReplayTrace& trace, const std::string& path, bool independent);
// A system for each image, on the machine and disks of `setup`, with its cache. `own_cache`: with that of the trace.
Result<std::vector<sim::System>> systems_of(const sim::Setup& setup, const ReplayTrace& trace, bool own_cache);

}  // namespace mdfs::tools
