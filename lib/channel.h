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
#include <vector>

#include "base/bytes.h"
#include "channel/layout.h"
#include "channel_places.h"
#include "mdfs/ioctl.h"

namespace mdfs::client {

// Takes the samples of a window as they come: whole samples, `offset` bytes behind the first. May be called again for
// the same samples. `packed`: the buffer in which take() packs the samples; the daemon may write there instead. Null:
// the samples are not packed.
struct Taker {
  std::uint64_t sample_bytes;
  std::function<void(std::uint64_t offset, ConstBytes samples)> take;
  const std::byte* packed = nullptr;
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
    std::uint32_t buffer;         // channel::kArea, or where the taker wants the samples
    std::uint64_t offset, bytes;  // there
  };
  // Asks for the window, of so many bytes. Nothing: the channel has no room now, or has ended.
  std::optional<Pending> start(std::uint32_t image, const mdfs_ioc_window& window, std::uint64_t bytes,
                               const Taker& taker);
  // Waits, and has all samples taken; what is taken last counts. False: the channel has ended, or the daemon answered
  // with an error. The way through the kernel then reads the window, or says why not.
  bool finish(const Pending& pending, const Taker& taker);
  bool is_usable() const { return !ended_.load(std::memory_order_acquire); }

  // Memory of whole pages, of at least so many bytes, that the daemon shares: takers within it need not take. It stays
  // when the channel ends. Empty: the daemon refuses it.
  MutableBytes new_buffer(std::uint64_t bytes);
  void free_buffer(MutableBytes buffer);

  // In the child of a fork.
  void abandon();

 private:
  Channel(std::string name, int socket) : name_(std::move(name)), socket_(socket) {}
  static std::shared_ptr<Channel> connect(const std::string& name);
  bool add_image(const std::uint8_t (&token)[16], std::uint32_t& image);
  bool map(int descriptor, std::uint64_t area_bytes);
  // The answer of the daemon; nothing: the channel has ended.
  std::optional<channel::Answer> ask(const channel::Message& message, std::vector<int>& descriptors);
  channel::Header& header() const { return channel::header_in(start_); }
  channel::Slot& slot(unsigned index) const { return channel::slot_in(start_, index); }
  std::optional<Pending> take_slot(std::uint64_t bytes, const std::byte* packed);
  void give_back(const Pending& pending);
  void submit(unsigned index);
  template <typename TakeMore>
  bool wait(channel::Slot& slot, std::int64_t spin_ns, const TakeMore& take_more);
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
  BufferTable buffers_;
  static_assert(channel::kSlots == 64);
};

inline constexpr std::size_t kReadsBeforeChannel = 4;  // through the kernel, before an image is attached

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
