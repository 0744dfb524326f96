// Parsing and spelling windows.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/window_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/checked.h"
#include "geometry/level.h"

namespace mdfs::geometry {
namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kClip = "clip";

Error bad_window(std::string where) { return {Errc::kInvalidArgument, std::move(where)}; }

// Reads digits from the front of `text`.
Result<std::uint64_t> take_number(std::string_view& text, std::string_view item) {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc::result_out_of_range)
    return Error{Errc::kOverflow, fmt::format("the number in \"{}\" is too large", item)};
  if (failure != std::errc{}) return bad_window(fmt::format("a number is missing in \"{}\"", item));
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// A number that may be below zero.
struct Signed {
  std::uint64_t magnitude = 0;
  bool is_negative = false;
};
Result<Signed> take_signed(std::string_view& text, std::string_view item) {
  Signed number;
  number.is_negative = text.starts_with('-');
  if (number.is_negative) text.remove_prefix(1);
  MDFS_TRY_ASSIGN(number.magnitude, take_number(text, item));
  return number;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number in "l2".
Result<std::uint64_t> level_number(std::string_view item) {
  std::string_view rest = item.substr(1);
  MDFS_TRY_ASSIGN(const std::uint64_t number, take_number(rest, item));
  if (!rest.empty()) return bad_window(fmt::format("\"{}\": select a level by l and its number", item));
  return number;
}

class SpecParser {
 public:
  // `geometry` is that of the level.
  SpecParser(const Geometry& geometry, unsigned level) : geometry_(geometry), level_(level), window_(whole(geometry)) {}

  Status item(std::string_view item) {
    if (item.empty()) return bad_window("an item of the window is empty: axes are separated by one comma");
    if (item == kClip) return once(clip_, "clip");
    if (is_digit(item[0]) || item[0] == '-') return plain_number(item);
    const char letter = item[0];
    std::string_view rest = item.substr(1);
    if (letter == 'l') return level(item);
    const std::size_t axis = geometry_.axes.find(letter);
    if (letter == 'c' && axis == std::string::npos) return channel(item, rest);
    if (axis == std::string::npos)
      return bad_window(fmt::format("\"{}\" is not an axis of this image; its axes are {}", item, geometry_.axes));
    return range(static_cast<unsigned>(axis), item, rest);
  }

  Result<LevelWindow> finish() {
    if (plain_count_ != 0 && plain_count_ != plain_.size())
      return bad_window(fmt::format("{} plain numbers: a rectangle has four, x,y,width,height", plain_count_));
    if (plain_count_ != 0) {
      MDFS_TRY(rectangle_axis('x', plain_[0], plain_[2]));
      MDFS_TRY(rectangle_axis('y', plain_[1], plain_[3]));
    }
    LevelWindow result{level_, window_};
    MDFS_TRY(clip(result));
    MDFS_TRY(check(geometry_, result.window));
    if (geometry_.channels == 1) result.window.channel.reset();  // the only channel is all of them
    return result;
  }

 private:
  Status once(bool& seen, std::string_view what) {
    if (seen) return bad_window(fmt::format("{} is given twice", what));
    seen = true;
    return {};
  }

  Status plain_number(std::string_view item) {
    MDFS_TRY_ASSIGN(const Signed number, take_signed(item, item));
    if (!item.empty()) return bad_window(fmt::format("\"{}\" follows a plain number", item));
    if (plain_count_ == plain_.size())
      return bad_window("more than four plain numbers: a rectangle is x,y,width,height");
    plain_[plain_count_++] = number;
    return {};
  }

  Status channel(std::string_view item, std::string_view rest) {
    MDFS_TRY(once(channel_seen_, "the channel"));
    MDFS_TRY_ASSIGN(const std::uint64_t number, take_number(rest, item));
    if (!rest.empty()) return bad_window(fmt::format("\"{}\": select a channel by c and its number", item));
    if (number >= geometry_.channels)
      return Error{Errc::kOutOfRange, fmt::format("channel {} is not in 0..{}", number, geometry_.channels - 1)};
    window_.channel = static_cast<unsigned>(number);
    return {};
  }

  Status level(std::string_view item) {
    MDFS_TRY(once(level_seen_, "the level"));
    MDFS_TRY_ASSIGN(const std::uint64_t number, level_number(item));
    if (number != level_)
      return Error{Errc::kOutOfRange,
                   fmt::format("level {} is not available here: read it as a file PATH@/win/l{}", number, number)};
    return {};
  }

  Status range(unsigned axis, std::string_view item, std::string_view rest) {
    MDFS_TRY(once(axis_seen_[axis], fmt::format("axis {}", geometry_.axes[axis])));
    MDFS_TRY_ASSIGN(const Signed start, take_signed(rest, item));
    set_start(axis, start);
    window_.length[axis] = 1;
    window_.single[axis] = rest.empty();
    if (rest.empty()) return {};
    if (rest[0] != '+') return bad_window(fmt::format("\"{}\": write an axis as START or START+LENGTH", item));
    rest.remove_prefix(1);
    MDFS_TRY_ASSIGN(window_.length[axis], take_number(rest, item));
    if (!rest.empty()) return bad_window(fmt::format("\"{}\" follows the length in \"{}\"", rest, item));
    return {};
  }

  void set_start(unsigned axis, const Signed& start) {
    window_.start[axis] = start.is_negative ? 0 : start.magnitude;
    before_[axis] = start.is_negative ? start.magnitude : 0;
  }

  Status rectangle_axis(char letter, const Signed& start, const Signed& length) {
    const std::size_t axis = geometry_.axes.find(letter);
    if (axis == std::string::npos)
      return bad_window(
          fmt::format("a rectangle x,y,width,height needs axes x and y; the image has {}", geometry_.axes));
    MDFS_TRY(once(axis_seen_[axis], fmt::format("axis {}", letter)));
    if (length.is_negative) return bad_window("the width and the height of a rectangle must be positive");
    set_start(static_cast<unsigned>(axis), start);
    window_.length[axis] = length.magnitude;
    return {};
  }

  // Divides each axis into the samples inside and those around them.
  Status clip(LevelWindow& result) const {
    if (!clip_) {
      for (unsigned axis = 0; axis < geometry_.rank; ++axis)
        if (before_[axis] > 0)
          return Error{Errc::kOutOfRange, fmt::format("-{} along axis {} is before the image; with an item clip, "
                                                      "samples outside are zero",
                                                      before_[axis], geometry_.axes[axis])};
      return {};
    }
    std::optional<std::uint64_t> bytes = window_.channel ? element_bytes(geometry_.type) : geometry_.sample_bytes();
    for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
      std::uint64_t& start = result.window.start[axis];
      std::uint64_t& length = result.window.length[axis];
      bytes = checked_mul(bytes.value_or(UINT64_MAX), length);
      if (length == 0) return {};  // check() reports it
      if (length <= before_[axis] || start >= geometry_.shape[axis])
        return Error{Errc::kOutOfRange, fmt::format("no sample of the window is inside along axis {}, which has {}",
                                                    geometry_.axes[axis], geometry_.shape[axis])};
      const std::uint64_t behind = length - before_[axis];
      length = std::min(behind, geometry_.shape[axis] - start);
      result.padding.before[axis] = before_[axis];
      result.padding.after[axis] = behind - length;
    }
    if (!bytes || *bytes > kMaxImageBytes) return Error{Errc::kTooBig, "a window has at most 2^62 bytes"};
    return {};
  }

  const Geometry& geometry_;
  const unsigned level_;
  Window window_;
  std::array<bool, kMaxRank> axis_seen_{};
  bool channel_seen_ = false;
  bool level_seen_ = false;
  bool clip_ = false;
  Coord before_{};  // samples before the image
  std::array<Signed, 4> plain_{};
  std::size_t plain_count_ = 0;
};

}  // namespace

namespace {

// The first level that an item names.
Result<std::uint64_t> find_level(std::string_view spec) {
  for (std::size_t at = 0; at < spec.size();) {
    const std::string_view item = spec.substr(at, spec.find(',', at) - at);
    if (item.starts_with('l')) return level_number(item);
    at += item.size() + 1;
  }
  return std::uint64_t{0};
}

Result<LevelWindow> parse(const Geometry& geometry, unsigned level, std::string_view spec) {
  if (spec.empty()) return bad_window("the window is empty; \"all\" is the whole image");
  if (spec.size() > kMaxSpecBytes)
    return bad_window(fmt::format("a window must have at most {} characters", kMaxSpecBytes));
  SpecParser parser(geometry, level);
  if (spec == kAll) return parser.finish();
  for (;;) {
    const std::size_t comma = spec.find(',');
    MDFS_TRY(parser.item(spec.substr(0, comma)));
    if (comma == std::string_view::npos) return parser.finish();
    spec.remove_prefix(comma + 1);
  }
}

// The canonical spelling of a window and its padding.
std::string to_spec(const Geometry& geometry, const Window& window, const Padding& padding) {
  std::string spec;
  const auto add = [&](std::string_view item) {
    if (!spec.empty()) spec += ',';
    spec += item;
  };
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    const char letter = geometry.axes[axis];
    const std::uint64_t before = padding.before[axis], start = window.start[axis];
    const std::uint64_t length = before + window.length[axis] + padding.after[axis];
    if (window.single[axis])
      add(fmt::format("{}{}", letter, start));
    else if (before > 0)
      add(fmt::format("{}-{}+{}", letter, before, length));
    else if (start != 0 || length != geometry.shape[axis])
      add(fmt::format("{}{}+{}", letter, start, length));
  }
  if (window.channel && geometry.channels > 1) add(fmt::format("c{}", *window.channel));
  if (!padding.is_empty()) add(kClip);
  return spec.empty() ? std::string(kAll) : spec;
}

}  // namespace

Result<Window> parse_window(const Geometry& geometry, std::string_view spec) {
  MDFS_TRY_ASSIGN(const LevelWindow parsed, parse(geometry, 0, spec));
  if (parsed.padding.is_empty()) return parsed.window;
  return Error{Errc::kOutOfRange, "the window is not inside the image: read it as a file PATH@/win/..,clip.npy"};
}

Result<LevelWindow> parse_level_window(const Geometry& image, std::string_view spec) {
  MDFS_TRY_ASSIGN(const std::uint64_t level, find_level(spec));
  if (const unsigned count = level_count(image); level > count)
    return Error{Errc::kOutOfRange, fmt::format("level {} is not in 0..{}", level, count)};
  const auto number = static_cast<unsigned>(level);
  return parse(level_geometry(image, number), number, spec);
}

std::string to_spec(const Geometry& image, const LevelWindow& window) {
  const std::string spec = to_spec(level_geometry(image, window.level), window.window, window.padding);
  if (window.level == 0) return spec;
  return spec == kAll ? fmt::format("l{}", window.level) : fmt::format("l{},{}", window.level, spec);
}

std::string to_spec(const Geometry& geometry, const Window& window) { return to_spec(geometry, window, {}); }

}  // namespace mdfs::geometry
