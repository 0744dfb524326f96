// Rollbacks to an older commit, which only an administrator asks for.
// SPDX-License-Identifier: Apache-2.0
#include "lab.h"

namespace mdfs::store {
namespace {

TEST(RollbackTest, ARollbackBringsBackTheCommitBeforeOneWhoseRootIsLost) {
  Lab lab;
  const auto before = lab.get(Lab::inode_key(Lab::kInline));
  lab.change([](Transaction& transaction) { transaction.put({Lab::kInline, MDFS_KIND_INLINE, 0}, ByteVector(100)); });
  const std::uint64_t newest = lab.check(RepairMode::kNothing).generation;
  const format::Pointer root = lab.root();
  for (std::size_t copy = 0; copy < root.copies; ++copy) lab.damage_node(root, copy);
  // What there was to do: an empty root.
  EXPECT_GT(lab.check(RepairMode::kNothing).lasting_findings, 0u);
  const std::vector<std::uint64_t> digests = lab.digests();
  const CheckReport look = lab.check(RepairMode::kNothing, true, {}, newest - 1);
  EXPECT_EQ(look.lasting_findings, 0u) << text_of(look);
  EXPECT_EQ(lab.digests(), digests);
  const CheckReport rolled = lab.check(RepairMode::kPreen, true, {}, newest - 1);
  EXPECT_EQ(rolled.repair_error, "");
  EXPECT_TRUE(rolled.changed);
  const CheckReport after = lab.check(RepairMode::kNothing, true);
  EXPECT_EQ(after.remaining(), 0u) << text_of(after);
  EXPECT_GT(after.generation, newest);
  EXPECT_EQ(after.objects, Lab::kObjects);
  EXPECT_EQ(lab.get(Lab::inode_key(Lab::kInline)), before);
}

TEST(RollbackTest, ARollbackToADamagedCommitIsRefusedUnlessItIsForced) {
  Lab lab;
  const format::Pointer root = lab.root();
  lab.change([](Transaction& transaction) { transaction.put({Lab::kInline, MDFS_KIND_INLINE, 0}, ByteVector(100)); });
  const std::uint64_t newest = lab.check(RepairMode::kNothing).generation;
  for (std::size_t copy = 0; copy < root.copies; ++copy) lab.damage_node(root, copy);
  const std::vector<std::uint64_t> digests = lab.digests();
  const CheckReport refused = lab.check(RepairMode::kPreen, false, {}, newest - 1);
  EXPECT_NE(refused.repair_error.find("-y"), std::string::npos);
  EXPECT_EQ(lab.digests(), digests);
  EXPECT_EQ(lab.check(RepairMode::kNothing).generation, newest);
}

}  // namespace
}  // namespace mdfs::store
