// Items of the tree: round trips, checks, and damage that must not crash.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "format/limits.h"
#include "geometry/page.h"
#include "samples.h"

namespace mdfs::format {
namespace {

RC_GTEST_PROP(InodeTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  const Inode inode = Samples(seed).inode();
  RC_ASSERT(*decode_inode(encode(inode)) == inode);
}

RC_GTEST_PROP(DirentTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  Samples samples(seed);
  const Dirent dirent{samples.number(1, kMaxObject - 1), static_cast<std::uint8_t>(samples.number(0, 15)),
                      samples.name()};
  RC_ASSERT(*decode_dirent(encode(dirent)) == dirent);
}

RC_GTEST_PROP(XattrTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  Samples samples(seed);
  const ByteVector value = samples.bytes(samples.coin() ? samples.number(0, MDFS_MAX_XATTR) : samples.number(0, 9000));
  const Xattr xattr = make_xattr(samples.name(), value);
  RC_ASSERT(*decode_xattr(encode(xattr)) == xattr);
  ByteVector whole = xattr.first;
  for (unsigned number = 0; number < xattr_rests(xattr.rest_length); ++number) {
    const std::uint32_t bytes = xattr_rest_bytes(xattr.rest_length, number);
    RC_ASSERT((number < MDFS_MAX_XATTR_RESTS && bytes >= 1 && bytes <= MDFS_MAX_ITEM));
    whole.resize(whole.size() + bytes);
  }
  RC_ASSERT(whole.size() == value.size());
}

RC_GTEST_PROP(GeometryItemTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  const geometry::Geometry geometry = Samples(seed).geometry();
  const auto decoded = decode_geometry(encode(geometry));
  RC_ASSERT(check_name(decoded) == "");
  RC_ASSERT(*decoded == geometry);
}

RC_GTEST_PROP(PlacementItemTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  const geometry::Placement placement = Samples(seed).placement();
  RC_ASSERT(*decode_placement(encode(placement)) == placement);
}

RC_GTEST_PROP(OperationItemTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  const OperationRecord record = Samples(seed).operation();
  const auto decoded = decode_operation(encode(record));
  RC_ASSERT(check_name(decoded) == "");
  RC_ASSERT(*decoded == record);
}

TEST(OperationItemTest, NamesAsManyObjectsAsThereAreRows) {
  OperationRecord record;
  record.disks.resize(2);
  for (std::uint64_t object = 20; object < 200; ++object)
    for (unsigned piece = 0; piece < 100; ++piece) record.note_error({object, piece, 0, 1, MDFS_ERROR_UNREADABLE});
  EXPECT_EQ(record.items_failed, 18'000u);
  std::set<std::uint64_t> named;
  for (const OperationError& error : record.errors) named.insert(error.object);
  EXPECT_EQ(named.size(), MDFS_MAX_ERRORS);
  EXPECT_EQ(*named.begin(), 20u);
  EXPECT_TRUE(decode_operation(encode(record)).ok());
}

TEST(OperationItemTest, SaysWhatMakesNoSense) {
  OperationRecord record;
  record.disks.resize(2);
  record.note_error({20, 4096, 100, 1, MDFS_ERROR_DATA});
  EXPECT_EQ(record.disks[1].failed, 1u);
  EXPECT_EQ(record.items_failed, 1u);
  const ByteVector good = encode(record);
  ASSERT_TRUE(decode_operation(good).ok());
  const auto damaged = [&](std::size_t offset, unsigned value) {
    ByteVector bytes = good;
    bytes[offset] = static_cast<std::byte>(value);
    return check_name(decode_operation(bytes));
  };
  EXPECT_EQ(damaged(offsetof(mdfs_operation, state), 0), "operation.state");
  EXPECT_EQ(damaged(offsetof(mdfs_operation, state), 5), "operation.state");
  EXPECT_EQ(damaged(offsetof(mdfs_operation, flags), 4), "operation.flags");
  EXPECT_EQ(damaged(offsetof(mdfs_operation, flags), MDFS_OPERATION_OBJECT), "operation.flags");
  EXPECT_EQ(damaged(offsetof(mdfs_operation, object), 17), "operation.flags");
  EXPECT_EQ(damaged(offsetof(mdfs_operation, disk_count), 3), "operation.rows");
  EXPECT_EQ(damaged(offsetof(mdfs_operation, error_count), 65), "operation.rows");
  const std::size_t error = sizeof(mdfs_operation) + 2 * sizeof(mdfs_operation_disk);
  EXPECT_EQ(damaged(error + offsetof(mdfs_operation_error, disk), 64), "operation.error");
  EXPECT_EQ(damaged(error + offsetof(mdfs_operation_error, what), 0), "operation.error");
  EXPECT_EQ(check_name(decode_operation(ConstBytes(good).first(100))), "operation.length");
}

RC_GTEST_PROP(ExtentPageTest, BehavesLikeAPlainArrayOfRecords, (std::uint64_t seed)) {
  Samples samples(seed);
  const ExtentTableShape shape = samples.table_shape();
  ExtentPage page(shape);
  std::vector<std::optional<ExtentRecord>> plain(shape.places());
  for (std::size_t i = samples.number(1, 100); i-- > 0;) {
    const auto place = static_cast<unsigned>(samples.number(0, shape.places() - 1));
    if (samples.number(0, 3) == 0) {
      page.erase(place);
      plain[place].reset();
    } else {
      plain[place] = samples.record(shape);
      page.set(place, *plain[place]);
    }
    for (unsigned p = 0; p < shape.places(); ++p) RC_ASSERT(page.get(p) == plain[p]);
  }
  if (page.empty()) return;
  const ByteVector bytes = page.encode();
  RC_ASSERT(bytes.size() <= MDFS_MAX_ITEM);
  const auto decoded = ExtentPage::decode(bytes, shape);
  RC_ASSERT(check_name(decoded) == "");
  RC_ASSERT(*decoded == page);
}

// What a cell holds, block by block.
std::vector<std::optional<BlockPlace>> blocks_of(const FileCell& cell, unsigned count) {
  std::vector<std::optional<BlockPlace>> blocks(count);
  for (unsigned i = 0; i < count; ++i) blocks[i] = cell.find(i);
  return blocks;
}

RC_GTEST_PROP(FileCellTest, BehavesLikeAPlainArrayOfBlocks, (std::uint64_t seed)) {
  Samples samples(seed);
  const auto block_size = static_cast<std::uint32_t>(4096u << samples.number(0, 4));
  const unsigned count = cell_blocks(block_size);
  FileCell cell;
  std::vector<std::optional<BlockPlace>> plain(count);
  for (int step = 0; step < 30; ++step) {
    const auto first = static_cast<unsigned>(samples.number(0, count - 1));
    const FileRun run = samples.run(count, first);
    const auto before = plain;
    std::vector<Run> freed;
    const bool punch = samples.number(0, 2) == 0;
    for (unsigned i = 0; i < run.blocks(); ++i)
      plain[first + i] =
          punch ? std::nullopt
                : std::optional(BlockPlace{{run.address.disk, run.address.block + i}, run.crc32c[i], run.written});
    freed = punch ? cell.punch(first, run.blocks()) : cell.replace(run);
    RC_ASSERT(blocks_of(cell, count) == plain);
    std::vector<Address> freed_blocks, expected;
    for (const Run& r : freed)
      for (std::uint64_t i = 0; i < r.blocks; ++i) freed_blocks.push_back({r.disk, r.block + i});
    for (unsigned i = first; i < first + run.blocks(); ++i)
      if (before[i]) expected.push_back(before[i]->address);
    RC_ASSERT(freed_blocks == expected);
    if (cell.empty()) continue;
    RC_ASSERT(*decode_file_cell(encode(cell), block_size) == cell);
  }
}

TEST(FileCellTest, BlocksThatGoOnOnTheDiskBecomeOneRun) {
  FileCell cell;
  cell.replace({{0, 10}, 5, 5, 0, {1, 2}});
  cell.replace({{0, 14}, 5, 5, 4, {5, 6}});
  EXPECT_EQ(cell.runs.size(), 2u);
  cell.replace({{0, 12}, 5, 5, 2, {3, 4}});
  ASSERT_EQ(cell.runs.size(), 1u);
  EXPECT_EQ(cell.runs[0].crc32c, (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6}));
}

RC_GTEST_PROP(ExtentRunsTest, ReadBackAsTheyWereWritten, (std::uint64_t seed)) {
  Samples samples(seed);
  Runs runs;
  std::uint64_t sum = 0;
  for (std::size_t i = samples.number(1, 300); i-- > 0;) {
    const Address address = samples.address();
    runs.push_back({address.disk, address.block, static_cast<std::uint32_t>(samples.number(1, 1000))});
    sum += runs.back().blocks;
  }
  RC_ASSERT(*decode_extent_runs(encode_extent_runs(runs), sum) == runs);
  RC_ASSERT(check_name(decode_extent_runs(encode_extent_runs(runs), sum + 1)) == "extent-runs.blocks");
}

// Every decoder on a value with a few bytes changed, cut or added: an error, or a value that encodes to the same.
RC_GTEST_PROP(ItemTest, DamagedValuesNeverCrash, (std::uint64_t seed)) {
  Samples samples(seed);
  const auto damaged = [&](ByteVector bytes) {
    for (std::size_t i = samples.number(0, 4); i-- > 0;)
      bytes[samples.number(0, std::min<std::size_t>(bytes.size(), samples.coin() ? 24 : 4096) - 1)] =
          static_cast<std::byte>(samples.number(0, 255));
    if (samples.number(0, 4) == 0) bytes.resize(samples.number(0, bytes.size() + 20));
    return bytes;
  };
  if (const auto r = decode_inode(damaged(encode(samples.inode()))); r.ok()) RC_ASSERT(*decode_inode(encode(*r)) == *r);
  const Dirent dirent{7, 8, samples.name()};
  if (const auto r = decode_dirent(damaged(encode(dirent))); r.ok()) RC_ASSERT(*decode_dirent(encode(*r)) == *r);
  const Xattr xattr{samples.name(), samples.bytes(30)};
  if (const auto r = decode_xattr(damaged(encode(xattr))); r.ok()) RC_ASSERT(*decode_xattr(encode(*r)) == *r);
  if (const auto r = decode_geometry(damaged(encode(samples.geometry()))); r.ok())
    RC_ASSERT((r->rank >= 1 && r->rank <= 5));
  if (const auto r = decode_placement(damaged(encode(samples.placement()))); r.ok())
    RC_ASSERT(*decode_placement(encode(*r)) == *r);
  FileCell cell;
  for (int i = 0; i < 5; ++i) cell.replace(samples.run(32, static_cast<unsigned>(samples.number(0, 31))));
  if (const auto r = decode_file_cell(damaged(encode(cell)), 4096); r.ok())
    RC_ASSERT(*decode_file_cell(encode(*r), 4096) == *r);
  const ExtentTableShape shape = samples.table_shape();
  ExtentPage page(shape);
  for (unsigned i = 0; i < shape.places(); i += 3) page.set(i, samples.record(shape));
  if (const auto r = ExtentPage::decode(damaged(page.encode()), shape); r.ok())
    RC_ASSERT(*ExtentPage::decode(r->encode(), shape) == *r);
  RC_ASSERT(!decode_extent_runs(samples.bytes(samples.number(0, 15)), 1).ok());
  (void)decode_symlink(samples.bytes(samples.number(0, 5000)));
}

template <typename Rewrite>
void expect_all_kept(const char* what, const ByteVector& original, std::size_t end, const Rewrite& rewrite) {
  const Rewritten rewritten = change_each_byte(original, end, rewrite);
  EXPECT_GT(rewritten.accepted, 0u) << what;
  EXPECT_EQ(rewritten.lost, std::vector<std::size_t>{}) << what;
}

TEST(ItemTest, NoByteThatDecodingAcceptsIsLost) {
  Samples samples(5);
  const auto again = [](const auto& decoded) -> std::optional<ByteVector> {
    if (!decoded.ok()) return std::nullopt;
    return encode(*decoded);
  };
  expect_all_kept("inode", encode(samples.inode()), SIZE_MAX,
                  [&](ConstBytes bytes) { return again(decode_inode(bytes)); });
  expect_all_kept("geometry", encode(samples.geometry()), SIZE_MAX, [&](ConstBytes bytes) -> std::optional<ByteVector> {
    const auto decoded = decode_geometry(bytes);
    return decoded.ok() ? std::optional(encode_over(*decoded, bytes)) : std::nullopt;
  });
  expect_all_kept("placement", encode(samples.placement()), SIZE_MAX,
                  [&](ConstBytes bytes) { return again(decode_placement(bytes)); });
  FileCell cell;
  for (unsigned i = 0; i < 5; ++i) cell.replace(samples.run(32, i * 6));
  // Runs are made new with every change.
  expect_all_kept("cell", encode(cell), sizeof(mdfs_file_cell),
                  [&](ConstBytes bytes) { return again(decode_file_cell(bytes, 4096)); });
  const ExtentTableShape shape = samples.table_shape();
  ExtentPage page(shape);
  for (unsigned i = 0; i < shape.places(); i += 3) page.set(i, samples.record(shape));
  expect_all_kept("page", page.encode(), SIZE_MAX, [&](ConstBytes bytes) -> std::optional<ByteVector> {
    const auto decoded = ExtentPage::decode(bytes, shape);
    return decoded.ok() ? std::optional(decoded->encode()) : std::nullopt;
  });
  expect_all_kept("strip", encode(samples.strip(shape, 4096)), SIZE_MAX,
                  [&](ConstBytes bytes) { return again(decode_strip(bytes, shape, 4096)); });
}

RC_GTEST_PROP(StripTest, ReadsBackAsItWasWrittenAndGivesEachPartItsBlocks, (std::uint64_t seed)) {
  Samples samples(seed);
  const ExtentTableShape shape = samples.table_shape();
  const std::uint32_t block_size = 4096u << samples.number(0, 4);
  const Strip strip = samples.strip(shape, block_size);
  const ByteVector bytes = encode(strip);
  RC_ASSERT(bytes.size() <= MDFS_MAX_ITEM);
  RC_ASSERT(*decode_strip(bytes, shape, block_size) == strip);
  std::uint64_t next = strip.address.block;
  std::size_t checksum = 0;
  for (unsigned place = 0; place < kMaxPlaces; ++place) {
    if ((strip.places >> place & 1) == 0) continue;
    const Run part = strip.part(place, block_size);
    RC_ASSERT((part.disk == strip.address.disk && part.block == next));
    RC_ASSERT((part.blocks * block_size >= strip.bytes && (part.blocks - 1) * block_size < strip.bytes));
    for (const std::uint32_t crc : strip.part_checksums(place, block_size)) RC_ASSERT(crc == strip.crc32c[checksum++]);
    next += part.blocks;
  }
  RC_ASSERT(checksum == strip.crc32c.size());
  ByteVector damaged = bytes;
  for (std::size_t i = samples.number(1, 8); i-- > 0;)
    damaged[samples.number(0, damaged.size() - 1)] = static_cast<std::byte>(samples.number(0, 255));
  if (const auto again = decode_strip(damaged, shape, block_size); again.ok())
    RC_ASSERT(*decode_strip(encode(*again), shape, block_size) == *again);
}

TEST(StripTest, EachCheckIsReportedByItsName) {
  const ExtentTableShape shape{MDFS_CODEC_RAW, 1u << 20};  // 8 places of 256 blocks
  Strip good;
  good.address = {1, 100};
  good.birth = 5;
  good.written = 3;
  good.places = 0b101;
  good.live = 0b100;
  good.begin = 65536;
  good.bytes = 5000;
  good.crc32c = {1, 2, 3, 4};
  const auto with = [&](std::size_t at, std::uint64_t value, std::size_t width) {
    ByteVector bytes = encode(good);
    for (std::size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<std::byte>(value >> 8 * i);
    return check_name(decode_strip(bytes, shape, 4096));
  };
  EXPECT_EQ(with(offsetof(mdfs_strip, birth), 5, 8), "");
  EXPECT_EQ(with(offsetof(mdfs_strip, birth), 2, 8), "strip.record");
  EXPECT_EQ(with(offsetof(mdfs_strip, written), 0, 8), "strip.record");
  EXPECT_EQ(with(offsetof(mdfs_strip, checksum_type), 0, 1), "strip.checksum-type");
  EXPECT_EQ(with(offsetof(mdfs_strip, address), std::uint64_t{64} << 48, 8), "strip.record");
  EXPECT_EQ(with(offsetof(mdfs_strip, live), 0b10, 8), "strip.places");
  EXPECT_EQ(with(offsetof(mdfs_strip, live), 0, 8), "strip.places");
  EXPECT_EQ(with(offsetof(mdfs_strip, places), 0b100000100, 8), "strip.places");
  EXPECT_EQ(with(offsetof(mdfs_strip, places), 0b111, 8), "strip.length");
  EXPECT_EQ(with(offsetof(mdfs_strip, bytes), 0, 4), "strip.range");
  EXPECT_EQ(with(offsetof(mdfs_strip, begin), (1u << 20) - 4999, 4), "strip.range");
  EXPECT_EQ(check_name(decode_strip(ConstBytes(encode(good)).first(55), shape, 4096)), "strip.length");
}

TEST(ExtentTableTest, RecordsAndPagesHaveTheSizesOfTheFormat) {
  const ExtentTableShape zstd{MDFS_CODEC_ZSTD, 131072};
  EXPECT_EQ(zstd.record_bytes(), 32);
  EXPECT_EQ(zstd.places(), 64u);
  const ExtentTableShape raw{MDFS_CODEC_RAW, 131072};
  EXPECT_EQ(raw.checksums(), 8u);
  EXPECT_EQ(raw.record_bytes(), 64);  // 28 + 32, rounded up
  EXPECT_EQ(raw.places(), 64u);
  const ExtentTableShape largest{MDFS_CODEC_RAW, MDFS_MAX_EXTENT};
  EXPECT_EQ(largest.record_bytes(), 4128);
  EXPECT_EQ(largest.places(), 1u);
}

TEST(ExtentTableTest, AgreesWithTheGeometryLayerAboutThePlacesOfAPage) {
  for (std::uint32_t bytes = 1; bytes <= MDFS_MAX_EXTENT; bytes = bytes * 5 / 4 + 1)
    for (const unsigned codec : {MDFS_CODEC_RAW, MDFS_CODEC_ZSTD}) {
      const ExtentTableShape shape{static_cast<std::uint8_t>(codec), bytes};
      for (unsigned rank = 1; rank <= 3; ++rank)
        EXPECT_EQ(shape.places(), geometry::page_box(rank, shape.record_bytes()).places) << bytes;
    }
}

// The key 00 01 .. 0f of the published examples.
constexpr NameSecret kExampleSecret{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

TEST(SipHashTest, AgreesWithThePublishedExamples) {
  ByteVector text;
  const std::array<std::uint64_t, 9> hashes = {0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu, 0x0d6c8009d9a94f5au,
                                               0x85676696d7fb7e2du, 0xcf2794e0277187b7u, 0x18765564cd99a68du,
                                               0xcbc9466e58fee3ceu, 0xab0200f58b01d137u, 0x93f5f5799a932462u};
  for (const std::uint64_t hash : hashes) {
    EXPECT_EQ(siphash(kExampleSecret, text), hash) << text.size();
    text.push_back(static_cast<std::byte>(text.size()));
  }
  while (text.size() < 15) text.push_back(static_cast<std::byte>(text.size()));
  EXPECT_EQ(siphash(kExampleSecret, text), 0xa129ca6149be45e5u);
}

TEST(CookieTest, FollowsTheHashAndReachesAsFarAsTheObjectSays) {
  EXPECT_EQ(first_cookie(kExampleSecret, ""), 256 + 0x726fdb47dd0e0e31u % 0x7ffffffe00000000u);
  EXPECT_NE(first_cookie(kExampleSecret, "scan"), first_cookie({1, 2}, "scan"));
  const std::uint64_t first = first_cookie(kExampleSecret, "scan");
  EXPECT_TRUE(cookie_fits(kExampleSecret, first, "scan", 0));
  EXPECT_FALSE(cookie_fits(kExampleSecret, first + 1, "scan", 0));
  EXPECT_TRUE(cookie_fits(kExampleSecret, first + 3, "scan", 3));
  EXPECT_FALSE(cookie_fits(kExampleSecret, first - 1, "scan", 3));
}

TEST(CookieTest, ASecretSurvivesItsEncodingAndHasOneLength) {
  const ByteVector bytes = encode(kExampleSecret);
  ASSERT_EQ(bytes.size(), 16u);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], static_cast<std::byte>(i));
  EXPECT_EQ(*decode_secret(bytes), kExampleSecret);
  EXPECT_EQ(decode_secret(ConstBytes(bytes).first(15)).error().where, "secret.length");
}

TEST(NameTest, NamesThatCannotBeEntriesAreRefused) {
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("a\0b", 3), std::string(256, 'x')})
    EXPECT_FALSE(valid_name(name));
  EXPECT_TRUE(valid_name(std::string(255, 'x')));
  EXPECT_TRUE(valid_name("..."));
}

TEST(InodeTest, EachCheckIsReportedByItsName) {
  Inode good;
  good.mode = 0100644;
  const auto with = [&](auto change) {
    Inode inode = good;
    change(inode);
    return check_name(decode_inode(encode(inode)));
  };
  EXPECT_EQ(with([](Inode&) {}), "");
  EXPECT_EQ(with([](Inode& i) { i.mode = 0644; }), "inode.mode");
  EXPECT_EQ(with([](Inode& i) { i.mode |= 1u << 20; }), "inode.mode");
  EXPECT_EQ(with([](Inode& i) { i.flags = 8; }), "inode.flags");
  EXPECT_EQ(with([](Inode& i) { i.flags = MDFS_INODE_IMAGE | MDFS_INODE_LEVEL; }), "");
  EXPECT_EQ(with([](Inode& i) { i.flags = MDFS_INODE_LEVEL; }), "inode.flags");
  EXPECT_EQ(with([](Inode& i) { i.flags = 3; }), "inode.flags");
  EXPECT_EQ(with([](Inode& i) { i.size = UINT64_MAX; }), "inode.size");
  EXPECT_EQ(with([](Inode& i) { i.parent = 1; }), "inode.parent");
  EXPECT_EQ(with([](Inode& i) { i.mode = 0040755; }), "inode.parent");
  EXPECT_EQ(with([](Inode& i) { i.entries = 1; }), "inode.entries");
  EXPECT_EQ(with([](Inode& i) { i.set_copies(true); }), "");
  EXPECT_EQ(with([](Inode& i) { i.protection = 3; }), "inode.protection");
  EXPECT_EQ(with([](Inode& i) { i.protection = 1; }), "inode.protection");
  EXPECT_EQ(with([](Inode& i) { i.group_members = 1; }), "inode.protection");
  EXPECT_EQ(with([](Inode& i) {
              i.mode = S_IFLNK | 0777;
              i.set_copies(true);
            }),
            "inode.protection");
  EXPECT_EQ(with([](Inode& i) { i.spare_disks = 1; }), "inode.spare-disks");
  const auto with_directory = [&](std::uint8_t spare_disks) {
    return with([&](Inode& i) {
      i.mode = S_IFDIR | 0755;
      i.flags = 0;
      i.parent = 1;
      i.spare_disks = spare_disks;
    });
  };
  EXPECT_EQ(with_directory(62), "");
  EXPECT_EQ(with_directory(63), "inode.spare-disks");
  EXPECT_EQ(check_name(decode_inode({})), "inode.length");
}

}  // namespace
}  // namespace mdfs::format
