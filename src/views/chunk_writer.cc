// Staging, checking and installing a chunk.
// SPDX-License-Identifier: Apache-2.0
#include "views/chunk_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/codec.h"
#include "geometry/decompose.h"
#include "geometry/padded_box.h"

namespace mdfs::views {
namespace {

// A frame of another encoder may be a little larger than the largest of ours.
constexpr std::uint64_t kFrameSlack = 1024;

std::uint64_t largest_chunk(const geometry::Geometry& geometry) {
  const std::uint64_t decoded = geometry.extent_bytes();
  return geometry.codec == geometry::Codec::kRaw ? decoded
                                                 : codec::compress_bound(geometry.codec, decoded) + kFrameSlack;
}

}  // namespace

ChunkWriter::ChunkWriter(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                         const geometry::Coord& extent, StagingPool& pool, std::uint32_t owner, bool truncated)
    : volume_(volume),
      image_(image),
      geometry_(geometry),
      extent_(extent),
      window_(geometry::window_of_extent(geometry, extent)),
      capacity_(largest_chunk(geometry)),
      pool_(pool),
      owner_(owner),
      truncated_(truncated) {}

Result<std::unique_ptr<ChunkWriter>> ChunkWriter::create(volume::Volume& volume, volume::Ino image,
                                                         const geometry::Geometry& geometry,
                                                         const geometry::Coord& extent, StagingPool& pool,
                                                         std::uint32_t owner, bool truncated) {
  if (geometry.extent_bytes() > pool.limits().window_bytes)
    return Error{Errc::kTooBig, fmt::format("a chunk of {} bytes; this mount allows {} (max_window)",
                                            geometry.extent_bytes(), pool.limits().window_bytes)};
  return std::unique_ptr<ChunkWriter>(new ChunkWriter(volume, image, geometry, extent, pool, owner, truncated));
}

Result<std::size_t> ChunkWriter::write(std::uint64_t offset, ConstBytes from) {
  if (from.empty()) return std::size_t{0};
  overran_ = overran_ || offset > capacity_ || from.size() > capacity_ - offset;
  if (offset >= capacity_) return Error{Errc::kTooBig, fmt::format("a chunk has at most {} bytes", capacity_)};
  from = from.first(std::min<std::uint64_t>(from.size(), capacity_ - offset));
  if (!staging_) {
    MDFS_TRY_ASSIGN(staging_, Staging::create(pool_, owner_, capacity_));
  }
  MDFS_TRY(staging_->write(offset, from));
  return from.size();
}

Result<std::size_t> ChunkWriter::read(std::uint64_t offset, MutableBytes into) const {
  if (offset >= size_bytes()) return std::size_t{0};
  into = into.first(std::min<std::uint64_t>(into.size(), size_bytes() - offset));
  std::fill(into.begin(), into.end(), std::byte{0});
  for (const ByteRange& part : staging_->written().parts({offset, offset + into.size()}))
    MDFS_TRY(staging_->read(part.first, into.subspan(part.first - offset, part.last - part.first)));
  return into.size();
}

bool ChunkWriter::is_full() const {
  const std::uint64_t end = is_encoded() ? size_bytes() : geometry_.extent_bytes();
  return !empty() && staging_->written().covers({0, end});
}

void ChunkWriter::clear() {
  staging_.reset();
  overran_ = false;
  truncated_ = true;
}

Status ChunkWriter::apply(const engine::Stop& stop) {
  if (overran_) return {Errc::kInvalidArgument, fmt::format("a chunk of more than {} bytes", capacity_)};
  if (!is_full())
    return {Errc::kInvalidArgument,
            is_encoded() ? "a chunk with gaps" : fmt::format("{} bytes of a chunk of {}", size_bytes(), capacity_)};
  const auto staged = [&](std::uint64_t offset, MutableBytes into) { return staging_->read(offset, into); };
  MDFS_TRY(is_encoded() ? write_frame(stop) : write_decoded(staged, {}, stop));
  clear();
  return {};
}

Status ChunkWriter::write_frame(const engine::Stop& stop) {
  ByteVector frame(size_bytes()), decoded(geometry_.extent_bytes());
  MDFS_TRY(staging_->read(0, frame));
  const Result<bool> checked = codec::decode_foreign(geometry_.codec, frame, decoded);
  if (!checked.ok() && checked.error().code == Errc::kCorrupt)
    return {Errc::kInvalidArgument,
            fmt::format("not one zstd frame of {} bytes ({})", decoded.size(), checked.error().where)};
  if (!checked.ok()) return checked.error();
  const auto read = [&](std::uint64_t offset, MutableBytes into) -> Status {
    std::copy_n(decoded.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  };
  std::optional<engine::ReadyExtent> ready;
  if (*checked) ready = engine::ReadyExtent{frame, decoded};
  return write_decoded(read, ready, stop);
}

Status ChunkWriter::write_decoded(const engine::WindowSource::Read& decoded,
                                  const std::optional<engine::ReadyExtent>& ready, const engine::Stop& stop) {
  // The image may have grown since.
  MDFS_TRY_ASSIGN(const geometry::Geometry now, volume_.image_geometry(image_));
  for (unsigned axis = 0; axis < now.rank; ++axis)
    if (extent_[axis] >= now.grid()[axis]) return {Errc::kOutOfRange, "the image has become smaller than the chunk"};
  const geometry::Window window = geometry::window_of_extent(now, extent_);
  const geometry::PaddedBox padded = geometry::padded_extent(now, window);
  const auto read_inside = [&](std::uint64_t at, MutableBytes into) -> Status {
    while (!into.empty()) {
      const geometry::PaddedRun run = geometry::run_inside(padded, at);
      const std::size_t count = std::min<std::uint64_t>(run.bytes, into.size());
      MDFS_TRY(decoded(run.offset, into.first(count)));
      into = into.subspan(count);
      at += count;
    }
    return {};
  };
  engine::WindowSource source(read_inside);
  if (ready) source.offer(*ready);
  return volume_.write_window(image_, window, source, stop);
}

Status remove_chunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                    const geometry::Coord& extent, const engine::Stop& stop) {
  const auto zeros = [](std::uint64_t, MutableBytes into) -> Status {
    std::fill(into.begin(), into.end(), std::byte{0});
    return {};
  };
  return volume.write_window(image, geometry::window_of_extent(geometry, extent), engine::WindowSource(zeros), stop);
}

}  // namespace mdfs::views
