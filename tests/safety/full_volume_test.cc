// Volumes that are filled to the last block, again and again, by every kind of operation: ENOSPC and nothing else,
// nothing acknowledged is lost, what frees still works, and the space comes back to the block. Promise 9 of
// doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <random>

#include "base/log.h"
#include "small_volume.h"
#include "store/format_volume.h"
#include "tried.h"

namespace mdfs::safety {
namespace {

using volume::Ino;
using volume::kRootIno;

constexpr std::uint64_t kDiskBytes = 4u << 20;
constexpr std::uint64_t kSide = 256;
const volume::Caller kRoot;
const Status quiet = set_log_level("off");

enum class Way : std::uint8_t {
  kLargeFiles,
  kAppends,
  kSmallFiles,
  kSymlinks,
  kDirectories,
  kRewritesWithFsync,
  kRawImages,
  kZstdImages,
  kWindows,
  kHardLinks,
  kXattrs,
  kOutgrowingTheTree,
  kRenamesOver,
};
constexpr unsigned kWays = 13;

// What one name was acknowledged to hold.
struct Held {
  Ino ino = 0;
  mode_t type = S_IFREG;
  std::string text;  // bytes, or the target of a symbolic link
  std::map<std::string, std::string> xattrs;
  bool has_holes = false;  // writing there takes room
};

volume::ImageOptions square_image(geometry::Codec codec, std::uint64_t rows, std::uint64_t columns) {
  volume::ImageOptions options;
  options.geometry.rank = 2;
  options.geometry.shape = {rows, columns};
  options.geometry.extent = {64, 64};
  options.geometry.codec = codec;
  options.geometry.axes = "yx";
  return options;
}

class Filler {
 public:
  Filler(volume::Volume& volume, Ino directory, std::uint64_t seed)
      : volume_(volume), directory_(directory), generator_(seed) {}

  // Goes on in this way until the volume is full. The error that ended it.
  Error fill(Way way) {
    for (;;) {
      const std::string name = fmt::format("{}-{}", static_cast<unsigned>(way), number_++);
      Status status = step(name, way);
      if (!status.ok()) return std::move(status).error();
      ++operations_;
    }
  }

  // One operation that gives room back, or as much as it takes: it must succeed.
  Status give_room() {
    auto file = held_.begin();
    std::advance(file, static_cast<std::ptrdiff_t>(generator_() % held_.size()));
    Held& held = file->second;
    ++operations_;
    last_ = file->first;
    if (S_ISREG(held.type) && !held.text.empty()) {
      switch (generator_() % 4) {
        case 0:
          return rewrite(held);
        case 1:
          return cut(held);
        case 2:
          return punch(held);
        default:
          break;
      }
    } else if (!held.xattrs.empty() && generator_() % 2 == 0) {
      const std::string name = held.xattrs.begin()->first;
      MDFS_TRY(volume_.remove_xattr(held.ino, name));
      held.xattrs.erase(name);
      return {};
    }
    MDFS_TRY(S_ISDIR(held.type) ? volume_.remove_directory(directory_, file->first)
                                : volume_.unlink(directory_, file->first));
    volume_.forget(held.ino, 1);
    held_.erase(file);
    return {};
  }

  // What was acknowledged is there, as this mount or another one shows it.
  std::string look(volume::Volume& volume) const {
    for (const auto& [name, held] : held_) {
      const auto found = volume.lookup(directory_, name);
      if (!found.ok()) return name + ": " + found.error().message();
      volume.forget(found->ino, 1);
      if (found->ino != held.ino || (found->mode & S_IFMT) != held.type) return name + ": another inode";
      const std::string seen = look_at(volume, held);
      if (!seen.empty()) return name + ": " + seen;
    }
    for (const auto& [name, ino] : links_) {
      const auto found = volume.lookup(directory_, name);
      if (!found.ok()) return name + ": " + found.error().message();
      volume.forget(found->ino, 1);
      if (found->ino != ino) return name + ": another inode";
    }
    return "";
  }

  const std::string& last() const { return last_; }  // what give_room() was about
  bool holds_any() const { return !held_.empty(); }
  std::uint64_t operations() const { return operations_; }
  void forget_all() {
    for (const auto& [name, held] : held_) volume_.forget(held.ino, 1);
    held_.clear();
  }

 private:
  static std::string look_at(volume::Volume& volume, const Held& held) {
    if (S_ISLNK(held.type)) {
      const auto target = volume.read_symlink(held.ino);
      if (!target.ok()) return target.error().message();
      return *target == held.text ? "" : "another target";
    }
    if (S_ISREG(held.type)) {
      ByteVector bytes(held.text.size() + 1);
      const auto got = volume.read(held.ino, 0, bytes);
      if (!got.ok()) return got.error().message();
      if (*got != held.text.size()) return fmt::format("{} bytes instead of {}", *got, held.text.size());
      if (as_text(bytes).substr(0, *got) != held.text) return "wrong bytes";
    }
    for (const auto& [name, value] : held.xattrs) {
      const auto got = volume.get_xattr(held.ino, name);
      if (!got.ok()) return name + ": " + got.error().message();
      if (as_text(*got) != value) return name + ": another value";
    }
    return "";
  }

  std::string noise(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>(generator_());
    return text;
  }

  Held& hold(const std::string& name, Ino ino, mode_t type) {
    Held& held = held_[name];
    held = {};
    held.ino = ino;
    held.type = type;
    return held;
  }

  // As an application writes: what a short write has left is written next.
  Status write(Held& held, std::size_t at, std::string_view text, bool append) {
    while (!text.empty()) {
      MDFS_TRY_ASSIGN(const std::size_t count, volume_.write(held.ino, at, as_bytes(text), append));
      if (held.text.size() < at + count) held.text.resize(at + count, '\0');
      held.text.replace(at, count, text.substr(0, count));
      at += count;
      text = text.substr(count);
    }
    return {};
  }

  Status make(const std::string& name, const std::string& text, std::size_t piece) {
    MDFS_TRY_ASSIGN(const volume::Attributes made, volume_.make_node(directory_, name, S_IFREG | 0644, 0, kRoot));
    Held& held = hold(name, made.ino, S_IFREG);
    for (std::size_t at = 0; at < text.size(); at += piece)
      MDFS_TRY(write(held, at, std::string_view(text).substr(at, piece), piece < text.size()));
    return {};
  }

  Status step(const std::string& name, Way way) {
    switch (way) {
      case Way::kLargeFiles:
        return make(name, noise(300'000), 300'000);
      case Way::kAppends:
        return make(name, noise(100'000), 5'000);
      case Way::kSmallFiles:
        return make(name, noise(1 + generator_() % 2'048), 2'048);
      case Way::kSymlinks: {
        const std::string target(1 + generator_() % 4'000, 'x');
        MDFS_TRY_ASSIGN(const volume::Attributes made, volume_.make_symlink(directory_, name, target, kRoot));
        hold(name, made.ino, S_IFLNK).text = target;
        return {};
      }
      case Way::kDirectories: {
        MDFS_TRY_ASSIGN(const volume::Attributes made, volume_.make_directory(directory_, name, 0755, kRoot));
        return set_xattr(hold(name, made.ino, S_IFDIR), "user.a", noise(3'000));
      }
      case Way::kRewritesWithFsync: {
        MDFS_TRY(make(name, noise(20'000), 20'000));
        for (int round = 0; round < 3; ++round) {
          MDFS_TRY(write(held_[name], 0, noise(20'000), false));
          MDFS_TRY(volume_.fsync(held_[name].ino, false));
        }
        return {};
      }
      case Way::kRawImages:
        return make_image(name, geometry::Codec::kRaw, true);
      case Way::kZstdImages:
        return make_image(name, geometry::Codec::kZstd, true);
      case Way::kWindows:
        if (!held_.contains(windows_in_) || held_[windows_in_].text.size() != kSide * kSide || generator_() % 64 == 0) {
          MDFS_TRY(make_image(name, generator_() % 2 == 0 ? geometry::Codec::kRaw : geometry::Codec::kZstd, false));
          windows_in_ = name;
        }
        return write_window(held_[windows_in_], generator_() % 200, generator_() % 200, 50);
      case Way::kHardLinks:
        return link(name);
      case Way::kXattrs: {
        if (number_ % 50 == 1 || !held_.contains(xattrs_of_)) {
          MDFS_TRY(make(name, "", 1));
          xattrs_of_ = name;
        }
        return set_xattr(held_[xattrs_of_], "user." + name, noise(generator_() % 4'096));
      }
      case Way::kOutgrowingTheTree:
        // Small files that lie in the tree, on the disks already; then each gets a byte that does not fit there.
        for (int i = 0; i < 20; ++i) MDFS_TRY(make(fmt::format("{}.{}", name, i), noise(100), 100));
        MDFS_TRY(volume_.sync());
        for (int i = 0; i < 20; ++i) {
          Held& held = held_[fmt::format("{}.{}", name, i)];
          held.has_holes = true;
          MDFS_TRY(write(held, 10'000, "x", false));
        }
        return {};
      case Way::kRenamesOver: {
        MDFS_TRY(make(name, noise(9'000), 9'000));
        const std::string over = fmt::format("over-{}", number_ / 2);
        MDFS_TRY(volume_.rename(directory_, name, directory_, over, volume::RenameMode::kReplace));
        if (const auto old = held_.find(over); old != held_.end()) volume_.forget(old->second.ino, 1);
        held_[over] = held_[name];
        held_.erase(name);
        return {};
      }
    }
    return {};
  }

  Status set_xattr(Held& held, const std::string& name, const std::string& value) {
    MDFS_TRY(volume_.set_xattr(held.ino, name, as_bytes(value), volume::XattrMode::kSet));
    held.xattrs[name] = value;
    return {};
  }

  // A hundred names for each of some files.
  Status link(const std::string& name) {
    if (links_left_ == 0 || !held_.contains(linked_)) {
      links_left_ = 100;
      linked_ = name;
      return make(name, noise(5'000), 5'000);
    }
    --links_left_;
    const std::string longer = name + std::string(200, 'n');
    MDFS_TRY_ASSIGN(const volume::Attributes made, volume_.link(held_[linked_].ino, directory_, longer));
    volume_.forget(made.ino, 1);
    links_[longer] = made.ino;
    return {};
  }

  Status make_image(const std::string& name, geometry::Codec codec, bool fill) {
    MDFS_TRY(make(name, "", 1));
    Held& held = held_[name];
    held.has_holes = true;
    MDFS_TRY(volume_.make_image(held.ino, square_image(codec, kSide, kSide)));
    held.text.assign(kSide * kSide, '\0');
    if (!fill) return {};
    MDFS_TRY(write_window(held, 0, 0, kSide));
    held.has_holes = false;
    return {};
  }

  Status write_window(Held& held, std::uint64_t y, std::uint64_t x, std::uint64_t side) {
    const std::string text = noise(side * side);
    MDFS_TRY(volume_.write_window(held.ino, {{y, x}, {side, side}}, [&](std::uint64_t offset, MutableBytes into) {
      std::copy_n(as_bytes(text).begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return Status();
    }));
    for (std::uint64_t row = 0; row < side; ++row)
      held.text.replace((y + row) * kSide + x, side, text.substr(row * side, side));
    return {};
  }

  Status rewrite(Held& held) {
    const std::size_t at = generator_() % held.text.size();
    last_ += ": rewrite";
    const std::size_t bytes = std::min<std::size_t>(1 + generator_() % 40'000, held.text.size() - at);
    const Status status = write(held, at, noise(bytes), false);
    return !status.ok() && status.error().code == Errc::kNoSpace && held.has_holes ? Status() : status;
  }

  Status cut(Held& held) {
    volume::SetAttributes change;
    change.size_bytes = generator_() % held.text.size();
    last_ += fmt::format(": cut to {} of {}", *change.size_bytes, held.text.size());
    MDFS_TRY(volume_.set_attributes(held.ino, change, kRoot));
    held.text.resize(*change.size_bytes);
    return {};
  }

  Status punch(Held& held) {
    const std::size_t at = generator_() % held.text.size();
    const std::size_t bytes = 1 + generator_() % (held.text.size() - at);
    last_ += fmt::format(": {} bytes punched at {} of {}", bytes, at, held.text.size());
    MDFS_TRY(volume_.allocate(held.ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes));
    std::fill_n(held.text.begin() + static_cast<std::ptrdiff_t>(at), bytes, '\0');
    held.has_holes = true;
    return {};
  }

  volume::Volume& volume_;
  const Ino directory_;
  std::mt19937_64 generator_;
  std::map<std::string, Held> held_;
  std::map<std::string, Ino> links_;  // more names, of files in held_ or of others
  std::string windows_in_, xattrs_of_, linked_, last_;
  unsigned links_left_ = 0;
  unsigned number_ = 0;
  std::uint64_t operations_ = 0;
};

Status remove_all(volume::Volume& volume, Ino directory) {
  for (;;) {
    MDFS_TRY_ASSIGN(const auto entries, volume.read_directory(directory, 0, 64));
    bool any = false;
    for (const auto& entry : entries) {
      if (entry.name == "." || entry.name == "..") continue;
      any = true;
      MDFS_TRY(entry.type == 4 ? volume.remove_directory(directory, entry.name) : volume.unlink(directory, entry.name));
    }
    if (!any) return {};
  }
}

class FullVolumeTest : public testing::TestWithParam<unsigned> {
 protected:
  FullVolumeTest() : environment_(11), disks_(test::format_memory_disks(GetParam(), kDiskBytes, environment_)) {}

  static void expect_sound(const store::SpaceInfo& space, const std::string& what) {
    ASSERT_LE(space.free_blocks, space.total_blocks) << what;
    ASSERT_LE(space.available_blocks, space.free_blocks) << what;
  }

  // The disks as a power cut would leave them now: clean, and all that was synced is there.
  void expect_safe(const Filler& filler, const std::string& what) const {
    const MemoryDisks cut = clone(disks_);
    ASSERT_EQ(findings(cut), std::set<std::string>()) << what;
    SeededEnvironment environment(12);
    auto volume = mount(cut, environment);
    ASSERT_TRUE(volume.ok()) << what << ": " << volume.error().message();
    ASSERT_EQ(filler.look(**volume), "") << what;
  }

  void fill_and_empty(unsigned cycle);

  SeededEnvironment environment_;
  const MemoryDisks disks_;
  std::uint64_t operations_ = 0;
};

void FullVolumeTest::fill_and_empty(unsigned cycle) {
  auto volume = mount(disks_, environment_);
  ASSERT_TRUE(volume.ok()) << volume.error().message();
  const auto directory = (*volume)->make_directory(kRootIno, "d", 0755, kRoot);
  ASSERT_TRUE(directory.ok()) << "cycle " << cycle << ": " << directory.error().message();
  Filler filler(**volume, directory->ino, cycle);
  std::mt19937_64 generator(cycle);
  // Two ways, one after the other: what one leaves over the other takes. Then some room is made, and used again.
  for (unsigned turn = 0; turn < 3; ++turn) {
    const unsigned way = turn == 0 ? cycle % kWays : static_cast<unsigned>(generator() % kWays);
    const std::string what = fmt::format("cycle {}, turn {}, way {}", cycle, turn, way);
    const Error end = filler.fill(static_cast<Way>(way));
    ASSERT_EQ(end.code, Errc::kNoSpace) << what << ": " << end.message();
    ASSERT_EQ(filler.look(**volume), "") << what;
    expect_sound((*volume)->space(), what);
    if (turn == 0) continue;
    const Status synced = (*volume)->sync();
    ASSERT_TRUE(synced.ok()) << what << ": " << synced.error().message();
    ASSERT_EQ(filler.look(**volume), "") << what << ", synced";
    if (cycle % 4 == turn) {
      ASSERT_NO_FATAL_FAILURE(expect_safe(filler, what + ", full"));
    }
    for (unsigned i = 0; i < 12 && filler.holds_any(); ++i) {
      const Status gave = filler.give_room();
      ASSERT_TRUE(gave.ok()) << what << ", room " << i << ", " << filler.last() << ": " << gave.error().message();
    }
    ASSERT_EQ(filler.look(**volume), "") << what << ", after room was made";
    ASSERT_TRUE((*volume)->sync().ok()) << what;
    if (cycle % 4 == turn) {
      ASSERT_NO_FATAL_FAILURE(expect_safe(filler, what + ", with some room"));
    }
  }
  operations_ += filler.operations();
  filler.forget_all();
  const Status emptied = remove_all(**volume, directory->ino);
  ASSERT_TRUE(emptied.ok()) << "cycle " << cycle << ": " << emptied.error().message();
  (*volume)->forget(directory->ino, 1);
  ASSERT_TRUE((*volume)->remove_directory(kRootIno, "d").ok()) << "cycle " << cycle;
  ASSERT_TRUE((*volume)->close().ok()) << "cycle " << cycle;
}

TEST_P(FullVolumeTest, FilledAndEmptiedForManyCyclesItLosesNothingAndTheSpaceComesBackToTheBlock) {
  std::optional<store::SpaceInfo> empty;
  const unsigned cycles = whole_run() ? 1000 : 2 * kWays;
  for (unsigned cycle = 0; cycle < cycles; ++cycle) {
    ASSERT_NO_FATAL_FAILURE(fill_and_empty(cycle));
    // The bitmaps say what a fresh count of the tree says, and as many blocks are free as at first.
    ASSERT_EQ(findings(disks_), std::set<std::string>()) << "cycle " << cycle;
    auto again = mount(disks_, environment_);
    ASSERT_TRUE(again.ok());
    const store::SpaceInfo now = (*again)->space();
    expect_sound(now, fmt::format("cycle {}, empty", cycle));
    if (!empty) empty = now;
    ASSERT_EQ(now.free_blocks, empty->free_blocks) << "cycle " << cycle;
    ASSERT_EQ(now.available_blocks, empty->available_blocks) << "cycle " << cycle;
    ASSERT_EQ(now.objects, empty->objects) << "cycle " << cycle;
    ASSERT_TRUE((*again)->close().ok());
  }
  EXPECT_EQ(empty->free_blocks, empty->total_blocks);
  test::tried("filled and emptied {} times on {} disks, {} operations", cycles, GetParam(), operations_);
}

// An image whose row of extents is more than the reserve: to cut it inside takes more room than there is.
TEST_P(FullVolumeTest, ATruncateWithoutRoomLeavesEveryByteAsItWas) {
  constexpr std::uint64_t kColumns = 8192, kRows = 128;
  auto volume = mount(disks_, environment_);
  ASSERT_TRUE(volume.ok());
  const auto image = (*volume)->make_node(kRootIno, "image", S_IFREG | 0644, 0, kRoot);
  ASSERT_TRUE(image.ok());
  ASSERT_TRUE((*volume)->make_image(image->ino, square_image(geometry::Codec::kRaw, kRows, kColumns)).ok());
  std::mt19937_64 generator(GetParam());
  std::string text(kRows * kColumns, '\0');
  for (char& c : text) c = static_cast<char>(generator());
  const auto wrote = (*volume)->write(image->ino, 0, as_bytes(text), false);
  ASSERT_TRUE(wrote.ok()) << wrote.error().message();
  ASSERT_EQ(*wrote, text.size());
  Filler filler(**volume, kRootIno, 1);
  ASSERT_EQ(filler.fill(Way::kLargeFiles).code, Errc::kNoSpace);
  ASSERT_EQ(filler.fill(Way::kSmallFiles).code, Errc::kNoSpace);
  ASSERT_TRUE((*volume)->sync().ok());

  const auto cut_to = [&](std::uint64_t bytes) {
    volume::SetAttributes change;
    change.size_bytes = bytes;
    return (*volume)->set_attributes(image->ino, change, kRoot);
  };
  unsigned refused = 0;
  for (const std::uint64_t bytes : {kColumns * 100 + 77, kColumns * 63, std::uint64_t{1}}) {
    const auto cut = cut_to(bytes);
    if (cut.ok()) text.resize(bytes);
    if (!cut.ok()) {
      ASSERT_EQ(cut.error().code, Errc::kNoSpace) << cut.error().message();
      ++refused;
    }
    ByteVector got(text.size() + 1);
    ASSERT_EQ((*volume)->read(image->ino, 0, got).value(), text.size()) << bytes;
    ASSERT_EQ(as_text(got).substr(0, text.size()), text) << bytes;
  }
  EXPECT_GT(refused, 0u);
  // Between two rows of extents nothing is written anew.
  ASSERT_TRUE(cut_to(kColumns * 64).ok());
  ASSERT_TRUE(cut_to(0).ok());
  ASSERT_TRUE((*volume)->sync().ok());
  ASSERT_EQ(filler.look(**volume), "");
}

TEST(UnequalDisksTest, WhenTheSmallDiskIsFullTheVolumeGoesOnWithTheRest) {
  SystemEnvironment environment;
  MemoryDisks disks;
  for (const std::uint64_t bytes : {4 * kDiskBytes, kDiskBytes, 4 * kDiskBytes})
    disks.push_back(std::make_unique<device::MemoryDisk>(fmt::format("disk{}", disks.size()), bytes));
  ASSERT_TRUE(store::format_volume(test::borrowed(disks), {.weights = {1, 2, 1}}, environment).ok());
  auto volume = mount(disks, environment);
  ASSERT_TRUE(volume.ok());
  Filler filler(**volume, kRootIno, 7);
  ASSERT_EQ(filler.fill(Way::kRawImages).code, Errc::kNoSpace);
  ASSERT_EQ(filler.fill(Way::kLargeFiles).code, Errc::kNoSpace);
  ASSERT_TRUE((*volume)->sync().ok());
  for (unsigned i = 0; i < 3; ++i) {
    const store::DiskInfo info = (*volume)->store().disk_info(i);
    EXPECT_EQ(info.weight, i == 1 ? 2 : 1);
    EXPECT_LT(info.free_blocks, info.blocks / 4) << i;  // the metadata region
  }
  EXPECT_EQ(filler.look(**volume), "");
  filler.forget_all();
  ASSERT_TRUE((*volume)->close().ok());
  EXPECT_EQ(findings(disks), std::set<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Disks, FullVolumeTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace mdfs::safety
