// Nodes of the tree.
// SPDX-License-Identifier: Apache-2.0
#include "format/node.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/crc32c.h"
#include "format/dirent.h"
#include "samples.h"

namespace mdfs::format {
namespace {

ByteVector encoded(const Node& node) {
  ByteVector bytes(MDFS_NODE_SIZE);
  encode(node, bytes);
  return bytes;
}

RC_GTEST_PROP(NodeTest, LeavesReadBackAsTheyWereWritten, (std::uint64_t seed)) {
  const Node leaf = Samples(seed).leaf();
  const ByteVector bytes = encoded(leaf);
  const auto decoded = decode_node(bytes, expectation_of(leaf, bytes));
  RC_ASSERT(decoded.ok());
  RC_ASSERT(*decoded == leaf);
}

RC_GTEST_PROP(NodeTest, InteriorNodesReadBackAsTheyWereWritten, (std::uint64_t seed)) {
  const Node interior = Samples(seed).interior();
  const ByteVector bytes = encoded(interior);
  const auto decoded = decode_node(bytes, expectation_of(interior, bytes));
  RC_ASSERT(decoded.ok());
  RC_ASSERT(*decoded == interior);
}

TEST(NodeTest, EverySingleFlippedBitIsFound) {
  const Node leaf = Samples(4).leaf();
  ByteVector bytes = encoded(leaf);
  const NodeExpectation expectation = expectation_of(leaf, bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_FALSE(decode_node(bytes, expectation).ok()) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

// Damage anywhere, with a parent that vouches for it: an error or a node that can be written again, never a crash.
RC_GTEST_PROP(NodeTest, DamageUnderAGoodChecksumNeverCrashes, (std::uint64_t seed)) {
  Samples samples(seed);
  const Node node = samples.coin() ? samples.leaf() : samples.interior();
  ByteVector bytes = encoded(node);
  NodeExpectation expectation = expectation_of(node, bytes);
  for (std::size_t i = samples.number(1, 6); i-- > 0;)
    bytes[samples.number(64, samples.coin() ? 300 : MDFS_NODE_SIZE - 1)] =
        static_cast<std::byte>(samples.number(0, 255));
  expectation.pointer.crc32c = crc32c(bytes);
  if (samples.coin()) expectation.level.reset();
  const auto decoded = decode_node(bytes, expectation);
  if (decoded.ok()) {
    const ByteVector again = encoded(*decoded);
    RC_ASSERT(*decode_node(again, expectation_of(*decoded, again)) == *decoded);
  }
}

RC_GTEST_PROP(NodeTest, RandomBytesNeverCrash, (std::uint64_t seed)) {
  Samples samples(seed);
  ByteVector bytes = samples.bytes(samples.number(0, 3) == 0 ? 100 : MDFS_NODE_SIZE);
  NodeExpectation expectation;
  expectation.pointer = samples.pointer(UINT64_MAX);
  expectation.pointer.crc32c = crc32c(bytes);
  RC_ASSERT(!decode_node(bytes, expectation).ok());
}

class NodeCheckTest : public testing::Test {
 protected:
  NodeCheckTest() {
    leaf_.volume_uuid = Samples(1).uuid();
    leaf_.generation = 9;
    leaf_.address = {Address{0, 100}, Address{1, 200}, Address{}};
    for (std::uint64_t i = 10; i < 20; ++i) leaf_.items.push_back({{i, 1, 0}, ByteVector(20)});
  }
  // The check that finds a change of the encoded bytes and of what is expected.
  std::string found(const std::function<void(MutableBytes, NodeExpectation&)>& change) {
    ByteVector bytes = encoded(leaf_);
    NodeExpectation expectation = expectation_of(leaf_, bytes);
    change(bytes, expectation);
    expectation.pointer.crc32c = crc32c(bytes);
    return check_name(decode_node(bytes, expectation));
  }
  Node leaf_;
};

TEST_F(NodeCheckTest, EachCheckIsReportedByItsName) {
  const std::size_t slot = sizeof(mdfs_node_header);
  EXPECT_EQ(found([](MutableBytes, NodeExpectation&) {}), "");
  EXPECT_EQ(found([](MutableBytes b, NodeExpectation&) { b[0] = std::byte{0}; }), "node.magic");
  EXPECT_EQ(found([](MutableBytes, NodeExpectation& e) { e.volume_uuid = Uuid{}; }), "node.volume-uuid");
  EXPECT_EQ(found([](MutableBytes, NodeExpectation& e) { e.pointer.birth = 8; }), "node.generation");
  EXPECT_EQ(found([](MutableBytes, NodeExpectation& e) { e.owner = 2; }), "node.owner");
  EXPECT_EQ(found([](MutableBytes, NodeExpectation& e) { e.pointer.address[1] = {1, 201}; }), "node.address");
  EXPECT_EQ(found([](MutableBytes, NodeExpectation& e) { e.level = 1; }), "node.level");
  EXPECT_EQ(found([](MutableBytes, NodeExpectation& e) { e.lower = {10, 2, 0}; }), "node.key-range");
  EXPECT_EQ(found([](MutableBytes, NodeExpectation& e) { e.upper = {19, 0, 0}; }), "node.key-range");
  EXPECT_EQ(found([&](MutableBytes b, NodeExpectation&) { store_le<std::uint64_t>(b, slot, 11); }), "node.key-order");
  EXPECT_EQ(found([&](MutableBytes b, NodeExpectation&) { store_le<std::uint32_t>(b, slot + 24, 100); }),
            "node.item-data");
  EXPECT_EQ(found([&](MutableBytes b, NodeExpectation&) { store_le<std::uint32_t>(b, slot + 28, 6145); }),
            "node.item-size");
  EXPECT_EQ(found([](MutableBytes b, NodeExpectation&) {
              store_le<std::uint16_t>(b, offsetof(mdfs_node_header, item_count), 9);
            }),
            "node.used");
  EXPECT_EQ(found([](MutableBytes b, NodeExpectation&) {
              store_le<std::uint16_t>(b, offsetof(mdfs_node_header, item_count), 65535);
            }),
            "node.item-count");
}

TEST(NodeTest, TheWorkedExampleOfTheFormatDocumentIsWhatEncodeMakes) {
  Node node;
  node.volume_uuid = *Uuid::parse("00112233-4455-6677-8899-aabbccddeeff");
  node.generation = 7;
  node.address = {Address{0, 40}, Address{1, 41}, Address{}};
  const NameSecret secret{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  node.items.push_back({{1, MDFS_KIND_DIRENT, first_cookie(secret, "scan")}, encode(Dirent{16, 8, "scan"})});
  EXPECT_EQ(node.items[0].key.offset, 0x53eb9b8ef4f63a78u);
  EXPECT_EQ(crc32c(encoded(node)), 0x598f31d9u);
}

TEST_F(NodeCheckTest, ABranchYoungerThanItsNodeIsRefused) {
  Node interior = leaf_;
  interior.items.clear();
  interior.level = 1;
  interior.branches = {{kMinKey, Samples(2).pointer(9)}};
  interior.branches[0].pointer.birth = 10;
  const ByteVector bytes = encoded(interior);
  EXPECT_EQ(check_name(decode_node(bytes, expectation_of(interior, bytes))), "node.branch");
}

TEST_F(NodeCheckTest, TwoOfTheLargestItemsFitALeaf) {
  leaf_.items = {{{1, 1, 1}, ByteVector(MDFS_MAX_ITEM)}, {{1, 1, 2}, ByteVector(MDFS_MAX_ITEM)}};
  EXPECT_TRUE(fits(leaf_));
  leaf_.items.push_back({{1, 1, 3}, ByteVector(MDFS_MAX_ITEM)});
  EXPECT_FALSE(fits(leaf_));
}

}  // namespace
}  // namespace mdfs::format
