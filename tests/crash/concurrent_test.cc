// Power cuts while several threads write and sync at once: what was synced is there, and nothing lies beyond an end.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "base/log.h"
#include "crash_run.h"
#include "device/testing/recorder_disk.h"
#include "format/commit.h"
#include "format/fields.h"
#include "tried.h"

namespace mdfs::crash {
namespace {

using test::MemoryDisks;
using volume::Ino;
using volume::Volume;

constexpr std::uint64_t kFrame = 4096;  // of the stack; a row of its extents has 8
constexpr std::uint64_t kFrames = 22;   // appended
constexpr std::uint64_t kPlaces = 12;   // blocks that a writer writes again and again, in cells of their own and not
constexpr unsigned kWriters = 3;        // each of a file of its own
constexpr unsigned kStack = kWriters;   // in marks
constexpr std::size_t kMostBytes = 2u << 20;

// What a mark says: this number has been written to this place of this file.
struct Stamp {
  std::uint64_t file = 0;
  std::uint64_t place = 0;
  std::uint64_t number = 0;
  std::uint64_t packed() const { return file << 48 | place << 32 | number; }
};

ByteVector stamped(std::uint64_t place, std::uint64_t number) {
  ByteVector bytes(kFrame);
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    std::memcpy(bytes.data() + at, &place, 8);
    std::memcpy(bytes.data() + at + 8, &number, 8);
  }
  return bytes;
}

// Of one place: the last number that was begun to be written, and the last that was synced.
struct Known {
  std::uint64_t begun = 0;
  std::uint64_t kept = 0;
};
using Memory = std::map<std::uint64_t, Known>;  // by file << 16 | place

Memory memory_at(const std::vector<device::Event>& events, std::size_t position) {
  Memory memory;
  for (std::size_t i = 0; i < position; ++i) {
    const device::Event& event = events[i];
    if (event.kind != device::EventKind::kMark) continue;
    Known& known = memory[event.value >> 32];
    std::uint64_t& last = event.mark == "kept" ? known.kept : known.begun;
    last = std::max(last, event.value & UINT32_MAX);
  }
  return memory;
}

// "", or what is wrong with these bytes. What was not synced may be there in parts, over zeros; a block of a file that
// has been synced once is one of those written since.
std::string look_at(std::string_view bytes, std::uint64_t place, const Known& known, bool in_parts) {
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    std::uint64_t found[2];
    std::memcpy(found, bytes.data() + at, 16);
    const bool zeros = found[0] == 0 && found[1] == 0;
    if (zeros && known.kept == 0) continue;
    if (found[0] != place || found[1] < known.kept || found[1] > known.begun)
      return "place " + std::to_string(place) + " holds number " + std::to_string(found[1]) + " of place " +
             std::to_string(found[0]) + ", synced " + std::to_string(known.kept) + ", last " +
             std::to_string(known.begun);
    if (!in_parts && std::memcmp(bytes.data(), bytes.data() + at, 16) != 0)
      return "place " + std::to_string(place) + " is a mixture";
  }
  return "";
}

std::uint64_t offset_of(std::uint64_t place) { return place % 3 * 131072 + place / 3 * kFrame; }

std::string look_at_files(const test::Tree& tree, Memory& memory) {
  for (unsigned file = 0; file < kWriters; ++file) {
    std::string text = tree.at("/f" + std::to_string(file)).text;
    text.resize(3 * 131072);
    for (std::uint64_t place = 1; place < kPlaces; ++place) {
      const std::string wrong = look_at(std::string_view(text).substr(offset_of(place), kFrame), place,
                                        memory[std::uint64_t{file} << 16 | place], false);
      if (!wrong.empty()) return "/f" + std::to_string(file) + ": " + wrong;
    }
  }
  const std::string& stack = tree.at("/stack").text;
  // A frame that is not synced may be there in part, by extents, and so may end the stack: appends that go on while a
  // commit gathers what they have changed are taken as they are after some tries (WriteBack::lock_all).
  for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
    const Known& known = memory[std::uint64_t{kStack} << 16 | frame];
    if (frame * kFrame > stack.size() && known.kept > 0) return "frame " + std::to_string(frame) + " is missing";
    if (frame * kFrame > stack.size()) continue;
    const std::string wrong =
        look_at(std::string_view(stack).substr((frame - 1) * kFrame, kFrame), frame, known, known.kept == 0);
    if (!wrong.empty()) return "/stack: " + wrong;
  }
  return "";
}

// Made larger, it has zeros behind its old end.
std::string grow(Volume& volume, const char* name) {
  const auto found = volume.lookup(volume::kRootIno, name);
  if (!found.ok()) return found.error().message();
  volume.forget(found->ino, 1);
  volume::SetAttributes change;
  change.size_bytes = found->size_bytes + 16 * kFrame;
  if (const auto grown = volume.set_attributes(found->ino, change); !grown.ok()) return grown.error().message();
  ByteVector bytes(16 * kFrame);
  if (const auto got = volume.read(found->ino, found->size_bytes, bytes); !got.ok()) return got.error().message();
  for (const std::byte byte : bytes)
    if (byte != std::byte{0}) return std::string(name) + " has grown by bytes that are not zero";
  return "";
}

// Small commits, which one flush has ended, of which a committed slot was written.
std::size_t finalized_commits(const std::vector<device::Event>& events) {
  std::set<Uuid> commits;
  for (const device::Event& event : events) {
    if (event.kind != device::EventKind::kStart || event.op != device::Op::kWrite) continue;
    if (event.data->size() != MDFS_SLOT_SIZE || !as_text(*event.data).starts_with(MDFS_COMMIT_MAGIC)) continue;
    const auto slot =
        format::decode_commit_slot(*event.data, format::get_uuid(*event.data, offsetof(mdfs_commit_slot, volume_uuid)));
    if (slot.ok() && slot->state == MDFS_SLOT_COMMITTED && !slot->checksum_records.empty())
      commits.insert(slot->commit_id);
  }
  return commits.size();
}

class Workload {
 public:
  Workload(std::uint64_t seed, unsigned disks) : seed_(seed) {
    disks_ = test::format_memory_disks(disks, 6u << 20, environment_);
    auto volume = test::open_volume(test::borrowed(disks_), test::quiet_options(4u << 20), environment_);
    MDFS_CHECK(volume.ok() && make_files(**volume).ok() && (*volume)->close().ok());
    for (const auto& disk : disks_) base_.push_back(disk->clone());
  }

  // Several threads, each with its file; two of them sync the stack. Another one finalizes commits, as the daemon's
  // does, but without waiting for the disks to be idle.
  void run() {
    std::vector<device::Disk*> doors;
    std::vector<std::unique_ptr<device::RecorderDisk>> recorders;
    for (std::uint32_t i = 0; i < disks_.size(); ++i) {
      recorders.push_back(std::make_unique<device::RecorderDisk>(*disks_[i], log_, i));
      doors.push_back(recorders.back().get());
    }
    volume::VolumeOptions options = test::quiet_options(4u << 20);
    options.engine.early_batch_bytes = kFrame;
    auto volume = test::open_volume(doors, options, environment_);
    ASSERT_TRUE(volume.ok());
    std::atomic<bool> ended{false};
    std::thread finalizer([&] {
      for (; !ended; std::this_thread::yield())
        if (!(*volume)->store().finalize().ok()) failed_ = true;
    });
    std::vector<std::thread> threads;
    for (unsigned file = 0; file < kWriters; ++file) threads.emplace_back([&, file] { write_places(**volume, file); });
    threads.emplace_back([&] { append_frames(**volume); });
    threads.emplace_back([&] {
      for (unsigned i = 0; i < 12; ++i) (void)(*volume)->fsync(stack_, false);
    });
    for (std::thread& thread : threads) thread.join();
    ended = true;
    finalizer.join();
    ASSERT_FALSE(failed_);
  }

  std::size_t finalized() const { return finalized_commits(log_.events()); }

  // Rebuilds states while there are to be more: those before the end of a flush, and others at random.
  void judge_all(std::uint64_t& states, const std::function<bool()>& more) {
    const std::vector<device::Event> events = log_.events();
    std::vector<const device::MemoryDisk*> bases;
    for (const auto& disk : base_) bases.push_back(disk.get());
    device::Replayer replayer(bases, events);
    device::CutBounds bounds;
    bounds.all_subsets_up_to = 2;
    bounds.each_one_up_to = 4;
    bounds.samples = 4;
    bounds.seed = seed_;
    std::mt19937_64 random(seed_);
    for (std::size_t at = 1; at <= events.size() && more(); ++at) {
      const bool flushed =
          at < events.size() && events[at].kind == device::EventKind::kEnd && events[at].op == device::Op::kFlush;
      if (at != events.size() && random() % (flushed ? 2 : 40) != 0) continue;
      replayer.advance_to(at);
      Memory memory = memory_at(events, at);
      const std::vector<device::Cut> cuts = device::cuts(at, replayer.outstanding(), bounds);
      for (unsigned i = 0; i < 2 && !cuts.empty(); ++i) {
        const device::Cut& cut = cuts[random() % cuts.size()];
        const std::string wrong = judge(replayer.build(cut), memory, ++states % 4 == 0);
        ASSERT_EQ(wrong, "") << "seed " << seed_ << ", event " << at << " of " << events.size() << ", " << cut.text;
      }
    }
  }

 private:
  Status make_files(Volume& volume) {
    for (unsigned file = 0; file < kWriters; ++file) {
      MDFS_TRY_ASSIGN(const auto made,
                      volume.make_node(volume::kRootIno, "f" + std::to_string(file), S_IFREG | 0644, 0, {}));
      files_[file] = made.ino;
    }
    MDFS_TRY_ASSIGN(const auto stack, volume.make_node(volume::kRootIno, "stack", S_IFREG | 0644, 0, {}));
    stack_ = stack.ino;
    volume::ImageOptions options;
    options.geometry.rank = 3;
    options.geometry.shape = {0, 64, 64};
    options.geometry.extent = {8, 32, 32};
    options.geometry.codec = seed_ % 2 == 0 ? geometry::Codec::kRaw : geometry::Codec::kZstd;
    options.geometry.axes = "zyx";
    return volume.make_image(stack_, options);
  }

  void note(const char* what, const Stamp& stamp) { log_.mark(what, stamp.packed()); }

  void write_places(Volume& volume, unsigned file) {
    std::mt19937_64 random(seed_ * 100 + file);
    std::map<std::uint64_t, std::uint64_t> last;  // numbers by place
    std::uint64_t number = 0;
    for (unsigned round = 0; round < 12; ++round) {
      for (auto writes = 1 + random() % 4; writes > 0; --writes) {
        const std::uint64_t place = 1 + random() % (kPlaces - 1);
        note("begun", {file, place, ++number});
        if (!volume.write(files_[file], offset_of(place), stamped(place, number), false).ok()) failed_ = true;
        last[place] = number;
      }
      if (random() % 3 == 0 || !volume.fsync(files_[file], random() % 2 == 0).ok()) continue;
      for (const auto& [place, written] : last) note("kept", {file, place, written});
      // The finalizer alone seldom finds the moment between two commits.
      if (random() % 2 == 0 && !volume.store().finalize().ok()) failed_ = true;
    }
  }

  void append_frames(Volume& volume) {
    std::mt19937_64 random(seed_ * 100 + kStack);
    for (std::uint64_t frame = 0; frame < kFrames;) {
      ByteVector bytes;
      for (auto more = std::min(kFrames - frame, 1 + random() % 10); more > 0; --more) {
        note("begun", {kStack, ++frame, frame});
        const ByteVector one = stamped(frame, frame);
        bytes.insert(bytes.end(), one.begin(), one.end());
      }
      if (!volume.write(stack_, 0, bytes, true).ok()) failed_ = true;
      if (random() % 2 == 0 || !volume.fsync(stack_, random() % 2 == 0).ok()) continue;
      for (std::uint64_t kept = 1; kept <= frame; ++kept) note("kept", {kStack, kept, kept});
    }
  }

  std::string judge(const MemoryDisks& disks, Memory& memory, bool thorough) {
    const std::string raw = check_disks(disks, environment_, true);
    if (!raw.empty()) return "before mounting: " + raw;
    auto volume = test::open_volume(test::borrowed(disks), test::quiet_options(4u << 20), environment_);
    if (!volume.ok()) return "mounting: " + volume.error().message();
    const auto tree = test::read_tree(**volume, kMostBytes);
    if (!tree.ok()) return tree.error().message();
    std::string wrong = look_at_files(*tree, memory);
    if (wrong.empty()) wrong = test::find_inconsistency(**volume, false);
    if (!wrong.empty() || !thorough) return wrong;
    for (const char* name : {"stack", "f0"})
      if (wrong.empty()) wrong = grow(**volume, name);
    if (!wrong.empty()) return wrong;
    if (const Status closed = (*volume)->close(); !closed.ok()) return closed.error().message();
    volume->reset();
    return check_disks(disks, environment_, false);
  }

  const std::uint64_t seed_;
  SystemEnvironment environment_;
  device::RecorderLog log_;
  MemoryDisks disks_, base_;
  Ino files_[kWriters] = {}, stack_ = 0;
  std::atomic<bool> failed_{false};
};

TEST(ConcurrentCrashTest, WhatWasSyncedIsThereWhateverOthersWereDoing) {
  ASSERT_TRUE(set_log_level("off").ok());
  const auto time = std::chrono::seconds(std::getenv("MDFS_TEST_WHOLE") != nullptr ? 180 : 6);
  const auto until = std::chrono::steady_clock::now() + time;
  constexpr std::uint64_t kLeastStates = 10;  // on a slow machine the time is up before
  std::uint64_t states = 0, runs = 0, finalized = 0;
  const auto more = [&] { return states < kLeastStates || std::chrono::steady_clock::now() < until; };
  while (more() && !HasFatalFailure()) {
    ++runs;
    Workload workload(runs, 1 + static_cast<unsigned>(runs % 3));
    workload.run();
    if (HasFatalFailure()) return;
    finalized += workload.finalized();
    workload.judge_all(states, more);
  }
  test::tried("{} cuts of {} runs of an appender and {} writers that sync at once, beside {} finalized commits", states,
              runs, kWriters, finalized);
}

}  // namespace
}  // namespace mdfs::crash
