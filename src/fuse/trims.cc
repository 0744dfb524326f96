// Discards of unused blocks: MDFS_IOC_TRIM and FITRIM.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/trims.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "fuse/interrupts.h"
#include "fuse/reply.h"
#include "fuse/server.h"

namespace mdfs::fuse {
namespace {

using store::DiskTrim;
using Clock = std::chrono::steady_clock;

constexpr auto kWorkAtOnce = std::chrono::milliseconds(200);

Status check_caller(bool permitted) {
  if (permitted) return {};
  return Error{Errc::kNotPermitted, "a trim requires root or the owner of the mount"};
}

bool has_more(const std::vector<DiskTrim>& disks) {
  return std::any_of(disks.begin(), disks.end(), [](const auto& disk) { return disk.state == DiskTrim::State::kMore; });
}

std::uint64_t to_blocks(std::uint64_t bytes, std::uint64_t block_size) {
  return bytes / block_size + (bytes % block_size != 0 ? 1 : 0);
}

Status trim_until(store::Store& store, std::vector<DiskTrim>& disks, std::uint64_t minimum_bytes,
                  Clock::time_point until, const engine::Stop& stop) {
  const std::uint64_t smallest = to_blocks(minimum_bytes, store.block_size());
  while (has_more(disks)) {
    MDFS_TRY(engine::stopped(stop));
    MDFS_TRY(store.trim_some(disks, smallest));
    if (Clock::now() >= until) break;
  }
  return {};
}

Result<std::vector<DiskTrim>> disks_of(const mdfs_ioc_trim& in, const store::Store& store) {
  if (in.struct_bytes != sizeof in) return Error{Errc::kInvalidArgument, "trim: struct_bytes"};
  if ((in.flags & ~MDFS_IOC_TRIM_COMMIT) != 0) return Error{Errc::kInvalidArgument, "trim: flags"};
  if (in.reserved0 != 0 || std::any_of(std::begin(in.reserved), std::end(in.reserved), [](auto r) { return r != 0; }))
    return Error{Errc::kInvalidArgument, "trim: reserved fields must be zero"};
  std::vector<DiskTrim> disks(store.disk_count());
  for (std::size_t i = 0; i < disks.size(); ++i) {
    const auto& row = in.disks[i];
    if (row.state > MDFS_IOC_TRIM_NOT_THERE)
      return Error{Errc::kInvalidArgument, fmt::format("trim: state {} of disk {}: 0 to 4", row.state, i)};
    disks[i].state = static_cast<DiskTrim::State>(row.state);
    disks[i].position = {row.next, row.hole_end};
    disks[i].end = std::max<std::uint64_t>(store.disk_info(static_cast<unsigned>(i)).blocks, row.next);
  }
  return disks;
}

static_assert(static_cast<int>(DiskTrim::State::kMore) == MDFS_IOC_TRIM_MORE &&
              static_cast<int>(DiskTrim::State::kNotThere) == MDFS_IOC_TRIM_NOT_THERE);

Result<mdfs_ioc_trim> trim_for_a_moment(Server& server, mdfs_ioc_trim value, const engine::Stop& stop) {
  store::Store& store = server.volume().store();
  MDFS_TRY_ASSIGN(std::vector<DiskTrim> disks, disks_of(value, store));
  if ((value.flags & MDFS_IOC_TRIM_COMMIT) != 0) MDFS_TRY(server.volume().free_deleted());
  MDFS_TRY(trim_until(store, disks, value.minimum_bytes, Clock::now() + kWorkAtOnce, stop));
  value.flags = 0;
  value.disk_count = static_cast<std::uint32_t>(disks.size());
  for (std::size_t i = 0; i < disks.size(); ++i) {
    auto& row = value.disks[i];
    row.next = disks[i].position.next;
    row.hole_end = disks[i].position.hole_end;
    row.discarded_bytes += disks[i].discarded_blocks * store.block_size();
    row.blocks = store.disk_info(static_cast<unsigned>(i)).blocks;
    row.state = static_cast<std::uint32_t>(disks[i].state);
    const std::string why = shortened(disks[i].why, sizeof row.why - 1);
    if (!why.empty()) std::copy_n(why.c_str(), why.size() + 1, row.why);
  }
  return value;
}

// Which blocks of each disk lie in the range.
Result<std::vector<DiskTrim>> disks_in(const fstrim_range& range, const store::Store& store) {
  const std::uint64_t block_size = store.block_size();
  const std::uint64_t range_end = range.len > UINT64_MAX - range.start ? UINT64_MAX : range.start + range.len;
  std::vector<DiskTrim> disks(store.disk_count());
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    const std::uint64_t bytes = store.disk_info(static_cast<unsigned>(i)).blocks * block_size;
    const std::uint64_t first = std::clamp<std::uint64_t>(range.start, begin, begin + bytes) - begin;
    const std::uint64_t last = std::clamp(range_end, begin, begin + bytes) - begin;
    disks[i].position.next = to_blocks(first, block_size);
    disks[i].end = last / block_size;
    if (disks[i].position.next >= disks[i].end) disks[i].state = DiskTrim::State::kDone;
    begin += bytes;
  }
  if (range.start >= begin || range.len < block_size)
    return Error{Errc::kInvalidArgument, fmt::format("FITRIM: {} bytes at {}: at least {} bytes, below {}", range.len,
                                                     range.start, block_size, begin)};
  return disks;
}

Result<fstrim_range> trim_all_of(Server& server, fstrim_range range, const engine::Stop& stop) {
  store::Store& store = server.volume().store();
  MDFS_TRY_ASSIGN(std::vector<DiskTrim> disks, disks_in(range, store));
  MDFS_TRY(server.volume().free_deleted());
  MDFS_TRY(trim_until(store, disks, range.minlen, Clock::time_point::max(), stop));
  std::uint64_t blocks = 0;
  bool any = false;
  for (const DiskTrim& disk : disks) {
    blocks += disk.discarded_blocks;
    any = any || disk.state == DiskTrim::State::kDone;
  }
  for (const DiskTrim& disk : disks)
    if (disk.state == DiskTrim::State::kFailed) return Error{Errc::kIo, disk.why};
  if (!any) return Error{Errc::kNotSupported, "no disk of the volume supports discards"};
  range.len = blocks * store.block_size();
  return range;
}

template <typename T, typename Work>
void answer(fuse_req_t req, bool permitted, const T& in, Work work) {
  Server& server = server_of(req);
  if (const Status checked = check_caller(permitted); !checked.ok()) return reply_error(req, checked.error());
  server.trim_queue().post([&server, req, work, in = std::make_shared<T>(in)] {
    const engine::Stop stop = [&server, interrupted = stop_of(req)] { return !server.running() || interrupted(); };
    const Result<T> out = work(server, *in, stop);
    if (!out.ok()) {
      if (out.error().code == Errc::kIo) spdlog::error("trim: {}", out.error().message());
      return reply_error(req, out.error());
    }
    fuse_reply_ioctl(req, 0, &*out, sizeof *out);
  });
}

}  // namespace

void trim(fuse_req_t req, bool permitted, const mdfs_ioc_trim& in) { answer(req, permitted, in, trim_for_a_moment); }

void trim_range(fuse_req_t req, bool permitted, const fstrim_range& in) { answer(req, permitted, in, trim_all_of); }

}  // namespace mdfs::fuse
