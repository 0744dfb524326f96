// A virtual file whose window was computed when it was opened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "views/staging.h"
#include "views/view.h"
#include "views/view_file.h"

namespace mdfs::views {

// Reads the staged bytes, with the header and the padding of the file. Owns the bytes. Any thread.
class ComputedView final : public View {
 public:
  // `bytes`: of the window, without the header and the padding.
  ComputedView(ViewFile file, std::unique_ptr<Staging> bytes) : file_(std::move(file)), bytes_(std::move(bytes)) {}

  std::uint64_t size_bytes() const override { return file_.size_bytes(); }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& = {}) override {
    const auto stored = [&](std::uint64_t at, MutableBytes bytes) { return bytes_->read(at, bytes); };
    return read_view(file_, offset, into, stored);
  }

 private:
  const ViewFile file_;
  const std::unique_ptr<const Staging> bytes_;
};

}  // namespace mdfs::views
