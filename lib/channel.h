// The channel to the daemon of a mount: windows through shared memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "channel/layout.h"
#include "mdfs/ioctl.h"

namespace mdfs::client {

// Who takes the samples of a window as they come: whole ones, from so many bytes behind the first on. May be called for
// the same samples again.
struct Taker {
  std::uint64_t sample_bytes;
  std::function<void(std::uint64_t offset, ConstBytes samples)> take;
};

// Free parts of a data area, in pages. One thread at a time.
class AreaAllocator {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;
  explicit AreaAllocator(std::uint64_t bytes) { free_.emplace(0, bytes); }

  // The first part that is large enough, so that the same few pages stay in the processor's cache. -1: none is.
  std::int64_t take(std::uint64_t bytes);
  void give_back(std::uint64_t offset, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  // offset, bytes; no two touch
};

// One for this process and a mount, used by all its threads. A child process that was forked cannot use it: the memory
// is not there, and the socket is closed.
class Channel {
 public:
  // The channel of the mount on which the image `fd` lies, and the number of the image there. Null: there is none, or
  // the daemon refuses it. Windows then go through the kernel.
  static std::shared_ptr<Channel> attach(int fd, std::uint32_t& image);
  void detach(std::uint32_t image);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // A request under way. Each is given to finish().
  struct Pending {
    unsigned slot;
    std::uint64_t offset, bytes;  // in the data area
  };
  // Asks for the window, of so many bytes. Nothing: the channel has no room now, or has ended.
  std::optional<Pending> start(std::uint32_t image, const mdfs_ioc_window& window, std::uint64_t bytes);
  // Waits, and has all samples taken; what is taken last counts. False: the channel has ended, or the daemon answered
  // with an error. The way through the kernel then reads the window, or says why not.
  bool finish(const Pending& pending, const Taker& taker);
  bool is_usable() const { return !ended_.load(std::memory_order_acquire); }

  // In the child of a fork.
  void abandon();

 private:
  Channel(std::string name, int socket) : name_(std::move(name)), socket_(socket) {}
  static std::shared_ptr<Channel> connect(const std::string& name);
  bool add_image(const std::uint8_t (&token)[16], std::uint32_t& image);
  bool map(int descriptor, std::uint64_t area_bytes);
  channel::Header& header() const { return channel::header_in(start_); }
  channel::Slot& slot(unsigned index) const { return channel::slot_in(start_, index); }
  int take_slot(std::uint64_t bytes, std::uint64_t& offset);
  void submit(unsigned index);
  template <typename TakeMore>
  bool wait(channel::Slot& slot, const TakeMore& take_more);
  bool daemon_is_there() const;

  const std::string name_;
  std::mutex talk_;  // one message and its answer at a time; guards socket_
  int socket_;
  std::byte* start_ = nullptr;
  std::uint64_t area_bytes_ = 0;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;  // guards all below
  std::uint64_t free_slots_ = ~std::uint64_t{0};
  AreaAllocator area_{0};
  static_assert(channel::kSlots == 64);
};

// The use that one open image makes of the channel: attaches after some reads, and again in a forked child. Any thread.
class ImageChannel {
 public:
  ~ImageChannel();
  // As Channel::start() and finish(); `fd` is a descriptor of the image.
  bool read(int fd, const mdfs_ioc_window& window, std::uint64_t bytes, const Taker& taker);
  // The channel and the number of the image there; null for now, or because there is none. `reads` are about to come.
  std::shared_ptr<Channel> current(int fd, std::uint32_t& image, std::size_t reads);

 private:
  std::mutex mutex_;  // guards all below
  std::size_t reads_ = 0;
  bool refused_ = false;
  std::shared_ptr<Channel> channel_;
  std::uint32_t image_ = 0;
};

}  // namespace mdfs::client
