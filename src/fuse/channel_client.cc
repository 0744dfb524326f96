// Requests of one client of the channels.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/channel_client.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <system_error>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "channel/wait.h"
#include "fuse/ioctl_structs.h"
#include "views/level_view.h"

namespace mdfs::fuse {

namespace {

// A client may undo a wake-up; so a sleep ends by itself at last.
constexpr std::int64_t kMostSleepNs = 60 * kNsPerSecond;
// Threads of all clients that look for requests at the same time: a part of the processors.
std::atomic<unsigned> spinning{0};

unsigned most_spinning() {
  static const unsigned most = std::max(1u, std::thread::hardware_concurrency() / 2);
  return most;
}

}  // namespace

ChannelClient::~ChannelClient() {
  if (thread_.joinable()) thread_.join();
}

Status ChannelClient::start() {
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& problem) {
    ended_ = true;
    return Error{Errc::kNoMemory, problem.what()};
  }
  return {};
}

Result<std::uint32_t> ChannelClient::add_image(std::shared_ptr<ChannelGrant> grant) {
  const std::lock_guard lock(mutex_);
  const auto place = std::find(images_.begin(), images_.end(), nullptr);
  if (place == images_.end()) return Error{Errc::kTooManyFiles, "images of a channel"};
  *place = std::move(grant);
  return static_cast<std::uint32_t>(place - images_.begin());
}

void ChannelClient::remove_image(std::uint32_t image) {
  std::shared_ptr<ChannelGrant> released;  // without the lock: the end of a grant may close the file
  const std::lock_guard lock(mutex_);
  if (image < images_.size()) released = std::move(images_[image]);
}

void ChannelClient::remove_withdrawn() {
  std::vector<std::shared_ptr<ChannelGrant>> released;
  const std::lock_guard lock(mutex_);
  for (auto& grant : images_)
    if (grant != nullptr && grant->withdrawn()) released.push_back(std::move(grant));
}

void ChannelClient::end() {
  ending_.store(true, std::memory_order_seq_cst);
  channel::futex_wake(memory_.header().doorbell);
}

void ChannelClient::serve() {
  ::pthread_setname_np(::pthread_self(), "channel");
  channel::Header& header = memory_.header();
  while (!is_gone()) {
    std::uint64_t slots = header.submitted.exchange(0, std::memory_order_seq_cst);
    if (slots == 0) sleep();
    for (; slots != 0; slots &= slots - 1) take(static_cast<unsigned>(std::countr_zero(slots)));
  }
  ended_.store(true, std::memory_order_release);
}

// Looks for a while, then sleeps until the client rings.
void ChannelClient::sleep() {
  channel::Header& header = memory_.header();
  const auto ready = [&] { return header.submitted.load(std::memory_order_relaxed) != 0 || is_gone(); };
  const bool may = spinning.fetch_add(1, std::memory_order_relaxed) < most_spinning();
  const bool found = may && channel::spin(ready);
  spinning.fetch_sub(1, std::memory_order_relaxed);
  if (found) return;
  const std::uint32_t rings = header.doorbell.load(std::memory_order_seq_cst);
  header.sleeping.store(1, std::memory_order_seq_cst);
  if (header.submitted.load(std::memory_order_seq_cst) == 0 && !is_gone())
    channel::futex_wait(header.doorbell, rings, kMostSleepNs);
  header.sleeping.store(0, std::memory_order_seq_cst);
}

void ChannelClient::take(unsigned slot) {
  const std::uint64_t bit = std::uint64_t{1} << slot;
  if ((busy_.fetch_or(bit, std::memory_order_acq_rel) & bit) != 0) return;  // submitted again before its answer
  if (const Status status = begin(slot); !status.ok()) finish(slot, status, true);
}

// Answers, or hands on; the caller answers an error.
Status ChannelClient::begin(unsigned slot) {
  const channel::Request request = memory_.copy_request(slot);
  MDFS_TRY_ASSIGN(const auto grant, image(request.image));
  volume::Volume& volume = context_.volume;
  const StopScope scope([this] { return is_gone(); });
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, volume.image_geometry(grant->ino()));
  MDFS_TRY_ASSIGN(const views::WindowName name, to_window(geometry, request.window));
  const geometry::Window& window = name.window;
  MDFS_TRY_ASSIGN(const Target to, target(request));
  if (geometry::window_bytes(geometry, window) != to.samples.size())
    return Error{Errc::kInvalidArgument, "channel: not the bytes of the window"};
  if (name.level > 0) {
    read_level(slot, grant, geometry, name, to);
    return {};
  }
  if (context_.trace != nullptr)
    context_.trace->window(volume, grant->ino(), window, false, TraceRecorder::Clock::now(), process_);
  bool again = false;
  const auto progress = [&](std::uint64_t bytes) {
    again |= bytes == 0;
    if (!again) memory_.slot(slot).ready.store(bytes, std::memory_order_release);
  };
  // The client takes no samples out of a buffer before the answer: its window is read in one call.
  MDFS_TRY_ASSIGN(const bool cached,
                  volume.read_cached_window(grant->ino(), window, to.samples,
                                            to.buffer == nullptr ? engine::ReadProgress(progress) : nullptr));
  if (cached) {
    finish(slot, {}, again);
    return {};
  }
  context_.queue.post([self = shared_from_this(), slot, grant, window, to] {
    const engine::Stop stop = [&] { return self->is_gone(); };
    const StopScope waits(stop);
    self->finish(slot, self->context_.volume.read_window(grant->ino(), window, 0, to.samples, stop), true);
  });
  return {};
}

void ChannelClient::read_level(unsigned slot, const std::shared_ptr<ChannelGrant>& grant,
                               const geometry::Geometry& image, const views::WindowName& name, const Target& to) {
  const auto self = shared_from_this();
  const engine::Stop stop = [self] { return self->is_gone(); };
  const auto read = [self, stop, slot, grant, image, name, to] {
    const StopScope waits(stop);
    self->finish(slot,
                 views::read_level_window(self->context_.volume, grant->ino(), image, name, self->context_.staging,
                                          grant->user(), to.samples, stop),
                 true);
  };
  const auto cancel = [self, slot] { self->finish(slot, Error{Errc::kCancelled, "the client has ended"}, true); };
  context_.level_queue.post({grant->user(), stop, read, cancel});
}

Result<ChannelClient::Target> ChannelClient::target(const channel::Request& request) const {
  Target to;
  MutableBytes whole = memory_.area();
  if (request.buffer != channel::kArea) {
    to.buffer = buffers_.find(request.buffer);
    if (to.buffer == nullptr) return Error{Errc::kInvalidArgument, "channel: no such buffer"};
    whole = to.buffer->bytes();
  }
  MDFS_TRY_ASSIGN(to.samples, samples_in(whole, request));
  return to;
}

Result<std::shared_ptr<ChannelGrant>> ChannelClient::image(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  if (number >= images_.size() || images_[number] == nullptr || images_[number]->withdrawn())
    return Error{Errc::kNotFound, "channel: no such image"};
  return images_[number];
}

void ChannelClient::finish(unsigned slot, const Status& status, bool changed) {
  channel::Slot& answer = memory_.slot(slot);
  answer.error = status.ok() ? 0 : status.error().posix_errno();
  answer.changed = changed ? 1 : 0;
  busy_.fetch_and(~(std::uint64_t{1} << slot), std::memory_order_acq_rel);
  if (answer.state.exchange(channel::kDone, std::memory_order_seq_cst) == channel::kAwaited)
    channel::futex_wake(answer.state);
}

}  // namespace mdfs::fuse
