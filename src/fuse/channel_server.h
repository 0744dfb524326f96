// The socket on which clients of channels introduce themselves, and the life of these clients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/environment.h"
#include "base/result.h"
#include "device/unique_fd.h"
#include "fuse/channel_budget.h"
#include "fuse/channel_client.h"
#include "fuse/channel_grants.h"
#include "fuse/trace_recorder.h"
#include "fuse/work_queue.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// listen(), start() and stop() once each, from one thread; the others from any. A thread answers the messages of the
// socket and waits for no client.
class ChannelServer {
 public:
  static constexpr std::size_t kMostSockets = 1024;  // with those that have redeemed no token yet
  static constexpr std::chrono::seconds kMostIntroduction{2};

  // Before the process gives up its rights. The socket has a random abstract name.
  static Result<std::unique_ptr<ChannelServer>> listen(Environment& environment, std::uint64_t cache_bytes);
  ~ChannelServer() { stop(); }
  ChannelServer(const ChannelServer&) = delete;
  ChannelServer& operator=(const ChannelServer&) = delete;

  // The volume, the queue and the pool outlive stop(); `trace` may be null.
  void start(volume::Volume& volume, FairQueue& level_queue, views::StagingPool& staging, TraceRecorder* trace);
  // Returns when all clients have gone and all requests have ended.
  void stop();

  const std::string& name() const { return name_; }
  // A token for windows of the image, until `holder` is closed.
  Result<ChannelToken> grant(volume::Volume& volume, const void* holder, volume::Ino ino, uid_t user);
  void close(const void* holder);

 private:
  struct Peer {
    device::UniqueFd socket;
    uid_t user = 0;
    pid_t process = 0;
    std::chrono::steady_clock::time_point since;
    std::shared_ptr<ChannelClient> client;  // null: no token yet
    std::uint64_t area_bytes = 0;
  };
  ChannelServer(std::string name, device::UniqueFd listener, device::UniqueFd wake, Environment& environment,
                std::uint64_t cache_bytes)
      : name_(std::move(name)),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        environment_(environment),
        budget_(cache_bytes) {}

  // Of the thread.
  void run();
  void accept_peer(device::UniqueFd socket);
  bool hear(Peer& peer);  // false: it goes
  bool attach(Peer& peer, const channel::Message& message);
  bool add_buffer(Peer& peer, std::uint64_t bytes);
  Result<std::shared_ptr<SharedMemory>> make_buffer(const Peer& peer, std::uint64_t bytes);
  void reap_buffers(const Peer& peer);
  Status make_client(Peer& peer, std::uint64_t asked_bytes);
  void drop(Peer peer);
  void reap();

  const std::string name_;
  const device::UniqueFd listener_, wake_;
  Environment& environment_;
  ChannelGrants grants_;
  std::unique_ptr<WorkQueue> queue_;
  std::optional<ChannelContext> context_;
  std::thread thread_;
  // Of the thread.
  ChannelBudget budget_;
  std::vector<Peer> peers_, leaving_;
  std::mutex mutex_;  // guards clients_
  std::vector<std::shared_ptr<ChannelClient>> clients_;
};

}  // namespace mdfs::fuse
