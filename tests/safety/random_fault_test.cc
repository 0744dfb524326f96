// Random sequences of operations on disks that fail at random, by plans made from seeds: what has succeeded is there,
// what has failed is there or not, and nothing else is. Promises 2, 3 and 4 of doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "base/log.h"
#include "crash/oracle.h"
#include "crash/workload.h"
#include "device/testing/faulty_disk.h"
#include "small_volume.h"
#include "store/labels.h"
#include "tried.h"

namespace mdfs::safety {
namespace {

using crash::History;
using crash::Operation;
using device::Fault;
using device::FaultKind;
using device::FaultyDisk;
using volume::Volume;

constexpr std::uint64_t kDiskBytes = 4u << 20;
const Status quiet = set_log_level("off");

// One that has left the volume has no labels and is not found.
MemoryDisks labelled_clones(const MemoryDisks& disks) {
  MemoryDisks found;
  for (const auto& disk : disks)
    if (store::read_labels(*disk).label) found.push_back(disk->clone());
  return found;
}

const MemoryDisks& base(unsigned disks) {
  static std::map<unsigned, MemoryDisks> made;
  if (const auto there = made.find(disks); there != made.end()) return there->second;
  SeededEnvironment environment(1);
  MemoryDisks formatted = test::format_memory_disks(disks, kDiskBytes, environment);
  auto volume = mount(formatted, environment);
  MDFS_CHECK(volume.ok() && crash::make_base(**volume).ok() && (*volume)->close().ok());
  return made.emplace(disks, std::move(formatted)).first->second;
}

// A volume whose disks fail as planned, from when arm() is called.
struct Failing {
  explicit Failing(unsigned count) : disks(clone(base(count))), environment(2) {
    for (const auto& disk : disks) {
      faulty.push_back(std::make_unique<FaultyDisk>(*disk, std::vector<Fault>{}));
      doors.push_back(faulty.back().get());
    }
    auto opened = test::open_volume(doors, test::quiet_options(4u << 20), environment);
    MDFS_CHECK(opened.ok());
    volume = std::move(*opened);
  }
  void work_again() {
    for (const auto& disk : faulty) disk->work_again();
  }
  std::size_t struck() const {
    std::size_t count = 0;
    for (const auto& disk : faulty) count += disk->injections().size();
    return count;
  }

  MemoryDisks disks;
  std::vector<std::unique_ptr<FaultyDisk>> faulty;
  std::vector<device::Disk*> doors;
  SeededEnvironment environment;
  std::unique_ptr<Volume> volume;
};

struct Counts {
  unsigned cases = 0, struck = 0, refused = 0, sync_failed = 0, retried = 0, read_only = 0;
  std::uint64_t operations = 0;
};

// Is this how faults of disks are reported?
bool is_fault(const Error& error) {
  return error.code == Errc::kIo || error.code == Errc::kCorrupt || error.code == Errc::kReadOnly ||
         error.code == Errc::kMissingDisk;
}

std::string difference(const test::Tree& found, const test::Tree& expected) {
  for (const auto& [path, seen] : expected) {
    if (!found.contains(path)) return path + " is missing";
    if (found.at(path) != seen) return path + " is something else";
  }
  for (const auto& [path, seen] : found)
    if (!expected.contains(path)) return path + " is there";
  return "";
}

// One sequence under one plan, beside a twin whose disks do not fail. The first thing wrong, or "".
class Case {
 public:
  Case(unsigned disks, std::uint64_t seed, const std::vector<FaultKind>& kinds, Counts& counts)
      : random_(seed), failing_(disks), twin_(disks), history_(read(*twin_.volume)), counts_(counts) {
    for (const auto& [path, seen] : read(*twin_.volume)) known_.insert(seen.ino);
    for (std::size_t i = 0; i < failing_.faulty.size(); ++i) {
      if (disks > 1 && random_() % 2 == 0 && i + 1 < failing_.faulty.size()) continue;
      device::SeededPlan plan;
      plan.kinds = kinds;
      plan.faults = 1 + random_() % 3;
      constexpr std::uint64_t kHorizons[] = {4, 25, 120};
      plan.horizon = kHorizons[random_() % 3];
      for (Fault fault : device::seeded_plan(random_(), plan, kDiskBytes)) {
        // A lie at rest, once: more of them may be in all copies of a node.
        if (fault.kind == FaultKind::kBitFlip && fault.op == device::Op::kWrite) {
          if (lies_) continue;
          lies_ = true;
          fault.times = 1;
        }
        failing_.faulty[i]->add(fault);
      }
    }
  }

  std::string run() {
    std::string wrong = try_operations();
    if (wrong.empty()) wrong = try_sync();
    const bool cut = random_() % 2 == 0;
    MemoryDisks left = labelled_clones(failing_.disks);
    if (!cut) {
      (void)failing_.volume->close();
      left = labelled_clones(failing_.disks);
    }
    failing_.volume.reset();
    (void)twin_.volume->close();
    ++counts_.cases;
    if (failing_.struck() > 0) ++counts_.struck;
    if (wrong.empty()) wrong = judge(left);
    return wrong.empty() ? "" : fmt::format("{}\nafter: {}", wrong, text_);
  }

 private:
  static test::Tree read(Volume& volume) {
    auto tree = test::read_tree(volume);
    MDFS_CHECK(tree.ok());
    return std::move(*tree);
  }

  // A disk that is out cannot be balanced. Without it there may be no room, as when the other disk is drained, and too
  // few disks for copies.
  bool explained(const Error& error) const {
    const store::Store& store = failing_.volume->store();
    bool is_smaller = false;
    for (unsigned i = 0; i < store.disk_count(); ++i) is_smaller = is_smaller || store.disk_info(i).is_out;
    return is_fault(error) || (is_smaller && (error.code == Errc::kNoSpace || error.code == Errc::kInvalidArgument ||
                                              error.code == Errc::kNotEmpty));
  }

  static bool is_long(const Operation& operation) {
    return operation.verb.starts_with("drain") || operation.verb == "keep" || operation.verb == "balance";
  }

  // Numbers of inodes are not those of the twin once a placement has been made for the disks that are left.
  void learn_numbers(crash::Runner& runner, const test::Tree& twin) {
    for (const auto& [path, seen] : twin) {
      if (!known_.insert(seen.ino).second) continue;
      const volume::Ino ino = runner.target({"find", {path}});
      if (ino != 0) numbers_[ino] = seen.ino;
    }
  }
  test::Tree as_of_twin(test::Tree tree) const {
    for (auto& [path, seen] : tree)
      if (const auto number = numbers_.find(seen.ino); number != numbers_.end()) seen.ino = number->second;
    return tree;
  }

  // Until the first that fails for the disks.
  std::string try_operations() {
    crash::Runner runner(*failing_.volume), twin_runner(*twin_.volume);
    std::vector<std::string> set = crash::set_of_operations();
    for (std::string& more : crash::set_of_parity_operations()) set.push_back(std::move(more));
    for (std::size_t length = 3 + random_() % 8; length > 0; --length) {
      const auto operations = crash::parse_operations(set[random_() % set.size()]);
      for (const Operation& operation : *operations) {
        const auto number = static_cast<unsigned>(++started_);
        ++counts_.operations;
        const volume::Ino target = twin_runner.target(operation);
        const Status wanted = twin_runner.run(operation, number);
        const Status got = runner.run(operation, number);
        text_ += operation.text() + (got.ok() ? "; " : " (" + got.error().message() + "); ");
        test::Tree after = read(*twin_.volume);
        learn_numbers(runner, after);
        history_.add(operation, target, wanted.ok(), std::move(after));
        if (got.ok() && !wanted.ok()) return "succeeded against all reason";
        if (!got.ok() && !wanted.ok() && got.error().code == wanted.error().code) {
          returned_ = started_;
          if (is_long(operation)) return "";  // what each of them has moved until then is not the same
          continue;
        }
        if (!got.ok()) {
          ++counts_.refused;
          return explained(got.error()) ? "" : "an error that no fault of a disk explains: " + got.error().message();
        }
        returned_ = started_;
      }
    }
    return "";
  }

  // Something was refused, or not: is everything made durable now? Whoever says so is believed.
  std::string try_sync() {
    if (random_() % 2 == 0) failing_.work_again();
    const Status first = failing_.volume->sync();
    failing_.work_again();
    const bool read_only = failing_.volume->store().read_only();
    counts_.read_only += read_only ? 1 : 0;
    counts_.sync_failed += first.ok() ? 0 : 1;
    if (!first.ok() && !explained(first.error())) return "sync: " + first.error().message();
    // What went wrong before the disks were repaired may be said once more.
    Status second = failing_.volume->sync();
    for (unsigned i = 0; i < 2 && !second.ok() && !read_only; ++i) second = failing_.volume->sync();
    if (read_only && second.ok()) return "sync succeeds on a volume that could not commit";
    if (!read_only && !second.ok() && !lies_) return "sync on repaired disks: " + second.error().message();
    if (!first.ok() && second.ok()) ++counts_.retried;
    text_ += fmt::format("sync {}, {}", first.ok(), second.ok());
    const auto live = test::read_tree(*failing_.volume);
    if (!live.ok()) return lies_ ? "" : "the mounted volume: " + live.error().message();
    const std::string unexplained = history_.explain(as_of_twin(*live), returned_, started_);
    if (!unexplained.empty()) return "the mounted volume: " + unexplained;
    if (second.ok() && !lies_) live_ = *live;
    return "";
  }

  // What another mount finds, on disks that do not fail any more.
  std::string judge(const MemoryDisks& left) {
    SeededEnvironment environment(3);
    auto volume = test::open_volume(test::borrowed(left), test::quiet_options(4u << 20), environment);
    if (!volume.ok()) return "mounting: " + volume.error().message();
    const auto tree = test::read_tree(**volume);
    if (!tree.ok()) return lies_ && is_fault(tree.error()) ? "" : "mounted again: " + tree.error().message();
    if (live_) {
      const std::string differs = difference(*tree, *live_);
      if (!differs.empty()) return "said to be synced, and mounted again: " + differs;
    }
    // A disk that has lied may take back what it has acknowledged, but nothing that was never written is read.
    const std::string unexplained = history_.explain(as_of_twin(*tree), lies_ ? 0 : returned_, started_);
    if (!unexplained.empty()) return "mounted again: " + unexplained;
    if (lies_) return "";
    const std::string written = write_something(**volume);
    if (!written.empty()) return written;
    if (const Status closed = (*volume)->close(); !closed.ok()) return "unmounting: " + closed.error().message();
    volume->reset();
    const std::set<std::string> found = findings(left);
    return found.empty() ? "" : "the checker: " + *found.begin();
  }

  std::mt19937_64 random_;
  Failing failing_, twin_;
  History history_;
  Counts& counts_;
  std::set<volume::Ino> known_;                 // of the twin
  std::map<volume::Ino, volume::Ino> numbers_;  // of the failing volume: of the twin
  std::size_t started_ = 0, returned_ = 0;
  bool lies_ = false;               // a bit was wrong at rest
  std::optional<test::Tree> live_;  // as the volume showed itself when a sync had succeeded
  std::string text_;
};

class RandomFaultTest : public testing::TestWithParam<unsigned> {
 protected:
  void run(const std::vector<FaultKind>& kinds, std::uint64_t seeds, const char* what) {
    Counts counts;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
      ASSERT_EQ(Case(GetParam(), seed, kinds, counts).run(), "") << "disks " << GetParam() << ", seed " << seed;
    EXPECT_GT(counts.struck, counts.cases / 3);
    EXPECT_GT(counts.refused, 0u);
    test::tried(
        "{}: {} sequences on {} disks, {} operations, {} sequences struck, {} refused an operation, {} a sync; {} "
        "syncs succeeded when tried again, {} volumes turned read-only",
        what, counts.cases, GetParam(), counts.operations, counts.struck, counts.refused, counts.sync_failed,
        counts.retried, counts.read_only);
  }
  static std::uint64_t seeds() { return whole_run() ? 20'000 : 300; }
};

TEST_P(RandomFaultTest, WhatFailsIsSaidAndWhatWasSaidToBeSafeIsSafe) {
  run({FaultKind::kError, FaultKind::kShort, FaultKind::kDroppedFlush}, seeds(), "requests that fail");
}

TEST_P(RandomFaultTest, DisksThatDieAndComeBackLoseNothingThatWasAcknowledged) {
  run({FaultKind::kGone, FaultKind::kError}, seeds(), "disks that die");
}

TEST_P(RandomFaultTest, WrongBitsAreRefusedOrRepairedAndNeverRead) {
  run({FaultKind::kBitFlip, FaultKind::kBitFlip, FaultKind::kError}, seeds(), "wrong bits");
}

// A mount reads space pages once. Blocks that are freed on a page that memory lacks would stay in use for good.
TEST_P(RandomFaultTest, AReadOfASpacePageThatFailsOnceLeaksNoBlocks) {
  const store::DiskLabels labels = store::read_labels(*base(GetParam())[0]);
  const format::DiskLayout layout = store::layout_of(*labels.label);
  unsigned struck = 0;
  for (unsigned disk = 0; disk < GetParam(); ++disk)
    for (unsigned nth = 0; nth < 4; ++nth) {
      const MemoryDisks disks = clone(base(GetParam()));
      std::vector<std::unique_ptr<FaultyDisk>> faulty;
      std::vector<device::Disk*> doors;
      for (const auto& one : disks) {
        faulty.push_back(std::make_unique<FaultyDisk>(*one, std::vector<Fault>{}));
        doors.push_back(faulty.back().get());
      }
      faulty[disk]->add({.kind = FaultKind::kError,
                         .from = layout.space_offset({0, 0}, 0),
                         .to = layout.first_usable() * std::uint64_t{4096},
                         .skip = nth});
      SeededEnvironment environment(4);
      auto volume = test::open_volume(doors, test::quiet_options(4u << 20), environment);
      ASSERT_TRUE(volume.ok()) << volume.error().message();
      ASSERT_EQ(write_something(**volume), "");
      const auto entries = (*volume)->read_directory(volume::kRootIno, 0, 100);
      ASSERT_TRUE(entries.ok());
      for (const volume::DirectoryEntry& entry : *entries)
        if (entry.name != "." && entry.name != "..") (void)(*volume)->unlink(volume::kRootIno, entry.name).ok();
      ASSERT_TRUE((*volume)->close().ok());
      volume->reset();
      struck += static_cast<unsigned>(faulty[disk]->injections().size());
      EXPECT_EQ(findings(disks), std::set<std::string>()) << "disk " << disk << ", read " << nth;
    }
  EXPECT_GT(struck, 0u);
}

INSTANTIATE_TEST_SUITE_P(Disks, RandomFaultTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace mdfs::safety
