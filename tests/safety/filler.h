// Fills a volume in many ways until it is full, and knows what was acknowledged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <map>
#include <random>
#include <string>

#include "volume/operations.h"
#include "volume/volume.h"

namespace mdfs::safety {

using volume::Ino;
using volume::kRootIno;

constexpr std::uint64_t kSide = 256;  // of images, in samples
inline const volume::Caller kRoot;

// Takes turns until the operation has ended; its record. One that comes to no end is still running in it.
inline Result<volume::OperationRecord> run_to_end(volume::Volume& volume, volume::OperationKind kind) {
  constexpr unsigned kMostTurns = 100'000;
  for (unsigned i = 0; i < kMostTurns; ++i) {
    MDFS_TRY_ASSIGN(const volume::OperationRecord record, volume.operations().status(kind));
    if (!record.running()) return record;
    (void)volume.operations().turn();
  }
  return volume.operations().status(kind);
}

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
inline constexpr unsigned kWays = 13;

// What one name was acknowledged to hold.
struct Held {
  Ino ino = 0;
  mode_t type = S_IFREG;
  std::string text;  // bytes, or the target of a symbolic link
  std::map<std::string, std::string> xattrs;
  bool has_holes = false;  // writing there takes room
};

inline volume::ImageOptions square_image(geometry::Codec codec, std::uint64_t rows, std::uint64_t columns) {
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

  // So many steps in this way, which all succeed.
  Status repeat(Way way, unsigned steps) {
    for (; steps > 0; --steps) MDFS_TRY(step(fmt::format("{}-{}", static_cast<unsigned>(way), number_++), way));
    return {};
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
  // All that has been made is removed; for ways that give one name to a file.
  void unlink_all() {
    for (const auto& [name, held] : held_) {
      MDFS_CHECK(volume_.unlink(directory_, name).ok());
      volume_.forget(held.ino, 1);
    }
    held_.clear();
  }
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
    MDFS_TRY(volume_.set_attributes(held.ino, change));
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

}  // namespace mdfs::safety
