// One pending replacement of a window: bytes written through a bound descriptor or a virtual file, until they are
// applied in one atomic step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "views/staged_write.h"
#include "views/staging.h"
#include "views/view_file.h"
#include "volume/volume.h"

namespace mdfs::views {

// One thread at a time.
class WindowWriter final : public StagedWrite {
 public:
  // `truncated`: unwritten bytes are zeros until all are written; else they are those of the current window. `owner`:
  // the writing user. kTooBig: over the limit of the mount; kNotSupported: a read-only format.
  static Result<std::unique_ptr<WindowWriter>> create(volume::Volume& volume, volume::Ino image, ViewFile file,
                                                      StagingPool& pool, std::uint32_t owner, bool truncated);

  const geometry::Window& window() const override { return file_.window; }
  Result<std::size_t> write(std::uint64_t offset, ConstBytes from) override;
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into) const override;
  bool overran() const override { return overran_; }
  bool empty() const override { return staging_ == nullptr || staging_->written().empty(); }
  bool is_full() const override;
  // Everything is written, or unwritten bytes keep their value.
  bool is_complete() const override { return !truncated_ || is_full(); }
  // Replaces the written bytes of the window; unwritten bytes keep their value. An NPY written from its start must have
  // the window's element type and shape.
  Status apply(const engine::Stop& stop = {}) override;

 private:
  WindowWriter(volume::Volume& volume, volume::Ino image, ViewFile file, StagingPool& pool, std::uint32_t owner,
               bool truncated)
      : volume_(volume), image_(image), file_(std::move(file)), pool_(pool), owner_(owner), truncated_(truncated) {}

  std::uint64_t capacity() const;
  // Offset of the data in the written bytes: an NPY may have a longer header than ours.
  Result<std::uint64_t> written_header_bytes() const;
  // The written data, from the staging. All other bytes keep the value at the moment of the write, which
  // only the engine knows, because others may be writing them.
  Result<engine::WindowSource> source(std::uint64_t header_bytes) const;

  volume::Volume& volume_;
  const volume::Ino image_;
  const ViewFile file_;
  StagingPool& pool_;
  const std::uint32_t owner_;
  bool truncated_;
  bool overran_ = false;
  std::unique_ptr<Staging> staging_;  // created with the first byte
};

}  // namespace mdfs::views
