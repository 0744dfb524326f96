// Frames as views.
// SPDX-License-Identifier: Apache-2.0
#include "views/frame_chunk.h"

#include <utility>

#include "base/check.h"
#include "codec/plain_frame.h"

namespace mdfs::views {
namespace {

class StoredChunk final : public View {
 public:
  explicit StoredChunk(std::unique_ptr<volume::PinnedFrame> frame) : frame_(std::move(frame)) {}
  std::uint64_t size_bytes() const override { return frame_->size_bytes(); }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) override {
    into = cut_to_size(into, offset, size_bytes());
    if (!into.empty()) MDFS_TRY(frame_->read(offset, into, stop));
    return into.size();
  }

 private:
  const std::unique_ptr<volume::PinnedFrame> frame_;
};

}  // namespace

Result<std::shared_ptr<View>> open_stored_chunk(volume::Volume& volume, volume::Ino image, unsigned level,
                                                const geometry::Coord& extent, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(auto frame, volume.pin_frame(image, level, extent, stop));
  if (frame && level > 0) {  // the whole frame is read and verified at once, and cached
    std::byte first{};
    const Status read = frame->read(0, {&first, 1}, stop);
    if (!read.ok() && read.error().code == Errc::kCancelled) return read.error();
    if (!read.ok()) frame.reset();
  }
  if (!frame) return std::shared_ptr<View>();
  return std::shared_ptr<View>(std::make_shared<StoredChunk>(std::move(frame)));
}

PlainChunk::PlainChunk(std::unique_ptr<View> decoded)
    : decoded_(std::move(decoded)), size_(codec::plain_frame_bytes(decoded_->size_bytes())) {}

Result<std::size_t> PlainChunk::read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  return read_frame(offset, into, false, stop);
}

Result<std::size_t> PlainChunk::read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  return read_frame(offset, into, true, stop);
}

Result<std::size_t> PlainChunk::read_frame(std::uint64_t offset, MutableBytes into, bool newest,
                                           const engine::Stop& stop) {
  into = cut_to_size(into, offset, size_);
  if (into.empty()) return std::size_t{0};
  const auto content = [&](std::uint64_t first, MutableBytes part) -> Status {
    MDFS_TRY_ASSIGN(const std::size_t count,
                    newest ? decoded_->read_newest(first, part, stop) : decoded_->read(first, part, stop));
    MDFS_CHECK(count == part.size());
    return {};
  };
  MDFS_TRY(codec::read_plain_frame(decoded_->size_bytes(), offset, into, content));
  return into.size();
}

}  // namespace mdfs::views
