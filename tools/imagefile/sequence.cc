// Numbered files (shot.%04d.dpx) as one image with an axis of frames.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/sequence.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "support/json_output.h"
#include "support/text.h"

namespace mdfs::imagefile {
namespace {

constexpr std::uint64_t kMaxFrames = 10'000'000;

class SequenceSource final : public ImageSource {
 public:
  SequenceSource(Pattern pattern, std::uint64_t first, ArrayInfo frame, ArrayInfo array, std::uint64_t frame_bytes,
                 std::unique_ptr<ImageSource> source)
      : pattern_(std::move(pattern)),
        next_(first + 1),
        frame_(std::move(frame)),
        array_(std::move(array)),
        frame_bytes_(frame_bytes),
        source_(std::move(source)),
        left_in_frame_(frame_bytes) {}

  const ArrayInfo& array() const override { return array_; }
  std::string warning() const override { return warning_.empty() && source_ ? source_->warning() : warning_; }

  Status read(MutableBytes into) override {
    while (!into.empty()) {
      if (left_in_frame_ == 0) MDFS_TRY(open_next());
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left_in_frame_));
      MDFS_TRY(source_->read(into.first(part)));
      left_in_frame_ -= part;
      into = into.subspan(part);
    }
    return {};
  }

 private:
  Status open_next() {
    warning_ = warning();
    source_.reset();
    const std::string path = pattern_.path(next_++);
    MDFS_TRY_ASSIGN(source_, open_source(path, {}));
    const ArrayInfo& found = source_->array();
    if (found.lengths != frame_.lengths || found.type != frame_.type)
      return {Errc::kBadData, fmt::format("{}: this frame is {} {}, the first one {} {}", path,
                                          tools::format_shape(found.lengths), geometry::name(found.type),
                                          tools::format_shape(frame_.lengths), geometry::name(frame_.type))};
    left_in_frame_ = frame_bytes_;
    return {};
  }

  const Pattern pattern_;
  std::uint64_t next_;
  const ArrayInfo frame_, array_;
  const std::uint64_t frame_bytes_;
  std::string warning_;  // of a frame before this one
  std::unique_ptr<ImageSource> source_;
  std::uint64_t left_in_frame_;
};

// Without what is true of the first frame alone.
std::string header_of_next_frames(const std::string& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(header, nullptr, false);
  if (!json.is_object() || !json.contains("fields") || !json["fields"].is_object()) return header;
  for (const char* const field : {"smpte:TimeCode", "smpte:KeyCode", "dpx:TimeCode", "dpx:FramePosition"})
    json["fields"].erase(field);
  return tools::dump_json(json, -1);
}

class SequenceSink final : public ImageSink {
 public:
  SequenceSink(Pattern pattern, ArrayInfo frame, std::uint64_t frames, std::uint64_t frame_bytes, bool overwrite,
               Metadata metadata, std::uint64_t first)
      : pattern_(std::move(pattern)),
        frame_(std::move(frame)),
        frames_(frames),
        frame_bytes_(frame_bytes),
        overwrite_(overwrite),
        metadata_(std::move(metadata)),
        first_(first) {}

  Status write(ConstBytes from) override {
    while (!from.empty()) {
      if (!sink_) {
        MDFS_CHECK(next_ < frames_);
        MDFS_TRY_ASSIGN(sink_, create_sink(pattern_.path(first_ + next_), frame_, overwrite_, metadata_));
        if (next_++ == 0) {
          for (const auto& [block, reason] : sink_->dropped()) drop(block, reason);
          if (const auto header = metadata_.blocks.find(kHeaderBlock); header != metadata_.blocks.end())
            header->second = header_of_next_frames(header->second);
        }
        left_in_frame_ = frame_bytes_;
      }
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(from.size(), left_in_frame_));
      MDFS_TRY(sink_->write(from.first(part)));
      left_in_frame_ -= part;
      from = from.subspan(part);
      if (left_in_frame_ > 0) continue;
      MDFS_TRY(sink_->finish());
      sink_.reset();
    }
    return {};
  }

  Status finish() override {
    MDFS_CHECK(next_ == frames_ && !sink_);
    return {};
  }

 private:
  const Pattern pattern_;
  const ArrayInfo frame_;
  const std::uint64_t frames_, frame_bytes_;
  const bool overwrite_;
  Metadata metadata_;  // of the next frame
  const std::uint64_t first_;
  std::uint64_t next_ = 0, left_in_frame_ = 0;
  std::unique_ptr<ImageSink> sink_;
};

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// The number in the middle of a file's name, if the pattern could have made that name.
std::optional<std::uint64_t> frame_number(const Pattern& pattern, std::string_view name) {
  if (name.size() <= pattern.prefix.size() + pattern.suffix.size() || !name.starts_with(pattern.prefix) ||
      !name.ends_with(pattern.suffix))
    return std::nullopt;
  const std::string_view text =
      name.substr(pattern.prefix.size(), name.size() - pattern.prefix.size() - pattern.suffix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (pattern.path(number) != pattern.folder + std::string(name)) return std::nullopt;
  return number;
}

std::string name_of(const Pattern& pattern) {
  return fmt::format("{}{}<number>{}", pattern.folder, pattern.prefix, pattern.suffix);
}

Result<std::pair<std::uint64_t, std::uint64_t>> frame_range(const Pattern& pattern, const SourceOptions& options) {
  if (options.frames) {
    const auto [first, last] = *options.frames;
    if (first > last || last - first >= kMaxFrames)
      return Error{Errc::kUsage,
                   fmt::format("--frames {}-{}: give 1 to {} frames, the first one first", first, last, kMaxFrames)};
    return *options.frames;
  }
  MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> found, find_frames(pattern));
  if (found.empty()) return Error{Errc::kNotFound, name_of(pattern)};
  for (std::size_t i = 1; i < found.size(); ++i)
    if (found[i] != found[0] + i)
      return Error{Errc::kNotFound,
                   fmt::format("{}: frames {} to {} exist, this one does not; give a range with --frames",
                               pattern.path(found[0] + i), found.front(), found.back())};
  return std::pair{found.front(), found.back()};
}

}  // namespace

std::string Pattern::path(std::uint64_t frame) const {
  return fmt::format("{}{}{:0{}}{}", folder, prefix, frame, digits, suffix);
}

Result<std::optional<Pattern>> parse_pattern(const std::string& path) {
  const std::size_t percent = path.find('%');
  if (percent == std::string::npos) return std::optional<Pattern>();
  const std::string wrong = "'" + path + "': the last part of the name must have one %d or %0Nd (N = 1..9)";
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > percent) return Error{Errc::kUsage, wrong};
  Pattern pattern;
  std::size_t at = percent + 1;
  if (at + 1 < path.size() && path[at] == '0' && path[at + 1] >= '1' && path[at + 1] <= '9') {
    pattern.digits = static_cast<unsigned>(path[at + 1] - '0');
    at += 2;
  }
  if (at >= path.size() || path[at] != 'd' || path.find('%', at) != std::string::npos)
    return Error{Errc::kUsage, wrong};
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  pattern.folder = path.substr(0, begin);
  pattern.prefix = path.substr(begin, percent - begin);
  pattern.suffix = path.substr(at + 1);
  return std::optional<Pattern>(std::move(pattern));
}

Result<std::vector<std::uint64_t>> find_frames(const Pattern& pattern) {
  const std::string folder = pattern.folder.empty() ? "." : pattern.folder;
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(folder.c_str()));
  if (!directory) return from_errno(errno, folder);
  std::vector<std::uint64_t> found;
  for (const dirent* entry = ::readdir(directory.get()); entry != nullptr; entry = ::readdir(directory.get()))
    if (const auto number = frame_number(pattern, entry->d_name)) found.push_back(*number);
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::unique_ptr<ImageSource>> open_sequence(const Pattern& pattern, const SourceOptions& options) {
  if (options.raw_type || options.page)
    return Error{Errc::kNotSupported, fmt::format("{}: {} cannot be given with a sequence", name_of(pattern),
                                                  options.page ? "--page" : "--type")};
  MDFS_TRY_ASSIGN(const auto range, frame_range(pattern, options));
  MDFS_TRY_ASSIGN(auto first, open_source(pattern.path(range.first), {}));
  const ArrayInfo frame = first->array();
  MDFS_TRY_ASSIGN(const geometry::Geometry frame_geometry, choose_geometry(frame, ""));
  if (frame_geometry.rank >= geometry::kMaxRank)
    return Error{Errc::kNotSupported,
                 fmt::format("{}: a frame of {} axes; at most {} fit beside the frames", pattern.path(range.first),
                             frame_geometry.rank, geometry::kMaxRank - 1)};
  ArrayInfo array = frame;
  array.lengths.insert(array.lengths.begin(), range.second - range.first + 1);
  array.axes = "t" + frame_geometry.axes + (frame.lengths.size() > frame_geometry.rank ? "c" : "");
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, array_bytes(frame));
  MDFS_TRY(array_bytes(array));
  Metadata metadata = first->metadata();
  metadata.blocks.emplace(kFirstFrameBlock, std::to_string(range.first));
  auto source = std::make_unique<SequenceSource>(pattern, range.first, frame, array, bytes, std::move(first));
  source->set_metadata(std::move(metadata));
  return std::unique_ptr<ImageSource>(std::move(source));
}

Result<std::unique_ptr<ImageSink>> create_sequence(const Pattern& pattern, const ArrayInfo& array, bool overwrite,
                                                   const Metadata& metadata) {
  if (array.lengths.size() < 2 || array.axes.size() != array.lengths.size() ||
      (array.axes.size() == 2 && array.axes[1] == 'c'))
    return Error{Errc::kNotSupported,
                 fmt::format("{}: a sequence of files needs an image of two axes or more", name_of(pattern))};
  if (array.lengths[0] > kMaxFrames)
    return Error{Errc::kTooBig, fmt::format("{}: {} frames; at most {} files are written", name_of(pattern),
                                            array.lengths[0], kMaxFrames)};
  ArrayInfo frame = array;
  frame.lengths.erase(frame.lengths.begin());
  frame.axes.erase(0, 1);
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, array_bytes(frame));
  Metadata of_frames = metadata;
  std::uint64_t first = 0;
  if (const auto number = of_frames.blocks.extract(std::string(kFirstFrameBlock)); !number.empty()) {
    const Result<std::uint64_t> parsed = tools::parse_number(number.mapped(), "first frame");
    if (parsed.ok() && *parsed <= UINT64_MAX - kMaxFrames) first = *parsed;
  }
  return std::unique_ptr<ImageSink>(
      std::make_unique<SequenceSink>(pattern, frame, array.lengths[0], bytes, overwrite, std::move(of_frames), first));
}

}  // namespace mdfs::imagefile
