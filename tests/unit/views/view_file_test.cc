// Names under win/ and the bytes of virtual files, over a volume in memory.
// SPDX-License-Identifier: Apache-2.0
#include "views/view_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "geometry/copy_box.h"
#include "small_image.h"
#include "support/fake_volume.h"
#include "views/npy.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

const Geometry kPhoto = make("yx", {20, 30}, 3, ElementType::kU8);
const Geometry kDeep = make("zyx", {5, 6, 7}, 1, ElementType::kU16);

std::string read_all(test::FakeVolume& volume, volume::Ino ino, const ViewFile& file) {
  ByteVector bytes(file.size_bytes() + 10);
  const auto count = read_view(volume, ino, file, 0, bytes);
  EXPECT_TRUE(count.ok() && *count == file.size_bytes());
  return std::string(as_text(ConstBytes(bytes).first(file.size_bytes())));
}

std::string read_named(test::FakeVolume& volume, volume::Ino ino, const Geometry& geometry, std::string_view name) {
  const auto parsed = parse_window_name(geometry, name);
  EXPECT_TRUE(parsed.ok()) << name;
  const auto file = view_window(geometry, *parsed);
  EXPECT_TRUE(file.ok()) << name;
  return read_all(volume, ino, *file);
}

TEST(WindowName, SpellingsOfOneWindowAreOneName) {
  const auto key = [](std::string_view name) { return to_key(*parse_window_name(kPhoto, name)); };
  EXPECT_EQ(key("y5+4,x10+8.raw"), key("x10+8,y5+4.raw"));
  EXPECT_EQ(key("10,5,8,4.npy"), key("y5+4,x10+8.npy"));
  EXPECT_EQ(key("y0+20,x1+2.raw"), key("x1+2.raw"));
  EXPECT_EQ(key("all.raw"), key("y0+20.raw"));
  // Raw bytes do not know of a dropped axis; an array does.
  EXPECT_EQ(key("y3.raw"), key("y3+1.raw"));
  EXPECT_NE(key("y3.npy"), key("y3+1.npy"));
  EXPECT_NE(key("y3.npy"), key("y3.raw"));
  EXPECT_NE(key("y3,c1.npy"), key("y3.npy"));
}

TEST(WindowName, WhatIsNoWindowDoesNotExist) {
  for (const char* name : {"",          ".raw",     "y1",       "y1.",           "y1.gif",
                           "y1.RAW",    "raw",      "q1.raw",   "y20.raw",       "y0+21.raw",
                           "y1,y2.raw", "y-1.raw",  "y1+0.raw", "c3.raw",        "y18446744073709551615+2.raw",
                           "l40.raw",   "y1:2.raw", "y1 .raw",  "y0+4,x0+4.pgm", "y1.ppm",
                           "c0.ppm"})
    EXPECT_FALSE(parse_window_name(kPhoto, name).ok()) << name;
  EXPECT_FALSE(parse_window_name(kDeep, "z0+2.pgm").ok()) << "three axes are left";
  EXPECT_TRUE(parse_window_name(kDeep, "z2.pgm").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {4, 4}, 1, ElementType::kF32), "all.pgm").ok()) << "no float in a pgm";
}

TEST(WindowName, AClippedWindowIsAnotherFileThanTheOneInsideAndReadOnly) {
  const auto inside = parse_window_name(kPhoto, "y0+4.raw"), clipped = parse_window_name(kPhoto, "y-2+6,clip.raw");
  EXPECT_NE(to_key(*inside), to_key(*clipped));
  EXPECT_EQ(to_key(*inside), to_key(*parse_window_name(kPhoto, "y0+4,clip.raw")));
  EXPECT_EQ(to_key(*clipped), to_key(*parse_window_name(kPhoto, "clip,y-2+6,x0+30.raw")));
  EXPECT_TRUE(is_writable(*inside));
  EXPECT_FALSE(is_writable(*clipped));
  EXPECT_EQ(**known_size(kPhoto, *clipped), 6u * 30 * 3);
}

TEST(ViewFile, PgmAndPpmCarryTheirHeadersAndOrder) {
  test::FakeVolume volume;
  const volume::Ino photo = volume.add_image("photo", kPhoto);
  const ByteVector& bytes = volume.bytes(photo);
  std::string expected = "P6\n2 1\n255\n";
  expected += as_text(ConstBytes(bytes).subspan((4 * 30 + 7) * 3, 6));
  EXPECT_EQ(read_named(volume, photo, kPhoto, "y4+1,x7+2.ppm"), expected);

  const volume::Ino deep = volume.add_image("deep", kDeep);
  ByteVector& samples = volume.bytes(deep);
  const std::string plane = read_named(volume, deep, kDeep, "z2,y1+2,x3+2.pgm");
  ASSERT_EQ(plane.size(), std::string("P5\n2 2\n65535\n").size() + 8);
  EXPECT_EQ(plane.substr(0, 13), "P5\n2 2\n65535\n");
  const std::size_t first = ((2 * 6 + 1) * 7 + 3) * 2;
  EXPECT_EQ(static_cast<std::byte>(plane[13]), samples[first + 1]);
  EXPECT_EQ(static_cast<std::byte>(plane[14]), samples[first]);
}

TEST(ViewFile, AnImageWithoutSlabsIsAnArrayWithoutElements) {
  test::FakeVolume volume;
  const Geometry empty = make("tyx", {0, 4, 5}, 1, ElementType::kU8);
  const volume::Ino ino = volume.add_image("movie", empty);
  const ViewFile file = view_image_npy(empty);
  EXPECT_EQ(file.size_bytes(), kImageNpyHeaderBytes);
  const std::string text = read_all(volume, ino, file);
  EXPECT_EQ(parse_npy_header(as_bytes(text))->shape, (std::vector<std::uint64_t>{0, 4, 5}));
}

TEST(ViewFile, AWindowCutOffByTruncationIsOutOfRange) {
  const auto name = parse_window_name(kDeep, "z4.raw");
  Geometry shorter = kDeep;
  shorter.shape[0] = 4;
  const auto file = view_window(shorter, *name);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, Errc::kOutOfRange);
}

// Any piece of any virtual file is that piece of header + data, the data picked from the image sample by sample.
RC_GTEST_PROP(ViewFile, EveryPieceIsThatOfTheWholeFile, ()) {
  test::FakeVolume volume;
  const unsigned rank = *rc::gen::inRange(1u, 4u);
  geometry::Coord shape{};
  for (unsigned axis = 0; axis < rank; ++axis) shape[axis] = *rc::gen::inRange(1, 7);
  const auto type = *rc::gen::element(ElementType::kU8, ElementType::kU16, ElementType::kF64);
  const unsigned channels = *rc::gen::element(1u, 3u);
  const Geometry geometry = make(std::string("zyx").substr(3 - rank), shape, channels, type);
  const volume::Ino ino = volume.add_image("image", geometry);

  WindowName name;
  name.format = *rc::gen::element(Format::kRaw, Format::kNpy, Format::kPgm, Format::kPpm);
  for (unsigned axis = 0; axis < rank; ++axis) {
    name.window.start[axis] = *rc::gen::inRange<std::uint64_t>(0, shape[axis]);
    name.window.length[axis] = *rc::gen::inRange<std::uint64_t>(1, shape[axis] - name.window.start[axis] + 1);
    name.window.single[axis] = name.window.length[axis] == 1 && *rc::gen::arbitrary<bool>();
  }
  if (channels > 1 && *rc::gen::arbitrary<bool>()) name.window.channel = *rc::gen::inRange(0u, channels);
  if (*rc::gen::arbitrary<bool>())
    for (unsigned axis = 0; axis < rank; ++axis) {  // as the grammar has it: over an edge
      if (name.window.single[axis]) continue;
      if (name.window.start[axis] == 0) name.padding.before[axis] = *rc::gen::inRange(0, 4);
      const bool at_end = name.window.start[axis] + name.window.length[axis] == shape[axis];
      if (at_end) name.padding.after[axis] = *rc::gen::inRange(0, 4);
    }
  const auto file = view_window(geometry, name);
  if (!file.ok()) {
    RC_ASSERT(!is_writable(name.format));
    return;
  }
  const auto parsed = parse_window_name(geometry, to_name(geometry, name));
  RC_ASSERT(parsed.ok());
  RC_ASSERT(parsed->padding == name.padding);
  ByteVector data(file->inside_bytes());
  RC_ASSERT(volume.read_window(ino, name.window, 0, data).ok());
  if (file->padded) {
    ByteVector around(file->data_bytes);
    const geometry::PaddedBox& box = *file->padded;
    geometry::copy_box(rank, box.inside, data, box.inside, {}, around, box.length, box.before);
    data = std::move(around);
  }
  if (file->order == SampleOrder::kSwapped16)
    for (std::size_t i = 0; i + 1 < data.size(); i += 2) std::swap(data[i], data[i + 1]);
  ByteVector whole = file->header;
  whole.insert(whole.end(), data.begin(), data.end());
  RC_ASSERT(whole.size() == file->size_bytes());

  const auto offset = *rc::gen::inRange<std::size_t>(0, whole.size() + 3);
  ByteVector piece(*rc::gen::inRange<std::size_t>(0, whole.size() + 3));
  const auto count = read_view(volume, ino, *file, offset, piece);
  RC_ASSERT(count.ok());
  RC_ASSERT(*count == std::min(piece.size(), whole.size() - std::min(offset, whole.size())));
  RC_ASSERT(std::equal(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*count),
                       whole.begin() + static_cast<std::ptrdiff_t>(std::min(offset, whole.size()))));
}

}  // namespace
}  // namespace mdfs::views
