// What must hold after a power cut.
// SPDX-License-Identifier: Apache-2.0
#include "crash_workload.h"

namespace mdfs::store {

Result<std::unique_ptr<Store>> open_labelled(const Disks& disks, Environment& environment) {
  std::vector<std::unique_ptr<device::Disk>> found;
  for (const auto& disk : disks)
    if (read_labels(*disk).label) found.push_back(std::make_unique<BorrowedDisk>(*disk));
  return Store::open(std::move(found), {}, environment);
}

std::uint64_t acknowledged_at(const std::vector<device::Event>& events, const device::Cut& cut) {
  return acknowledged_before(events, cut.position);
}

std::uint64_t acknowledged_before(const std::vector<device::Event>& events, std::size_t position) {
  std::uint64_t acknowledged = 0;
  for (std::size_t i = 0; i < position; ++i)
    if (events[i].kind == device::EventKind::kMark) acknowledged = events[i].value;
  return acknowledged;
}

void expect_data_intact(Store& store, const Model& state, const std::string& text) {
  for (auto item = state.lower_bound({kDataObject, 0, 0}); item != state.end(); ++item) {
    const ByteVector& value = item->second;
    AlignedBuffer data(load_le<std::uint32_t>(value, 16) * 4096);
    device::Disk& disk = store.disk(static_cast<unsigned>(load_le<std::uint64_t>(value, 0)));
    ASSERT_OK(device::read(disk, load_le<std::uint64_t>(value, 8) * 4096, data.bytes()));
    const ByteVector expected = value_of(data.size(), load_le<std::uint64_t>(value, 20));
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), data.data())) << text;
  }
}

// The checker finds every copy of every node good and marked in use, and all rings and space pages as they must be.
// What it says of the items is of no interest here: they are no files.
void expect_structure_is_sound(const Disks& disks, bool recovered, const std::string& text) {
  SeededEnvironment environment(1);
  std::vector<std::unique_ptr<device::Disk>> borrowed;
  for (const auto& disk : disks)
    if (read_labels(*disk).label) borrowed.push_back(std::make_unique<BorrowedDisk>(*disk));
  const auto report = check_volume(std::move(borrowed), {}, environment);
  ASSERT_OK(report);
  for (const Finding& finding : report->findings) {
    const FindingId id = finding.id;
    const bool copy = id == FindingId::kNodeCopyDamaged && (recovered || report->finalized);
    const bool structure = copy || id == FindingId::kNodeLost || id == FindingId::kNodeCount ||
                           id == FindingId::kNodeMisplaced || id == FindingId::kSpacePageDamaged ||
                           id == FindingId::kBlockMarkedFree || id == FindingId::kDiskStale ||
                           (recovered && (id == FindingId::kLabelDamaged || id == FindingId::kCommitSlotMissing));
    EXPECT_FALSE(structure) << text << ": " << info(finding.id).name << ": " << finding.where;
  }
}

// After a cut: a committed state, no older than the last one acknowledged, with its data; and the volume goes on.
void expect_recovers(const Disks& disks, const std::vector<Model>& states, std::uint64_t acknowledged,
                     const std::string& text) {
  SeededEnvironment environment(99);
  Model found;
  {
    auto store = open_labelled(disks, environment);
    ASSERT_TRUE(store.ok()) << text << ": " << store.error().message();
    EXPECT_FALSE((*store)->read_only()) << text << ": " << (*store)->read_only_reason();
    found = read_all(**store);
    const auto state = std::find(states.begin() + static_cast<std::ptrdiff_t>(acknowledged), states.end(), found);
    ASSERT_TRUE(state != states.end()) << text << ": no state since " << acknowledged;
    expect_data_intact(**store, found, text);
    const auto put = [&](Transaction& transaction) -> Status {
      transaction.put(item_key(7), value_of(300, 1));
      return {};
    };
    ASSERT_OK((*store)->transact(Purpose::kNormal, put));
    ASSERT_OK((*store)->commit());
    found[item_key(7)] = value_of(300, 1);
  }
  auto again = open_labelled(disks, environment);
  ASSERT_OK(again);
  ASSERT_TRUE(read_all(**again) == found) << text;
}

}  // namespace mdfs::store
