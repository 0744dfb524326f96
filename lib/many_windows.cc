// Many windows in one call.
// SPDX-License-Identifier: Apache-2.0
#include "many_windows.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "image.h"
#include "window_calls.h"

namespace mdfs::client {
namespace {

constexpr std::size_t kReadsAtOnce = 16;    // of the slots of the channel, which other threads need as well
constexpr std::size_t kThreadsAtOnce = 16;  // that read windows through the kernel

constexpr ssize_t kNotRead = 0;

// All that the channel reads, several at once. The results of the others stay as they are.
void read_many_by_channel(mdfs_image* image, std::span<mdfs_window_read> reads) {
  std::uint32_t number = 0;
  const auto channel = image->channel.current(image->pool->plain(), number, reads.size());
  if (channel == nullptr) return;
  struct UnderWay {
    mdfs_window_read* read;
    Taker taker;
    Channel::Pending pending;
  };
  std::deque<UnderWay> under_way;
  const auto finish_first = [&] {
    const UnderWay& first = under_way.front();
    if (channel->finish(first.pending, first.taker)) first.read->result = static_cast<ssize_t>(first.pending.bytes);
    under_way.pop_front();
  };
  for (mdfs_window_read& read : reads) {
    const auto bytes = read.buffer == nullptr ? std::nullopt : bytes_of(*image, read.window);
    if (!bytes) continue;
    const auto taker =
        taker_of(*image, read.window, *bytes, static_cast<std::byte*>(read.buffer), read.buffer_bytes, read.strides);
    if (!taker) continue;
    if (under_way.size() == kReadsAtOnce) finish_first();
    auto pending = channel->start(number, read.window, *bytes, *taker);
    while (!pending && !under_way.empty()) {  // no room
      finish_first();
      pending = channel->start(number, read.window, *bytes, *taker);
    }
    if (pending) under_way.push_back({&read, *taker, *pending});
  }
  while (!under_way.empty()) finish_first();
}

// Those that are not read yet, through the kernel. Returns the message of the first error.
std::string read_many_by_kernel(mdfs_image* image, std::span<mdfs_window_read> reads) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // guards the two below
  std::string message;
  std::size_t first_error = reads.size();
  const auto work = [&] {
    for (std::size_t i = next++; i < reads.size(); i = next++) {
      mdfs_window_read& read = reads[i];
      if (read.result != kNotRead) continue;
      read.result = guarded([&]() -> ssize_t {
        return move_window(image, &read.window, static_cast<std::byte*>(read.buffer), read.buffer_bytes, read.strides,
                           false);
      });
      if (read.result >= 0) continue;
      const std::lock_guard lock(mutex);
      if (i < first_error) std::tie(first_error, message) = std::pair(i, last_error());
    }
  };
  const auto left = static_cast<std::size_t>(
      std::count_if(reads.begin(), reads.end(), [](const auto& read) { return read.result == kNotRead; }));
  std::vector<std::thread> helpers;
  try {
    while (helpers.size() + 1 < std::min(left, kThreadsAtOnce)) helpers.emplace_back(work);
  } catch (const std::system_error&) {  // with fewer
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return message;
}

}  // namespace

int read_many(mdfs_image* image, std::span<mdfs_window_read> reads) {
  for (mdfs_window_read& read : reads) read.result = kNotRead;
  read_many_by_channel(image, reads);
  last_error() = read_many_by_kernel(image, reads);
  const auto wrong = std::find_if(reads.begin(), reads.end(), [](const auto& read) { return read.result < 0; });
  return wrong == reads.end() ? 0 : static_cast<int>(wrong->result);
}

}  // namespace mdfs::client
