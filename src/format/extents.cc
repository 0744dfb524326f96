// Extent tables.
// SPDX-License-Identifier: Apache-2.0
#include "format/extents.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "format/fields.h"
#include "geometry/page.h"

namespace mdfs::format {
namespace {

constexpr std::size_t kFixed = offsetof(mdfs_extent_record, crc32c);
constexpr std::size_t kPageRoom = 4096;

Status check_record(ConstBytes record, const ExtentTableShape& shape) {
  const auto address = MDFS_GET(record, 0, mdfs_extent_record, address);
  const auto stored = MDFS_GET(record, 0, mdfs_extent_record, stored_bytes);
  MDFS_FORMAT_REQUIRE(address == MDFS_SCATTERED || Address::unpack(address).disk < MDFS_MAX_DISKS, "extents.record");
  const auto written = MDFS_GET(record, 0, mdfs_extent_record, written);
  MDFS_FORMAT_REQUIRE(written != 0 && written <= MDFS_GET(record, 0, mdfs_extent_record, birth), "extents.record");
  MDFS_FORMAT_REQUIRE(stored >= 1 && stored <= kMaxStoredBytes, "extents.record");
  MDFS_FORMAT_REQUIRE(shape.codec != MDFS_CODEC_RAW || stored == shape.extent_bytes, "extents.record");
  MDFS_FORMAT_REQUIRE(all_zero(record.subspan(kFixed + 4 * shape.checksums())), "extents.record");
  return {};
}

}  // namespace

Run run_at(std::uint64_t address, std::uint64_t stored_bytes, std::uint32_t block_size) {
  const Address first = Address::unpack(address);
  return {first.disk, first.block, static_cast<std::uint32_t>(ceil_div(stored_bytes, std::uint64_t{block_size}))};
}

unsigned ExtentTableShape::checksums() const {
  return codec == MDFS_CODEC_RAW ? static_cast<unsigned>(ceil_div(extent_bytes, MDFS_SUB_BLOCK)) : 1;
}

std::uint16_t ExtentTableShape::record_bytes() const {
  static_assert(geometry::record_bytes(1) == align_up(kFixed + 4, 8));
  return static_cast<std::uint16_t>(geometry::record_bytes(checksums()));
}

unsigned ExtentTableShape::places() const {
  return std::clamp(std::bit_floor(static_cast<unsigned>(kPageRoom / record_bytes())), 1u, kMaxPlaces);
}

StoredExtent ExtentRecord::stored(const ExtentTableShape& shape, std::uint32_t block_size) const {
  StoredExtent extent;
  if (!is_scattered()) extent.runs = {run_at(address, stored_bytes, block_size)};
  extent.has_runs_item = is_scattered();
  extent.birth = birth;
  extent.written = written;
  extent.stored_bytes = stored_bytes;
  extent.part_bytes = shape.codec == MDFS_CODEC_RAW ? std::uint32_t{MDFS_SUB_BLOCK} : stored_bytes;
  extent.crc32c = crc32c;
  return extent;
}

ExtentRecord ExtentRecord::of(const StoredExtent& extent) {
  const std::uint64_t address = extent.is_contiguous() ? extent.first().address().packed() : MDFS_SCATTERED;
  return {address, extent.birth, extent.written, extent.stored_bytes, extent.crc32c};
}

unsigned ExtentPage::count() const { return static_cast<unsigned>(std::popcount(present_)); }

std::size_t ExtentPage::offset_of(unsigned place) const {
  MDFS_CHECK(place < shape_.places());
  const std::uint64_t before = present_ & ((std::uint64_t{1} << place) - 1);
  return static_cast<std::size_t>(std::popcount(before)) * shape_.record_bytes();
}

std::optional<ExtentRecord> ExtentPage::get(unsigned place) const {
  if (!has(place)) return std::nullopt;
  const ConstBytes bytes = ConstBytes(records_).subspan(offset_of(place), shape_.record_bytes());
  ExtentRecord record;
  record.address = MDFS_GET(bytes, 0, mdfs_extent_record, address);
  record.birth = MDFS_GET(bytes, 0, mdfs_extent_record, birth);
  record.written = MDFS_GET(bytes, 0, mdfs_extent_record, written);
  record.stored_bytes = MDFS_GET(bytes, 0, mdfs_extent_record, stored_bytes);
  for (std::size_t i = 0; i < shape_.checksums(); ++i)
    record.crc32c.push_back(load_le<std::uint32_t>(bytes, kFixed + 4 * i));
  return record;
}

std::optional<GroupPiece> ExtentPage::piece(unsigned place, std::uint32_t block_size) const {
  if (!has(place)) return std::nullopt;
  const ConstBytes bytes = ConstBytes(records_).subspan(offset_of(place), shape_.record_bytes());
  const auto address = MDFS_GET(bytes, 0, mdfs_extent_record, address);
  if (address == MDFS_SCATTERED) return std::nullopt;
  const auto stored_bytes = MDFS_GET(bytes, 0, mdfs_extent_record, stored_bytes);
  return GroupPiece{run_at(address, stored_bytes, block_size), stored_bytes};
}

void ExtentPage::set(unsigned place, const ExtentRecord& record) {
  MDFS_CHECK(record.crc32c.size() == shape_.checksums() && record.written != 0 && record.written <= record.birth);
  const std::size_t offset = offset_of(place);
  if (!has(place)) {
    records_.insert(records_.begin() + static_cast<std::ptrdiff_t>(offset), shape_.record_bytes(), std::byte{0});
    present_ |= std::uint64_t{1} << place;
  }
  const MutableBytes bytes = MutableBytes(records_).subspan(offset, shape_.record_bytes());
  MDFS_PUT(bytes, 0, mdfs_extent_record, address, record.address);
  MDFS_PUT(bytes, 0, mdfs_extent_record, birth, record.birth);
  MDFS_PUT(bytes, 0, mdfs_extent_record, written, record.written);
  MDFS_PUT(bytes, 0, mdfs_extent_record, stored_bytes, record.stored_bytes);
  for (std::size_t i = 0; i < record.crc32c.size(); ++i)
    store_le<std::uint32_t>(bytes, kFixed + 4 * i, record.crc32c[i]);
}

void ExtentPage::erase(unsigned place) {
  if (!has(place)) return;
  const auto first = records_.begin() + static_cast<std::ptrdiff_t>(offset_of(place));
  records_.erase(first, first + shape_.record_bytes());
  present_ &= ~(std::uint64_t{1} << place);
}

ByteVector ExtentPage::encode() const {
  MDFS_CHECK(!empty());
  ByteVector out(sizeof(mdfs_extent_page));
  MDFS_PUT(out, 0, mdfs_extent_page, record_bytes, shape_.record_bytes());
  MDFS_PUT(out, 0, mdfs_extent_page, count, static_cast<std::uint16_t>(count()));
  MDFS_PUT(out, 0, mdfs_extent_page, checksum_type, std::uint8_t{MDFS_CHECKSUM_CRC32C});
  put_bytes(out, offsetof(mdfs_extent_page, reserved), reserved_);
  MDFS_PUT(out, 0, mdfs_extent_page, present, present_);
  out.insert(out.end(), records_.begin(), records_.end());
  return out;
}

Result<ExtentPage> ExtentPage::decode(ConstBytes value, const ExtentTableShape& shape) {
  MDFS_FORMAT_REQUIRE(value.size() >= sizeof(mdfs_extent_page), "extents.length");
  if (MDFS_GET(value, 0, mdfs_extent_page, checksum_type) != MDFS_CHECKSUM_CRC32C)
    return {Errc::kNewerFormat, "extents.checksum-type"};
  MDFS_FORMAT_REQUIRE(MDFS_GET(value, 0, mdfs_extent_page, record_bytes) == shape.record_bytes(),
                      "extents.record-bytes");
  ExtentPage page(shape);
  page.present_ = MDFS_GET(value, 0, mdfs_extent_page, present);
  get_bytes(value, offsetof(mdfs_extent_page, reserved), page.reserved_);
  MDFS_FORMAT_REQUIRE(page.present_ != 0 && MDFS_GET(value, 0, mdfs_extent_page, count) == page.count(),
                      "extents.present");
  MDFS_FORMAT_REQUIRE(std::bit_width(page.present_) <= shape.places(), "extents.present");
  const ConstBytes records = value.subspan(sizeof(mdfs_extent_page));
  MDFS_FORMAT_REQUIRE(records.size() == std::size_t{page.count()} * shape.record_bytes(), "extents.length");
  for (std::size_t i = 0; i < page.count(); ++i)
    MDFS_TRY(check_record(records.subspan(i * shape.record_bytes(), shape.record_bytes()), shape));
  page.records_.assign(records.begin(), records.end());
  return page;
}

ByteVector encode_extent_runs(const Runs& runs) {
  ByteVector out(runs.size() * sizeof(mdfs_extent_run));
  MDFS_CHECK(!runs.empty() && out.size() <= MDFS_MAX_ITEM);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t base = i * sizeof(mdfs_extent_run);
    MDFS_CHECK(runs[i].blocks >= 1);
    MDFS_PUT(out, base, mdfs_extent_run, address, runs[i].address().packed());
    MDFS_PUT(out, base, mdfs_extent_run, blocks, runs[i].blocks);
  }
  return out;
}

Result<Runs> decode_extent_runs(ConstBytes value, std::uint64_t blocks) {
  MDFS_FORMAT_REQUIRE(!value.empty() && value.size() % sizeof(mdfs_extent_run) == 0, "extent-runs.length");
  Runs runs;
  std::uint64_t sum = 0;
  for (std::size_t base = 0; base < value.size(); base += sizeof(mdfs_extent_run)) {
    const Address first = Address::unpack(MDFS_GET(value, base, mdfs_extent_run, address));
    const Run run{first.disk, first.block, MDFS_GET(value, base, mdfs_extent_run, blocks)};
    MDFS_FORMAT_REQUIRE(run.blocks >= 1 && run.disk < MDFS_MAX_DISKS, "extent-runs.run");
    sum += run.blocks;
    runs.push_back(run);
  }
  MDFS_FORMAT_REQUIRE(sum == blocks, "extent-runs.blocks");
  return runs;
}

Key extent_runs_key(const Key& page, unsigned place) {
  return {page.object, MDFS_KIND_EXTENT_RUNS, page.offset * kMaxPlaces + place};
}

}  // namespace mdfs::format
