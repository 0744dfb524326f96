// One pending replacement of a window: bytes written through a bound descriptor or a virtual file, until they are
// applied in one atomic step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "views/staging.h"
#include "views/view_file.h"
#include "volume/volume.h"

namespace mdfs::views {

// Not for use by several threads at once.
class WindowWriter {
 public:
  // `truncated`: bytes not written are zeros until all are there; else they are those of the window as it is.
  // kTooBig: over the limit of the mount; kNotSupported: a format that is only for reading.
  static Result<std::unique_ptr<WindowWriter>> create(volume::Volume& volume, volume::Ino image, ViewFile file,
                                                      StagingPool& pool, bool truncated);

  // Stages bytes of the virtual file. Returns how many: less than given where the largest possible file ends;
  // kTooBig beyond it.
  Result<std::size_t> write(std::uint64_t offset, ConstBytes from);
  // The virtual file as it would be after apply().
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into) const;

  // More was written than the largest possible file holds: what came before the end is not what was meant.
  bool overran() const { return overran_; }
  bool empty() const { return staging_ == nullptr || staging_->written().empty(); }
  // Every byte has been written.
  bool is_full() const;
  // apply() may be called: everything is there, or what is missing keeps its value.
  bool is_complete() const { return !truncated_ || is_full(); }
  // Replaces the window, or what has been written of it. An NPY written from its start must name the window's element
  // type and shape. After a success the writer is empty again and what is not written keeps its value.
  Status apply(const engine::Stop& stop = {});

 private:
  WindowWriter(volume::Volume& volume, volume::Ino image, ViewFile file, StagingPool& pool, bool truncated)
      : volume_(volume), image_(image), file_(std::move(file)), pool_(pool), truncated_(truncated) {}

  std::uint64_t capacity() const;
  // Where the data begin in what has been written: an NPY may have a longer header than ours.
  Result<std::uint64_t> written_header_bytes() const;
  // What has been written of the data, out of the staging. The rest stays what it is at the moment of the write, which
  // only the engine knows: others may be writing it.
  Result<engine::WindowSource> source(std::uint64_t header_bytes) const;

  volume::Volume& volume_;
  const volume::Ino image_;
  const ViewFile file_;
  StagingPool& pool_;
  bool truncated_;
  bool overran_ = false;
  std::unique_ptr<Staging> staging_;  // with the first byte
};

}  // namespace mdfs::views
