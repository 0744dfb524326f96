// Frames from libmdfs.
// SPDX-License-Identifier: Apache-2.0
#include "open_movie.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

namespace mdfs::gst {
namespace {

constexpr int kAttempts = 8;  // for a version that the daemon could not keep

std::optional<geometry::DisplayRange> display_range_of(int fd) {
  std::array<char, 256> text;
  const ssize_t bytes = ::fgetxattr(fd, geometry::kDisplayAttribute.data(), text.data(), text.size());
  if (bytes <= 0) return std::nullopt;
  return parse_display_range({text.data(), static_cast<std::size_t>(bytes)});
}

// The bytes of a buffer, while it exists.
class Mapped {
 public:
  explicit Mapped(GstBuffer* buffer) : buffer_(buffer), ok_(gst_buffer_map(buffer, &map_, GST_MAP_WRITE) != FALSE) {}
  ~Mapped() {
    if (ok_) gst_buffer_unmap(buffer_, &map_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  std::byte* data() const { return ok_ ? reinterpret_cast<std::byte*>(map_.data) : nullptr; }

 private:
  GstBuffer* const buffer_;
  GstMapInfo map_{};
  const bool ok_;
};

bool make_info(const Movie& movie, GstVideoInfo& info) {
  gst_video_info_init(&info);
  if (!gst_video_info_set_format(&info, gst_video_format_from_string(movie.pixels.name), movie.width, movie.height))
    return false;
  info.fps_n = movie.rate.numerator;
  info.fps_d = movie.rate.denominator;
  return true;
}

}  // namespace

std::unique_ptr<OpenMovie> OpenMovie::open(const Settings& settings, std::string& error) {
  error = complaint_about(settings);
  if (!error.empty()) return nullptr;
  std::unique_ptr<OpenMovie> opened(new OpenMovie);
  if (!opened->set_up(settings, error)) return nullptr;
  return opened;
}

bool OpenMovie::set_up(const Settings& settings, std::string& error) {
  mdfs_ioc_geometry geometry{};
  if (mdfs_open(settings.location.c_str(), O_RDONLY, &image_) < 0 || mdfs_info(image_, &geometry) < 0) {
    error = mdfs_last_error();
    return false;
  }
  if (geometry.shape[0] == 0) {
    error = settings.location + ": the image has no frames";
    return false;
  }
  if (mdfs_parse_window(image_, window_spec(settings).c_str(), &window_) < 0 ||
      mdfs_level_info(image_, window_.level, &geometry) < 0) {
    error = settings.location + ": " + mdfs_last_error();
    return false;
  }
  type_ = geometry.type;
  display_ = display_range_of(mdfs_fd(image_));
  const auto movie = describe(geometry, window_, display_.has_value(), chosen_rate(settings), error);
  if (!movie) {
    error = settings.location + ": " + error;
    return false;
  }
  movie_ = *movie;
  if (make_info(movie_, info_)) return true;
  error = settings.location + ": GStreamer refuses frames of " + std::to_string(movie_.width) + "x" +
          std::to_string(movie_.height) + " " + movie_.pixels.name;
  return false;
}

bool OpenMovie::read_window(const mdfs_ioc_window& window, void* to, std::size_t bytes, const std::int64_t* strides,
                            std::string& error) const {
  for (int attempt = 1;; ++attempt) {
    const ssize_t done = mdfs_read_window(image_, &window, to, bytes, strides);
    if (done >= 0) return true;
    if (done == -ESTALE && attempt < kAttempts) continue;
    error = mdfs_last_error();
    return false;
  }
}

std::size_t OpenMovie::canonical_bytes() const {
  return static_cast<std::size_t>(movie_.width) * movie_.pixels.stored_bytes * movie_.height;
}

bool OpenMovie::has_canonical_layout() const {
  return movie_.pixels.conversion == Conversion::kNone && GST_VIDEO_INFO_SIZE(&info_) == canonical_bytes();
}

// The samples as they are, in rows that GStreamer may pad.
bool OpenMovie::read_rows(const mdfs_ioc_window& window, std::byte* to, std::string& error) const {
  const auto row_bytes = static_cast<std::size_t>(movie_.width) * movie_.pixels.bytes;
  const auto stride = static_cast<std::size_t>(GST_VIDEO_INFO_PLANE_STRIDE(&info_, 0));
  const std::size_t bytes = GST_VIDEO_INFO_SIZE(&info_);
  if (stride == row_bytes) return read_window(window, to, bytes, nullptr, error);
  std::array<std::int64_t, MDFS_IOC_MAX_RANK> strides{};
  strides[movie_.rows] = static_cast<std::int64_t>(stride);
  strides[movie_.columns] = movie_.pixels.bytes;
  for (std::size_t row = 0; row < movie_.height; ++row)
    std::memset(to + row * stride + row_bytes, 0, stride - row_bytes);
  return read_window(window, to, bytes, strides.data(), error);
}

// Canonical bytes become those of a buffer.
void OpenMovie::lay_out(const std::byte* stored, std::byte* to) const {
  const auto row_bytes = static_cast<std::size_t>(movie_.width) * movie_.pixels.bytes;
  const auto stored_row_bytes = static_cast<std::size_t>(movie_.width) * movie_.pixels.stored_bytes;
  const auto stride = static_cast<std::size_t>(GST_VIDEO_INFO_PLANE_STRIDE(&info_, 0));
  for (std::size_t row = 0; row < movie_.height; ++row) {
    const std::span<const std::byte> from(stored + row * stored_row_bytes, stored_row_bytes);
    const std::span<std::byte> shown(to + row * stride, row_bytes);
    if (movie_.pixels.conversion == Conversion::kNone)
      std::memcpy(shown.data(), from.data(), row_bytes);
    else if (movie_.pixels.conversion == Conversion::kAddAlpha)
      add_alpha(from, shown);
    else
      show_in_8_bits(type_, *display_, from, shown);
    std::memset(shown.data() + row_bytes, 0, stride - row_bytes);
  }
}

FrameRead OpenMovie::make_frame(const ReadBytes& fill) const noexcept try {
  BufferPtr buffer(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info_), nullptr));
  if (buffer == nullptr) return {nullptr, "no memory for a frame"};
  {
    const Mapped mapped(buffer.get());
    if (mapped.data() == nullptr) return {nullptr, "no memory for a frame"};
    std::string error;
    if (!fill(mapped.data(), error)) return {nullptr, std::move(error)};
  }
  return {std::move(buffer), {}};
} catch (const std::exception&) {
  return {nullptr, "no memory for a frame"};
}

FrameRead OpenMovie::read(std::uint64_t frame) const noexcept {
  const mdfs_ioc_window window = window_of_frame(window_, movie_, frame);
  const auto read_it = [&](void* to, std::string& error) {
    const bool exact = movie_.pixels.conversion == Conversion::kNone;
    const bool done = exact ? read_rows(window, static_cast<std::byte*>(to), error)
                            : read_window(window, to, canonical_bytes(), nullptr, error);
    if (!done) error = "frame " + std::to_string(frame) + ": " + error;
    return done;
  };
  return movie_.pixels.conversion == Conversion::kNone ? make_frame(read_it) : read_from(read_it);
}

FrameRead OpenMovie::read_from(const ReadBytes& read) const noexcept {
  return make_frame([&](void* to, std::string& error) {
    if (has_canonical_layout()) return read(to, error);
    std::vector<std::byte> stored(canonical_bytes());
    if (!read(stored.data(), error)) return false;
    lay_out(stored.data(), static_cast<std::byte*>(to));
    return true;
  });
}

}  // namespace mdfs::gst
