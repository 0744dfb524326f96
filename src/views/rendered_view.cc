// Encodes windows into staged bytes.
// SPDX-License-Identifier: Apache-2.0
#include "views/rendered_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "views/jpeg.h"
#include "views/level_view.h"
#include "views/png.h"
#include "views/window_reader.h"

namespace mdfs::views {
namespace {

constexpr unsigned kAttempts = 8;                             // at a version that lasts until its last row
constexpr std::uint64_t kBandBytes = std::uint64_t{1} << 20;  // rows that are read at once

// The rows of a window, read in bands.
class Rows {
 public:
  Rows(View& reader, const Raster& raster, const engine::Stop& stop)
      : reader_(reader), stop_(stop), band_(static_cast<std::size_t>(band_bytes(raster))) {}

  Status next(MutableBytes row) {
    if (at_ == filled_) {
      MDFS_TRY(engine::stopped(stop_));
      MDFS_TRY_ASSIGN(filled_, reader_.read(offset_, band_, stop_));
      offset_ += filled_;
      at_ = 0;
    }
    MDFS_CHECK(filled_ - at_ >= row.size());  // bands are whole rows
    std::copy_n(band_.begin() + static_cast<std::ptrdiff_t>(at_), row.size(), row.begin());
    at_ += row.size();
    return {};
  }

 private:
  static std::uint64_t band_bytes(const Raster& raster) {
    return std::min(raster.height, std::max<std::uint64_t>(1, kBandBytes / raster.row_bytes())) * raster.row_bytes();
  }

  View& reader_;
  const engine::Stop& stop_;
  ByteVector band_;
  std::uint64_t offset_ = 0;  // of the window's bytes behind the band
  std::size_t at_ = 0, filled_ = 0;
};

// An encoded format, and the most bytes of a picture in it.
struct Encoder {
  std::uint64_t (*max_bytes)(const Raster& raster);
  Status (*encode)(const Raster& raster, const RowSource& rows, const ByteSink& sink);
};
Encoder encoder_of(Format format) {
  MDFS_CHECK(format == Format::kPng || format == Format::kJpg);
  return format == Format::kPng ? Encoder{max_png_bytes, encode_png} : Encoder{max_jpeg_bytes, encode_jpeg};
}

// Writes the encoded bytes from the start of the staging; returns their number.
Result<std::uint64_t> encode(View& samples, const Raster& raster, const Encoder& encoder, Staging& into,
                             const engine::Stop& stop) {
  Rows rows(samples, raster, stop);
  std::uint64_t size = 0;
  const ByteSink sink = [&](ConstBytes bytes) -> Status {
    MDFS_CHECK(bytes.size() <= into.capacity() - size);
    MDFS_TRY(into.write(size, bytes));
    size += bytes.size();
    return {};
  };
  const Status status = encoder.encode(
      raster, [&](MutableBytes row) { return rows.next(row); }, sink);
  if (!status.ok()) return status.error();
  return size;
}

}  // namespace

Result<std::shared_ptr<View>> RenderedView::open(volume::Volume& volume, volume::Ino image,
                                                 const geometry::Geometry& geometry, const WindowName& name,
                                                 StagingPool& pool, std::uint32_t owner, const engine::Stop& stop) {
  const Encoder encoder = encoder_of(name.format);
  MDFS_TRY_ASSIGN(const Raster raster, raster_of(geometry, name));
  const WindowName raw{name.window, Format::kRaw, name.level};
  MDFS_TRY_ASSIGN(const ViewFile window, view_window(geometry, raw));
  const std::uint64_t most = std::min(kMaxWindowBytes, pool.limits().window_bytes);
  if (window.data_bytes > most)
    return Error{Errc::kTooBig, fmt::format("a window of {} bytes; a .{} shows at most {}", window.data_bytes,
                                            suffix(name.format), most)};
  MDFS_TRY_ASSIGN(auto staging, Staging::create(pool, owner, encoder.max_bytes(raster)));
  std::shared_ptr<View> level;
  if (name.level > 0) {
    MDFS_TRY_ASSIGN(level, LevelView::open(volume, image, geometry, raw, pool, owner, stop));
  }
  for (unsigned attempt = 1;; ++attempt) {
    WindowReader reader(volume, image, std::make_shared<const ViewFile>(window));
    const auto size = encode(level ? *level : reader, raster, encoder, *staging, stop);
    if (size.ok()) return std::shared_ptr<View>(new RenderedView(std::move(staging), *size));
    if (size.error().code != Errc::kStaleDisk || attempt == kAttempts) return size.error();
  }
}

Result<std::size_t> RenderedView::read(std::uint64_t offset, MutableBytes into, const engine::Stop&) {
  if (offset >= size_) return std::size_t{0};
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size_ - offset)));
  MDFS_TRY(bytes_->read(offset, into));
  return into.size();
}

}  // namespace mdfs::views
