// Writing and reading the lines of traces.
// SPDX-License-Identifier: Apache-2.0
#include "model/trace.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "geometry/shape_text.h"
#include "model/quantity.h"

namespace mdfs::model {
namespace {

constexpr std::size_t kMaxWords = 16;

Error bad_trace(std::string why) { return {Errc::kInvalidArgument, std::move(why)}; }

Result<std::vector<std::string_view>> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = line.find_first_not_of(kBlanks, at)) {
    if (words.size() == kMaxWords) return bad_trace(fmt::format("a line has at most {} words", kMaxWords));
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

Result<std::uint64_t> whole_number(std::string_view text, std::string_view what) {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size() || text.empty())
    return bad_trace(fmt::format("{} \"{}\" must be a whole number", what, text));
  return number;
}

// "key=value"; the value empty where there is no "=".
std::pair<std::string_view, std::string_view> split_pair(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {word, {}};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

Result<TraceLine> parse_image(const std::vector<std::string_view>& words) {
  if (words.size() < 2) return bad_trace(fmt::format("\"{}\" wants the number of its object", words[0]));
  TraceImage image;
  MDFS_TRY_ASSIGN(image.object, whole_number(words[1], "object"));
  if (words[0] == "file") {
    if (words.size() > 2) return bad_trace(fmt::format("\"{}\" is left over", words[2]));
    return TraceLine(image);
  }
  geometry::Geometry geometry;
  geometry.codec = geometry::Codec::kRaw;
  geometry.channels = 0;
  geometry::Lengths extent;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto [key, value] = split_pair(words[i]);
    if (key == "axes") {
      geometry.axes = value;
    } else if (key == "shape") {
      MDFS_TRY_ASSIGN(const geometry::Lengths shape, geometry::parse_shape(value));
      geometry.rank = shape.rank;
      geometry.shape = shape.length;
    } else if (key == "extent") {
      MDFS_TRY_ASSIGN(extent, geometry::parse_shape(value));
      geometry.extent = extent.length;
    } else if (key == "bytes") {
      MDFS_TRY_ASSIGN(const std::uint64_t bytes, whole_number(value, "bytes"));
      if (bytes < 1 || bytes > geometry::kMaxChannels) return bad_trace(fmt::format("bytes={} of a sample", value));
      geometry.channels = static_cast<unsigned>(bytes);
    } else if (key == "base") {
      MDFS_TRY_ASSIGN(image.base, whole_number(value, "base"));
    } else if (key == "compressed") {
      std::string_view rest = value;
      const auto share = take_number(rest);
      if (!share.ok() || !rest.empty() || !(*share > 0 && *share <= kMaxCompressedShare))
        return bad_trace(fmt::format("compressed={} is a share above 0, at most {}", value, kMaxCompressedShare));
      image.compressed_share = *share;
    } else {
      return bad_trace(fmt::format("\"{}\" is nothing that an image has", words[i]));
    }
  }
  if (geometry.rank == 0 || extent.rank != geometry.rank || geometry.channels == 0)
    return bad_trace("an image has shape, extent (of as many axes) and bytes");
  MDFS_TRY(geometry::check(geometry));
  image.geometry = std::move(geometry);
  return TraceLine(std::move(image));
}

Result<TraceLine> parse_cache(const std::vector<std::string_view>& words) {
  if (words.size() != 2) return bad_trace("\"cache\" wants its size in bytes, and nothing else");
  TraceCache cache;
  MDFS_TRY_ASSIGN(cache.bytes, whole_number(words[1], "cache"));
  return TraceLine(cache);
}

Result<ByteRange> parse_range(std::string_view text) {
  const std::size_t plus = text.find('+');
  if (plus == std::string_view::npos) return bad_trace(fmt::format("\"{}\": bytes are @OFFSET+LENGTH", text));
  ByteRange range;
  MDFS_TRY_ASSIGN(range.offset, whole_number(text.substr(1, plus - 1), "offset"));
  MDFS_TRY_ASSIGN(range.length, whole_number(text.substr(plus + 1), "length"));
  if (range.length == 0 || range.offset > geometry::kMaxImageBytes ||
      range.length > geometry::kMaxImageBytes - range.offset)
    return bad_trace(fmt::format("\"{}\": no such bytes", text));
  return range;
}

Result<TraceLine> parse_request(const std::vector<std::string_view>& words) {
  TraceRequest request;
  std::string_view rest = words[0];
  const auto seconds = take_number(rest);
  if (!seconds.ok() || !rest.empty()) return bad_trace("a line begins with its time in seconds, image, file or cache");
  request.time_s = *seconds;
  if (words.size() < 2) return bad_trace("the window is missing");
  if (words[1].starts_with('@')) {
    MDFS_TRY_ASSIGN(request.range, parse_range(words[1]));
  } else {
    request.window = words[1];
  }
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto [key, value] = split_pair(words[i]);
    if (i == 2 && value.empty()) {
      MDFS_TRY_ASSIGN(request.client, whole_number(words[i], "client"));
    } else if (key == "object") {
      MDFS_TRY_ASSIGN(request.object, whole_number(value, "object"));
    } else if (key == "bytes") {
      MDFS_TRY_ASSIGN(request.bytes, whole_number(value, "bytes"));
    } else if (key == "op" && (value == "read" || value == "write")) {
      request.write = value == "write";
    } else {
      return bad_trace(fmt::format("\"{}\" is left over", words[i]));
    }
  }
  return TraceLine(std::move(request));
}

}  // namespace

std::string to_line(const TraceImage& image) {
  if (!image.geometry) return fmt::format("file {}\n", image.object);
  const geometry::Geometry& geometry = *image.geometry;
  std::string line =
      fmt::format("image {} axes={} shape={} extent={} bytes={} base={}", image.object, geometry.axes,
                  geometry::shape_text(geometry.rank, geometry.shape),
                  geometry::shape_text(geometry.rank, geometry.extent), geometry.sample_bytes(), image.base);
  if (image.compressed_share) line += fmt::format(" compressed={:.6f}", *image.compressed_share);
  return line + '\n';
}

std::string to_line(const TraceCache& cache) { return fmt::format("cache {}\n", cache.bytes); }

std::string to_line(const TraceRequest& request) {
  const std::string what =
      request.range ? fmt::format("@{}+{}", request.range->offset, request.range->length) : request.window;
  std::string line = fmt::format("{:.6f} {} {}", request.time_s, what, request.client);
  if (request.object) line += fmt::format(" object={}", *request.object);
  line += request.write ? " op=write" : " op=read";
  if (request.bytes > 0) line += fmt::format(" bytes={}", request.bytes);
  return line + '\n';
}

Result<TraceLine> parse_trace_line(std::string_view line) {
  line = line.substr(0, line.find('#'));
  MDFS_TRY_ASSIGN(const auto words, words_of(line));
  if (words.empty()) return TraceLine();
  if (words[0] == "image" || words[0] == "file") return parse_image(words);
  if (words[0] == "cache") return parse_cache(words);
  return parse_request(words);
}

}  // namespace mdfs::model
