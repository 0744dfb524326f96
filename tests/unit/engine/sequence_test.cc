// Sequences of all operations on files and images, against a plain byte array.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdio>

#include "device/testing/faulty_disk.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using geometry::ElementType;
using geometry::Geometry;
using geometry::Window;

// Said at once: some failures need a certain order of threads, and are not met again when the case is repeated.
#define TWINS_AGREE(condition)                                             \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      RC_FAIL(#condition);                                                 \
    }                                                                      \
  } while (false)

Geometry any_image() {
  const auto rank = *rc::gen::inRange(1u, 6u);
  const auto type = *rc::gen::element(ElementType::kU8, ElementType::kU16, ElementType::kF32, ElementType::kF64);
  const auto channels = *rc::gen::element(1u, 1u, 3u, 5u);
  const auto codec = *rc::gen::element(Codec::kRaw, Codec::kZstd);
  geometry::Coord shape{}, extent{};
  const std::uint64_t longest = rank == 1 ? 60'000 : rank == 2 ? 200 : rank == 3 ? 40 : rank == 4 ? 16 : 9;
  for (unsigned axis = 0; axis < rank; ++axis) {
    shape[axis] = *rc::gen::inRange<std::uint64_t>(1, longest);
    extent[axis] = *rc::gen::inRange<std::uint64_t>(1 + longest / 8, 1 + longest / 2);
  }
  return image_of(rank, shape, extent, codec, channels, type);
}

// The engine and the array side by side.
class Twins {
 public:
  Twins(const Setting& setting, std::uint64_t seed)
      : on_disks_(setting.on_disks),
        copies_(setting.copies),
        bench_(setting),
        image_(setting.geometry),
        random_(seed),
        array_(bench_.size()) {
    for (unsigned disk = 0; copies_ && disk < setting.disks; ++disk) {
      fronts_.push_back(
          std::make_unique<device::FaultyDisk>(bench_.store().memory_disk(disk), std::vector<device::Fault>{}));
      bench_.store().put_in_front(disk, *fronts_.back());
    }
  }
  Twins(const Twins&) = delete;
  Twins& operator=(const Twins&) = delete;
  ~Twins() { bench_.stop_engine(); }  // before the disks in front

  void step() {
    if (copies_ && random_() % 12 == 0) return convert();
    if (copies_ && random_() % 12 == 0) return form_groups();
    switch (random_() % (image_ ? 16 : 13)) {
      case 0:
      case 1:
      case 2:
        return write();
      case 3:
        return read();
      case 4:
      case 5:
        return image_ ? write_window() : write();
      case 6:
        return image_ ? read_window() : read();
      case 7:
        return truncate();
      case 8:
        return punch();
      case 9:
        TWINS_AGREE(bench_.engine().write_back(bench_.object()).ok());
        TWINS_AGREE(!bench_.engine().is_dirty(bench_.object()));
        TWINS_AGREE(bench_.inode().size_bytes == array_.size());
        return;
      case 10:
        TWINS_AGREE(bench_.reopen().ok());
        return;
      case 11:
        return move();
      case 12:
        return seek();
      case 13:
        return consolidate();
      default:
        return append_frames();
    }
  }

  void check_all() {
    TWINS_AGREE(bench_.size() == array_.size());
    TWINS_AGREE(bench_.read_all() == array_);
    for (const auto& disk : fronts_) {
      if (!has_copies_) break;
      TWINS_AGREE(bench_.reopen().ok());
      disk->add({device::FaultKind::kGone, device::Op::kRead, 0, UINT64_MAX, 0, 1});
      TWINS_AGREE(bench_.read_all() == array_);
      disk->work_again();
    }
  }

  // Written back, read by a new engine, and every block accounted for.
  void check_stored() {
    TWINS_AGREE(bench_.reopen().ok());
    check_all();
    TWINS_AGREE(bench_.inode().size_bytes == array_.size());
    std::uint64_t blocks = 0;
    const std::uint64_t block_size = bench_.any_store().block_size();
    const auto places = bench_.layout();
    TWINS_AGREE(places.ok());
    for (const layout::ExtentPlace& place : *places) blocks += (place.stored_bytes + block_size - 1) / block_size;
    TWINS_AGREE(on_disks_ || blocks == bench_.store().used_blocks());
    TWINS_AGREE(bench_.inode().stored_bytes == static_cast<std::int64_t>(blocks * block_size));
    TWINS_AGREE(bench_.engine().truncate(bench_.object(), 0).ok());
    TWINS_AGREE(on_disks_ || bench_.store().used_blocks() == 0);
    TWINS_AGREE(bench_.inode().stored_bytes == 0);
  }

 private:
  std::uint64_t any_offset() {
    const std::uint64_t room = array_.size() + (image_ ? image_->slab_bytes() * 3 : 200'000);
    return random_() % 3 == 0 ? random_() % std::max<std::uint64_t>(1, array_.size() / 16) : random_() % (room + 1);
  }
  std::uint64_t any_length() {
    const std::uint64_t length = 1 + random_() % (random_() % 3 == 0 ? 150'000 : 6'000);
    return image_ ? std::min(length, most_bytes()) : length;
  }
  // Of small extents, each of which takes a block, so many that the disks have space for all writes.
  std::uint64_t most_bytes() const {
    constexpr std::uint64_t kExtents = 200;
    std::uint64_t in_row = 1;
    for (unsigned axis = 1; axis < image_->rank; ++axis)
      in_row *= (image_->shape[axis] + image_->extent[axis] - 1) / image_->extent[axis];
    return std::max<std::uint64_t>(1, image_->slab_bytes() * image_->extent[0] * kExtents / in_row);
  }

  void write() {
    const std::uint64_t offset = random_() % 4 == 0 ? array_.size() : any_offset();
    const ByteVector bytes = noise(random_, any_length(), random_() % 2 == 0);
    TWINS_AGREE(bench_.engine().write(bench_.object(), offset, bytes).ok());
    if (array_.size() < offset + bytes.size()) array_.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), array_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  // What lies in strips is written whole: nothing is to be seen of it.
  void consolidate() {
    const auto consolidated = bench_.engine().consolidate(bench_.object(), UINT64_MAX, random_() % 2 == 0);
    TWINS_AGREE(consolidated.ok());
  }

  // A few frames or parts of them, each written back by itself as fsync does.
  void append_frames() {
    for (std::uint64_t left = 1 + random_() % 6; left > 0; --left) {
      const std::uint64_t slab = image_->slab_bytes();
      const std::uint64_t to_frame = slab - array_.size() % slab;
      const std::uint64_t length = random_() % 5 == 0 ? 1 + random_() % to_frame : to_frame;
      const ByteVector bytes = noise(random_, length, random_() % 2 == 0);
      TWINS_AGREE(bench_.engine().write(bench_.object(), array_.size(), bytes).ok());
      array_.insert(array_.end(), bytes.begin(), bytes.end());
      if (random_() % 4 != 0) TWINS_AGREE(bench_.engine().write_back(bench_.object()).ok());
    }
  }

  void read() {
    const std::uint64_t offset = any_offset();
    const ByteVector got = bench_.read(offset, any_length());
    const std::uint64_t begin = std::min<std::uint64_t>(offset, array_.size());
    TWINS_AGREE(got == ByteVector(array_.begin() + static_cast<std::ptrdiff_t>(begin),
                                  array_.begin() + static_cast<std::ptrdiff_t>(begin + got.size())));
    TWINS_AGREE(!got.empty() || begin == array_.size());
  }

  void write_window() {
    const Geometry geometry = bench_.geometry_now();
    if (geometry.shape[0] == 0) return;
    const Window window = random_window(random_, geometry);
    ByteVector bytes = noise(random_, geometry::window_bytes(geometry, window), random_() % 2 == 0);
    if (random_() % 3 == 0) {  // only some runs of it
      const std::uint64_t longest = random_() % 2 == 0 ? bytes.size() + 1 : 64;
      std::vector<bool> mask;
      for (bool written = random_() % 2 == 0; mask.size() < bytes.size(); written = !written)
        mask.insert(mask.end(), std::min<std::uint64_t>(1 + random_() % longest, bytes.size() - mask.size()), written);
      TWINS_AGREE(bench_.write_window(window, bytes, mask).ok());
      const ByteVector before = array_get(geometry, array_, window);
      for (std::size_t i = 0; i < bytes.size(); ++i)
        if (!mask[i]) bytes[i] = before[i];
      if (std::find(mask.begin(), mask.end(), true) == mask.end()) return;
    } else {
      TWINS_AGREE(bench_.write_window(window, bytes).ok());
    }
    array_put(geometry, array_, window, bytes);
    // A window in a slab that is not whole makes the file as long as its last sample.
    if (array_.size() < bench_.size()) array_.resize(bench_.size());
  }

  void read_window() {
    const Geometry geometry = bench_.geometry_now();
    if (geometry.shape[0] == 0) return;
    const Window window = random_window(random_, geometry);
    TWINS_AGREE(bench_.read_window(window) == array_get(geometry, array_, window));
  }

  void truncate() {
    const std::uint64_t size = random_() % 6 == 0 ? random_() % 3000 : any_offset();
    const bool grow = size > array_.size() && random_() % 2 == 0;
    TWINS_AGREE(
        (grow ? bench_.engine().grow(bench_.object(), size) : bench_.engine().truncate(bench_.object(), size)).ok());
    array_.resize(size);
    TWINS_AGREE(bench_.size() == size);
  }

  void punch() {
    const std::uint64_t offset = any_offset();
    const std::uint64_t length = any_length();
    TWINS_AGREE(bench_.engine().punch(bench_.object(), offset, length).ok());
    for (std::uint64_t i = offset; i < std::min<std::uint64_t>(offset + length, array_.size()); ++i)
      array_[i] = std::byte{0};
  }

  // The disks of the blocks of a cell, or of their copies, in order.
  std::vector<unsigned> disks_of_blocks(std::uint64_t cell, bool copies, const std::vector<layout::ExtentPlace>& rows) {
    std::vector<unsigned> disks;
    for (const layout::ExtentPlace& row : rows)
      if (row.index[0] == cell && row.is_copy == copies)
        disks.insert(disks.end(), row.stored_bytes / bench_.any_store().block_size(), row.disk);
    return disks;
  }

  // Cells all of whose blocks have copies; of the others it is not known which have.
  void check_cells_apart(const std::vector<layout::ExtentPlace>& rows) {
    for (const layout::ExtentPlace& row : rows) {
      const auto firsts = disks_of_blocks(row.index[0], false, rows),
                 copies = disks_of_blocks(row.index[0], true, rows);
      if (has_copies_) TWINS_AGREE(firsts.size() == copies.size());
      if (firsts.size() != copies.size()) continue;
      for (std::size_t i = 0; i < firsts.size(); ++i) TWINS_AGREE(firsts[i] != copies[i]);
    }
  }

  // No two pieces of an extent, or of a block of a file, on one disk.
  void check_apart() {
    if (!image_) {  // in the order of the blocks
      const auto found =
          bench_.engine().layout(bench_.object(), {.from = {}, .most = SIZE_MAX, .of = LayoutOf::kPieces}, {});
      TWINS_AGREE(found.ok());
      return check_cells_apart(found->rows);
    }
    const auto places = bench_.layout();
    TWINS_AGREE(places.ok());
    for (std::size_t i = 1; i < places->size(); ++i) {
      const layout::ExtentPlace &one = (*places)[i - 1], &two = (*places)[i];
      if (one.in_strip || two.in_strip || one.index != two.index) continue;
      TWINS_AGREE(one.disk != two.disk);
    }
  }

  void convert() {
    has_copies_ = random_() % 3 > 0;
    const bool in_groups = has_copies_ && image_ && random_() % 2 == 0;
    bench_.set_protection(has_copies_, in_groups ? 2u << random_() % 2 : 1);
    if (random_() % 2 == 0) write();
    const auto converted = bench_.convert();
    TWINS_AGREE(converted.ok());
    TWINS_AGREE(converted->damaged.empty());
    TWINS_AGREE(converted->no_room == 0);
    std::uint64_t page = 0;
    ProtectionState state;
    while (page != UINT64_MAX) {
      const auto some = bench_.engine().protection(bench_.object(), page, {});
      TWINS_AGREE(some.ok());
      state += *some;
    }
    TWINS_AGREE(state.copied == (has_copies_ ? state.extents : 0));
    check_apart();
  }

  // Parities in place of copies, if they are wanted.
  void form_groups() {
    TWINS_AGREE(bench_.form_groups().ok());
    check_apart();
  }

  // Some extents, those that there are and others, to disks of their own or all to one.
  void move() {
    const auto places = bench_.layout();
    TWINS_AGREE(places.ok());
    MoveRequest request;
    for (const layout::ExtentPlace& place : *places)
      if (random_() % 3 > 0) request.extents.push_back(place.index);
    request.extents.erase(std::unique(request.extents.begin(), request.extents.end()), request.extents.end());
    request.most_runs = static_cast<std::uint32_t>(random_() % 3);
    request.of_copies = copies_ && random_() % 2 == 0;
    const auto disk = static_cast<unsigned>(random_() % bench_.any_store().disk_count());
    if (random_() % 2 == 0) request.disk = [disk](const geometry::Coord&) { return disk; };
    const auto moved = bench_.engine().move(bench_.object(), request);
    TWINS_AGREE(moved.ok());
    TWINS_AGREE(moved->damaged.empty());
    TWINS_AGREE(moved->moved + moved->changed + moved->no_room.size() <= request.extents.size());
    if (copies_) check_apart();
  }

  // What SEEK_HOLE calls a hole is zero, and what SEEK_DATA passes over.
  void seek() {
    const std::uint64_t offset = any_offset();
    const auto data = bench_.engine().next_data(bench_.object(), offset);
    const auto hole = bench_.engine().next_hole(bench_.object(), offset);
    const auto says_beyond = [](const auto& result) { return !result.ok() && result.error().code == Errc::kNoDevice; };
    if (offset >= array_.size()) {
      TWINS_AGREE(says_beyond(data));
      TWINS_AGREE(says_beyond(hole));
      return;
    }
    TWINS_AGREE(hole.ok());
    TWINS_AGREE(*hole >= offset);
    TWINS_AGREE(*hole <= array_.size());
    if (data.ok()) {
      TWINS_AGREE(*data >= offset);
      TWINS_AGREE(*data < array_.size());
    } else {
      TWINS_AGREE(says_beyond(data));
    }
    const std::uint64_t zero_until = data.ok() ? *data : array_.size();
    for (std::uint64_t i = offset; i < zero_until; ++i) TWINS_AGREE(array_[i] == std::byte{0});
  }

  const bool on_disks_;
  const bool copies_;
  bool has_copies_ = copies_;
  std::vector<std::unique_ptr<device::FaultyDisk>> fronts_;
  Bench bench_;
  std::optional<Geometry> image_;
  std::mt19937_64 random_;
  ByteVector array_;
};

void run_sequence(const Setting& setting) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto steps = *rc::gen::inRange(1u, 40u);
  Twins twins(setting, seed);
  for (unsigned i = 0; i < steps; ++i) {
    twins.step();
    if (i % 8 == 0) twins.check_all();
  }
  twins.check_all();
  twins.check_stored();
}

RC_GTEST_PROP(EngineSequenceTest, ImagesReadAsAPlainArrayAfterAnySequence, ()) {
  Setting setting;
  setting.geometry = any_image();
  setting.disks = *rc::gen::element(1u, 3u, 8u);
  setting.cache_bytes = *rc::gen::element<std::size_t>(1u << 20, 8u << 20);
  run_sequence(setting);
}

// Slabs of up to twice the cache.
RC_GTEST_PROP(EngineSequenceTest, ImagesThatGrowFrameByFrameReadAsAPlainArray, ()) {
  Setting setting;
  const auto depth = *rc::gen::element<std::uint64_t>(4, 8, 16, 32);
  const auto side = *rc::gen::element<std::uint64_t>(32, 50, 64);
  const auto frame = *rc::gen::inRange<std::uint64_t>(20, 256);
  setting.geometry = image_of(3, {*rc::gen::element<std::uint64_t>(0, 0, 5, 40), frame, frame + 13},
                              {depth, side, side}, *rc::gen::element(Codec::kRaw, Codec::kZstd));
  setting.disks = *rc::gen::element(1u, 4u);
  setting.block_size = *rc::gen::element(4096u, 4096u, 16384u);
  setting.cache_bytes = *rc::gen::element<std::size_t>(1u << 20, 4u << 20);
  setting.disk_bytes = 128u << 20;
  setting.on_disks = *rc::gen::element(false, false, true);
  run_sequence(setting);
}

// With each disk gone in turn.
RC_GTEST_PROP(EngineSequenceTest, ProtectedImagesThatGrowLoseNothingWithAnyDisk, ()) {
  Setting setting;
  const auto depth = *rc::gen::element<std::uint64_t>(4, 16);
  const auto frame = *rc::gen::inRange<std::uint64_t>(20, 150);
  setting.geometry = image_of(3, {*rc::gen::element<std::uint64_t>(0, 5), frame, frame + 13}, {depth, 50, 64},
                              *rc::gen::element(Codec::kRaw, Codec::kZstd));
  setting.disks = *rc::gen::element(2u, 3u, 5u);
  setting.disk_bytes = 64u << 20;
  setting.cache_bytes = *rc::gen::element<std::size_t>(1u << 20, 8u << 20);
  setting.copies = true;
  run_sequence(setting);
}

// With each disk gone in turn.
RC_GTEST_PROP(EngineSequenceTest, ProtectedImagesLoseNothingWithAnyDisk, ()) {
  Setting setting;
  setting.geometry = any_image();
  setting.disks = *rc::gen::element(2u, 3u, 5u);
  setting.disk_bytes = 64u << 20;
  setting.block_size = *rc::gen::element(4096u, 4096u, 65536u);
  setting.cache_bytes = *rc::gen::element<std::size_t>(1u << 20, 8u << 20);
  setting.copies = true;
  run_sequence(setting);
}

RC_GTEST_PROP(EngineSequenceTest, FilesReadAsAPlainArrayAfterAnySequence, ()) {
  Setting setting;
  setting.disks = *rc::gen::element(1u, 3u, 8u);
  setting.block_size = *rc::gen::element(4096u, 16384u, 65536u);
  setting.cache_bytes = *rc::gen::element<std::size_t>(1u << 20, 8u << 20);
  run_sequence(setting);
}

RC_GTEST_PROP(EngineSequenceTest, ProtectedFilesLoseNothingWithAnyDisk, ()) {
  Setting setting;
  setting.disks = *rc::gen::element(2u, 3u, 5u);
  setting.block_size = *rc::gen::element(4096u, 16384u, 65536u);
  setting.cache_bytes = *rc::gen::element<std::size_t>(1u << 20, 8u << 20);
  setting.copies = true;
  run_sequence(setting);
}

RC_GTEST_PROP(EngineSequenceTest, ContentsOnAVolumeOfDisksAreThereAfterEachMount, ()) {
  Setting setting;
  if (*rc::gen::arbitrary<bool>()) setting.geometry = any_image();
  setting.disks = *rc::gen::element(1u, 4u);
  setting.on_disks = true;
  run_sequence(setting);
}

}  // namespace
}  // namespace mdfs::engine::testing
