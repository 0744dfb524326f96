// Reduces windows of the image to windows of a level.
// SPDX-License-Identifier: Apache-2.0
#include "views/level_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "geometry/level.h"
#include "geometry/reduce.h"
#include "views/computed_view.h"
#include "views/level_source.h"
#include "views/window_reader.h"

namespace mdfs::views {
namespace {

using geometry::Geometry;

constexpr unsigned kLevelAttempts = 8;  // at a version that lasts until its last row
constexpr unsigned kAnyAttempts = std::numeric_limits<unsigned>::max();
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;  // that are reduced at once, or the fewest rows
constexpr std::size_t kPlanes = 0, kRows = 1, kColumns = 2;

using Lengths = std::array<std::uint64_t, 3>;  // planes, rows, columns

// The windows below a window, down to the image or to a stored level.
struct Tower {
  struct Floor {
    geometry::Window window;
    Lengths length = {1, 1, 1};
    Lengths step = {1, 1, 1};  // of the samples of this floor that one sample of the next one stands for
  };
  std::vector<Floor> floors;  // from the lowest level
  std::uint64_t outer = 1;    // steps along the axes before the planes, each with planes of its own
  geometry::ElementType type = geometry::ElementType::kU8;
  unsigned channels = 1;

  std::uint64_t row_bytes(unsigned level) const {
    return floors[level].length[kColumns] * channels * geometry::element_bytes(type);
  }
};

Tower tower_of(const Geometry& image, const WindowName& name, unsigned lowest) {
  Tower tower;
  tower.type = image.type;
  tower.channels = name.window.channel ? 1 : image.channels;
  tower.floors.resize(name.level - lowest + 1);
  for (unsigned level = lowest; level <= name.level; ++level) {
    Tower::Floor& floor = tower.floors[level - lowest];
    floor.window = level_source(image, name, level).window;
    const geometry::HalvedAxes halved = geometry::halved_axes(geometry::level_geometry(image, level));
    for (unsigned axis = geometry::first_axis_in_box(image.rank); axis < image.rank; ++axis) {
      floor.length[geometry::place_in_box(image.rank, axis)] = floor.window.length[axis];
      floor.step[geometry::place_in_box(image.rank, axis)] = halved[axis] ? 2 : 1;
    }
  }
  for (unsigned axis = 0; axis < geometry::first_axis_in_box(image.rank); ++axis)
    tower.outer *= name.window.length[axis];
  return tower;
}

// Makes rows of a level from those below it, a few at a time: memory is bounded by some rows of each level.
class Reducer {
 public:
  Reducer(const Tower& tower, geometry::Reduction reduction, View& lowest, const engine::Stop& stop)
      : tower_(tower), reduction_(reduction), lowest_(lowest), stop_(stop), pieces_(tower.floors.size()) {}

  // Rows [row, row + rows) of one plane of a floor's window. Planes of the next outer step have the next numbers.
  Status rows(unsigned level, std::uint64_t plane, std::uint64_t row, std::uint64_t rows, MutableBytes into) {
    const std::uint64_t row_bytes = tower_.row_bytes(level);
    if (level == 0) return read((plane * tower_.floors[0].length[kRows] + row) * row_bytes, into);
    const Tower::Floor& below = tower_.floors[level - 1];
    const std::uint64_t below_bytes = tower_.row_bytes(level - 1);
    const std::uint64_t planes_here = tower_.floors[level].length[kPlanes];
    const std::uint64_t in_step = plane % planes_here * below.step[kPlanes];
    const std::uint64_t first = plane / planes_here * below.length[kPlanes] + in_step;
    const std::uint64_t planes = std::min(below.step[kPlanes], below.length[kPlanes] - in_step);
    const std::uint64_t at_once = std::max<std::uint64_t>(1, kPieceBytes / (planes * below.step[kRows] * below_bytes));
    for (std::uint64_t done = 0; done < rows; done += at_once) {
      const std::uint64_t count = std::min(at_once, rows - done);
      const std::uint64_t from = (row + done) * below.step[kRows];
      const std::uint64_t source = std::min(count * below.step[kRows], below.length[kRows] - from);
      ByteVector& piece = pieces_[level];
      piece.resize(planes * source * below_bytes);
      for (std::uint64_t i = 0; i < planes; ++i)
        MDFS_TRY(this->rows(level - 1, first + i, from, source,
                            MutableBytes(piece).subspan(i * source * below_bytes, source * below_bytes)));
      const geometry::ReducedBox box{{planes, source, below.length[kColumns]}, below.step, tower_.channels};
      geometry::reduce(reduction_, tower_.type, box, piece, into.subspan(done * row_bytes, count * row_bytes));
    }
    return {};
  }

 private:
  Status read(std::uint64_t offset, MutableBytes into) {
    MDFS_TRY(engine::stopped(stop_));
    MDFS_TRY_ASSIGN(const std::size_t count, lowest_.read(offset, into, stop_));
    MDFS_CHECK(count == into.size());
    return {};
  }

  const Tower& tower_;
  const geometry::Reduction reduction_;
  View& lowest_;
  const engine::Stop& stop_;
  std::vector<ByteVector> pieces_;  // by level: the rows below that its rows are made of
};

Status reduce_into(Staging& staging, const Tower& tower, geometry::Reduction reduction, View& lowest,
                   const engine::Stop& stop) {
  const auto level = static_cast<unsigned>(tower.floors.size() - 1);
  const Lengths length = tower.floors.back().length;
  const std::uint64_t row_bytes = tower.row_bytes(level);
  const std::uint64_t at_once = std::max<std::uint64_t>(1, kPieceBytes / row_bytes);
  Reducer reducer(tower, reduction, lowest, stop);
  ByteVector piece;
  std::uint64_t offset = 0;
  for (std::uint64_t plane = 0; plane < tower.outer * length[kPlanes]; ++plane) {
    for (std::uint64_t row = 0; row < length[kRows]; row += at_once) {
      const std::uint64_t rows = std::min(at_once, length[kRows] - row);
      piece.resize(rows * row_bytes);
      MDFS_TRY(reducer.rows(level, plane, row, rows, piece));
      MDFS_TRY(staging.write(offset, piece));
      offset += piece.size();
    }
  }
  return {};
}

// A window of a stored level that is read as it is at each read.
class StoredLevelView final : public View {
 public:
  StoredLevelView(volume::Volume& volume, volume::Ino image, ViewFile file, unsigned level)
      : volume_(volume), image_(image), file_(std::move(file)), level_(level) {}
  std::uint64_t size_bytes() const override { return file_.size_bytes(); }
  bool may_compute(std::uint64_t /*offset*/, std::size_t /*bytes*/) const override { return true; }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) override {
    return read_view(file_, offset, into, [&](std::uint64_t at, MutableBytes bytes) {
      return read_stored_level(volume_, image_, level_, file_.window, at, bytes, kAnyAttempts, stop);
    });
  }

 private:
  volume::Volume& volume_;
  const volume::Ino image_;
  const ViewFile file_;
  const unsigned level_;
};

// A window of a stored level: all parts from one version. If that is discarded (PinnedWindow), the next part is an
// error, unless it is the first one: then another version is pinned.
class PinnedLevelView final : public View {
 public:
  PinnedLevelView(volume::Volume& volume, volume::Ino image, ViewFile file, unsigned level,
                  std::shared_ptr<volume::PinnedWindow> pinned)
      : volume_(volume), image_(image), file_(std::move(file)), level_(level), pinned_(std::move(pinned)) {}
  std::uint64_t size_bytes() const override { return file_.size_bytes(); }

  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) override {
    for (unsigned attempt = 1;; ++attempt) {
      const std::shared_ptr<volume::PinnedWindow> pinned = now();
      auto count = read_view(file_, offset, into,
                             [&](std::uint64_t at, MutableBytes bytes) { return pinned->read(at, bytes, stop); });
      const std::lock_guard lock(mutex_);
      if (count.ok()) delivered_ = true;
      if (count.ok() || count.error().code != Errc::kStaleDisk || attempt == kLevelAttempts) return count;
      if (delivered_ && offset > 0) return count;
      if (pinned_ != pinned) continue;  // another thread has pinned one
      MDFS_TRY_ASSIGN(auto another, volume_.pin_level(image_, level_, file_.window, kStoredAttempts, stop));
      if (!another) return count;
      pinned_ = std::move(another);
      delivered_ = false;
    }
  }

 private:
  std::shared_ptr<volume::PinnedWindow> now() {
    const std::lock_guard lock(mutex_);
    return pinned_;
  }

  volume::Volume& volume_;
  const volume::Ino image_;
  const ViewFile file_;
  const unsigned level_;
  std::mutex mutex_;  // guards the next
  std::shared_ptr<volume::PinnedWindow> pinned_;
  bool delivered_ = false;  // a part of this version
};

}  // namespace

Status read_stored_level(volume::Volume& volume, volume::Ino image, unsigned level, const geometry::Window& window,
                         std::uint64_t offset, MutableBytes into, unsigned attempts, const engine::Stop& stop) {
  const auto take = [&](std::uint64_t at, ConstBytes bytes) -> Status {
    std::copy(bytes.begin(), bytes.end(), into.begin() + static_cast<std::ptrdiff_t>(at - offset));
    return {};
  };
  MDFS_TRY_ASSIGN(const bool read, volume.read_level(image, level, window, offset, into.size(), take, attempts, stop));
  if (read) return {};
  return {Errc::kReadOnly, fmt::format("level {} is not built here, and cannot be stored now", level)};
}

Result<std::shared_ptr<View>> open_level(volume::Volume& volume, volume::Ino image, const Geometry& geometry,
                                         const WindowName& name, StagingPool& pool, std::uint32_t owner,
                                         const engine::Stop& stop) {
  MDFS_CHECK(name.level > 0);
  MDFS_TRY_ASSIGN(ViewFile file, view_window(geometry, name));
  MDFS_TRY_ASSIGN(auto stored, volume.stored_levels(image));
  if (name.plane) stored.first = 0;
  const Geometry base = name.plane ? geometry::plane_geometry(geometry, name.plane->axis) : geometry;
  // A stored level of which writers leave no version long enough is computed, if that has bounds, as one that is not
  // stored: that reads a version of the image, which they do not end.
  const auto read_stored = [&](unsigned level, const ViewFile& wanted,
                               unsigned attempts) -> Result<std::unique_ptr<Staging>> {
    MDFS_TRY_ASSIGN(auto staging, Staging::create(pool, owner, wanted.inside_bytes()));
    const auto keep = [&](std::uint64_t offset, ConstBytes bytes) { return staging->write(offset, bytes); };
    MDFS_TRY_ASSIGN(const bool read,
                    volume.read_level(image, level, wanted.window, 0, wanted.inside_bytes(), keep, attempts, stop));
    return read ? std::move(staging) : nullptr;
  };
  const auto in_image = [&](const geometry::Window& window) {
    return name.plane ? geometry::in_volume(window, *name.plane) : window;
  };
  const bool is_stored = name.level <= stored.first;
  if (is_stored) {
    if (file.inside_bytes() > pool.limits().window_bytes)
      return std::shared_ptr<View>(std::make_shared<StoredLevelView>(volume, image, std::move(file), name.level));
    MDFS_TRY_ASSIGN(auto pinned, volume.pin_level(image, name.level, file.window, kStoredAttempts, stop));
    if (pinned)
      return std::shared_ptr<View>(
          std::make_shared<PinnedLevelView>(volume, image, std::move(file), name.level, std::move(pinned)));
  }
  if (file.inside_bytes() > pool.limits().window_bytes)
    return Error{Errc::kTooBig, fmt::format("a window of {} bytes; the mount computes at most {}", file.inside_bytes(),
                                            pool.limits().window_bytes)};
  for (unsigned lowest = std::min(stored.first, name.level - 1);; --lowest) {
    const LevelSource source = level_source(base, name, lowest);
    if (!source.is_in_bounds() && is_stored) {
      MDFS_TRY_ASSIGN(auto staging, read_stored(name.level, file, kAnyAttempts));
      if (staging) return std::shared_ptr<View>(std::make_shared<ComputedView>(std::move(file), std::move(staging)));
    }
    if (!source.is_in_bounds())
      return Error{Errc::kTooBig, fmt::format("a window of level {} stands for {} bytes of level {} in rows of {}; at "
                                              "most {} in rows of {} are read",
                                              name.level, source.bytes, lowest, source.row_bytes, kMaxSourceBytes,
                                              kMaxSourceRowBytes)};
    MDFS_TRY_ASSIGN(ViewFile below, view_window(geometry, {in_image(source.window), Format::kRaw, lowest}));
    const Tower tower = tower_of(base, name, lowest);
    MDFS_TRY_ASSIGN(auto staging, Staging::create(pool, owner, file.inside_bytes()));
    if (lowest > 0) {
      MDFS_TRY_ASSIGN(auto samples, read_stored(lowest, below, 1));
      if (!samples) continue;
      ComputedView view(std::move(below), std::move(samples));
      MDFS_TRY(reduce_into(*staging, tower, stored.second, view, stop));
      return std::shared_ptr<View>(std::make_shared<ComputedView>(std::move(file), std::move(staging)));
    }
    const auto whole = std::make_shared<const ViewFile>(std::move(below));
    for (unsigned attempt = 1;; ++attempt) {
      WindowReader reader(volume, image, whole);
      const Status made = reduce_into(*staging, tower, stored.second, reader, stop);
      if (made.ok()) return std::shared_ptr<View>(std::make_shared<ComputedView>(std::move(file), std::move(staging)));
      if (made.error().code != Errc::kStaleDisk || attempt == kLevelAttempts) return made.error();
    }
  }
}

Status read_level_window(volume::Volume& volume, volume::Ino image, const Geometry& geometry, const WindowName& name,
                         StagingPool& pool, std::uint32_t owner, MutableBytes into, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const std::shared_ptr<View> view, open_level(volume, image, geometry, name, pool, owner, stop));
  MDFS_TRY_ASSIGN(const std::size_t count, view->read(0, into, stop));
  MDFS_CHECK(count == into.size());
  return {};
}

}  // namespace mdfs::views
