// One client of the channels in the daemon: its memory, its images, and the thread that answers its requests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "fuse/channel_buffers.h"
#include "fuse/channel_grants.h"
#include "fuse/channel_memory.h"
#include "fuse/fair_queue.h"
#include "fuse/trace_recorder.h"
#include "fuse/work_queue.h"
#include "views/staging.h"
#include "views/view_file.h"

namespace mdfs::fuse {

// Shared by the clients of a mount; outlives the clients.
struct ChannelContext {
  volume::Volume& volume;
  WorkQueue& queue;             // for windows that wait for disks
  FairQueue& level_queue;       // for windows of levels, which may be computed
  views::StagingPool& staging;  // for their samples
  TraceRecorder* trace;         // null: nothing is recorded
};

// The thread answers cached windows itself, and hands others to the work queues. It waits for no client. Requests under
// way hold the object. Any thread may call any method.
class ChannelClient : public std::enable_shared_from_this<ChannelClient> {
 public:
  static constexpr std::size_t kMostImages = 1024;

  ChannelClient(const ChannelContext& context, ChannelMemory memory, pid_t process)
      : context_(context), memory_(std::move(memory)), process_(process) {}
  ~ChannelClient();
  ChannelClient(const ChannelClient&) = delete;
  ChannelClient& operator=(const ChannelClient&) = delete;

  // Once. kNoMemory: the machine has no more threads.
  Status start();
  // The number by which requests name the image; kTooManyFiles.
  Result<std::uint32_t> add_image(std::shared_ptr<ChannelGrant> grant);
  void remove_image(std::uint32_t image);
  void remove_withdrawn();
  // Requests under way end, new ones get no answer. Ask again until has_ended(): the client may undo a wake-up.
  void end();
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  ChannelMemory& memory() { return memory_; }
  ChannelBuffers& buffers() { return buffers_; }

 private:
  void serve();
  void sleep();
  void take(unsigned slot);
  Status begin(unsigned slot);
  struct Target {
    MutableBytes samples;
    std::shared_ptr<const SharedMemory> buffer;  // null: they lie in the data area
  };
  Result<Target> target(const channel::Request& request) const;
  void read_level(unsigned slot, const std::shared_ptr<ChannelGrant>& grant, const geometry::Geometry& image,
                  const views::WindowName& name, const Target& to);
  Result<std::shared_ptr<ChannelGrant>> image(std::uint32_t number);
  // `changed`: what was ready before is void.
  void finish(unsigned slot, const Status& status, bool changed);
  bool is_gone() const { return ending_.load(std::memory_order_relaxed); }

  const ChannelContext context_;
  ChannelMemory memory_;
  ChannelBuffers buffers_;
  const pid_t process_;
  std::atomic<std::uint64_t> busy_{0};  // slots under way
  std::atomic<bool> ending_{false}, ended_{false};
  std::mutex mutex_;  // guards images_
  std::array<std::shared_ptr<ChannelGrant>, kMostImages> images_;
  std::thread thread_;
};

}  // namespace mdfs::fuse
