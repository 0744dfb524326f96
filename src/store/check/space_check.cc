// Space pages against the tree.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/space_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "format/space.h"

namespace mdfs::store {
namespace {

using format::DiskLayout;
using format::SpaceEntry;
using format::SpacePage;
using Entries = std::vector<std::vector<std::optional<SpaceEntry>>>;  // [level][page]

// Reads the pages of one level in order, many at once; both places of each, since they lie side by side.
class PageReader {
 public:
  PageReader(device::Disk& disk, const DiskLayout& layout, unsigned level)
      : disk_(disk), layout_(layout), level_(level) {}

  // The page at its valid place; good until the next call.
  Result<ConstBytes> read(std::uint64_t page, const SpaceEntry& entry) {
    if (page < first_ || page >= end_) MDFS_TRY(fill(page));
    return ConstBytes(buffer_.bytes()).subspan(((page - first_) * 2 + entry.place) * MDFS_SECTOR, MDFS_SECTOR);
  }

 private:
  static constexpr std::uint64_t kAtOnce = 128;

  Status fill(std::uint64_t page) {
    if (buffer_.empty()) buffer_ = AlignedBuffer(kAtOnce * 2 * MDFS_SECTOR);
    end_ = 0;
    std::uint64_t count = std::min(kAtOnce, layout_.space_pages(level_) - page);
    Status status = load(page, count);
    if (!status.ok() && count > 1) status = load(page, count = 1);  // others beside it may be unreadable
    if (status.ok()) {
      first_ = page;
      end_ = page + count;
    }
    return status;
  }

  Status load(std::uint64_t page, std::uint64_t count) {
    return device::read(disk_, layout_.space_offset({level_, page}, 0), buffer_.bytes().first(count * 2 * MDFS_SECTOR));
  }

  device::Disk& disk_;
  const DiskLayout& layout_;
  const unsigned level_;
  AlignedBuffer buffer_;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

std::string name_of(std::size_t disk, SpacePage page, const std::string& why) {
  return fmt::format("disk {}, level {}, page {}: {}", disk, page.level, page.page, why);
}

// Reads the pages of a level above the bitmaps and fills in the entries of the level below.
void read_level(device::Disk& disk, std::size_t index, const DiskLayout& layout, unsigned level, Entries& entries,
                Findings& findings) {
  entries[level - 1].resize(layout.space_pages(level - 1));
  PageReader reader(disk, layout, level);
  for (std::uint64_t page = 0; page < layout.space_pages(level); ++page) {
    const std::optional<SpaceEntry>& entry = entries[level][page];
    if (!entry) continue;
    const auto bytes = reader.read(page, *entry);
    auto below = bytes.ok() ? format::decode_space_page(layout, {level, page}, *entry, *bytes)
                            : Result<std::vector<SpaceEntry>>(bytes.error());
    if (!below.ok()) {
      findings.add(FindingId::kSpacePageDamaged, name_of(index, {level, page}, below.error().message()));
      continue;
    }
    for (std::size_t i = 0; i < below->size(); ++i) entries[level - 1][page * MDFS_ENTRIES_PER_PAGE + i] = (*below)[i];
  }
}

void read_disk(const Recovered& volume, std::size_t index, const DiskLayout& layout, SpacePages& pages,
               Findings& findings) {
  device::Disk& disk = *volume.members[index].disk;
  Entries& entries = pages.entries[index];
  entries.resize(layout.space_levels());
  entries.back() = {volume.winner.space[index]};
  for (unsigned level = layout.space_levels() - 1; level > 0; --level)
    read_level(disk, index, layout, level, entries, findings);
  pages.good[index].resize(layout.space_pages(0));
}

// Puts a changed page into the place that is not valid. Returns its new entry.
SpaceEntry write_page(const DiskLayout& layout, std::uint16_t disk, SpacePage page,
                      const std::optional<SpaceEntry>& old, std::uint64_t free_blocks, AlignedBuffer bytes,
                      std::vector<SectorWrite>& writes) {
  const std::uint32_t place = old ? 1 - old->place : 0;
  const SpaceEntry entry = format::make_space_entry(bytes.bytes(), place, free_blocks);
  writes.push_back({disk, layout.space_offset(page, place), std::move(bytes)});
  return entry;
}

SpaceEntry make_disk(const SpacePages& pages, const BlockMap& in_use, std::uint16_t disk,
                     std::vector<SectorWrite>& writes) {
  const DiskLayout& layout = in_use.layouts()[disk];
  const Entries& old = pages.entries[disk];
  std::vector<SpaceEntry> below;
  std::vector<bool> changed;
  for (std::uint64_t page = 0; page < layout.space_pages(0); ++page) {
    AlignedBuffer bytes(MDFS_SECTOR);
    in_use.make_page(disk, page, bytes.bytes());
    const std::uint64_t free_blocks = format::bitmap_free(bytes.bytes());
    const std::optional<SpaceEntry>& entry = old[0][page];
    const bool same = pages.good[disk][page] && crc32c(bytes.bytes()) == entry->crc32c;
    below.push_back(same ? *entry : write_page(layout, disk, {0, page}, entry, free_blocks, std::move(bytes), writes));
  }
  for (unsigned level = 1; level < layout.space_levels(); ++level) {
    std::vector<SpaceEntry> own;
    for (std::uint64_t page = 0; page < layout.space_pages(level); ++page) {
      const std::size_t first = page * MDFS_ENTRIES_PER_PAGE;
      const std::size_t last = std::min<std::size_t>(first + MDFS_ENTRIES_PER_PAGE, below.size());
      const std::vector<SpaceEntry> part(below.begin() + static_cast<std::ptrdiff_t>(first),
                                         below.begin() + static_cast<std::ptrdiff_t>(last));
      std::uint64_t free_blocks = 0;
      for (const SpaceEntry& entry : part) free_blocks += entry.free_blocks;
      AlignedBuffer bytes(MDFS_SECTOR);
      format::encode_space_page(part, bytes.bytes());
      const std::optional<SpaceEntry>& entry = old[level][page];
      // A page that was good has given its entries to the level below.
      const bool same = entry && crc32c(bytes.bytes()) == entry->crc32c && old[level - 1][first].has_value();
      own.push_back(same ? *entry
                         : write_page(layout, disk, {level, page}, entry, free_blocks, std::move(bytes), writes));
    }
    below = std::move(own);
  }
  return below.front();
}

}  // namespace

SpacePages read_space(const Recovered& volume, const std::vector<DiskLayout>& layouts, Findings& findings) {
  SpacePages pages;
  pages.entries.resize(layouts.size());
  pages.good.resize(layouts.size());
  for (std::size_t i = 0; i < layouts.size(); ++i)
    if (volume.members[i].healthy()) read_disk(volume, i, layouts[i], pages, findings);
  return pages;
}

void SpaceComparison::end_run() {
  if (kind_)
    (*kind_ == FindingId::kBlockLeaked ? leaks_ : findings_)
        .add(*kind_, fmt::format("disk {}: {} blocks from {}", disk_, end_ - first_, first_));
  kind_.reset();
}

void SpaceComparison::compare_page(const BlockMap& in_use, std::uint16_t disk, std::uint64_t page, ConstBytes bytes) {
  constexpr std::uint64_t kBits = 64;
  const DiskLayout& layout = in_use.layouts()[disk];
  const std::uint64_t* words = in_use.words(disk, page);
  const std::uint64_t start = page * MDFS_BITS_PER_PAGE;
  const std::uint64_t first = std::max(start, layout.first_usable());
  const std::uint64_t end = std::min(start + layout.bitmap_blocks(page), layout.end_usable());
  for (std::uint64_t block = first; block < end; ++block) {
    const std::uint64_t word = (block - start) / kBits;
    const std::uint64_t differs = words[word] ^ load_le<std::uint64_t>(bytes, 8 * word);
    if (!kind_ && differs == 0) {
      block = start + (word + 1) * kBits - 1;
      continue;
    }
    std::optional<FindingId> now;
    if (((differs >> (block % kBits)) & 1) != 0)
      now = in_use.get(disk, block) ? FindingId::kBlockMarkedFree : FindingId::kBlockLeaked;
    if (now != kind_ || disk != disk_) {
      end_run();
      kind_ = now;
      disk_ = disk;
      first_ = block;
    }
    end_ = block + 1;
  }
}

void SpaceComparison::compare(const BlockMap& in_use) {
  for (std::size_t index = 0; index < in_use.layouts().size(); ++index) {
    const auto disk = static_cast<std::uint16_t>(index);
    if (!in_use.mapped(disk)) continue;
    const DiskLayout& layout = in_use.layouts()[index];
    PageReader reader(*volume_.members[index].disk, layout, 0);
    for (std::uint64_t page = 0; page < layout.space_pages(0); ++page) {
      if (!in_use.in_section(disk, page)) continue;
      const std::optional<SpaceEntry>& entry = pages_.entries[index][0][page];
      Status status;
      if (entry) {
        const auto bytes = reader.read(page, *entry);
        status = bytes.ok() ? format::check_bitmap(layout, page, *entry, *bytes) : Status(bytes.error());
        if (status.ok()) {
          pages_.good[index][page] = true;
          compare_page(in_use, disk, page, *bytes);
          continue;
        }
        findings_.add(FindingId::kSpacePageDamaged, name_of(index, {0, page}, status.error().message()));
      }
      end_run();  // nothing is known of its blocks
    }
    if (in_use.in_section(disk, layout.space_pages(0) - 1)) end_run();
  }
}

Status merge_space(const Recovered& volume, const SpacePages& pages, BlockMap& taken) {
  for (std::size_t index = 0; index < taken.layouts().size(); ++index) {
    const auto disk = static_cast<std::uint16_t>(index);
    if (!taken.mapped(disk)) continue;
    PageReader reader(*volume.members[index].disk, taken.layouts()[index], 0);
    for (std::uint64_t page = 0; page < pages.good[index].size(); ++page) {
      if (!pages.good[index][page]) continue;
      MDFS_TRY_ASSIGN(const ConstBytes bytes, reader.read(page, *pages.entries[index][0][page]));
      taken.merge_page(disk, page, bytes);
    }
  }
  return {};
}

NewSpace make_space(const Recovered& volume, const SpacePages& pages, const BlockMap& in_use) {
  NewSpace made;
  for (std::size_t i = 0; i < in_use.layouts().size(); ++i)
    made.tops.push_back(volume.members[i].healthy()
                            ? make_disk(pages, in_use, static_cast<std::uint16_t>(i), made.writes)
                            : volume.winner.space[i]);
  return made;
}

}  // namespace mdfs::store
