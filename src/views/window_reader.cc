// Reads of one open window.
// SPDX-License-Identifier: Apache-2.0
#include "views/window_reader.h"

#include <algorithm>

namespace mdfs::views {

Result<std::shared_ptr<WindowReader::Pass>> WindowReader::pass_for(ByteRange data) {
  const std::lock_guard lock(mutex_);
  const bool again = data.first == 0 && pass_ && (pass_->given_up || pass_->read.covers({0, 1}));
  if (again) pass_.reset();
  if (!pass_) {
    auto pass = std::make_shared<Pass>();
    MDFS_TRY_ASSIGN(pass->pinned, volume_.pin_window(image_, file_->window));
    pass_ = std::move(pass);
  }
  return pass_;
}

void WindowReader::note_read(const std::shared_ptr<Pass>& pass, ByteRange data) {
  const std::lock_guard lock(mutex_);
  if (pass->read.count() < kMostRanges) pass->read.add(data);
  if (pass == pass_ && pass->read.covers({0, file_->body_bytes()})) pass_.reset();
}

bool WindowReader::note_stale(const std::shared_ptr<Pass>& pass) {
  const std::lock_guard lock(mutex_);
  pass->given_up = true;
  if (!pass->read.empty()) return true;
  if (pass == pass_) pass_.reset();
  return false;
}

void WindowReader::restart() {
  const std::lock_guard lock(mutex_);
  pass_.reset();
}

Result<std::size_t> WindowReader::read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  return read_view(volume_, image_, *file_, offset, into, stop);
}

Result<std::size_t> WindowReader::read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  const std::uint64_t end = std::min(file_->size_bytes(), offset + into.size());
  const std::uint64_t header = file_->header.size();
  const ByteRange data{std::max(offset, header) - header, std::max(end, header) - header};
  if (data.first >= data.last) return read_view(volume_, image_, *file_, offset, into, stop);
  // One call of the volume reads one version. Rows of EXR may need several.
  if (data.last - data.first == file_->body_bytes() && file_->order != SampleOrder::kExr) {
    restart();
    return read_view(volume_, image_, *file_, offset, into, stop);
  }
  for (unsigned i = 1;; ++i) {
    MDFS_TRY_ASSIGN(const std::shared_ptr<Pass> pass, pass_for(data));
    auto count = read_view(*file_, offset, into,
                           [&](std::uint64_t at, MutableBytes bytes) { return pass->pinned->read(at, bytes, stop); });
    if (count.ok()) {
      note_read(pass, data);
      return count;
    }
    if (count.error().code != Errc::kStaleDisk || note_stale(pass) || i == kPins) return count;
  }
}

}  // namespace mdfs::views
