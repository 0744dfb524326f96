// The FUSE session of one mounted volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/modelled_machine.h"
#include "device/unique_fd.h"
#include "fuse/buffer_pool.h"
#include "fuse/channel_server.h"
#include "fuse/coherence.h"
#include "fuse/failed_writes.h"
#include "fuse/fair_queue.h"
#include "fuse/filled_pages.h"
#include "fuse/node_table.h"
#include "fuse/notified_replies.h"
#include "fuse/reply_buffer.h"
#include "fuse/request_rings.h"
#include "fuse/session.h"
#include "fuse/staged_files.h"
#include "fuse/trace_recorder.h"
#include "fuse/work_queue.h"
#include "streams/streams.h"
#include "views/staging.h"
#include "volume/volume.h"

struct fuse_conn_info;
struct fuse_file_info;
struct fuse_req;

namespace mdfs::fuse {

struct ServerOptions {
  SessionOptions session;
  uid_t owner = 0;  // the mounting user
  views::StagingLimits staging;
  std::string staging_directory = "/var/tmp";
  bool cached_images = false;                         // like a kernel that cannot map direct_io files
  std::shared_ptr<device::ModelledMachine> modelled;  // null: the disks are not modelled
  std::shared_ptr<TraceRecorder> trace;               // null: nothing is recorded
  std::shared_ptr<ChannelServer> channels;            // null: windows come through the kernel alone
  std::optional<streams::StreamOptions> streams;      // absent: the mount has none
  std::size_t largest_request_bytes = engine::EngineOptions{}.largest_request_bytes;  // as the volume was opened with
  // That serve the kernel; each may hold a request of 1 MiB. More are started while all of them wait, up to the second
  // number, so that callers who wait for disks or memory do not stop the others.
  unsigned threads = 10, most_threads = 40;
};

// attach() once, run() once, from one thread; stop() from any. The volume outlives the server.
class Server {
 public:
  static Result<std::unique_ptr<Server>> create(volume::Volume& volume, const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Accepts requests of the kernel, through `rings` too if there are any and the kernel offers rings. The mount point
  // then answers as soon as run() is called.
  Status attach(device::UniqueFd requests, std::unique_ptr<RequestRings> rings = nullptr);
  // Serves until the file system is unmounted or stop() is called. All begun requests have then been answered.
  void run();
  // Makes run() return although the file system is still mounted. Calls to the mount hang until the server is gone,
  // then fail with ENOTCONN.
  void stop();
  bool running() const { return running_; }
  // run() has returned because the kernel takes no requests from rings after all; no caller gets an answer.
  bool rings_failed() const { return rings_failed_; }
  bool uses_rings() const { return rings_ != nullptr; }

  // ---- for the operations
  volume::Volume& volume() { return volume_; }
  NodeTable& nodes() { return nodes_; }
  Coherence& coherence() { return coherence_; }
  FilledPages& filled_pages() { return filled_pages_; }
  FailedWrites& failed_writes() { return failed_writes_; }
  // For the bytes of an answer to the request that the calling thread is handling. `offset_bytes`: what the answer has
  // before them.
  ReplyBuffer reply_buffer(std::size_t offset_bytes = 0) { return {buffers_, offset_bytes}; }
  views::StagingPool& staging() { return *staging_; }
  StagedFiles& staged_files() { return staged_files_; }
  const std::shared_ptr<device::ModelledMachine>& modelled() const { return options_.modelled; }
  std::size_t largest_request_bytes() const { return options_.largest_request_bytes; }
  TraceRecorder* trace() { return options_.trace.get(); }        // null: nothing is recorded
  ChannelServer* channels() { return options_.channels.get(); }  // null: there are none
  streams::Streams* streams() { return streams_.get(); }         // null: there are none
  uid_t owner() const { return options_.owner; }
  // The kernel lets direct_io files be mapped shared: images need no page cache.
  bool maps_direct_files() const;

  // Queues for work that must not block the threads that serve the kernel. A notification waits for pages that the
  // kernel reads or writes back, which needs a serving thread. Notifications are therefore made on work queues, and
  // serving threads never wait for a work queue. Writing back a mapped page is a plain write, so window writes and
  // plain writes have separate queues.
  WorkQueue& apply_queue() { return *apply_queue_; }    // window writes, with their notifications
  WorkQueue& notify_queue() { return *notify_queue_; }  // notifications that no reply waits for
  NotifiedReplies& notified_replies() { return *notified_replies_; }
  FairQueue& long_queue() { return *long_queue_; }      // holes and changes of size
  WorkQueue& sync_queue() { return *sync_queue_; }      // fsync and other waits for the disks
  FairQueue& list_queue() { return *list_queue_; }      // reads of many records: layouts, zones, plans, chunks
  FairQueue& render_queue() { return *render_queue_; }  // opens of files that are encoded then, levels
  WorkQueue& trim_queue() { return *trim_queue_; }      // trims; one thread
  FairQueue& trial_queue() { return *trial_queue_; }    // openings of streams, which measure the disks; one thread

  // Answers OPEN. With parallel writes the kernel sends writes to a direct_io file in parallel, where they
  // do not extend the file; libfuse 3.14 does not know the flag.
  static int reply_open(fuse_req* req, const fuse_file_info& info, bool parallel_writes);

  void negotiate(fuse_conn_info& connection);
  ssize_t read_request(int fd, void* buffer, std::size_t size);
  ssize_t write_reply(int fd, iovec* parts, int count);

 private:
  Server(volume::Volume& volume, const ServerOptions& options);
  void look_at_init_request(const void* request, std::size_t size);
  void patch_init_reply(iovec* parts, int count);
  void start_rings();
  void process(MutableBytes request);
  bool repeats_interrupt(const iovec* parts, int count);

  volume::Volume& volume_;
  const ServerOptions options_;
  std::unique_ptr<views::StagingPool> staging_;  // outlives the next two, whose files it has
  StagedFiles staged_files_;
  NodeTable nodes_;
  Coherence coherence_;
  FilledPages filled_pages_;
  FailedWrites failed_writes_;
  BufferPool buffers_{kMaxTransferBytes, 10};
  Session session_;
  std::unique_ptr<RequestRings> rings_;  // null: all requests come from /dev/fuse
  std::unique_ptr<WorkQueue> apply_queue_, notify_queue_, sync_queue_, trim_queue_;
  std::unique_ptr<NotifiedReplies> notified_replies_;
  std::unique_ptr<streams::Streams> streams_;  // answers calls through the session
  std::unique_ptr<FairQueue> long_queue_, list_queue_, render_queue_, trial_queue_;

  std::atomic<bool> init_seen_{false}, init_answered_{false};
  std::uint64_t added_flags_ = 0;  // to the INIT reply, of those that the kernel offers; set before the first operation
  std::atomic<bool> running_{false}, rings_failed_{false};
  pthread_t loop_thread_{};
};

}  // namespace mdfs::fuse
