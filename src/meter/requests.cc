// Transfers in the order of a profile.
// SPDX-License-Identifier: Apache-2.0
#include "meter/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace mdfs::meter {
namespace {

constexpr std::uint64_t kOddConstant = 0x9e3779b97f4a7c15;  // apart in all bits for neighbouring clients

std::uint64_t files_of(const Profile& profile, unsigned files, unsigned clients) {
  return profile.shared ? files : std::uint64_t{files} * clients;
}

}  // namespace

Result<FileSet> files_within(const Profile& profile, unsigned clients, std::uint64_t most_bytes) {
  const std::uint64_t files = files_of(profile, profile.files, clients);
  const std::uint64_t file_bytes = std::min(profile.file_bytes, align_down(most_bytes / files, kAlignment));
  if (file_bytes < kAlignment)
    return Error{Errc::kInvalidArgument, fmt::format("--size: {} for {} files; each needs {} or more",
                                                     format_size(most_bytes), files, format_size(kAlignment))};
  return FileSet{profile.files, file_bytes};
}

std::uint64_t all_bytes(const Profile& profile, const FileSet& files, unsigned clients) {
  return files_of(profile, files.files, clients) * files.file_bytes;
}

RequestSource::RequestSource(const Profile& profile, const FileSet& files, std::uint64_t seed, unsigned client)
    : profile_(profile), files_(files), random_(seed ^ (std::uint64_t{client} + 1) * kOddConstant) {
  if (profile.shared) file_ = client % files.files;
  if (profile.order == Order::kBackwards) cursor_bytes_ = files.file_bytes;
  if (profile.rate) phase_s_ = random_.unit() / *profile.rate;
}

std::uint64_t RequestSource::draw_bytes(const Between<std::uint64_t>& range) {
  return range.low + random_.below((range.high - range.low) / kAlignment + 1) * kAlignment;
}

PlannedTransfer RequestSource::next() {
  PlannedTransfer transfer;
  const bool is_single = random_.unit() < profile_.random;
  transfer.write = random_.unit() < profile_.writes;
  const std::uint64_t wanted = draw_bytes(profile_.transfer_bytes);
  const std::uint64_t block = draw_bytes(profile_.block_bytes);
  transfer.bytes = std::min(is_single ? block : wanted, files_.file_bytes);
  if (is_single || profile_.order == Order::kRandom) {
    place_anywhere(transfer);
  } else {
    place_in_order(transfer);
  }
  transfer.block_bytes = std::min(block, transfer.bytes);
  transfer.sequential = transfer.blocks() > 1 || (profile_.order == Order::kSequential && !is_single);
  transfer.think_s = random_.uniform(profile_.think_s.low, profile_.think_s.high);
  if (profile_.rate) transfer.due_s = phase_s_ + static_cast<double>(count_) / *profile_.rate;
  ++count_;
  return transfer;
}

void RequestSource::place_anywhere(PlannedTransfer& transfer) {
  transfer.file = static_cast<unsigned>(random_.below(files_.files));
  transfer.offset_bytes = random_.below((files_.file_bytes - transfer.bytes) / kAlignment + 1) * kAlignment;
}

void RequestSource::place_in_order(PlannedTransfer& transfer) {
  transfer.file = file_;
  if (profile_.order == Order::kBackwards) {
    transfer.bytes = std::min(transfer.bytes, cursor_bytes_);
    cursor_bytes_ -= transfer.bytes;
    transfer.offset_bytes = cursor_bytes_;
    if (cursor_bytes_ == 0) next_file();
    return;
  }
  transfer.offset_bytes = cursor_bytes_;
  transfer.bytes = std::min(transfer.bytes, files_.file_bytes - cursor_bytes_);
  transfer.empties = profile_.begin == Begin::kEmpty && cursor_bytes_ == 0;
  if (profile_.order == Order::kSequential) {
    cursor_bytes_ += transfer.bytes;
    if (cursor_bytes_ == files_.file_bytes) next_file();
    return;
  }
  cursor_bytes_ += profile_.stride_bytes;
  if (cursor_bytes_ < files_.file_bytes) return;
  shift_bytes_ += profile_.transfer_bytes.high;
  cursor_bytes_ = shift_bytes_;
  if (shift_bytes_ >= std::min(profile_.stride_bytes, files_.file_bytes)) next_file();
}

void RequestSource::next_file() {
  file_ = (file_ + 1) % files_.files;
  shift_bytes_ = 0;
  cursor_bytes_ = profile_.order == Order::kBackwards ? files_.file_bytes : 0;
}

}  // namespace mdfs::meter
