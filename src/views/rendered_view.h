// Views whose bytes are encoded when they are opened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "views/staging.h"
#include "views/view.h"
#include "views/view_file.h"
#include "volume/volume.h"

namespace mdfs::views {

// The encoded bytes of one window in one version of the image, which later writes do not change.
class RenderedView final : public View {
 public:
  // A larger window is kTooBig: encoding it would keep other users waiting for long.
  static constexpr std::uint64_t kMaxWindowBytes = 256u << 20;

  // Encodes the window, and takes as long as that. `name.format` must be a rendered one (abort). The bytes count
  // against `owner`, the opening user, in the pool. kTooBig: over the limit of the mount; kNoSpace: the pool is used
  // up; else errors of reading, and those of view_window().
  static Result<std::shared_ptr<View>> open(volume::Volume& volume, volume::Ino ino, const ShownImage& image,
                                            const WindowName& name, StagingPool& pool, std::uint32_t owner,
                                            const engine::Stop& stop = {});

  std::uint64_t size_bytes() const override { return size_; }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;

 private:
  RenderedView(std::unique_ptr<Staging> bytes, std::uint64_t size) : bytes_(std::move(bytes)), size_(size) {}

  const std::unique_ptr<const Staging> bytes_;
  const std::uint64_t size_;
};

}  // namespace mdfs::views
