// The checker against random damage, and against power cuts during its own repairs.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../check_disks.h"
#include "base/crc32c.h"
#include "device/testing/recorder_disk.h"
#include "device/testing/replay.h"
#include "format/commit.h"
#include "lab.h"
#include "tried.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kSeeds = 150;

class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : generator_(seed) {}
  std::uint64_t below(std::uint64_t end) {
    return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(generator_);
  }

 private:
  std::mt19937_64 generator_;
};

// A few bytes changed, cut off or added.
ByteVector mangled(ByteVector value, RandomNumbers& random) {
  if (random.below(4) == 0) value.resize(random.below(value.size() + 40));
  if (value.empty()) return value;
  for (std::uint64_t i = random.below(3) + 1; i-- > 0;)
    value[random.below(std::min<std::uint64_t>(value.size(), random.below(2) == 0 ? 32 : 4096))] =
        static_cast<std::byte>(random.below(3) == 0 ? random.below(256) : random.below(2) * 255);
  return value;
}

Key any_key(const std::vector<Key>& keys, RandomNumbers& random) {
  Key key = keys[random.below(keys.size())];
  if (random.below(2) == 0) key.object = keys[random.below(keys.size())].object;
  if (random.below(3) == 0) key.kind = random.below(MDFS_KIND_LEVEL + 2);
  if (random.below(3) == 0) key.offset = random.below(2) == 0 ? random.below(300) : UINT64_MAX - random.below(3);
  return key;
}

void change_items(Lab& lab, RandomNumbers& random) {
  std::vector<Key> keys;
  {
    SeededEnvironment environment(5);
    auto store = open_disks(lab.disks, environment);
    const auto items = (*store)->scan(format::kMinKey, format::kMaxKey, SIZE_MAX);
    for (const Item& item : *items) keys.push_back(item.key);
  }
  // The objects with data and names are worth more attention than the four hundred empty files.
  std::vector<Key> few;
  for (const Key& key : keys)
    if (key.object < Lab::kFirstFile + 3 && (key.object != MDFS_OBJECT_ROOT_DIRECTORY || few.size() < 12))
      few.push_back(key);
  lab.change([&](Transaction& t) {
    for (std::uint64_t i = random.below(6) + 1; i-- > 0;) {
      const Key from = few[random.below(few.size())];
      const ByteVector value = (*t.get(from)).value_or(ByteVector());
      switch (random.below(4)) {
        case 0:
          t.erase(from);
          break;
        case 1:
          t.put(any_key(few, random), value);
          break;
        default:
          t.put(from, mangled(value, random));
      }
    }
  });
}

void protect_all(Lab& lab) {
  lab.protect_image();
  lab.protect_cells();
}

std::string left_after_repair(Lab& lab, unsigned& damaged) {
  damaged += lab.check(RepairMode::kNothing, true).findings.empty() ? 0 : 1;
  const CheckReport repaired = lab.check(RepairMode::kAll);
  if (!repaired.repair_error.empty()) return text_of(repaired);
  const CheckReport clean = lab.check(RepairMode::kNothing);
  return clean.findings.empty() ? std::string() : text_of(repaired) + "left:\n" + text_of(clean);
}

TEST(HardCheckTest, ItemsChangedAtRandomAreRepairedInOneRun) {
  unsigned damaged = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Lab lab;
    if (seed % 2 == 0) protect_all(lab);
    RandomNumbers random(seed);
    change_items(lab, random);
    ASSERT_EQ(left_after_repair(lab, damaged), "") << "seed " << seed;
  }
  EXPECT_GT(damaged, kSeeds / 2);
  test::tried("{} volumes with items changed at random repaired, {} were damaged", kSeeds, damaged);
}

// Rewrites the bytes of a node in all copies and makes everything above vouch for them.
void change_node(Lab& lab, std::size_t leaf, const std::function<void(MutableBytes)>& how) {
  const NodeRef ref = lab.leaves()[leaf];
  const format::Pointer root = lab.root();
  const auto rewrite = [&](const format::Pointer& pointer, const std::function<void(MutableBytes)>& edit) {
    ByteVector bytes(MDFS_NODE_SIZE);
    lab.disks[pointer.address[0].disk]->peek(pointer.address[0].block * 4096, bytes);
    edit(bytes);
    for (const format::Address& at : pointer.places()) lab.disks[at.disk]->poke(at.block * 4096, bytes);
    return crc32c(bytes);
  };
  const std::uint32_t leaf_crc = rewrite(ref.pointer, how);
  const std::uint32_t root_crc = rewrite(root, [&](MutableBytes bytes) {
    for (std::size_t at = sizeof(mdfs_node_header); at + sizeof(mdfs_branch) <= bytes.size(); at += sizeof(mdfs_branch))
      if (*format::decode_pointer(bytes, at + sizeof(mdfs_key)) == ref.pointer)
        return store_le<std::uint32_t>(bytes, at + sizeof(mdfs_key), leaf_crc);
  });
  for (auto& disk : lab.disks)
    for (unsigned label = 0; label < MDFS_LABELS_PER_DISK; ++label)
      for (unsigned slot = 0; slot < MDFS_RING_SLOTS; ++slot) {
        ByteVector sector(MDFS_SLOT_SIZE);
        disk->peek(lab.layout().slot_offset(label, slot), sector);
        Uuid volume;
        std::copy_n(reinterpret_cast<const std::uint8_t*>(sector.data()) + 16, 16, volume.octets.begin());
        auto commit = format::decode_commit_slot(sector, volume);
        if (!commit.ok() || commit->roots[0].pointer != root) continue;
        commit->roots[0].pointer.crc32c = root_crc;
        format::encode(*commit, sector);
        disk->poke(lab.layout().slot_offset(label, slot), sector);
      }
}

TEST(HardCheckTest, NodesChangedUnderGoodChecksumsAreRepairedInOneRun) {
  unsigned damaged = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Lab lab;
    RandomNumbers random(seed);
    change_node(lab, random.below(lab.leaves().size()), [&](MutableBytes bytes) {
      for (std::uint64_t i = random.below(4) + 1; i-- > 0;) {
        const std::uint64_t at = random.below(2) == 0 ? random.below(300) : bytes.size() - 1 - random.below(4000);
        bytes[at] = static_cast<std::byte>(random.below(2) == 0 ? random.below(256) : bytes.size() % 7);
      }
    });
    ASSERT_EQ(left_after_repair(lab, damaged), "") << "seed " << seed;
  }
  EXPECT_GT(damaged, kSeeds / 2);
  test::tried("{} volumes with nodes changed at random repaired, {} were damaged", kSeeds, damaged);
}

TEST(HardCheckTest, BytesFlippedAnywhereInTheMetadataAreRepairedInOneRun) {
  unsigned damaged = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Lab lab;
    RandomNumbers random(seed);
    for (std::uint64_t i = random.below(8) + 1; i-- > 0;) {
      // One disk alone never loses the last copy of anything.
      const std::uint64_t end = lab.layout().metadata_end() * 4096;
      lab.damage(2, random.below(random.below(2) == 0 ? end : 200000), 1);
    }
    ASSERT_EQ(left_after_repair(lab, damaged), "") << "seed " << seed;
  }
  EXPECT_GT(damaged, kSeeds / 2);
  test::tried("{} volumes with bytes flipped at random repaired, {} were damaged", kSeeds, damaged);
}

CheckReport check_clones(const Disks& disks, RepairMode mode) {
  SeededEnvironment environment(9);
  auto report = check_disks(disks, mode, environment);
  EXPECT_OK(report);
  return report.ok() ? *report : CheckReport();
}

TEST(HardCheckTest, APowerCutAtAnyPointOfARepairIsSafe) {
  Lab lab;
  lab.change([](Transaction& t) {
    t.erase(Lab::entry_key(MDFS_OBJECT_ROOT_DIRECTORY, "dir"));
    t.erase(Lab::inode_key(Lab::kInline));
  });
  lab.damage_node(lab.root(), 1);
  lab.damage(0, lab.layout().label_offset(2) + 50);
  for (unsigned place : {0u, 1u}) lab.damage(1, lab.layout().space_offset({0, 0}, place) + 9);
  const Disks before = clone_disks(lab.disks);

  device::RecorderLog log;
  std::vector<std::unique_ptr<device::Disk>> recorders;
  for (std::uint32_t i = 0; i < 3; ++i)
    recorders.push_back(std::make_unique<device::RecorderDisk>(*lab.disks[i], log, i));
  CheckOptions options;
  options.repair = RepairMode::kAll;
  SeededEnvironment environment(3);
  const auto repaired = check_volume(std::move(recorders), options, environment);
  ASSERT_OK(repaired);
  ASSERT_EQ(repaired->exit_code(), 1) << text_of(*repaired);

  std::vector<const device::MemoryDisk*> bases;
  for (const auto& disk : before) bases.push_back(disk.get());
  const std::uint64_t found = check_clones(before, RepairMode::kNothing).findings.size();
  const std::size_t states = device::for_each_cut(bases, log.events(), {}, [&](Disks disks, const device::Cut& cut) {
    // As it was, apart from copies already repaired, or clean.
    EXPECT_LE(check_clones(disks, RepairMode::kNothing).findings.size(), found + 2) << cut.text;
    const CheckReport again = check_clones(disks, RepairMode::kAll);
    EXPECT_EQ(again.repair_error, "") << cut.text;
    const CheckReport clean = check_clones(disks, RepairMode::kNothing);
    EXPECT_TRUE(clean.findings.empty()) << cut.text << "\n" << text_of(again) << "left:\n" << text_of(clean);
    return !testing::Test::HasFailure();
  });
  EXPECT_GT(states, 50u);
  test::tried("{} cuts of a repair, each repaired anew", states);
}

// Each name may be anywhere, says the inode: comparing each with all others would take hours where there are millions.
TEST(CheckTest, NamesThatAreAllWithinReachOfEachOtherAreLookedAtOnceEach) {
  Lab lab;
  constexpr std::uint64_t kNames = 50'000, kAtOnce = 5'000, kFirst = std::uint64_t{1} << 40;
  for (std::uint64_t begin = 0; begin < kNames; begin += kAtOnce)
    lab.change([&](Transaction& t) {
      for (std::uint64_t i = begin; i < begin + kAtOnce; ++i)
        t.put({MDFS_OBJECT_ROOT_DIRECTORY, MDFS_KIND_DIRENT, kFirst + i},
              format::encode(format::Dirent{Lab::kInline, 8, "name " + std::to_string(i == 7 ? 6 : i)}));
    });
  lab.edit_inode(MDFS_OBJECT_ROOT_DIRECTORY, [](auto& inode) { inode.reach = UINT32_MAX; });
  const CheckReport report = lab.check(RepairMode::kNothing);
  const auto count = [&](FindingId id) {
    return std::count_if(report.findings.begin(), report.findings.end(), [&](const auto& f) { return f.id == id; });
  };
  EXPECT_EQ(count(FindingId::kEntryDuplicate), 1);
  EXPECT_GT(report.exit_code(), 0);
}

}  // namespace
}  // namespace mdfs::store
