// Judging what a power cut leaves.
// SPDX-License-Identifier: Apache-2.0
#include "judge.h"

#include <sys/stat.h>

#include <utility>

#include "format/inode.h"
#include "store/check/check.h"
#include "store/labels.h"

namespace mdfs::crash {

using test::MemoryDisks;
using volume::Volume;

MemoryDisks clone(const MemoryDisks& disks) {
  MemoryDisks clones;
  for (const auto& disk : disks) clones.push_back(disk->clone());
  return clones;
}

std::vector<const device::MemoryDisk*> pointers(const MemoryDisks& disks) {
  std::vector<const device::MemoryDisk*> all;
  for (const auto& disk : disks) all.push_back(disk.get());
  return all;
}

Recording::Recording(const MemoryDisks& base, std::vector<device::Event> in_cache)
    : disks(clone(base)), log(std::move(in_cache)) {
  for (std::uint32_t i = 0; i < disks.size(); ++i) {
    recorders.push_back(std::make_unique<device::RecorderDisk>(*disks[i], log, i));
    doors.push_back(recorders.back().get());
  }
}

std::vector<device::Disk*> labelled(const MemoryDisks& disks) {
  std::vector<device::Disk*> found;
  for (const auto& disk : disks)
    if (store::read_labels(*disk).label) found.push_back(disk.get());
  return found;
}

namespace {

// A cut may leave a label or a commit slot that was being written; the others are there.
// Of a commit that is not finalized yet one copy of a node or of data may be missing.
bool is_expected(store::FindingId id, bool raw, bool finalized) {
  const bool half_written =
      id == store::FindingId::kLabelDamaged || id == store::FindingId::kCommitSlotMissing ||
      ((id == store::FindingId::kNodeCopyDamaged || id == store::FindingId::kPieceDamaged) && !finalized);
  return store::info(id).severity == store::Severity::kNote || (raw && half_written);
}

}  // namespace

std::string check_disks(const MemoryDisks& disks, Environment& environment, bool raw, std::set<std::uint64_t>* remade) {
  std::vector<std::unique_ptr<device::Disk>> doors;
  for (device::Disk* disk : labelled(disks)) doors.push_back(std::make_unique<test::BorrowedDisk>(*disk));
  store::CheckOptions options;
  options.data = true;
  const auto report = store::check_volume(std::move(doors), options, environment);
  if (!report.ok()) return "the checker: " + report.error().message();
  for (const store::Finding& finding : report->findings) {
    if (remade != nullptr && finding.id == store::FindingId::kDataDamaged && !report->finalized)
      remade->insert(finding.about.object);
    else if (!is_expected(finding.id, raw, report->finalized))
      return "the checker: " + std::string(store::info(finding.id).name) + ": " + finding.where;
  }
  return report->remaining() == 0 || raw ? "" : "the checker: findings that are not listed";
}

namespace {

bool is_level(Volume& volume, std::uint64_t object) {
  const auto value = volume.store().get({object, MDFS_KIND_INODE, 0});
  if (!value.ok() || !*value) return false;
  const auto inode = format::decode_inode(**value);
  return inode.ok() && inode->is_level();
}

// Mounted once more, the volume takes a file and keeps it.
std::string write_again(std::unique_ptr<Volume> volume, test::Tree tree, const MemoryDisks& disks,
                        Environment& environment) {
  Runner runner(*volume);
  const auto operations = parse_operations("create /after; write /after 0 5000; fsync /after; scrub");
  for (const Operation& operation : *operations) {
    const Status status = runner.run(operation, 77);
    if (!status.ok()) return operation.text() + ": " + status.error().message();
  }
  const auto with_file = test::read_tree(*volume);
  if (!with_file.ok()) return with_file.error().message();
  tree["/after"] = with_file->contains("/after") ? with_file->at("/after") : test::Seen{};
  if (*with_file != tree) return "writing a file changed others";
  const Status closed = volume->close();
  if (!closed.ok()) return "unmounting: " + closed.error().message();
  volume.reset();
  const std::string checked = check_disks(disks, environment, false);
  if (!checked.empty()) return checked;
  auto again = test::open_volume(labelled(disks), test::quiet_options(4u << 20), environment);
  if (!again.ok()) return "the second mount: " + again.error().message();
  const auto kept = test::read_tree(**again);
  if (!kept.ok()) return "after the second mount: " + kept.error().message();
  return *kept == tree ? "" : "the second mount shows something else";
}

// Reads images with second copies on the disks without one. Another commit may count without that disk: one that had
// not been finished, and promises nothing that the full volume does not have.
std::string read_without(const MemoryDisks& disks, std::size_t lost, const test::Tree& tree,
                         const std::vector<std::string>& images, std::uint64_t generation, Environment& environment) {
  std::vector<device::Disk*> rest;
  for (std::size_t i = 0; i < disks.size(); ++i)
    if (i != lost && store::read_labels(*disks[i]).label) rest.push_back(disks[i].get());
  volume::VolumeOptions options = judging_options();
  store::StoreOptions store_options;
  store_options.read_only = true;
  auto volume = test::open_volume(rest, options, environment, store_options);
  const std::string without = "without disk " + std::to_string(lost) + ": ";
  if (!volume.ok()) return without + volume.error().message();
  if ((*volume)->store().generation() != generation) return "";
  for (const std::string& path : images) {
    const test::Seen& seen = tree.at(path);
    ByteVector bytes(seen.size_bytes);
    const auto got = (*volume)->read(seen.ino, 0, bytes);
    if (!got.ok()) return without + path + ": " + got.error().message();
    if (as_text(ConstBytes(bytes).first(*got)) != seen.text) return without + path + ": other bytes";
  }
  return "";
}

std::string judge_losses(Volume& volume, const MemoryDisks& disks, const test::Tree& tree, Environment& environment) {
  std::vector<std::string> images;
  for (const auto& [path, seen] : tree) {
    if (!S_ISREG(seen.mode)) continue;
    const auto protection = volume.protection(seen.ino, {});
    if (!protection.ok()) return path + ": " + protection.error().message();
    if (!protection->copies) continue;
    if (protection->state.copied != protection->state.extents || protection->state.in_strips > 0)
      return path + ": an extent has one copy";
    images.push_back(path);
  }
  for (std::size_t lost = 0; lost < disks.size(); ++lost) {
    if (!store::read_labels(*disks[lost]).label) continue;
    std::string wrong = read_without(disks, lost, tree, images, volume.store().generation(), environment);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

volume::VolumeOptions judging_options() {
  volume::VolumeOptions options = test::quiet_options(4u << 20);
  options.engine.decode_threads = 1;
  return options;
}

std::string judge(const MemoryDisks& disks, const History& history, const Progress& progress, const Look& look,
                  std::uint64_t seed, const std::vector<Kept>& kept) {
  SeededEnvironment environment(seed);
  std::set<std::uint64_t> remade;
  if (look.checked) {
    const std::string checked = check_disks(disks, environment, true, &remade);
    if (!checked.empty()) return "before mounting: " + checked;
  }
  auto volume = test::open_volume(labelled(disks), judging_options(), environment);
  if (!volume.ok()) return "mounting: " + volume.error().message();
  for (const std::uint64_t object : remade)
    if (!is_level(**volume, object))
      return "before mounting: data of object " + std::to_string(object) + " are damaged";
  auto tree = test::read_tree(**volume);
  if (!tree.ok()) return tree.error().message();
  for (const Kept& file : kept) {
    if (file.promised && !tree->contains(file.path)) return file.path + " is not there, which was synced";
    tree->erase(file.path);
  }
  for (const auto& [path, seen] : *tree) {
    const auto levels = (*volume)->stored_levels(seen.ino);
    if (!S_ISREG(seen.mode) || !levels.ok() || levels->first == 0) continue;
    const Status checked = check_levels(**volume, seen.ino);
    if (!checked.ok()) return path + ": " + checked.error().message();
  }
  std::string wrong = history.explain(*tree, progress.returned, progress.started);
  if (wrong.empty()) wrong = test::find_inconsistency(**volume, false);
  if (wrong.empty() && look.lossy) wrong = judge_losses(**volume, disks, *tree, environment);
  if (wrong.empty() && look.thorough) wrong = write_again(std::move(*volume), std::move(*tree), disks, environment);
  return wrong;
}

}  // namespace mdfs::crash
