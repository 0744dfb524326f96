// Reads one open window: all parts from one version.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "views/byte_ranges.h"
#include "views/view.h"
#include "views/view_file.h"
#include "volume/volume.h"

namespace mdfs::views {

// The kernel reads a window in pieces of at most 1 MiB, a program in pieces of any size. The first piece pins
// the version for all others, until every byte has been read, or until the first byte is read again.
// If a version is discarded (PinnedWindow), every further piece is an error, unless no piece has been
// delivered: then another one is pinned. Any thread.
class WindowReader final : public View {
 public:
  WindowReader(volume::Volume& volume, volume::Ino image, std::shared_ptr<const ViewFile> file)
      : volume_(volume), image_(image), file_(std::move(file)) {}

  const std::shared_ptr<const ViewFile>& file() const { return file_; }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  Result<std::size_t> read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  bool may_cache() const override { return true; }
  // Makes the next piece the first one, after a write by the reader itself.
  void restart();

 private:
  static constexpr unsigned kPins = 8;              // tries to deliver a first piece
  static constexpr std::size_t kMostRanges = 4096;  // that are remembered as read
  struct Pass {
    std::unique_ptr<volume::PinnedWindow> pinned;
    // Guarded by the reader's mutex.
    ByteRanges read;  // of the bytes behind the header
    bool given_up = false;
  };
  Result<std::shared_ptr<Pass>> pass_for(ByteRange data);
  void note_read(const std::shared_ptr<Pass>& pass, ByteRange data);
  // False if another version can be pinned.
  bool note_stale(const std::shared_ptr<Pass>& pass);

  volume::Volume& volume_;
  const volume::Ino image_;
  const std::shared_ptr<const ViewFile> file_;
  std::mutex mutex_;  // guards pass_
  std::shared_ptr<Pass> pass_;
};

}  // namespace mdfs::views
