// Looking through directories and block devices for labels.
// SPDX-License-Identifier: Apache-2.0
#include "device/find_disks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "base/log.h"
#include "device/open.h"
#include "device/peek.h"
#include "device/same_disk.h"
#include "format/commit.h"
#include "format/layout.h"

namespace mdfs::device {
namespace {

namespace fs = std::filesystem;

// Entries of a directory that are tried.
constexpr std::size_t kMaxEntries = 4096;

constexpr std::string_view kUuidPrefix = "UUID=";

// With a device that no argument names.
constexpr std::chrono::seconds kPatience(3);
constexpr std::chrono::microseconds kLongestPause(20'000);

// What the commit slots of a disk say of it.
struct Slots {
  // That it knows: those it holds, their parents, and the last one that each member took part in. Two members that were
  // written apart, however long ago, both know the last commit that they have in common.
  std::set<Uuid> commits;
  std::uint64_t newest = 0;  // generation; 0: it holds no commit
  // Of the newest commit that may have been acknowledged.
  std::uint64_t acknowledged = 0;  // generation
  std::set<Uuid> participants;
};

Slots slots_on(const std::string& path, const format::Label& label) {
  Slots slots;
  auto disk = Peek::open(path);
  if (!disk.ok()) return slots;
  const format::DiskLayout layout(label.block_size, label.disk_blocks, label.metadata_blocks, label.room_blocks);
  ByteVector area(MDFS_LABEL_AREA);
  for (unsigned number = 0; number < MDFS_LABELS_PER_DISK; ++number) {
    if (!disk->read(layout.label_offset(number), area).ok()) continue;
    for (unsigned ring = 0; ring < MDFS_RING_SLOTS; ++ring) {
      const ConstBytes bytes = ConstBytes(area).subspan(MDFS_SLOT_SIZE * (1 + ring), MDFS_SLOT_SIZE);
      auto slot = format::decode_commit_slot(bytes, label.volume_uuid);
      if (!slot.ok()) continue;
      slots.commits.insert(slot->commit_id);
      if (!slot->parent_id.is_nil()) slots.commits.insert(slot->parent_id);
      for (const format::MemberState& member : slot->states)
        if (!member.commit_id.is_nil()) slots.commits.insert(member.commit_id);
      slots.newest = std::max(slots.newest, slot->generation);
      const bool acknowledged = slot->state == MDFS_SLOT_COMMITTED || !slot->checksum_records.empty();
      if (!acknowledged || slot->generation <= slots.acknowledged) continue;
      slots.acknowledged = slot->generation;
      slots.participants.clear();
      for (std::size_t i = 0; i < slot->members.size(); ++i)
        if (((slot->participants >> i) & 1) != 0) slots.participants.insert(slot->members[i].uuid);
    }
  }
  return slots;
}

FormerMember former_member(const Slots& slots, const std::function<bool(const Uuid&)>& is_member) {
  if (slots.acknowledged == 0) return FormerMember::kHoldsNothing;
  return std::any_of(slots.participants.begin(), slots.participants.end(), is_member) ? FormerMember::kIsBehind
                                                                                      : FormerMember::kWrittenApart;
}

bool is_in_table(const format::Label& label, const Uuid& disk_uuid) {
  return std::any_of(label.members.begin(), label.members.end(),
                     [&](const format::Member& one) { return one.uuid == disk_uuid; });
}

// What has been found so far.
class Search {
 public:
  // From now on disks of other volumes are passed over, or refused if they are named.
  Status want(std::string_view text) {
    const auto uuid = Uuid::parse(text);
    if (!uuid) return Error{Errc::kUsage, fmt::format("'{}{}' is not a UUID", kUuidPrefix, text)};
    if (volume_ && *volume_ != *uuid) return Error{Errc::kUsage, "two volumes are named"};
    volume_ = uuid;
    named_one_ = true;
    return {};
  }

  // A disk that the caller names: everything about it must be right.
  Status add_named(const std::string& path) {
    auto label = read_label(path);
    if (!label.ok()) return std::move(label).error();
    if (!volume_) volume_ = label->volume_uuid;
    if (label->volume_uuid != *volume_)
      return Error{Errc::kForeignDisk, fmt::format("{} is of volume {}, others are of {}", path,
                                                   label->volume_uuid.to_string(), volume_->to_string())};
    return add(path, *label, true);
  }

  // Every entry of a directory: what holds no label is passed over.
  Status add_directory(const std::string& path) {
    MDFS_TRY(try_entries(path));
    if (!any() && other_version_) return *other_version_;
    if (!any() && !volume_) return Error{Errc::kForeignDisk, path + " holds no disk of an MDFS volume"};
    return {};
  }

  Status try_entries(const std::string& path) {
    std::vector<std::string> entries;
    std::error_code failure;
    for (fs::directory_iterator it(path, failure), end; !failure && it != end; it.increment(failure)) {
      if (entries.size() == kMaxEntries) break;
      entries.push_back(it->path().string());
    }
    if (failure) return from_errno(failure.value(), path);
    std::sort(entries.begin(), entries.end());
    for (const std::string& entry : entries) MDFS_TRY(try_candidate(entry));
    return {};
  }

  // For disks that no argument names: taken if they belong to the volume, else skipped.
  Status try_candidate(const std::string& path) {
    struct stat st {};
    if (stat(path.c_str(), &st) != 0 || !(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))) return {};
    const auto label = read_label(path);
    if (!label.ok()) {
      if (is_other_version(label.error().code) && !other_version_) other_version_ = label.error();
      return {};
    }
    if (!volume_) volume_ = label->volume_uuid;
    if (label->volume_uuid != *volume_) {
      if (!named_one_)
        return Error{Errc::kForeignDisk,
                     fs::path(path).parent_path().string() + " holds disks of several volumes: name one disk"};
      return {};
    }
    return add(path, *label, false);
  }

  bool any() const { return !found_.empty(); }
  std::string volume() const { return volume_ ? volume_->to_string() : ""; }
  // Every member has a disk that is taken for it.
  bool complete() const {
    if (!any()) return false;
    const auto chosen = choose();
    return chosen.ok() && chosen->disks.size() >= format::count_disks(found_[chosen->table].label.members);
  }
  void disk_was_named() { named_one_ = true; }
  // Nothing is left to search for.
  bool is_done() const { return !looks_around_ && complete(); }
  // From now on disks do not join what was found. They are looked at for former members only.
  void look_around() { looks_around_ = true; }
  bool looks_around() const { return looks_around_; }
  // A volume whose members never changed has no former ones.
  bool may_have_former_members() const {
    return std::any_of(found_.begin(), found_.end(), [](const Found& disk) { return disk.label.membership > 1; });
  }

  Result<FoundDisks> finish() const {
    MDFS_TRY_ASSIGN(const Chosen chosen, choose());
    MDFS_TRY(check_former_members(chosen));
    const format::Label& first = found_[chosen.table].label;
    FoundDisks result{
        .volume_uuid = first.volume_uuid, .volume_name = first.name, .paths = {}, .missing = {}, .written_apart = {}};
    for (const Found& disk : found_)
      if (is_about_to_join(disk))
        spdlog::warn(
            "{}: has a label of volume {} and no commit: an interrupted 'mdfs disk add' leaves such a disk, and can be "
            "repeated with it",
            disk.path, first.volume_uuid.to_string());
    for (const std::size_t other : chosen.strangers) {
      if (is_about_to_join(found_[other])) continue;
      spdlog::warn(
          "{}: its label says disk {} of volume {}, but it knows no commit that the others know; it is left out (name "
          "it to include it)",
          found_[other].path, found_[other].label.disk_index, first.volume_uuid.to_string());
    }
    note_written_apart(chosen, result);
    for (std::size_t i = 0; i < first.members.size(); ++i) {
      if (first.members[i].is_hole()) continue;
      const auto disk = chosen.disks.find(first.members[i].uuid);
      if (disk != chosen.disks.end()) {
        result.paths.push_back(found_[disk->second].path);
      } else {
        result.missing.push_back(fmt::format("disk {} ({})", i, first.members[i].uuid.to_string()));
      }
    }
    return result;
  }

 private:
  struct Found {
    std::string path;
    bool named = false;
    format::Label label;
    Slots slots;
  };
  struct Chosen {
    std::size_t table = 0;               // whose label has the newest table of members
    std::map<Uuid, std::size_t> disks;   // by UUID of the disk
    std::vector<std::size_t> strangers;  // have labels of the volume and know none of its commits
  };

  Status add(const std::string& path, const format::Label& label, bool named) {
    for (Found& other : found_) {
      if (other.label.disk_uuid != label.disk_uuid || !is_same_disk(path, other.path)) continue;
      if (named) return Error{Errc::kInvalidArgument, path + " is given twice"};
      return {};
    }
    (looks_around_ ? around_ : found_).push_back({path, named, label, slots_on(path, label)});
    return {};
  }

  // Beside disks with commits.
  bool is_about_to_join(const Found& disk) const { return disk.slots.newest == 0 && holds_commits(); }
  bool holds_commits() const {
    return std::any_of(found_.begin(), found_.end(), [](const Found& disk) { return !disk.slots.commits.empty(); });
  }

  void note_written_apart(const Chosen& chosen, FoundDisks& result) const {
    std::set<Uuid> known;
    for (const auto& [uuid, place] : chosen.disks)
      known.insert(found_[place].slots.commits.begin(), found_[place].slots.commits.end());
    const auto is_known = [&](const Uuid& commit) { return known.contains(commit); };
    for (const Found& disk : around_) {
      const auto is_member = [&](const Uuid& uuid) { return is_in_table(found_[chosen.table].label, uuid); };
      const auto& commits = disk.slots.commits;
      // A label alone proves nothing: any user who can write to a device can write one.
      if (is_member(disk.label.disk_uuid) || std::none_of(commits.begin(), commits.end(), is_known) ||
          former_member(disk.slots, is_member) != FormerMember::kWrittenApart)
        continue;
      result.written_apart.push_back(disk.path);
      spdlog::warn(
          "{}: was removed from the volume, and was written apart from {}. It may hold files that the volume "
          "lacks. Mount it with the other disks detached (-o degraded), copy the files that only it has, and "
          "then add it as a new disk",
          disk.path, found_[chosen.table].path);
    }
  }

  // A number for each disk, equal for those that commits join: each knows one that the other knows.
  std::vector<std::size_t> chains() const {
    std::vector<std::size_t> chain(found_.size());
    std::iota(chain.begin(), chain.end(), std::size_t{0});
    std::map<Uuid, std::size_t> holder;
    for (std::size_t i = 0; i < found_.size(); ++i)
      for (const Uuid& commit : found_[i].slots.commits) {
        const auto [first, is_new] = holder.emplace(commit, i);
        const std::size_t from = chain[i], to = chain[first->second];
        if (!is_new && from != to) std::replace(chain.begin(), chain.end(), from, to);
      }
    return chain;
  }

  // Without a named disk: the chain of most disks.
  Result<std::size_t> chain_to_trust(const std::vector<std::size_t>& chain) const {
    std::map<std::size_t, std::set<Uuid>> members;
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (!is_about_to_join(found_[i])) members[chain[i]].insert(found_[i].label.disk_uuid);
    const auto larger = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
    const auto most = std::max_element(members.begin(), members.end(), larger);
    for (const auto& [other, disks] : members)
      if (other != most->first && disks.size() == most->second.size())
        return Error{Errc::kForeignDisk, fmt::format("{} and {} are disks of one volume, but know no commit of each "
                                                     "other: name the right one",
                                                     found_[most->first].path, found_[other].path)};
    return most->first;
  }

  // What is left out must be less than what is taken: a disk that was named may itself be the one that is not what it
  // says, and an old state would silently take the place of the newest.
  Status check_strangers(const Chosen& chosen) const {
    std::set<Uuid> absent;
    std::string names;
    for (const std::size_t other : chosen.strangers) {
      const format::Label& label = found_[other].label;
      if (!is_in_table(found_[chosen.table].label, label.disk_uuid) || chosen.disks.contains(label.disk_uuid) ||
          found_[other].slots.newest == 0)
        continue;
      if (absent.insert(label.disk_uuid).second) names += (names.empty() ? "" : ", ") + found_[other].path;
    }
    if (absent.empty() || absent.size() < chosen.disks.size()) return {};
    return {Errc::kForeignDisk, fmt::format("{} and {} have labels of one volume, but know no commit of each other: "
                                            "name the disks to use, and detach the others",
                                            names, found_[chosen.disks.begin()->second].path)};
  }

  // A disk that the others gave up, and that was then written without any of them, is one half of a fork.
  Status check_former_members(const Chosen& chosen) const {
    const auto is_member = [&](const Uuid& uuid) { return is_in_table(found_[chosen.table].label, uuid); };
    for (const auto& [uuid, place] : chosen.disks) {
      const Found& disk = found_[place];
      if (is_member(uuid) || disk.slots.newest == 0) continue;
      if (former_member(disk.slots, is_member) == FormerMember::kWrittenApart)
        return {Errc::kFork,
                fmt::format("{} was removed from the volume, and was written apart from {}. Each side may hold files "
                            "that the other lacks. Mount one side with the disks of the other detached (-o degraded), "
                            "copy the files that only it has, and then add its disks to the other side as new ones",
                            disk.path, found_[chosen.table].path)};
      if (disk.named) spdlog::warn("{}: is no longer a member of the volume; it is left alone", disk.path);
    }
    return {};
  }

  // Any user with write access to a device can write a label. A disk that is not named therefore counts as a member
  // only if it knows a commit of the trusted chain. A named disk without commits, which was only about to join, has no
  // chain to trust.
  Result<Chosen> choose() const {
    const std::vector<std::size_t> chain = chains();
    std::set<std::size_t> trusted;
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (found_[i].named && !is_about_to_join(found_[i])) trusted.insert(chain[i]);
    // Without commits anywhere there is nothing to tell them apart by.
    const bool no_commits = !holds_commits();
    if (trusted.empty() && !no_commits) {
      MDFS_TRY_ASSIGN(const std::size_t one, chain_to_trust(chain));
      trusted.insert(one);
    }
    Chosen chosen;
    std::optional<std::size_t> table;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const Found& disk = found_[i];
      if (!disk.named && !no_commits && !trusted.contains(chain[i])) {
        chosen.strangers.push_back(i);
        continue;
      }
      // A disk that has left, or was away while others came, has an older table.
      if (!table || disk.label.membership > found_[*table].label.membership) table = i;
      const auto [place, is_new] = chosen.disks.emplace(disk.label.disk_uuid, i);
      if (is_new) continue;
      const Found& other = found_[place->second];
      if (other.named && !disk.named) continue;
      if (disk.named && !other.named) {
        place->second = i;
        continue;
      }
      return Error{Errc::kInvalidArgument,
                   fmt::format("{} and {} are copies of one disk: name the right one", other.path, disk.path)};
    }
    chosen.table = table.value_or(0);
    MDFS_TRY(check_strangers(chosen));
    return chosen;
  }

  std::optional<Uuid> volume_;
  std::vector<Found> found_;   // of this volume
  std::vector<Found> around_;  // the same, found after look_around()
  bool named_one_ = false;
  bool looks_around_ = false;
  std::optional<Error> other_version_;  // of a volume that was passed over
};

// A device that others are built on (a disk under device-mapper or a partition table) shows its label there too.
bool has_holders(const fs::path& in_sys) {
  std::error_code failure;
  return !fs::is_empty(in_sys / "holders", failure) && !failure;
}

// Reads of a device within kPatience, be it with an error. A process of its own reads: it cannot be ended before the
// device answers, and must not keep this one.
bool answers(const std::string& path) {
  AlignedBuffer sector(MDFS_SECTOR);  // before the fork: another thread may hold the lock of the heap
  const pid_t reader = ::fork();
  if (reader < 0) return true;  // the search itself finds out
  if (reader == 0) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd >= 0) (void)!::pread(fd, sector.data(), sector.size(), 0);
    ::_exit(0);
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (auto pause = std::chrono::microseconds(50);; pause = std::min(2 * pause, kLongestPause)) {
    if (::waitpid(reader, nullptr, WNOHANG) != 0) return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(pause);
  }
}

Status search_block_devices(Search& search) {
  std::error_code failure;
  std::vector<fs::path> devices;
  for (fs::directory_iterator it("/sys/class/block", failure), end; !failure && it != end; it.increment(failure))
    devices.push_back(it->path());
  std::sort(devices.begin(), devices.end());
  for (const fs::path& device : devices) {
    if (search.is_done()) return {};
    const std::string path = "/dev/" + device.filename().string();
    if (has_holders(device)) continue;
    if (answers(path))
      MDFS_TRY(search.try_candidate(path));
    else
      spdlog::warn("{}: does not answer, and is passed over", path);
  }
  return {};
}

bool is_directory(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_block_device(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISBLK(st.st_mode);
}

}  // namespace

FormerMember look_at_former_member(const std::string& path, const format::Label& label, const std::set<Uuid>& members) {
  return former_member(slots_on(path, label), [&](const Uuid& uuid) { return members.contains(uuid); });
}

Result<format::Label> read_label(const std::string& path) {
  MDFS_TRY_ASSIGN(Peek disk, Peek::open(path));
  const std::uint64_t end = align_down(disk.size_bytes(), MDFS_LABEL_AREA);
  std::optional<Error> error;
  bool is_readable = end < MDFS_LABELS_PER_DISK * MDFS_LABEL_AREA;
  std::optional<Error> read_error;
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{MDFS_LABEL_AREA}, end - 2 * MDFS_LABEL_AREA, end - MDFS_LABEL_AREA}) {
    if (end < MDFS_LABELS_PER_DISK * MDFS_LABEL_AREA) break;
    ByteVector sector(MDFS_SECTOR);
    if (Status done = disk.read(offset, sector); !done.ok()) {
      read_error = done.error();
      continue;
    }
    is_readable = true;
    auto label = format::decode_label(sector);
    if (label.ok()) return label;
    // A label of another version says more than a place without one.
    if (!error || is_other_version(label.error().code)) error = label.error();
  }
  if (error && is_other_version(error->code)) return Error{error->code, path};
  if (!is_readable && read_error)
    return Error{read_error->code, fmt::format("{}: no label can be read: {}", path, read_error->where)};
  return Error{Errc::kForeignDisk, path + " holds no MDFS volume"};
}

namespace {

// A disk without a label beside disks of a volume: a new disk in the place of one that was lost, or a wrong name.
Error with_advice(const Error& error, const std::string& path, const std::vector<std::string>& named) {
  const auto has_label = [&](const std::string& other) { return other != path && read_label(other).ok(); };
  const auto disk = std::find_if(named.begin(), named.end(), has_label);
  if (disk == named.end()) return error;
  // Disks in a cluster are not searched for.
  const std::string leave_out = fmt::format(
      "Leave {} out: {}", path,
      path.starts_with("rados:") ? "the other disks of the volume, all of them named, are mounted without it"
                                 : "the disks of the volume are found by any one of them");
  if (error.code == Errc::kIo)
    return {error.code, fmt::format("{}. {}, and it counts as missing", error.where, leave_out)};
  if (error.code != Errc::kForeignDisk) return error;
  return {error.code,
          fmt::format("{}; {} is a disk of a volume. {}. To put a new disk in the place of a lost one, mount "
                      "the others, then use 'mdfs disk add' for the new disk and 'mdfs disk remove' for the "
                      "lost one",
                      error.where, *disk, leave_out)};
}

}  // namespace

Result<FoundDisks> find_disks(const std::vector<std::string>& named) {
  if (named.empty()) return Error{Errc::kUsage, "no disk is named"};
  Search search;
  bool block_devices = false;
  for (const std::string& path : named) {
    if (is_directory(path)) continue;
    if (path.starts_with(kUuidPrefix)) {
      MDFS_TRY(search.want(std::string_view(path).substr(kUuidPrefix.size())));
      block_devices = true;
      continue;
    }
    if (const Status added = search.add_named(path); !added.ok()) return with_advice(added.error(), path, named);
    search.disk_was_named();
    block_devices = block_devices || is_block_device(path);
  }
  for (const std::string& path : named)
    if (is_directory(path)) MDFS_TRY(search.add_directory(path));
  if (search.complete() && search.may_have_former_members()) search.look_around();
  for (const std::string& path : named) {
    if (search.is_done()) break;
    if (is_directory(path) || is_block_device(path) || path.starts_with(kUuidPrefix) || !is_path(path)) continue;
    const fs::path parent = fs::path(path).parent_path();
    const Status tried = search.try_entries(parent.empty() ? "." : parent.string());
    if (!tried.ok() && !search.looks_around()) return tried.error();
  }
  // A loop device on a file of the volume is a second door to the same disk: where files are named, devices are not
  // mixed in.
  if (!search.is_done() && block_devices) MDFS_TRY(search_block_devices(search));
  if (!search.any()) return Error{Errc::kNotFound, "no disk of volume " + search.volume() + " on this machine"};
  return search.finish();
}

}  // namespace mdfs::device
