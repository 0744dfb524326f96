// An engine over a store in memory.
// SPDX-License-Identifier: Apache-2.0
#include "engine_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/background_pace.h"
#include "base/checked.h"
#include "geometry/default_extent.h"
#include "store/format_volume.h"

namespace mdfs::engine::testing {

using geometry::Geometry;
using geometry::Window;

Geometry image_of(unsigned rank, geometry::Coord shape, geometry::Coord extent, geometry::Codec codec,
                  unsigned channels, geometry::ElementType type) {
  Geometry geometry;
  geometry.rank = rank;
  geometry.shape = shape;
  geometry.extent = extent;
  geometry.codec = codec;
  geometry.channels = channels;
  geometry.type = type;
  geometry.axes = geometry::default_axes(rank, false, channels > 1);
  return geometry;
}

Bench::Bench(const Setting& setting)
    : setting_(setting), environment_(setting.environment != nullptr ? *setting.environment : system_) {
  if (setting.on_disks)
    make_volume();
  else
    fake_ = std::make_unique<test::FakeStore>(setting.disks, setting.disk_bytes, setting.block_size);
  std::vector<std::uint16_t> disks;
  for (unsigned i = 0; i < setting.disks; ++i) disks.push_back(static_cast<std::uint16_t>(i));
  const unsigned rank = setting.geometry ? setting.geometry->rank : 1;
  placement_ = std::make_shared<geometry::Placement>(geometry::default_placement(rank, disks));
  if (setting.geometry) inode_.size_bytes = setting.geometry->size_bytes();
  start_engine();
  open_object();
}

Bench::~Bench() { stop_engine(); }

void Bench::make_volume() {
  std::vector<device::Disk*> borrowed;
  for (unsigned i = 0; i < setting_.disks; ++i) {
    disks_.push_back(std::make_unique<device::MemoryDisk>("disk" + std::to_string(i), setting_.disk_bytes));
    borrowed.push_back(disks_.back().get());
  }
  store::FormatOptions options;
  options.block_size = setting_.block_size;
  MDFS_CHECK(store::format_volume(borrowed, options, environment_).ok());
  open_volume();
}

void Bench::open_volume() {
  std::vector<std::unique_ptr<device::Disk>> owned;
  open_disks_.clear();
  for (auto& disk : disks_) {
    open_disks_.push_back(disk.get());
    owned.push_back(std::move(disk));
  }
  disks_.clear();
  on_disks_ = std::move(store::Store::open(std::move(owned), {}, environment_)).value();
}

void Bench::stop_engine() {
  if (object_ != nullptr) engine_->discard(object_);
  object_.reset();
  engine_.reset();
}

void Bench::start_engine() {
  EngineOptions options;
  options.cache_bytes = setting_.cache_bytes;
  options.early_batch_bytes = setting_.early_batch_bytes;
  options.decode_threads = 2;
  engine_ = std::move(Engine::create(any_store(), options, environment_)).value();
}

void Bench::open_object() {
  ObjectSpec spec;
  spec.number = 77;
  spec.geometry = setting_.geometry;
  spec.placement = placement_;
  spec.base = setting_.base;
  spec.size_bytes = inode_.size_bytes;
  spec.is_inline = inode_.is_inline;
  spec.copies = setting_.copies;
  spec.group_members = setting_.group_members;
  if (setting_.copies) any_store().add_features_ro_compat(MDFS_RO_COMPAT_PROTECTION);
  if (spec.geometry) spec.geometry->shape[0] = ceil_div(spec.size_bytes, spec.geometry->slab_bytes());
  object_ = engine_
                ->open(spec,
                       [this](store::Transaction&, const ObjectState& state) -> Status {
                         inode_.size_bytes = state.size_bytes;
                         inode_.stored_bytes += state.stored_bytes_change;
                         inode_.is_inline = state.is_inline;
                         ++inode_.updates;
                         return {};
                       })
                .value();
}

Status Bench::reopen() {
  Status status = engine_->close(object_);
  object_.reset();
  engine_.reset();
  if (on_disks_) {
    if (status.ok()) status = on_disks_->commit();
    for (const device::MemoryDisk* disk : open_disks_) disks_.push_back(disk->clone());
    on_disks_.reset();
    open_volume();
  }
  start_engine();
  open_object();
  return status;
}

Status Bench::forget_end(std::uint64_t size_bytes) {
  Status status = engine_->close(object_);
  object_.reset();
  engine_.reset();
  inode_.size_bytes = size_bytes;
  inode_.is_inline = false;
  start_engine();
  open_object();
  return status;
}

ByteVector Bench::read(std::uint64_t offset, std::size_t length) {
  ByteVector bytes(length);
  const Result<std::size_t> got = engine_->read(*object_, offset, bytes);
  if (!got.ok()) ADD_FAILURE() << got.error().message();  // of a read that aborts the test
  MDFS_CHECK(got.ok());
  bytes.resize(*got);
  return bytes;
}

void Bench::set_protection(bool copies, unsigned group_members) {
  setting_.copies = copies;
  setting_.group_members = group_members;
  any_store().add_features_ro_compat(MDFS_RO_COMPAT_PROTECTION);
  engine_->set_protection(*object_, copies, group_members);
}

Result<RelocationOutcome> Bench::form_groups() {
  MDFS_TRY(engine_->write_back(*object_));
  MDFS_TRY(engine_->consolidate(*object_, UINT64_MAX, true));
  return engine_->relocate(*object_, RelocationReason::kUngrouped, {});
}

Result<ProtectOutcome> Bench::convert() {
  MDFS_TRY(engine_->write_back(*object_));
  MDFS_TRY(engine_->consolidate(*object_, UINT64_MAX, true));
  ProtectOutcome all;
  for (std::uint64_t page = 0; page != UINT64_MAX;) {
    ProtectRequest request;
    request.copies = setting_.copies;
    request.width = setting_.group_members;
    MDFS_TRY_ASSIGN(request.extents, engine_->find_unprotected(*object_, request, page, kRebuildExtents));
    MDFS_TRY_ASSIGN(ProtectOutcome one, engine_->protect(*object_, request));
    all += std::move(one);
  }
  return all;
}

Result<std::vector<layout::ExtentPlace>> Bench::layout() {
  MDFS_TRY_ASSIGN(LayoutRows found, engine_->layout(*object_, {.of = LayoutOf::kPieces}, {}));
  std::sort(found.rows.begin(), found.rows.end(), [](const layout::ExtentPlace& a, const layout::ExtentPlace& b) {
    return std::tie(a.index, a.disk, a.block) < std::tie(b.index, b.disk, b.block);
  });
  return std::move(found.rows);
}

ByteVector Bench::read_all() { return read(0, size() + 7); }

Geometry Bench::geometry_now() {
  Geometry geometry = *setting_.geometry;
  geometry.shape[0] = ceil_div(size(), geometry.slab_bytes());
  return geometry;
}

ByteVector Bench::read_window(const Window& window) {
  ByteVector bytes(geometry::window_bytes(*setting_.geometry, window));
  MDFS_CHECK(engine_->read_window(*object_, window, 0, bytes).ok());
  return bytes;
}

Status Bench::write_window(const Window& window, ConstBytes bytes) {
  return engine_->write_window(*object_, window, [&](std::uint64_t offset, MutableBytes into) -> Status {
    std::memcpy(into.data(), bytes.data() + offset, into.size());
    return {};
  });
}

Status Bench::write_window(const Window& window, ConstBytes bytes, const std::vector<bool>& mask) {
  std::vector<WindowRange> written;
  for (std::uint64_t i = 0; i < mask.size(); ++i) {
    if (!mask[i]) continue;
    if (!written.empty() && written.back().end == i)
      ++written.back().end;
    else
      written.push_back({i, i + 1});
  }
  const auto read = [&](std::uint64_t offset, MutableBytes into) -> Status {
    for (std::size_t i = 0; i < into.size(); ++i) MDFS_CHECK(mask[offset + i]);
    std::memcpy(into.data(), bytes.data() + offset, into.size());
    return {};
  };
  return engine_->write_window(*object_, window, WindowSource(read, std::move(written)));
}

ByteVector noise(std::mt19937_64& random, std::size_t bytes, bool compressible) {
  ByteVector result(bytes);
  if (compressible) {
    const auto value = static_cast<std::byte>(random());
    for (std::size_t i = 0; i < bytes; ++i) result[i] = i % 97 == 0 ? static_cast<std::byte>(i) : value;
    return result;
  }
  for (std::byte& byte : result) byte = static_cast<std::byte>(random() >> 7);
  return result;
}

namespace {

// Calls visit(offset in the array, offset in the window, bytes) for each row, or for each sample of one channel.
void each_run(const Geometry& geometry, const Window& window,
              const std::function<void(std::uint64_t, std::uint64_t, std::uint64_t)>& visit) {
  const unsigned fast = geometry.rank - 1;
  const std::uint64_t sample = geometry.sample_bytes();
  const std::uint64_t element = geometry::element_bytes(geometry.type);
  std::uint64_t done = 0;
  geometry::Coord at{};  // of a row in the window
  for (unsigned stepped = fast + 1; stepped > 0;) {
    std::uint64_t row = 0;
    for (unsigned axis = 0; axis <= fast; ++axis) row = row * geometry.shape[axis] + window.start[axis] + at[axis];
    row *= sample;
    if (!window.channel) {
      visit(row, done, window.length[fast] * sample);
      done += window.length[fast] * sample;
    }
    for (std::uint64_t x = 0; window.channel && x < window.length[fast]; ++x, done += element)
      visit(row + x * sample + *window.channel * element, done, element);
    for (stepped = fast; stepped > 0; --stepped) {
      if (++at[stepped - 1] < window.length[stepped - 1]) break;
      at[stepped - 1] = 0;
    }
  }
}

}  // namespace

void array_put(const Geometry& geometry, ByteVector& array, const Window& window, ConstBytes bytes) {
  each_run(geometry, window, [&](std::uint64_t at, std::uint64_t from, std::uint64_t length) {
    if (array.size() < at + length) array.resize(at + length);
    std::memcpy(array.data() + at, bytes.data() + from, length);
  });
}

ByteVector array_get(const Geometry& geometry, const ByteVector& array, const Window& window) {
  ByteVector bytes(geometry::window_bytes(geometry, window));
  each_run(geometry, window, [&](std::uint64_t at, std::uint64_t to, std::uint64_t length) {
    if (at >= array.size()) return;
    std::memcpy(bytes.data() + to, array.data() + at, std::min<std::uint64_t>(length, array.size() - at));
  });
  return bytes;
}

Window random_window(std::mt19937_64& random, const Geometry& geometry) {
  Window window;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    window.start[axis] = random() % geometry.shape[axis];
    const std::uint64_t room = geometry.shape[axis] - window.start[axis];
    window.length[axis] = 1 + random() % (random() % 2 == 0 ? room : std::min<std::uint64_t>(room, 9));
  }
  if (geometry.channels > 1 && random() % 4 == 0) window.channel = static_cast<unsigned>(random() % geometry.channels);
  return window;
}

}  // namespace mdfs::engine::testing
