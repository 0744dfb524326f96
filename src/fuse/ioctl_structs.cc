// Checking and converting the ioctl structures.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ioctl_structs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "base/checked.h"
#include "base/text.h"
#include "codec/codec_table.h"
#include "geometry/default_extent.h"
#include "geometry/parity_box.h"

namespace mdfs::fuse {
namespace {

using geometry::Geometry;

Error bad(std::string where) { return {Errc::kInvalidArgument, "ioctl: " + std::move(where)}; }

bool all_zero(const auto& values) {
  return std::all_of(std::begin(values), std::end(values), [](auto value) { return value == 0; });
}

// A text of at most `room` bytes, zero padded.
Result<std::string> text_of(std::span<const char> room, std::string_view field) {
  const std::size_t length = strnlen(room.data(), room.size());
  if (length == room.size()) return bad(fmt::format("{} is not zero padded", field));
  if (!all_zero(room.subspan(length))) return bad(fmt::format("{} has bytes behind its end", field));
  return std::string(room.data(), length);
}

void put_text(std::span<char> room, std::string_view text) {
  const std::size_t length = std::min(text.size(), room.size() - 1);
  std::copy_n(text.begin(), length, room.begin());
}

void put_reason(std::span<char> room, std::string_view text) { put_text(room, shortened(text, room.size() - 1)); }

// A request that says its size and nothing else.
template <typename T>
Status check_empty(const T& in) {
  if (in.struct_bytes != sizeof in) return bad(fmt::format("struct_bytes is {}, not {}", in.struct_bytes, sizeof in));
  T plain{};
  plain.struct_bytes = in.struct_bytes;
  static_assert(std::has_unique_object_representations_v<T>);
  if (std::memcmp(&plain, &in, sizeof in) != 0) return bad("flags, answers and reserved fields must be zero");
  return {};
}

Status check_reserved(const mdfs_ioc_geometry& in) {
  if (in.struct_bytes != sizeof in) return bad(fmt::format("struct_bytes is {}, not {}", in.struct_bytes, sizeof in));
  if (!all_zero(in.reserved0) || !all_zero(in.reserved1)) return bad("reserved fields must be zero");
  if ((in.size_bytes | in.stored_bytes | in.data_generation | in.placement_base) != 0)
    return bad("size_bytes to placement_base are answers and must be zero");
  if (in.rank < 1 || in.rank > geometry::kMaxRank)
    return bad(fmt::format("rank {} is not in 1..{}", in.rank, geometry::kMaxRank));
  if (!all_zero(std::span(in.shape).subspan(in.rank)) || !all_zero(std::span(in.extent).subspan(in.rank)))
    return bad("axes beyond the rank must be zero");
  if (!all_zero(std::span(in.spacing).subspan(in.rank))) return bad("spacings beyond the rank must be zero");
  for (const auto& unit : std::span(in.unit).subspan(in.rank))
    if (!all_zero(unit)) return bad("units beyond the rank must be zero");
  return {};
}

Status read_axes(const mdfs_ioc_geometry& in, Geometry& geometry) {
  MDFS_TRY_ASSIGN(geometry.axes, text_of(in.axes, "axes"));
  if (geometry.axes.empty()) geometry.axes = geometry::default_axes(geometry.rank, false, geometry.channels > 1);
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    if (!std::isfinite(in.spacing[axis]) || in.spacing[axis] < 0) return bad("spacing must be a number of at least 0");
    geometry.spacing[axis] = in.spacing[axis];
    MDFS_TRY_ASSIGN(geometry.unit[axis], text_of(in.unit[axis], "unit"));
  }
  return {};
}

Result<Geometry> read_geometry(const mdfs_ioc_geometry& in) {
  Geometry geometry;
  geometry.rank = in.rank;
  geometry.channels = in.channels;
  if (in.type < 1 || in.type > static_cast<unsigned>(geometry::ElementType::kF64))
    return bad(fmt::format("type {} is unknown", in.type));
  geometry.type = static_cast<geometry::ElementType>(in.type);
  if (in.codec >= geometry::kCodecs) return bad(fmt::format("codec {} is unknown", in.codec));
  geometry.codec = static_cast<geometry::Codec>(in.codec);
  geometry.codec_level = in.codec_level;
  MDFS_TRY(codec::check_level(geometry.codec, geometry.codec_level));
  if (in.policy >= geometry::kAllocationPolicies) return bad(fmt::format("policy {} is unknown", in.policy));
  geometry.policy = static_cast<geometry::AllocationPolicy>(in.policy);
  if (geometry.channels == 0) return bad("channels must be at least 1");
  std::copy_n(in.shape, geometry::kMaxRank, geometry.shape.begin());
  std::copy_n(in.extent, geometry::kMaxRank, geometry.extent.begin());
  MDFS_TRY(read_axes(in, geometry));
  if (all_zero(in.extent))
    geometry.extent = geometry::default_extent(geometry.rank, geometry.shape, geometry.sample_bytes(), geometry.axes);
  MDFS_TRY(geometry::check(geometry));
  geometry.extent = geometry::trimmed_extent(geometry);
  MDFS_TRY(geometry::check_extent(geometry));
  return geometry;
}

Result<std::optional<unsigned>> offset_of(std::int32_t value, std::string_view field) {
  if (value < -1) return bad(fmt::format("{} must be -1 or a number of slots", field));
  if (value == -1) return std::optional<unsigned>{};
  return std::optional<unsigned>{static_cast<unsigned>(value)};
}

}  // namespace

Result<volume::ImageOptions> to_image_options(const mdfs_ioc_geometry& in) {
  MDFS_TRY(check_reserved(in));
  volume::ImageOptions options;
  MDFS_TRY_ASSIGN(options.geometry, read_geometry(in));
  if (in.placed_disks > MDFS_IOC_MAX_DISKS) return bad(fmt::format("placed_disks {} is too large", in.placed_disks));
  if (in.placed_disks != 0) options.disks = in.placed_disks;
  MDFS_TRY_ASSIGN(options.row_offset, offset_of(in.row_offset, "row_offset"));
  MDFS_TRY_ASSIGN(options.plane_offset, offset_of(in.plane_offset, "plane_offset"));
  return options;
}

Result<views::WindowName> to_window(const Geometry& image, const mdfs_ioc_window& in) {
  if (in.struct_bytes != sizeof in) return bad(fmt::format("struct_bytes is {}, not {}", in.struct_bytes, sizeof in));
  if ((in.flags | in.reserved0) != 0 || !all_zero(in.reserved1)) return bad("flags and reserved fields must be zero");
  if (in.rank != image.rank) return bad(fmt::format("rank {}; the image has {}", in.rank, image.rank));
  if (!all_zero(std::span(in.start).subspan(in.rank)) || !all_zero(std::span(in.length).subspan(in.rank)))
    return bad("axes beyond the rank must be zero");
  views::WindowName name{.window = {}, .format = views::Format::kRaw, .level = in.level};
  std::copy_n(in.start, geometry::kMaxRank, name.window.start.begin());
  std::copy_n(in.length, geometry::kMaxRank, name.window.length.begin());
  if (in.channel < -1) return bad("channel must be -1 or the number of a channel");
  if (in.channel >= 0) name.window.channel = static_cast<unsigned>(in.channel);
  if (in.level == 0) {
    MDFS_TRY(geometry::check(image, name.window));
  } else {
    MDFS_TRY_ASSIGN(const Geometry level, views::level_of(image, name));
    MDFS_TRY(geometry::check(level, name.window));
  }
  return name;
}

Result<volume::OperationRequest> to_operation_request(const mdfs_ioc_operation& in, volume::Ino ino) {
  if (in.struct_bytes != sizeof in) return bad(fmt::format("struct_bytes is {}, not {}", in.struct_bytes, sizeof in));
  if (in.kind < MDFS_OPERATION_SCRUB || in.kind > MDFS_OPERATION_PROTECT)
    return bad(fmt::format("operation {} is unknown", in.kind));
  if (in.action > MDFS_IOC_OPERATION_RESUME) return bad(fmt::format("action {} is unknown", in.action));
  if ((in.flags & ~format::kOperationFlags) != 0) return bad(fmt::format("flags {:#x} are unknown", in.flags));
  mdfs_ioc_operation plain{};
  plain.struct_bytes = in.struct_bytes;
  plain.kind = in.kind;
  plain.action = in.action;
  const bool starts = in.action == MDFS_IOC_OPERATION_START;
  if (starts || in.action == MDFS_IOC_OPERATION_RESUME) plain.budget_bytes_s = in.budget_bytes_s;
  if (starts) {
    plain.flags = in.flags;
    plain.threshold = in.threshold;
    std::copy_n(in.parameters, std::size(in.parameters), plain.parameters);
  }
  static_assert(std::has_unique_object_representations_v<mdfs_ioc_operation>);
  if (std::memcmp(&plain, &in, sizeof in) != 0)
    return bad("what the action does not take, answers and reserved fields must be zero");
  volume::OperationRequest request;
  request.kind = static_cast<volume::OperationKind>(in.kind);
  request.dry_run = (in.flags & MDFS_OPERATION_DRY_RUN) != 0;
  request.object = (in.flags & MDFS_OPERATION_OBJECT) != 0 ? ino : 0;
  request.budget_bytes_s = in.budget_bytes_s;
  request.threshold = in.threshold;
  std::copy_n(in.parameters, std::size(in.parameters), request.parameters.begin());
  return request;
}

mdfs_ioc_operation to_ioc_operation(const volume::OperationRecord& record, const mdfs_ioc_operation& asked,
                                    std::uint32_t block_size) {
  mdfs_ioc_operation out{};
  out.struct_bytes = sizeof out;
  out.kind = asked.kind;
  out.action = asked.action;
  out.flags = record.flags;
  out.budget_bytes_s = record.budget_bytes_s;
  out.threshold = record.threshold;
  std::copy(record.parameters.begin(), record.parameters.end(), out.parameters);
  out.state = record.state;
  out.block_size = block_size;
  out.object = record.object;
  out.started_ns = record.started_ns;
  out.updated_ns = record.updated_ns;
  out.work_ns = record.work_ns;
  out.bytes_total = record.bytes_total;
  out.bytes_done = record.bytes_done;
  out.items_total = record.items_total;
  out.items_done = record.items_done;
  out.items_changed = record.items_changed;
  out.items_failed = record.items_failed;
  std::copy(record.figures.begin(), record.figures.end(), out.figures);
  put_reason(out.reason, record.reason);
  out.disk_count = static_cast<std::uint32_t>(std::min<std::size_t>(record.disks.size(), MDFS_IOC_MAX_DISKS));
  for (std::uint32_t i = 0; i < out.disk_count; ++i) {
    const format::OperationDisk& disk = record.disks[i];
    out.disks[i] = {disk.read_bytes, disk.written_bytes, disk.repaired, disk.failed};
  }
  out.error_count = static_cast<std::uint32_t>(std::min<std::size_t>(record.errors.size(), MDFS_IOC_MAX_ERRORS));
  for (std::uint32_t i = 0; i < out.error_count; ++i) {
    const format::OperationError& error = record.errors[i];
    out.errors[i] = {error.object, error.offset, error.block, error.disk, error.what, 0};
  }
  return out;
}

Status check_disks_request(const mdfs_ioc_disks& in) {
  if (in.struct_bytes != sizeof in) return bad(fmt::format("struct_bytes is {}, not {}", in.struct_bytes, sizeof in));
  if ((in.flags & ~MDFS_IOC_DISKS_RESET) != 0) return bad(fmt::format("flags {:#x} are unknown", in.flags));
  mdfs_ioc_disks plain{};
  plain.struct_bytes = in.struct_bytes;
  plain.flags = in.flags;
  static_assert(std::has_unique_object_representations_v<mdfs_ioc_disks>);
  if (std::memcmp(&plain, &in, sizeof in) != 0) return bad("answers and reserved fields must be zero");
  return {};
}

mdfs_ioc_disks to_ioc_disks(const std::vector<volume::DiskStatistic>& disks, std::uint32_t flags) {
  mdfs_ioc_disks out{};
  out.struct_bytes = sizeof out;
  out.flags = flags;
  out.disk_count = static_cast<std::uint32_t>(std::min<std::size_t>(disks.size(), MDFS_IOC_MAX_DISKS));
  for (std::uint32_t i = 0; i < out.disk_count; ++i) {
    const volume::DiskStatistic& disk = disks[i];
    const format::DiskErrors& errors = disk.errors;
    out.disks[i] = {disk.reads,          disk.writes,
                    disk.flushes,        disk.read_bytes,
                    disk.written_bytes,  errors.since_ns,
                    errors.read_errors,  errors.write_errors,
                    errors.flush_errors, errors.checksum_errors,
                    errors.repaired,     static_cast<std::uint64_t>(disk.slowness * 100)};
  }
  return out;
}

mdfs_ioc_geometry to_ioc_geometry(const volume::ImageInfo& info) {
  const Geometry& geometry = info.geometry;
  mdfs_ioc_geometry out{};
  out.struct_bytes = sizeof out;
  out.rank = static_cast<std::uint8_t>(geometry.rank);
  out.type = static_cast<std::uint8_t>(geometry.type);
  out.channels = static_cast<std::uint16_t>(geometry.channels);
  out.codec = static_cast<std::uint8_t>(geometry.codec);
  out.codec_level = static_cast<std::int8_t>(geometry.codec_level);
  out.policy = static_cast<std::uint8_t>(geometry.policy);
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    out.shape[axis] = geometry.shape[axis];
    out.extent[axis] = static_cast<std::uint32_t>(geometry.extent[axis]);
    out.spacing[axis] = geometry.spacing[axis];
    put_text(out.unit[axis], geometry.unit[axis]);
  }
  out.placed_disks = info.placement.disks;
  put_text(out.axes, geometry.axes);
  out.row_offset = -1;
  out.plane_offset = -1;
  out.size_bytes = info.size_bytes;
  out.stored_bytes = info.stored_bytes;
  out.data_generation = info.data_generation;
  out.placement_base = info.base;
  return out;
}

mdfs_ioc_plan to_ioc_plan(const engine::WindowPlan& plan) {
  mdfs_ioc_plan out{};
  out.extents = plan.extents;
  out.holes = plan.holes;
  out.cached = plan.cached;
  out.disk_count = static_cast<std::uint32_t>(std::min<std::size_t>(plan.disks.size(), MDFS_IOC_MAX_DISKS));
  for (std::uint32_t i = 0; i < out.disk_count; ++i) {
    out.disks[i].bytes = plan.disks[i].bytes;
    out.disks[i].requests = plan.disks[i].requests;
    out.disks[i].runs = plan.disks[i].runs;
  }
  return out;
}

mdfs_ioc_volume to_ioc_volume(volume::Volume& volume) {
  store::Store& store = volume.store();
  (void)store.examine_disks();
  mdfs_ioc_volume out{};
  std::copy(store.volume_uuid().octets.begin(), store.volume_uuid().octets.end(), out.uuid);
  put_text(out.name, store.volume_name());
  out.block_size = store.block_size();
  out.disk_count = std::min(store.disk_count(), unsigned{MDFS_IOC_MAX_DISKS});
  out.generation = store.generation();
  const store::SpaceInfo space = volume.space();
  out.total_blocks = space.total_blocks;
  out.free_blocks = space.free_blocks;
  out.available_blocks = space.available_blocks;
  out.objects = space.objects;
  out.spare_disks = space.spare_disks;
  out.spare_blocks = space.spare_blocks;
  const engine::CacheStats cache = volume.engine().cache_stats();
  out.cache_budget_bytes = cache.budget_bytes;
  out.cache_bytes = cache.bytes;
  out.cache_dirty_bytes = cache.dirty_bytes;
  out.cache_hits = cache.hits;
  out.cache_misses = cache.misses;
  out.read_only = store.read_only();
  out.policy = static_cast<std::uint32_t>(store.policy());
  out.commit_room_bytes = store::kCommitRoomBytes;
  out.flags = (volume.engine().zeroes_lost() ? MDFS_VOLUME_ZEROES_LOST : 0) |
              (volume.store().wants_spread() ? MDFS_VOLUME_SPREADING : 0) |
              ((volume.store().features_ro_compat() & MDFS_RO_COMPAT_PROTECTION) != 0 ? MDFS_VOLUME_COPIES : 0) |
              (space.is_rebuilt ? 0 : MDFS_VOLUME_TO_REBUILD);
  put_reason(out.read_only_reason, store.read_only_reason());
  for (unsigned i = 0; i < out.disk_count; ++i) {
    const store::DiskInfo disk = store.disk_info(i);
    std::copy(disk.uuid.octets.begin(), disk.uuid.octets.end(), out.disks[i].uuid);
    out.disks[i].state = static_cast<std::uint32_t>(disk.state);
    out.disks[i].weight = disk.weight;
    out.disks[i].blocks = disk.blocks;
    out.disks[i].free_blocks = disk.free_blocks;
    out.disks[i].device_bytes = disk.device_bytes;
    out.disks[i].room_below_bytes = store.room_below(i);
    out.disks[i].out_generation = disk.out_generation;
    out.disks[i].out_ns = disk.out_ns;
    put_text(out.disks[i].name, shortened_start(disk.name, sizeof out.disks[i].name - 1));
  }
  return out;
}

mdfs_ioc_fragmentation to_ioc_fragmentation(const volume::VolumeFragmentation& found, const volume::HomeState& home) {
  const layout::Fragmentation& fragmentation = found.fragmentation;
  mdfs_ioc_fragmentation out{};
  out.images = found.images;
  out.extents = fragmentation.extents;
  out.misplaced = fragmentation.misplaced;
  out.scattered = fragmentation.scattered;
  out.windows = fragmentation.windows;
  out.runs_per_disk = fragmentation.runs_per_disk();
  out.runs_on_busiest = fragmentation.runs_on_busiest();
  out.fresh_runs_per_disk = fragmentation.fresh_runs_per_disk();
  out.fresh_runs_on_busiest = fragmentation.fresh_runs_on_busiest();
  out.read_per_needed = fragmentation.read_per_needed();
  out.factor = fragmentation.factor();
  out.imbalance = fragmentation.imbalance();
  out.worst_factor = found.worst_factor;
  out.worst_inode = found.worst;
  out.complete = found.complete ? 1 : 0;
  out.relocated_home = home.relocated;
  out.relocated_home_bytes = home.relocated_bytes;
  out.away_from_home = home.away_from_home;
  return out;
}

mdfs_ioc_layout to_ioc_layout(const volume::LayoutPage& page) {
  mdfs_ioc_layout out{};
  out.next = page.next.page;
  out.next_row = page.next.row;
  out.block_size = page.block_size;
  out.disk_count = page.disk_count;
  out.count = static_cast<std::uint32_t>(std::min<std::size_t>(page.rows.size(), MDFS_IOC_LAYOUT_ROWS));
  for (std::uint32_t i = 0; i < out.count; ++i) {
    const layout::ExtentPlace& place = page.rows[i];
    std::copy(place.index.begin(), place.index.end(), out.rows[i].index);
    out.rows[i].disk = place.disk;
    out.rows[i].block = place.block;
    out.rows[i].stored_bytes = place.stored_bytes;
    out.rows[i].flags = (place.in_strip ? MDFS_IOC_LAYOUT_STRIP : 0) | (place.is_copy ? MDFS_IOC_LAYOUT_COPY : 0) |
                        (place.is_parity ? MDFS_IOC_LAYOUT_PARITY : 0) | (place.is_leaver ? MDFS_IOC_LAYOUT_LEAVER : 0);
  }
  return out;
}

Status check_levels_request(const mdfs_ioc_levels& in) {
  if (in.struct_bytes != sizeof in) return bad("struct_bytes");
  if (in.action > MDFS_IOC_LEVELS_SET) return bad("action");
  if (!all_zero(in.reserved)) return bad("reserved fields must be zero");
  const bool sets = in.action == MDFS_IOC_LEVELS_SET;
  if (in.reduction > (sets ? geometry::kReductions : 0)) return bad("reduction");
  return {};
}

mdfs_ioc_levels to_ioc_levels(const volume::LevelsInfo& info) {
  mdfs_ioc_levels out{};
  out.struct_bytes = sizeof out;
  out.count = static_cast<std::uint32_t>(std::min<std::size_t>(info.levels.size(), MDFS_IOC_MAX_LEVELS));
  out.reduction = out.count > 0 ? static_cast<std::uint32_t>(info.reduction) : 0;
  for (std::uint32_t i = 0; i < out.count; ++i) {
    out.levels[i].extents = info.levels[i].extents;
    out.levels[i].built = info.levels[i].built;
    out.levels[i].stored_bytes = info.levels[i].stored_bytes;
    out.levels[i].inode = info.levels[i].ino;
  }
  return out;
}

Status check_protection_request(const mdfs_ioc_protection& in) {
  if (in.struct_bytes != sizeof in) return bad("struct_bytes");
  if (in.action > MDFS_IOC_PROTECTION_SET) return bad("action");
  if (in.action == MDFS_IOC_PROTECTION_SET ? in.copies != 1 && in.copies != 2 : in.copies != 0) return bad("copies");
  const std::uint32_t groups = in.group_members;
  const bool is_known = groups == 0 || geometry::is_parity_width(groups) || groups == MDFS_IOC_PROTECTION_USUAL_GROUPS;
  if (!is_known || (groups > 1 && in.copies != 2)) return bad("group_members");
  mdfs_ioc_protection plain{};
  plain.group_members = groups;
  plain.struct_bytes = in.struct_bytes;
  plain.action = in.action;
  plain.copies = in.copies;
  static_assert(std::has_unique_object_representations_v<mdfs_ioc_protection>);
  if (std::memcmp(&plain, &in, sizeof in) != 0) return bad("answers and reserved fields must be zero");
  return {};
}

mdfs_ioc_protection to_ioc_protection(const volume::Protection& protection, bool is_converting) {
  mdfs_ioc_protection out{};
  out.struct_bytes = sizeof out;
  out.copies = protection.copies ? 2 : 1;
  out.group_members = protection.copies ? protection.group_members : 0;
  out.grouped = protection.state.grouped;
  out.grouped_bytes = protection.state.grouped_bytes;
  out.is_image = protection.is_image ? 1 : 0;
  out.is_directory = protection.is_directory ? 1 : 0;
  out.extents = protection.state.extents;
  out.copied = protection.state.copied;
  out.stored_bytes = protection.state.stored_bytes;
  out.copied_bytes = protection.state.copied_bytes;
  out.lost = protection.state.lost;
  out.lost_bytes = protection.state.lost_bytes;
  out.in_strips = protection.state.in_strips > 0 ? 1 : 0;
  out.is_converting = is_converting ? 1 : 0;
  return out;
}

Status check_lost_request(const mdfs_ioc_lost& in) {
  return in.reserved0 == 0 && all_zero(in.reserved) ? Status() : Status(bad("reserved fields must be zero"));
}

mdfs_ioc_lost to_ioc_lost(const volume::LostFiles& found) {
  mdfs_ioc_lost out{};
  out.next = found.next;
  out.disks = found.disks;
  out.looked_at = found.looked_at;
  out.looked_at_bytes = found.looked_at_bytes;
  out.unreadable_items = found.unreadable_items;
  for (const volume::LostFile& file : found.files) {
    if (out.count == MDFS_IOC_LOST_ROWS) break;
    auto& row = out.rows[out.count++];
    row.inode = file.ino;
    row.lost_bytes = file.lost_bytes;
    row.stored_bytes = file.stored_bytes;
    row.disks = file.disks;
  }
  return out;
}

Status check_channel_request(const mdfs_ioc_channel& in) { return check_empty(in); }

Status check_zones_request(const mdfs_ioc_zones& in) {
  return all_zero(in.reserved) ? Status() : Status(bad("reserved fields must be zero"));
}

Result<mdfs_ioc_zones> next_zones(const store::Members& members, store::BlockSpace& space, std::uint32_t number,
                                  std::uint64_t first) {
  if (number >= members.disk_count()) return bad(fmt::format("disk {} of {}", number, members.disk_count()));
  MDFS_TRY_ASSIGN(const std::vector<store::ZoneUse> zones, space.zone_use(number, first, MDFS_IOC_ZONES_ROWS));
  const store::DiskInfo disk = members.disk_info(number);
  mdfs_ioc_zones out{};
  out.disk = number;
  out.count = static_cast<std::uint32_t>(zones.size());
  out.next = first + zones.size();
  out.zone_blocks = disk.zone_blocks;
  out.zone_count = disk.zone_blocks == 0 ? 0 : ceil_div(disk.blocks, disk.zone_blocks);
  out.data_blocks = disk.data_blocks;
  out.data_free_blocks = disk.data_free_blocks;
  out.fallback_runs = disk.fallback_runs;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    out.zones[i].blocks = static_cast<std::uint32_t>(zones[i].blocks);
    out.zones[i].used_blocks = static_cast<std::uint32_t>(zones[i].used_blocks);
  }
  return out;
}

mdfs_ioc_model to_ioc_model(const device::ModelledReport& report) {
  mdfs_ioc_model out{};
  put_text(out.machine, report.machine);
  put_text(out.hash, report.hash);
  out.seconds = report.seconds;
  out.disk_count = static_cast<std::uint32_t>(std::min<std::size_t>(report.disks.size(), MDFS_IOC_MAX_DISKS));
  for (std::uint32_t i = 0; i < out.disk_count; ++i) {
    const device::ModelledDiskUse& disk = report.disks[i];
    auto& to = out.disks[i];
    to.reads = disk.reads;
    to.writes = disk.writes;
    to.read_bytes = disk.read_bytes;
    to.written_bytes = disk.written_bytes;
    to.max_requests = disk.max_requests;
    to.late = disk.late;
    to.delay_s = disk.delay_s;
    to.max_delay_s = disk.max_delay_s;
    to.max_late_s = disk.max_late_s;
  }
  out.component_count =
      static_cast<std::uint32_t>(std::min<std::size_t>(report.components.size(), MDFS_IOC_MODEL_COMPONENTS));
  for (std::uint32_t i = 0; i < out.component_count; ++i) {
    const device::ComponentUse& use = report.components[i];
    auto& to = out.components[i];
    put_text(to.name, use.name);
    to.instance = use.instance;
    to.servers = use.servers;
    to.served = use.served;
    to.max_queue = use.max_queue;
    to.busy_s = use.busy_s;
    to.mean_queue = use.mean_queue;
  }
  return out;
}

static_assert(MDFS_STREAM_MIN_RATE == streams::kLeastRate && MDFS_STREAM_MAX_RATE == streams::kMostRate);
static_assert(MDFS_STREAM_MAX_LOOKAHEAD == streams::kMostLookahead);

Status check_stream_request(const mdfs_ioc_stream& in) {
  if (in.struct_bytes != sizeof in) return bad(fmt::format("struct_bytes is {}, not {}", in.struct_bytes, sizeof in));
  if (in.action > MDFS_IOC_STREAM_LIST) return bad(fmt::format("action {} is unknown", in.action));
  const bool opens = in.action == MDFS_IOC_STREAM_OPEN;
  if ((in.flags & ~(opens ? MDFS_STREAM_DROP | MDFS_STREAM_UNCHECKED | MDFS_STREAM_COARSER : 0u)) != 0)
    return bad(fmt::format("flags {:#x} are unknown", in.flags));
  mdfs_ioc_stream plain{};
  plain.struct_bytes = in.struct_bytes;
  plain.action = in.action;
  plain.flags = in.flags;
  if (opens) {
    plain.axis = in.axis;
    plain.window = in.window;
    plain.lookahead = in.lookahead;
  }
  if (opens || in.action == MDFS_IOC_STREAM_PACE) {
    plain.step = in.step;
    plain.rate = in.rate;
  }
  if (in.action == MDFS_IOC_STREAM_SEEK) plain.frame = in.frame;
  if (in.action == MDFS_IOC_STREAM_CLOSE || in.action == MDFS_IOC_STREAM_LIST) plain.id = in.id;
  if (std::memcmp(&plain, &in, sizeof in) != 0)
    return bad("what the action does not take, answers and reserved fields must be zero");
  return {};
}

Status check_frame_request(const mdfs_ioc_frame& in) { return check_empty(in); }

Result<streams::StreamRequest> to_stream_request(const Geometry& image, const mdfs_ioc_stream& in) {
  MDFS_TRY_ASSIGN(const views::WindowName name, to_window(image, in.window));
  streams::StreamRequest request;
  request.level = name.level;
  request.window = name.window;
  request.axis = in.axis;
  request.step = in.step != 0 ? in.step : 1;
  request.rate = in.rate;
  request.lookahead = in.lookahead;
  request.drops = (in.flags & MDFS_STREAM_DROP) != 0;
  request.unchecked = (in.flags & MDFS_STREAM_UNCHECKED) != 0;
  request.coarser = (in.flags & MDFS_STREAM_COARSER) != 0;
  return request;
}

mdfs_ioc_stream to_ioc_stream(const streams::StreamInfo& info, const mdfs_ioc_stream& asked) {
  mdfs_ioc_stream out{};
  out.struct_bytes = sizeof out;
  out.action = asked.action;
  out.flags = (info.request.drops ? MDFS_STREAM_DROP : 0u) | (info.request.unchecked ? MDFS_STREAM_UNCHECKED : 0u) |
              (info.request.coarser ? MDFS_STREAM_COARSER : 0u) | (info.paused ? MDFS_STREAM_PAUSED : 0u) |
              (info.at_end ? MDFS_STREAM_ENDED : 0u);
  out.axis = info.request.axis;
  out.window.struct_bytes = sizeof out.window;
  out.window.rank = info.rank;
  std::copy_n(info.request.window.start.begin(), info.rank, out.window.start);
  std::copy_n(info.request.window.length.begin(), info.rank, out.window.length);
  out.window.channel = info.request.window.channel ? static_cast<std::int32_t>(*info.request.window.channel) : -1;
  out.window.bytes = info.frame_bytes;
  out.window.level = info.request.level;
  out.step = info.course.step;
  out.rate = info.course.rate;
  out.frame = info.next_frame;
  out.frames = info.course.frames;
  out.id = info.id;
  out.lookahead = info.lookahead;
  out.in_time = info.counts.in_time;
  out.late = info.counts.late;
  out.dropped = info.counts.dropped;
  out.failed = info.counts.failed;
  out.coarser = info.counts.coarser;
  out.latest_ns = info.counts.latest_ns;
  out.inode = info.request.ino;
  out.uid = info.request.uid;
  out.pid = static_cast<std::uint32_t>(info.request.pid);
  std::copy_n(info.loads.begin(), std::min(info.loads.size(), std::size(out.reserved_load)), out.reserved_load);
  std::copy_n(info.measured.begin(), std::min(info.measured.size(), std::size(out.used_load)), out.used_load);
  return out;
}

}  // namespace mdfs::fuse
