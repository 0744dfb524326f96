// Encodes windows into staged bytes.
// SPDX-License-Identifier: Apache-2.0
#include "views/rendered_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "views/cut_view.h"
#include "views/level_view.h"
#include "views/window_reader.h"

namespace mdfs::views {
namespace {

constexpr unsigned kAttempts = 8;                             // at a version that lasts until its last row
constexpr std::uint64_t kBandBytes = std::uint64_t{1} << 20;  // rows that are read at once

// The rows of a window, read in bands.
class Rows {
 public:
  // row_bytes: of the image.
  Rows(View& reader, std::uint64_t height, std::uint64_t row_bytes, const engine::Stop& stop)
      : reader_(reader), stop_(stop), band_(static_cast<std::size_t>(band_bytes(height, row_bytes))) {}

  Status next(MutableBytes row) {
    if (at_ == filled_) {
      MDFS_TRY(engine::stopped(stop_));
      MDFS_TRY_ASSIGN(filled_, reader_.read(offset_, band_.bytes(), stop_));
      offset_ += filled_;
      at_ = 0;
    }
    MDFS_CHECK(filled_ - at_ >= row.size());  // bands are whole rows
    std::copy_n(band_.data() + at_, row.size(), row.begin());
    at_ += row.size();
    return {};
  }

 private:
  static std::uint64_t band_bytes(std::uint64_t height, std::uint64_t row_bytes) {
    return std::min(height, std::max<std::uint64_t>(1, kBandBytes / row_bytes)) * row_bytes;
  }

  View& reader_;
  const engine::Stop& stop_;
  AlignedBuffer band_;
  std::uint64_t offset_ = 0;  // of the window's bytes behind the band
  std::size_t at_ = 0, filled_ = 0;
};

// What is shown, and as what.
struct Shown {
  const ShownImage& image;
  Raster raster;
  Format format;

  bool ranged() const { return is_ranged(image, format); }
  std::uint64_t row_bytes() const {  // of the image
    return raster.row_bytes() * (ranged() ? geometry::element_bytes(image.geometry.type) : 1);
  }
};

// Writes the encoded bytes from the start of the staging; returns their number.
Result<std::uint64_t> encode(View& samples, const Shown& shown, Staging& into, const engine::Stop& stop) {
  Rows rows(samples, shown.raster.height, shown.row_bytes(), stop);
  std::uint64_t size = 0;
  const ByteSink sink = [&](ConstBytes bytes) -> Status {
    MDFS_CHECK(bytes.size() <= into.capacity() - size);
    MDFS_TRY(into.write(size, bytes));
    size += bytes.size();
    return {};
  };
  ByteVector stored(shown.ranged() ? shown.row_bytes() : 0);
  const RowSource source = [&](MutableBytes row) -> Status {
    if (!shown.ranged()) return rows.next(row);
    MDFS_TRY(rows.next(stored));
    geometry::to_8_bits(shown.image.geometry.type, *shown.image.display, stored, row);
    return {};
  };
  if (const Status status = encoder_of(shown.format).encode(shown.raster, source, sink); !status.ok())
    return status.error();
  return size;
}

}  // namespace

Result<std::shared_ptr<View>> RenderedView::open(volume::Volume& volume, volume::Ino ino, const ShownImage& image,
                                                 const WindowName& name, StagingPool& pool, std::uint32_t owner,
                                                 const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const Raster raster, raster_of(image, name));
  const Shown shown{image, raster, name.format};
  WindowName raw = name;
  raw.format = Format::kRaw;
  MDFS_TRY_ASSIGN(const ViewFile window, view_window(image.geometry, raw));
  const std::uint64_t most = std::min(kMaxWindowBytes, pool.limits().window_bytes);
  if (window.data_bytes > most)
    return Error{Errc::kTooBig, fmt::format("a window of {} bytes; a .{} shows at most {}", window.data_bytes,
                                            suffix(name.format), most)};
  MDFS_TRY_ASSIGN(auto staging, Staging::create(pool, owner, encoder_of(name.format).max_bytes(raster)));
  std::shared_ptr<View> computed;
  if (name.cut) {
    MDFS_TRY_ASSIGN(computed, open_cut(volume, ino, image.geometry, raw, pool, owner, stop));
  } else if (name.level > 0) {
    MDFS_TRY_ASSIGN(computed, open_level(volume, ino, image.geometry, raw, pool, owner, stop));
  }
  for (unsigned attempt = 1;; ++attempt) {
    WindowReader reader(volume, ino, std::make_shared<const ViewFile>(window));
    const auto size = encode(computed ? *computed : reader, shown, *staging, stop);
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
