// One open virtual file of any kind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/options.h"

namespace mdfs::views {

// The part of a buffer that a read at `offset` of a file of `size` bytes fills: less at its end, nothing behind it.
MutableBytes cut_to_size(MutableBytes into, std::uint64_t offset, std::uint64_t size);

// Made when a virtual file is opened, and shared by the reads of that descriptor. A view may show stored bytes, whose
// size is exact at look-up, or bytes that are rendered at open, whose size is unknown before. Any thread may call any
// method.
class View {
 public:
  virtual ~View() = default;

  // Exact, and the same for the life of the view.
  virtual std::uint64_t size_bytes() const = 0;
  // Reads bytes [offset, offset + into.size()); fewer at the end, none behind it. Returns the number. All reads of one
  // pass over the view see one version of the image.
  virtual Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) = 0;
  // The same in the newest version, for pages that all open descriptors share.
  virtual Result<std::size_t> read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) {
    return read(offset, into, stop);
  }
  // True if the kernel may keep pages: the size was exact before the view was opened, and the bytes follow the image.
  virtual bool may_cache() const { return false; }
  // True if a read of these bytes may compute samples, for which it reads others first.
  virtual bool may_compute(std::uint64_t /*offset*/, std::size_t /*bytes*/) const { return false; }
};

// A short text, such as info.json.
class TextView final : public View {
 public:
  explicit TextView(std::string text) : text_(std::move(text)) {}
  std::uint64_t size_bytes() const override { return text_.size(); }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;

 private:
  const std::string text_;
};

}  // namespace mdfs::views
