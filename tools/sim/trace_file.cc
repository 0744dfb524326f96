// Reading traces.
// SPDX-License-Identifier: Apache-2.0
#include "trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "geometry/decompose.h"
#include "geometry/window_spec.h"

namespace mdfs::tools {
namespace {

constexpr std::size_t kMaxRequests = 10'000'000;
constexpr std::size_t kMaxImages = 10'000;
constexpr std::size_t kMaxLineBytes = 4096;
constexpr std::uint64_t kCellBytes = 128u << 10;  // in which a mount places ordinary files

class TraceReader {
 public:
  TraceReader(const std::string& path, bool reads_only, const geometry::Geometry& own)
      : path_(path), reads_only_(reads_only) {
    trace_.images.push_back({.object = 0, .geometry = own, .base = 0, .compressed_share = {}});
  }

  Result<ReplayTrace> read() {
    std::ifstream file(path_);
    if (!file) return from_errno(errno, path_);
    if (std::error_code none; std::filesystem::is_directory(path_, none)) return from_errno(EISDIR, path_);
    std::vector<char> line(kMaxLineBytes + 1);  // getline() ends it with a zero
    while (file.getline(line.data(), static_cast<std::streamsize>(line.size())) || file.gcount() > 0) {
      ++number_;
      if (file.fail()) return bad(fmt::format("a line has at most {} bytes", kMaxLineBytes));
      if (file.eof() && trace_.images.size() > 1) return bad("the trace of a mount ends within this line");
      const auto bytes = static_cast<std::size_t>(file.gcount()) - (file.eof() ? 0 : 1);
      auto parsed = model::parse_trace_line({line.data(), bytes});
      if (!parsed.ok()) return bad(parsed.error().where);
      if (const auto* image = std::get_if<model::TraceImage>(&*parsed)) MDFS_TRY(add(*image));
      if (const auto* cache = std::get_if<model::TraceCache>(&*parsed)) trace_.cache_bytes = cache->bytes;
      if (auto* request = std::get_if<model::TraceRequest>(&*parsed)) MDFS_TRY(add(std::move(*request)));
    }
    if (file.bad()) return from_errno(EIO, path_);
    if (trace_.requests.empty()) return Error{Errc::kNoData, fmt::format("{}: no window", path_)};
    return std::move(trace_);
  }

 private:
  Error bad(const std::string& why) const {
    return {Errc::kInvalidArgument, fmt::format("{}:{}: {}", path_, number_, why)};
  }

  Status add(const model::TraceImage& image) {
    if (trace_.images.size() > kMaxImages) return bad(fmt::format("a trace has at most {} images", kMaxImages));
    by_object_[image.object] = trace_.images.size();
    trace_.images.push_back(image);
    return {};
  }

  Status add(model::TraceRequest request) {
    if (reads_only_ && request.write) return {};
    if (trace_.requests.size() == kMaxRequests) return bad(fmt::format("a trace has at most {} windows", kMaxRequests));
    Asked asked{.request = std::move(request), .image = 0, .line = number_};
    if (asked.request.object) {
      const auto known = by_object_.find(*asked.request.object);
      if (known == by_object_.end())
        return bad(fmt::format("object {} has no image or file line", *asked.request.object));
      asked.image = known->second;
    }
    asked.ahead = !trace_.images[asked.image].geometry;
    if (!trace_.images[asked.image].geometry && !asked.request.range) return bad("an ordinary file has no windows");
    trace_.requests.push_back(std::move(asked));
    return {};
  }

  const std::string& path_;
  const bool reads_only_;
  ReplayTrace trace_;
  std::map<std::uint64_t, std::size_t> by_object_;
  std::size_t number_ = 0;
};

// An image as long as the trace reaches: what appends to it comes before the line with its new shape.
Status lengthen(geometry::Geometry& image, std::uint64_t end) {
  std::uint64_t row = image.sample_bytes();
  for (unsigned axis = 1; axis < image.rank; ++axis) row *= image.shape[axis];
  if (image.rank == 0 || end <= image.shape[0] * row) return {};
  image.shape[0] = ceil_div(end, row);
  return geometry::check(image);
}

// Files as rows of cells, as long as the trace reaches.
Status shape_files(ReplayTrace& trace) {
  std::vector<std::uint64_t> end(trace.images.size());
  for (const Asked& asked : trace.requests)
    if (asked.request.range)
      end[asked.image] = std::max(end[asked.image], asked.request.range->offset + asked.request.range->length);
  for (std::size_t i = 0; i < trace.images.size(); ++i) {
    model::TraceImage& image = trace.images[i];
    if (image.geometry) {
      if (i > 0) MDFS_TRY(lengthen(*image.geometry, end[i]));  // the first is that of the options
      continue;
    }
    image.base = image.object;  // files begin on different disks
    MDFS_TRY_ASSIGN(image.geometry, sim::make_image(std::to_string(std::max<std::uint64_t>(end[i], 1)),
                                                    std::to_string(kCellBytes), true, 1));
  }
  return {};
}

// The bytes of a plain file as boxes of samples: whole samples, where the range begins or ends within one.
std::vector<geometry::Window> windows_of(const geometry::Geometry& image, const model::ByteRange& range) {
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const std::uint64_t sample = image.sample_bytes();
  const unsigned fastest = image.rank - 1;
  std::vector<geometry::Window> windows;
  for (const geometry::RangeBox& one : geometry::range_boxes(image.rank, bytes.shape, range.offset, range.length)) {
    geometry::Window window;
    window.start = one.box.start;
    window.length = one.box.length;
    const std::uint64_t last = one.box.start[fastest] + one.box.length[fastest];
    window.start[fastest] = one.box.start[fastest] / sample;
    window.length[fastest] = ceil_div(last, sample) - window.start[fastest];
    windows.push_back(window);
  }
  return windows;
}

}  // namespace

Result<ReplayTrace> read_trace(const std::string& path, bool reads_only, const geometry::Geometry& own) {
  MDFS_TRY_ASSIGN(ReplayTrace trace, TraceReader(path, reads_only, own).read());
  MDFS_TRY(shape_files(trace));
  return trace;
}

Result<std::vector<sim::TraceEntry>> entries_of(const ReplayTrace& trace, const std::string& path, bool independent) {
  std::vector<sim::TraceEntry> entries;
  std::map<std::uint64_t, std::size_t> last_read;  // of a client
  entries.reserve(trace.requests.size());
  for (const Asked& asked : trace.requests) {
    const model::TraceImage& image = trace.images[asked.image];
    const auto bad = [&](const std::string& why) {
      return Error{Errc::kInvalidArgument, fmt::format("{}:{}: {}", path, asked.line, why)};
    };
    sim::TraceEntry entry{.time_s = asked.request.time_s,
                          .windows = {},
                          .client = static_cast<unsigned>(asked.request.client),
                          .image = asked.image,
                          .base = image.base,
                          .write = asked.request.write,
                          .after = {}};
    if (asked.request.range) {
      const model::ByteRange& range = *asked.request.range;
      if (range.offset + range.length > image.geometry->size_bytes()) return bad("bytes past the end of the image");
      entry.windows = windows_of(*image.geometry, range);
    } else {
      const auto window = geometry::parse_window(*image.geometry, asked.request.window);
      if (!window.ok()) return bad(window.error().where);
      entry.windows.push_back(*window);
    }
    for (const geometry::Window& one : entry.windows)
      if (const Status fits = sim::check_length(*image.geometry, one.length); !fits.ok())
        return bad(fits.error().where);
    const std::uint64_t client = asked.request.client;
    if (!independent && client != 0 && !asked.request.write && !asked.ahead) {
      if (const auto last = last_read.find(client); last != last_read.end()) entry.after = last->second;
      last_read[client] = entries.size();
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<sim::System>> systems_of(const sim::Setup& setup, const ReplayTrace& trace, bool own_cache) {
  std::vector<sim::System> systems;
  systems.reserve(trace.images.size());
  for (std::size_t i = 0; i < trace.images.size(); ++i) {
    const model::TraceImage& image = trace.images[i];
    sim::Setup one = setup;
    one.image = *image.geometry;
    if (own_cache) one.cache_bytes = trace.cache_bytes.value_or(0);
    if (i > 0) one.compressed_share = image.compressed_share;  // the first image is that of the options
    MDFS_TRY_ASSIGN(sim::System system, sim::System::make(std::move(one)));
    systems.push_back(std::move(system));
  }
  return systems;
}

}  // namespace mdfs::tools
