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

// One thread at a time.
class WindowWriter {
 public:
  // `truncated`: unwritten bytes are zeros until all are written; else they are those of the current window. `owner`:
  // the writing user. kTooBig: over the limit of the mount; kNotSupported: a read-only format.
  static Result<std::unique_ptr<WindowWriter>> create(volume::Volume& volume, volume::Ino image, ViewFile file,
                                                      StagingPool& pool, std::uint32_t owner, bool truncated);

  // Stages bytes of the virtual file. Returns the number, less than given at the end of the largest possible file;
  // kTooBig beyond it.
  Result<std::size_t> write(std::uint64_t offset, ConstBytes from);
  // Reads the virtual file as it would be after apply().
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into) const;

  // Marks that more was written than the largest possible file holds, which makes the staged bytes invalid.
  bool overran() const { return overran_; }
  bool empty() const { return staging_ == nullptr || staging_->written().empty(); }
  // True if every byte has been written.
  bool is_full() const;
  // True if apply() may be called: everything is written, or unwritten bytes keep their value.
  bool is_complete() const { return !truncated_ || is_full(); }
  // Replaces the written bytes of the window. An NPY written from its start must have the window's element
  // type and shape. After a success the writer is empty again; unwritten bytes keep their value.
  Status apply(const engine::Stop& stop = {});

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
