// Names, metadata and chunks under ome.zarr/.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "codec/codec.h"
#include "geometry/copy_box.h"
#include "small_image.h"
#include "support/fake_volume.h"
#include "views/chunk_writer.h"
#include "views/frame_chunk.h"
#include "views/zarr_chunk.h"
#include "views/zarr_json.h"
#include "views/zarr_name.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;
using Lengths = std::vector<std::uint64_t>;

// Walks the names of a path, "" for the group itself.
Result<ZarrName> find_name(const Geometry& geometry, std::string_view path) {
  ZarrName name;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    MDFS_TRY_ASSIGN(name, zarr_entry(geometry, 0, name, path.substr(0, slash)));
    path.remove_prefix(std::min(path.size(), slash + 1));
  }
  return name;
}

// Nothing if the name exists.
std::optional<Errc> error_of(const Geometry& geometry, std::string_view path) {
  const auto found = find_name(geometry, path);
  return found.ok() ? std::optional<Errc>() : found.error().code;
}

Geometry raw(Geometry geometry) {
  geometry.codec = geometry::Codec::kRaw;
  return geometry;
}

nlohmann::json parsed(const std::string& text) { return nlohmann::json::parse(text); }

TEST(ZarrName, ChunksAreNumberedInTheOrderOfTheAxesOfTheArray) {
  const Geometry photo = make("yx", {40, 70}, 3, ElementType::kU8);
  EXPECT_EQ(find_name(photo, "zarr.json")->kind, ZarrKind::kGroupMetadata);
  EXPECT_EQ(find_name(photo, "0")->kind, ZarrKind::kArray);
  EXPECT_EQ(find_name(photo, "0/zarr.json")->kind, ZarrKind::kArrayMetadata);
  EXPECT_EQ(find_name(photo, "0/c")->kind, ZarrKind::kChunks);
  const auto chunk = find_name(photo, "0/c/0/2/4");
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ(chunk->kind, ZarrKind::kChunk);
  EXPECT_EQ(extent_of(photo, *chunk), (geometry::Coord{2, 4, 0}));
  EXPECT_TRUE(holds_chunks(photo, *find_name(photo, "0/c/0/2")));
  EXPECT_FALSE(holds_chunks(photo, *find_name(photo, "0/c/0")));
  EXPECT_TRUE(holds_chunks(make("x", {40}, 1, ElementType::kU8), *find_name(photo, "0/c")));
}

TEST(ZarrName, WhatIsNoNumberInsideTheGridDoesNotExist) {
  const Geometry volume = make("zyx", {20, 40, 70}, 1, ElementType::kU16);
  EXPECT_FALSE(error_of(volume, "0/c/1/2/4"));
  for (const std::string_view path : {"0/c/2/0/0",
                                      "0/c/0/3/0",
                                      "0/c/0/0/5",
                                      "0/c/01/0/0",
                                      "0/c/+1/0/0",
                                      "0/c/-1/0/0",
                                      "0/c/ 1",
                                      "0/c/1 ",
                                      "0/c/0x1",
                                      "0/c/1.0",
                                      "0/c/18446744073709551616",
                                      "0/c/18446744073709551615",
                                      "0/c/99999999999999999999999999",
                                      "1",
                                      "00",
                                      "+0",
                                      "0/d",
                                      "0/.zarray",
                                      ".zgroup",
                                      "labels",
                                      "0/c/zarr.json",
                                      "0/c/\xff",
                                      "zarr.jso",
                                      "c"})
    EXPECT_EQ(error_of(volume, path), Errc::kNotFound) << path;
  EXPECT_EQ(zarr_entry(volume, 0, *find_name(volume, "0/c"), "").error().code, Errc::kNotFound);
  EXPECT_EQ(error_of(volume, "zarr.json/0"), Errc::kNotDirectory);
  EXPECT_EQ(error_of(volume, "0/c/0/0/0/0"), Errc::kNotDirectory);
}

TEST(ZarrName, AnImageThatHasBecomeSmallerHasFewerNames) {
  Geometry volume = make("zyx", {20, 40, 70}, 1, ElementType::kU16);
  const auto chunk = find_name(volume, "0/c/1/2/4");
  const auto directory = find_name(volume, "0/c/1");
  volume.shape[0] = 16;
  EXPECT_FALSE(is_inside(volume, *chunk));
  EXPECT_FALSE(is_inside(volume, *directory));
  EXPECT_TRUE(is_inside(volume, *find_name(volume, "0/c/0/2/4")));
  volume.shape[0] = 0;
  EXPECT_EQ(error_of(volume, "0/c/0"), Errc::kNotFound);
  EXPECT_FALSE(error_of(volume, "0/c"));
}

TEST(ZarrName, EqualKeysAreEqualNames) {
  const Geometry volume = make("zyx", {300, 300, 300}, 2, ElementType::kU16);
  std::set<std::string> keys;
  unsigned names = 0;
  for (const std::string_view path : {"", "zarr.json", "0", "0/zarr.json", "0/c", "0/c/0", "0/c/0/1", "0/c/0/1/1",
                                      "0/c/0/11", "0/c/0/1/1/1", "0/c/0/11/1/1", "0/c/0/1/11/1"}) {
    keys.insert(to_key(*find_name(volume, path)));
    ++names;
  }
  EXPECT_EQ(keys.size(), names);
}

TEST(ZarrName, ClientsWriteUnderNamesThatBeginWithTheKey) {
  const Geometry image = make("yx", {40, 70}, 1, ElementType::kU8);
  const ZarrName row = *find_name(image, "0/c/2");
  for (const std::string_view name : {"4.__lock", "4.0123abcd.partial", "4.a.b.partial", "4.__lock.partial"})
    EXPECT_EQ(*chunk_of_temporary(image, row, name), *find_name(image, "0/c/2/4")) << name;
  EXPECT_TRUE(is_lock_name("4.__lock"));
  EXPECT_FALSE(is_lock_name("4.__lock.partial"));
  for (const std::string_view name : {"4", "4.", "4.partial", "4..partial", ".a.partial", "04.a.partial", "5.a.partial",
                                      "5.__lock", "__lock", ".__lock", "4__lock", "4.a.__lock", "4.__lockx", "4.tmp",
                                      "-1.__lock", "", ".", "18446744073709551616.__lock", "4.apartial"})
    EXPECT_FALSE(chunk_of_temporary(image, row, name).ok()) << name;
  for (const std::string_view directory : {"", "0", "0/c"})
    EXPECT_FALSE(chunk_of_temporary(image, *find_name(image, directory), "0.__lock").ok()) << directory;
}

TEST(ZarrJson, AnArrayIsDescribedAsItIsStored) {
  Geometry geometry = raw(make("zyx", {20, 40, 70}, 1, ElementType::kU16));
  geometry.extent = {4, 16, 32};
  const auto json = parsed(zarr_array_json(geometry));
  EXPECT_EQ(json["zarr_format"], 3);
  EXPECT_EQ(json["node_type"], "array");
  EXPECT_EQ(json["shape"], (Lengths{20, 40, 70}));
  EXPECT_EQ(json["chunk_grid"]["configuration"]["chunk_shape"], (Lengths{4, 16, 32}));
  EXPECT_EQ(json["data_type"], "uint16");
  EXPECT_EQ(json["fill_value"], 0);
  EXPECT_EQ(json["dimension_names"], (std::vector<std::string>{"z", "y", "x"}));
  EXPECT_EQ(json["codecs"], parsed(R"([{"name":"bytes","configuration":{"endian":"little"}}])"));
}

TEST(ZarrJson, TheCodecOfTheImageIsTheLastOfTheChain) {
  Geometry geometry = make("yx", {40, 70}, 3, ElementType::kU16);
  geometry.codec = geometry::Codec::kZstd;
  geometry.codec_level = -5;
  EXPECT_EQ(parsed(zarr_array_json(geometry))["codecs"],
            parsed(R"([{"name":"transpose","configuration":{"order":[1,2,0]}},
                       {"name":"bytes","configuration":{"endian":"little"}},
                       {"name":"zstd","configuration":{"level":-5,"checksum":false}}])"));
  geometry.codec = geometry::Codec::kRaw;
  EXPECT_EQ(parsed(zarr_array_json(geometry))["codecs"].size(), 2u);
}

TEST(ZarrJson, InterleavedChannelsComeBeforeSpaceByATranspose) {
  const auto photo = parsed(zarr_array_json(raw(make("yx", {40, 70}, 3, ElementType::kU8))));
  EXPECT_EQ(photo["shape"], (Lengths{3, 40, 70}));
  EXPECT_EQ(photo["chunk_grid"]["configuration"]["chunk_shape"], (Lengths{3, 16, 16}));
  EXPECT_EQ(photo["codecs"], parsed(R"([{"name":"transpose","configuration":{"order":[1,2,0]}},{"name":"bytes"}])"));
  const auto film = parsed(zarr_array_json(raw(make("tyx", {9, 40, 70}, 3, ElementType::kF32))));
  EXPECT_EQ(film["dimension_names"], (std::vector<std::string>{"t", "c", "y", "x"}));
  EXPECT_EQ(film["codecs"][0]["configuration"]["order"], (Lengths{0, 2, 3, 1}));
  EXPECT_TRUE(film["fill_value"].is_number_float());
  const auto series = parsed(zarr_array_json(raw(make("t", {9}, 3, ElementType::kF32))));
  EXPECT_EQ(series["dimension_names"], (std::vector<std::string>{"t", "c"}));
  EXPECT_EQ(series["codecs"].size(), 1u);
}

TEST(ZarrJson, AGroupHasTheSpacingAndTheUnitsThatAreKnown) {
  Geometry geometry = make("tyx", {9, 40, 70}, 3, ElementType::kU8);
  geometry.spacing = {0.5, 0.25, 0};
  geometry.unit = {"s", "um", "um"};
  const auto ome = parsed(zarr_group_json(geometry, {}))["attributes"]["ome"];
  EXPECT_EQ(ome["version"], "0.5");
  EXPECT_EQ(ome["multiscales"][0]["axes"], parsed(R"([{"name":"t","type":"time","unit":"second"},
    {"name":"c","type":"channel"},{"name":"y","type":"space","unit":"micrometer"},{"name":"x","type":"space"}])"));
  EXPECT_EQ(ome["multiscales"][0]["datasets"], parsed(R"([{"path":"0",
    "coordinateTransformations":[{"type":"scale","scale":[0.5,1.0,0.25,1.0]}]}])"));
  geometry.unit = {"um", "s", "parsec"};  // of the wrong kind, or without a name there
  geometry.spacing = {1, 1, 1};
  const auto group = parsed(zarr_group_json(geometry, {}));
  for (const auto& axis : group["attributes"]["ome"]["multiscales"][0]["axes"]) EXPECT_FALSE(axis.contains("unit"));
  geometry.unit[2] = "\xff\xfe";  // no text: bytes of a user
  EXPECT_NO_THROW(parsed(zarr_group_json(geometry, {})));
}

TEST(ZarrJson, AxesThatOmeHasNoPlaceForGiveAPlainGroup) {
  const auto is_ome = [](const char* axes, unsigned channels) {
    Geometry geometry = make(axes, {9, 9, 9, 9, 9}, channels, ElementType::kU8);
    for (unsigned axis = geometry.rank; axis < geometry::kMaxRank; ++axis) geometry.shape[axis] = 0;
    EXPECT_EQ(has_ome_axes(geometry), parsed(zarr_group_json(geometry, {}))["attributes"].contains("ome"));
    return has_ome_axes(geometry);
  };
  EXPECT_TRUE(is_ome("yx", 1));
  EXPECT_TRUE(is_ome("zyx", 4));
  EXPECT_TRUE(is_ome("tyx", 4));
  EXPECT_TRUE(is_ome("ayx", 1));
  EXPECT_TRUE(is_ome("tczyx", 1));
  EXPECT_TRUE(is_ome("tzyx", 4));
  EXPECT_FALSE(is_ome("ctzyx", 1));
  EXPECT_FALSE(is_ome("tazyx", 3));
  EXPECT_FALSE(is_ome("ayx", 3));
  EXPECT_FALSE(is_ome("x", 1));
  EXPECT_FALSE(is_ome("tx", 1));
  EXPECT_FALSE(is_ome("yxt", 1));
  EXPECT_FALSE(is_ome("ab", 1));
}

// An image of any rank, shape, extent and channels, and an extent of it.
std::pair<Geometry, geometry::Coord> any_chunk() {
  const unsigned rank = *rc::gen::inRange(1u, 4u);
  Geometry geometry = raw(make(std::string("zyx").substr(3 - rank), {}, *rc::gen::element(1u, 3u),
                               *rc::gen::element(ElementType::kU8, ElementType::kU16)));
  geometry::Coord at{};
  for (unsigned axis = 0; axis < rank; ++axis) {
    geometry.shape[axis] = *rc::gen::inRange<std::uint64_t>(1, 30);
    geometry.extent[axis] = *rc::gen::inRange<std::uint64_t>(1, 12);
    at[axis] = *rc::gen::inRange<std::uint64_t>(0, geometry.grid()[axis]);
  }
  return {geometry, at};
}

class ZarrChunkTest : public ::testing::Test {
 protected:
  test::FakeVolume volume_;
  int images_ = 0;
};

// Any rank, shape and extent: what is written as a chunk is read as one, without what lies outside.
RC_GTEST_FIXTURE_PROP(ZarrChunkTest, AWrittenChunkBecomesTheExtent, ()) {
  const auto [geometry, at] = any_chunk();
  const unsigned rank = geometry.rank;
  const volume::Ino ino = volume_.add_image("image" + std::to_string(++images_), geometry);
  const ByteVector before = volume_.bytes(ino);
  const auto pool = std::move(*StagingPool::open(std::filesystem::temp_directory_path().string(), {}));
  const auto writer = std::move(*ChunkWriter::create(volume_, ino, geometry, at, *pool, 0, true));

  ByteVector chunk(geometry.extent_bytes());
  for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = static_cast<std::byte>(i * 11 % 253 + 1);
  const auto cut = *rc::gen::inRange<std::size_t>(0, chunk.size());
  RC_ASSERT(writer->write(cut, ConstBytes(chunk).subspan(cut)).ok());
  if (cut > 0) {
    RC_ASSERT(!writer->is_complete());
    RC_ASSERT(writer->apply().error().code == Errc::kInvalidArgument);
    RC_ASSERT(volume_.bytes(ino) == before);
    RC_ASSERT(writer->write(0, ConstBytes(chunk).first(cut)).ok());
  }
  RC_ASSERT(writer->is_complete());
  RC_ASSERT(writer->apply().ok());
  RC_ASSERT(writer->empty());

  ByteVector expected = before;
  const geometry::PaddedBox padded = geometry::padded_extent(geometry, geometry::window_of_extent(geometry, at));
  geometry::Coord shape = geometry.shape, start{};
  shape[rank - 1] *= geometry.sample_bytes();
  for (unsigned axis = 0; axis < rank; ++axis) start[axis] = at[axis] * padded.length[axis];
  geometry::copy_box(rank, padded.inside, chunk, padded.length, {}, expected, shape, start);
  RC_ASSERT(volume_.bytes(ino) == expected);
}

TEST_F(ZarrChunkTest, MoreBytesThanAChunkHasAreRefusedAndChangeNothing) {
  Geometry geometry = raw(make("yx", {8, 8}, 1, ElementType::kU8));
  geometry.extent = {4, 4};
  const volume::Ino ino = volume_.add_image("image", geometry);
  const ByteVector before = volume_.bytes(ino);
  const auto pool = std::move(*StagingPool::open(std::filesystem::temp_directory_path().string(), {}));
  const auto writer = std::move(*ChunkWriter::create(volume_, ino, geometry, {1, 1}, *pool, 0, true));
  EXPECT_EQ(*writer->write(0, ByteVector(17)), 16u);
  EXPECT_EQ(writer->write(16, ByteVector(1)).error().code, Errc::kTooBig);
  EXPECT_EQ(writer->apply().error().code, Errc::kInvalidArgument);
  EXPECT_EQ(volume_.bytes(ino), before);
  writer->clear();
  EXPECT_EQ(writer->size_bytes(), 0u);
  EXPECT_TRUE(writer->write(0, ByteVector(16)).ok());
  EXPECT_TRUE(writer->apply().ok());
  EXPECT_NE(volume_.bytes(ino), before);
}

ByteVector frame_of(const ByteVector& bytes) {
  ByteVector frame(codec::compress_bound(geometry::Codec::kZstd, bytes.size()));
  frame.resize(*codec::encode(geometry::Codec::kZstd, 3, bytes, frame));
  return frame;
}

TEST_F(ZarrChunkTest, AFrameIsStagedInAnyPiecesAndDecoded) {
  Geometry geometry = make("yx", {7, 7}, 1, ElementType::kU8);
  geometry.extent = {4, 4};
  geometry.codec = geometry::Codec::kZstd;
  geometry.codec_level = 3;
  const volume::Ino ino = volume_.add_image("image", geometry);
  const ByteVector before = volume_.bytes(ino);
  const auto pool = std::move(*StagingPool::open(std::filesystem::temp_directory_path().string(), {}));
  const auto writer = std::move(*ChunkWriter::create(volume_, ino, geometry, {1, 1}, *pool, 0, true));
  const ByteVector frame = frame_of(ByteVector(16, std::byte{9}));

  for (const ByteVector& refused : {ByteVector(16, std::byte{9}), frame_of(ByteVector(15)), frame_of(ByteVector(17))}) {
    ASSERT_TRUE(writer->write(0, refused).ok());
    EXPECT_TRUE(writer->is_complete());
    EXPECT_EQ(writer->apply().error().code, Errc::kInvalidArgument);
    writer->clear();
  }
  EXPECT_EQ(writer->write(1 << 20, frame).error().code, Errc::kTooBig);
  writer->clear();
  ASSERT_TRUE(writer->write(5, ConstBytes(frame).subspan(5)).ok());
  EXPECT_FALSE(writer->is_complete());
  EXPECT_EQ(writer->apply().error().code, Errc::kInvalidArgument);
  EXPECT_EQ(volume_.bytes(ino), before);
  ASSERT_TRUE(writer->write(0, ConstBytes(frame).first(5)).ok());
  EXPECT_TRUE(writer->is_complete());
  EXPECT_EQ(writer->size_bytes(), frame.size());
  ASSERT_TRUE(writer->apply().ok());
  for (std::size_t i = 0; i < 49; ++i)
    EXPECT_EQ(volume_.bytes(ino)[i], i / 7 >= 4 && i % 7 >= 4 ? std::byte{9} : before[i]) << i;
}

TEST_F(ZarrChunkTest, AChunkWithoutAStoredFrameIsAPlainFrame) {
  Geometry geometry = make("yx", {70, 90}, 1, ElementType::kU8);
  geometry.extent = {64, 64};
  geometry.codec = geometry::Codec::kZstd;
  geometry.codec_level = 3;
  const volume::Ino ino = volume_.add_image("image", geometry);
  ByteVector expected(64 * 64), decoded(64 * 64);
  ASSERT_TRUE(ZarrChunk(volume_, ino, geometry, {1, 1}).read(0, expected).ok());
  EXPECT_EQ(*open_stored_chunk(volume_, ino, 0, {1, 1}, {}), nullptr);
  PlainChunk view(std::make_unique<ZarrChunk>(volume_, ino, geometry, geometry::Coord{1, 1}));
  EXPECT_FALSE(view.may_cache());
  ByteVector frame(view.size_bytes() + 10);
  EXPECT_EQ(*view.read(0, MutableBytes(frame).first(7)), 7u);
  EXPECT_EQ(*view.read(7, MutableBytes(frame).subspan(7)), view.size_bytes() - 7);
  EXPECT_EQ(*view.read(view.size_bytes(), frame), 0u);
  EXPECT_EQ(*view.read(view.size_bytes() + 1000, frame), 0u);
  frame.resize(view.size_bytes());
  ASSERT_TRUE(codec::decode(geometry::Codec::kZstd, frame, decoded).ok());
  EXPECT_EQ(decoded, expected);
  ByteVector newest(frame.size());
  EXPECT_EQ(*view.read_newest(0, newest), frame.size());
  EXPECT_EQ(newest, frame);
}

// A frame of which every read fails.
class UnreadableFrame final : public volume::PinnedFrame {
 public:
  explicit UnreadableFrame(Errc error) : error_(error) {}
  std::uint64_t size_bytes() const override { return 100; }
  Status read(std::uint64_t, MutableBytes, const engine::Stop&) override { return {error_, "fake"}; }

 private:
  const Errc error_;
};

TEST_F(ZarrChunkTest, AnUnreadableFrameIsNoneInALevelAndAnErrorOfItsReaderInTheImage) {
  Errc error = Errc::kCancelled;
  volume_.make_frames([&] { return std::make_unique<UnreadableFrame>(error); });
  EXPECT_EQ(open_stored_chunk(volume_, 1, 1, {}, {}).error().code, error);
  for (const Errc unreadable : {Errc::kCorrupt, Errc::kMissingDisk, Errc::kIo}) {
    error = unreadable;
    EXPECT_EQ(*open_stored_chunk(volume_, 1, 1, {}, {}), nullptr);
    const auto chunk = open_stored_chunk(volume_, 1, 0, {}, {});
    ASSERT_TRUE(chunk.ok() && *chunk != nullptr);
    ByteVector bytes(100);
    EXPECT_EQ((*chunk)->read(0, bytes, {}).error().code, error);
  }
}

TEST_F(ZarrChunkTest, ARemovedChunkIsZeros) {
  Geometry geometry = make("yx", {7, 7}, 1, ElementType::kU8);
  geometry.extent = {4, 4};
  const volume::Ino ino = volume_.add_image("image", geometry);
  std::fill(volume_.bytes(ino).begin(), volume_.bytes(ino).end(), std::byte{9});
  ASSERT_TRUE(remove_chunk(volume_, ino, geometry, {1, 1}, {}).ok());
  for (std::size_t i = 0; i < 49; ++i)
    EXPECT_EQ(volume_.bytes(ino)[i], i / 7 >= 4 && i % 7 >= 4 ? std::byte{0} : std::byte{9}) << i;
}

// Any rank, shape, extent, channels and piece: the bytes of the extent as a plain array, zero outside the image.
RC_GTEST_FIXTURE_PROP(ZarrChunkTest, AChunkIsItsExtentPaddedWithZeros, ()) {
  const auto [geometry, at] = any_chunk();
  const unsigned rank = geometry.rank;
  const volume::Ino ino = volume_.add_image("image" + std::to_string(++images_), geometry);
  ByteVector& image = volume_.bytes(ino);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::byte>(i * 7 % 255 + 1);

  ByteVector expected(geometry.extent_bytes());
  const geometry::PaddedBox padded = geometry::padded_extent(geometry, geometry::window_of_extent(geometry, at));
  geometry::Coord shape = geometry.shape, start{};
  shape[rank - 1] *= geometry.sample_bytes();
  for (unsigned axis = 0; axis < rank; ++axis) start[axis] = at[axis] * padded.length[axis];
  geometry::copy_box(rank, padded.inside, image, shape, start, expected, padded.length, {});

  ZarrChunk chunk(volume_, ino, geometry, at);
  RC_ASSERT(chunk.size_bytes() == expected.size());
  const auto offset = *rc::gen::inRange<std::size_t>(0, expected.size() + 3);
  ByteVector piece(*rc::gen::inRange<std::size_t>(0, expected.size() + 3), std::byte{0x55});
  for (const bool newest : {false, true}) {
    const auto count = newest ? chunk.read_newest(offset, piece) : chunk.read(offset, piece);
    RC_ASSERT(count.ok());
    RC_ASSERT(*count == std::min(piece.size(), expected.size() - std::min(offset, expected.size())));
    RC_ASSERT(std::equal(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*count),
                         expected.begin() + static_cast<std::ptrdiff_t>(std::min(offset, expected.size()))));
  }
}

}  // namespace
}  // namespace mdfs::views
