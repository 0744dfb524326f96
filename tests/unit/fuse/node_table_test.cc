// The table of virtual nodes.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/node_table.h"

#include <gtest/gtest.h>

#include <set>

namespace mdfs::fuse {
namespace {

NodeSpec window(volume::Ino image, const std::string& canonical) {
  return {.kind = NodeKind::kWindow, .ino = image, .parent = 0, .name = {}, .window = {}, .canonical = canonical};
}

TEST(NodeTable, EqualSpecsAreOneNodeWhileItIsHeld) {
  NodeTable table;
  const auto first = table.look_up(window(20, "a"));
  EXPECT_TRUE(is_virtual(first->id));
  EXPECT_EQ(table.look_up(window(20, "a"))->id, first->id);
  EXPECT_NE(table.look_up(window(20, "b"))->id, first->id);
  EXPECT_NE(table.look_up(window(21, "a"))->id, first->id);
  NodeSpec view = window(20, {});
  view.kind = NodeKind::kView;
  view.parent = 7;
  view.name = "scan";
  const auto in_seven = table.look_up(view);
  view.parent = 8;
  EXPECT_NE(table.look_up(view)->id, in_seven->id) << "a directory has one place";
}

TEST(NodeTable, ANodeIsGoneWithItsLastLookUpAndItsNumberIsNotUsedAgain) {
  NodeTable table;
  const NodeId id = table.look_up(window(20, "a"))->id;
  table.look_up(window(20, "a"));
  table.forget(id, 1);
  ASSERT_NE(table.find(id), nullptr);
  table.forget(id, 1);
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_FALSE(table.has_nodes(20));
  std::set<NodeId> seen = {id};
  for (int i = 0; i < 100; ++i) {
    const NodeId next = table.look_up(window(20, "a"))->id;
    EXPECT_TRUE(seen.insert(next).second);
    table.forget(next, 1);
  }
  table.forget(id, 5);  // of a node long gone: nothing happens
}

TEST(NodeTable, TheKernelIsToldOnceForEachTimeItWasGivenSomething) {
  NodeTable table;
  const NodeId a = table.look_up(window(20, "a"))->id;
  const NodeId other = table.look_up(window(21, "a"))->id;
  EXPECT_TRUE(table.take_fresh(20).empty());
  table.mark_fresh(a);
  table.mark_fresh(a);
  table.mark_fresh(other);
  EXPECT_EQ(table.take_fresh(20), std::vector<NodeId>{a});
  EXPECT_TRUE(table.take_fresh(20).empty());
  table.mark_fresh(a);
  EXPECT_EQ(table.take_fresh(20), std::vector<NodeId>{a});
  table.mark_fresh(a);
  table.forget(a, 1);
  EXPECT_TRUE(table.take_fresh(20).empty());
}

TEST(NodeTable, NamesAreTakenBackWhenTheSizeTheyStandForChanges) {
  NodeTable table;
  const NodeId a = table.look_up(window(20, "a"))->id;
  EXPECT_TRUE(table.remember_name(a, 5, "x1.raw"));
  EXPECT_TRUE(table.remember_name(a, 5, "x1.raw")) << "known already";
  table.note_size(20, 100);
  table.note_size(20, 300);  // the size when the first name was given counts
  EXPECT_TRUE(table.take_names_if_size_changed(20, 100).empty());
  const auto names = table.take_names_if_size_changed(20, 200);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].parent, 5u);
  EXPECT_EQ(names[0].name, "x1.raw");
  EXPECT_TRUE(table.take_names_if_size_changed(20, 200).empty());
  EXPECT_TRUE(table.take_names_if_size_changed(20, 100).empty()) << "no name is out";
}

TEST(NodeTable, MoreSpellingsThanItRemembersMustNotBeCached) {
  NodeTable table;
  const NodeId a = table.look_up(window(20, "a"))->id;
  for (std::size_t i = 0; i < NodeTable::kMaxNames; ++i)
    EXPECT_TRUE(table.remember_name(a, 5, "name" + std::to_string(i)));
  EXPECT_FALSE(table.remember_name(a, 5, "one more"));
  EXPECT_EQ(table.take_oldest_names(10).size(), NodeTable::kMaxNames);
  EXPECT_TRUE(table.remember_name(a, 5, "one more"));
}

TEST(NodeTable, TheOldestNodesAreAskedForFirst) {
  NodeTable table;
  std::vector<NodeId> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(table.look_up(window(20, std::to_string(i)))->id);
    table.remember_name(ids.back(), 5, std::to_string(i));
  }
  const auto names = table.take_oldest_names(2);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].name, "0");
  EXPECT_EQ(names[1].name, "1");
  EXPECT_EQ(table.take_oldest_names(2).at(0).name, "2");
}

TEST(NodeTable, AnOpenNodeHasTheSizeOfItsLargestOpenView) {
  NodeTable table;
  const auto node = table.look_up(window(20, "a"));
  EXPECT_FALSE(table.open_size(node->id));
  auto small = std::make_shared<views::TextView>("abc");
  auto large = std::make_shared<views::TextView>("abcdefg");
  table.note_open(node->id, large);
  table.note_open(node->id, small);
  EXPECT_EQ(table.open_size(node->id), 7u);
  large.reset();
  EXPECT_EQ(table.open_size(node->id), 3u);
  small.reset();
  EXPECT_FALSE(table.open_size(node->id));
  table.note_open(node->id + 1, std::make_shared<views::TextView>("x"));  // no such node
  EXPECT_FALSE(table.open_size(node->id + 1));
}

TEST(NodeTable, AChunkStaysPlainForAWhileAndWhileAPlainFrameIsOpen) {
  NodeTable table;
  const auto node = table.look_up(window(20, "a"));
  const auto now = NodeTable::Clock::now();
  const auto later = now + NodeTable::kPlainTime;
  const auto shows_plain = [&](bool is_stored, NodeTable::Clock::time_point when) {
    return table.shows_plain(node->id, is_stored, 4, when);
  };
  EXPECT_FALSE(shows_plain(true, now));
  EXPECT_TRUE(shows_plain(false, now));
  EXPECT_TRUE(shows_plain(true, later - std::chrono::seconds(1)));
  EXPECT_FALSE(shows_plain(true, later)) << "a question about a stored frame changes nothing";
  EXPECT_TRUE(shows_plain(false, later));

  auto other = std::make_shared<views::TextView>("abc");
  auto plain = std::make_shared<views::TextView>("abcd");
  table.note_open(node->id, other);
  EXPECT_FALSE(shows_plain(true, later + NodeTable::kPlainTime));
  table.note_open(node->id, plain);
  EXPECT_TRUE(shows_plain(true, later + NodeTable::kPlainTime));
  plain.reset();
  EXPECT_FALSE(shows_plain(true, later + NodeTable::kPlainTime));
  EXPECT_TRUE(table.shows_plain(node->id + 1, false, 4, now)) << "no such node";
  EXPECT_FALSE(table.shows_plain(node->id + 1, true, 4, now));
}

}  // namespace
}  // namespace mdfs::fuse
