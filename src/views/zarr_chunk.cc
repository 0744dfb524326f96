// Reads of one chunk.
// SPDX-License-Identifier: Apache-2.0
#include "views/zarr_chunk.h"

#include <mutex>
#include <utility>

#include "base/check.h"
#include "views/level_view.h"
#include "views/window_reader.h"

namespace mdfs::views {
namespace {

std::unique_ptr<View> reader_of(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                                const geometry::Coord& extent) {
  auto file = view_window(geometry, {geometry::window_of_extent(geometry, extent), Format::kRaw});
  MDFS_CHECK(file.ok());
  return std::make_unique<WindowReader>(volume, image, std::make_shared<const ViewFile>(std::move(*file)));
}

// A window of a stored level, as it is at each read. If it cannot be stored, it is computed once.
class StoredOrComputed final : public View {
 public:
  StoredOrComputed(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                   const ZarrChunk::LevelExtent& of, StagingPool& pool, std::uint32_t owner)
      : volume_(volume),
        image_(image),
        geometry_(geometry),
        name_{geometry::window_of_extent(of.geometry, of.extent), Format::kRaw, of.level},
        bytes_(geometry::window_bytes(of.geometry, name_.window)),
        pool_(pool),
        owner_(owner) {}

  std::uint64_t size_bytes() const override { return bytes_; }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) override {
    const std::lock_guard lock(mutex_);
    if (computed_) return computed_->read(offset, into, stop);
    const Status stored =
        read_stored_level(volume_, image_, name_.level, name_.window, offset, into, kStoredAttempts, stop);
    if (stored.ok()) return into.size();
    if (stored.error().code != Errc::kReadOnly) return stored.error();
    MDFS_TRY_ASSIGN(computed_, open_level(volume_, image_, geometry_, name_, pool_, owner_, stop));
    return computed_->read(offset, into, stop);
  }

 private:
  volume::Volume& volume_;
  const volume::Ino image_;
  const geometry::Geometry geometry_;  // of the image
  const WindowName name_;
  const std::uint64_t bytes_;
  StagingPool& pool_;
  const std::uint32_t owner_;
  std::mutex mutex_;  // guards the next; held while it is computed
  std::shared_ptr<View> computed_;
};

}  // namespace

ZarrChunk::ZarrChunk(const geometry::Geometry& geometry, const geometry::Coord& extent, std::unique_ptr<View> inside)
    : extent_(geometry::padded_extent(geometry, geometry::window_of_extent(geometry, extent))),
      size_(geometry.extent_bytes()),
      inside_(std::move(inside)) {}

ZarrChunk::ZarrChunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                     const geometry::Coord& extent)
    : ZarrChunk(geometry, extent, reader_of(volume, image, geometry, extent)) {}

ZarrChunk::ZarrChunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                     const LevelExtent& of, StagingPool& pool, std::uint32_t owner)
    : ZarrChunk(of.geometry, of.extent, std::make_unique<StoredOrComputed>(volume, image, geometry, of, pool, owner)) {}

Result<std::size_t> ZarrChunk::read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  return read_padded(offset, into, false, stop);
}

Result<std::size_t> ZarrChunk::read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  return read_padded(offset, into, true, stop);
}

Result<std::size_t> ZarrChunk::read_padded(std::uint64_t offset, MutableBytes into, bool newest,
                                           const engine::Stop& stop) {
  into = cut_to_size(into, offset, size_);
  if (into.empty()) return std::size_t{0};
  MDFS_TRY(geometry::read_padded(extent_, offset, into, [&](std::uint64_t first, MutableBytes inside) -> Status {
    MDFS_TRY_ASSIGN(const std::size_t count,
                    newest ? inside_->read_newest(first, inside, stop) : inside_->read(first, inside, stop));
    MDFS_CHECK(count == inside.size());
    return {};
  }));
  return into.size();
}

}  // namespace mdfs::views
