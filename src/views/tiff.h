// NAME.tif: the whole image as a BigTIFF whose bytes are computed when they are read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "views/staging.h"
#include "views/tiff_layout.h"
#include "views/view.h"
#include "volume/volume.h"

namespace mdfs::views {

// As the image is now. Errors as TiffLayout::of().
Result<TiffLayout> tiff_layout(volume::Volume& volume, volume::Ino image);

// One open NAME.tif. A read sees the newest version of each block. Any thread.
class TiffView final : public View {
 public:
  // `pool` and `owner` as in open_level(): for tiles of levels that cannot be stored now.
  TiffView(volume::Volume& volume, volume::Ino image, TiffLayout layout, StagingPool& pool, std::uint32_t owner)
      : volume_(volume), image_(image), layout_(std::move(layout)), pool_(pool), owner_(owner) {}

  std::uint64_t size_bytes() const override { return layout_.size_bytes(); }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  // By the layout of that version.
  Result<std::size_t> read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  bool may_cache() const override { return true; }
  bool may_compute(std::uint64_t offset, std::size_t bytes) const override {
    return layout_.has_levels() && offset < layout_.image_offset() && offset + bytes > layout_.data_offset();
  }

 private:
  Status read_part(const TiffLayout::Part& part, MutableBytes into, const engine::Stop& stop);
  Status read_samples(const TiffLayout::Part& part, std::uint64_t offset, MutableBytes into, const engine::Stop& stop);

  volume::Volume& volume_;
  const volume::Ino image_;
  const TiffLayout layout_;
  StagingPool& pool_;
  const std::uint32_t owner_;
};

}  // namespace mdfs::views
