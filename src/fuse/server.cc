// Setting the session up, and running it.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/server.h"

#include <linux/fuse.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "fuse/mountpoint.h"
#include "fuse/operations.h"

namespace mdfs::fuse {
namespace {

constexpr unsigned kApplyThreads = 4;
constexpr unsigned kNotifyThreads = 1;
constexpr unsigned kSyncThreads = 16;
// Of long work, and how many of them one user may have.
constexpr unsigned kLongThreads = 8, kLongShare = 6;
constexpr unsigned kRenderThreads = 3, kRenderShare = 2;  // each needs some 8 MiB
constexpr unsigned kListThreads = 2, kListShare = 2;      // times what a list request needs in memory: doc/SAFETY.md
// Lists take a processor for milliseconds, and an fsync wakes a dozen threads for microseconds each.
constexpr int kListNiceness = 10;
// Read-ahead, pages of mappings that are written back, and asynchronous direct requests that the kernel has
// outstanding: half of the threads at most, so that a mapping alone does not keep all of them.
constexpr unsigned kMaxBackground = 20;
// The same with rings: those of one caller lie in the queue of one processor, whose threads are to be enough for them.
// The threads of /dev/fuse are fewer.
constexpr unsigned kMaxRingBackground = 12;
static_assert(kMaxRingBackground < RequestRings::kThreads);
// In the number of an INTERRUPT; the rest of the number is that of the interrupted request.
constexpr std::uint64_t kInterruptBit = 1;
// Interrupts the wait of the loop's first thread.
constexpr int kWakeSignal = SIGUSR1;

// Flags of INIT that libfuse 3.14 does not know. FUSE_DIRECT_IO_ALLOW_MMAP (Linux 6.6) is not in the headers of
// Debian 12.
constexpr std::uint64_t kDirectIoAllowMmap = 1ull << 36;
// Writes, truncations and changes of the owner take privileges away here (Volume::drop_privileges()). Without the flag
// the kernel asks for the attribute security.capability before each write, and for the mode before each chown.
constexpr std::uint64_t kHandleKillPrivileges = FUSE_HANDLE_KILLPRIV_V2;
constexpr std::uint64_t kParallelDirectories = FUSE_PARALLEL_DIROPS;  // libfuse 3.14 does not pass it on

// This thread is answering OPEN, and the reply is to say that writes may come in parallel.
thread_local bool opens_for_parallel_writes = false;

void patch_open_reply(const iovec* parts, int count) {
  fuse_open_out open{};
  if (count != 2 || parts[1].iov_len != sizeof open) return;  // an error
  std::memcpy(&open, parts[1].iov_base, sizeof open);
  open.open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
  std::memcpy(parts[1].iov_base, &open, sizeof open);
}

Server* self(void* userdata) { return static_cast<Server*>(userdata); }

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.init = [](void* userdata, fuse_conn_info* connection) { self(userdata)->negotiate(*connection); };
  ops.lookup = op_lookup;
  ops.forget = op_forget;
  ops.forget_multi = op_forget_multi;
  ops.getattr = op_getattr;
  ops.setattr = op_setattr;
  ops.readlink = op_readlink;
  ops.mknod = op_mknod;
  ops.mkdir = op_mkdir;
  ops.unlink = op_unlink;
  ops.rmdir = op_rmdir;
  ops.symlink = op_symlink;
  ops.rename = op_rename;
  ops.link = op_link;
  ops.open = op_open;
  ops.create = op_create;
  ops.read = op_read;
  ops.write = op_write;
  ops.flush = op_flush;
  ops.release = op_release;
  ops.fsync = op_fsync;
  ops.opendir = op_opendir;
  ops.readdir = op_readdir;
  ops.readdirplus = op_readdirplus;
  ops.releasedir = op_releasedir;
  ops.fsyncdir = op_fsyncdir;
  ops.statfs = op_statfs;
  ops.setxattr = op_setxattr;
  ops.getxattr = op_getxattr;
  ops.listxattr = op_listxattr;
  ops.removexattr = op_removexattr;
  ops.ioctl = op_ioctl;
  ops.fallocate = op_fallocate;
  ops.lseek = op_lseek;
  ops.copy_file_range = op_copy_file_range;
  return ops;
}

}  // namespace

Server::Server(volume::Volume& volume, const ServerOptions& options)
    : volume_(volume), options_(options), coherence_(volume, nodes_) {}

Server::~Server() {
  volume_.set_change_listener({});
  volume_.set_privileges_listener({});
}

Result<std::unique_ptr<Server>> Server::create(volume::Volume& volume, const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server(volume, options));
  MDFS_TRY_ASSIGN(server->staging_, views::StagingPool::open(options.staging_directory, options.staging));
  if (!options.session.read_only) MDFS_TRY(server->staging_->try_file());
  MDFS_TRY_ASSIGN(server->session_, make_session(options.session, operations(), server.get()));
  return server;
}

Status Server::attach(device::UniqueFd requests, std::unique_ptr<RequestRings> rings) {
  rings_ = std::move(rings);
  fuse_custom_io io{};
  io.read = [](int fd, void* buffer, std::size_t size, void* userdata) {
    return self(userdata)->read_request(fd, buffer, size);
  };
  io.writev = [](int fd, iovec* parts, int count, void* userdata) {
    return self(userdata)->write_reply(fd, parts, count);
  };
  if (const int status = fuse_session_custom_io(session_.get(), &io, requests.get()); status != 0)
    return from_errno(-status, "FUSE session");
  requests.release();  // the session closes it
  coherence_.start(session_.get());
  // Windows are written on the apply work queue only, where the kernel may be told.
  volume_.set_change_listener([this](volume::Ino ino, std::uint64_t offset, std::uint64_t length) {
    coherence_.drop_plain(ino, {offset, length});
    coherence_.drop_views(ino);
  });
  // Attributes alone wait for no page, so this may be said by the thread that writes.
  volume_.set_privileges_listener([this](volume::Ino ino) { coherence_.drop_attributes(ino); });
  return {};
}

void Server::negotiate(fuse_conn_info& connection) {
  const auto want = [&](unsigned capability) { connection.want |= connection.capable & capability; };
  want(FUSE_CAP_ASYNC_READ | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_DONT_MASK | FUSE_CAP_IOCTL_DIR | FUSE_CAP_ASYNC_DIO |
       FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_POSIX_ACL | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
       FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_EXPORT_SUPPORT);
  connection.want &= ~static_cast<unsigned>(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ |
                                            FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_HANDLE_KILLPRIV);
  connection.max_read = kMaxTransferBytes;
  connection.max_write = std::min<unsigned>(connection.max_write, kMaxTransferBytes);
  connection.max_readahead = kReadAheadBytes;  // the kernel takes the smaller one of this and allow_read_ahead()
  connection.max_background = rings_ ? kMaxRingBackground : kMaxBackground;
  connection.congestion_threshold = connection.max_background * 3 / 4;
  connection.time_gran = 1;
}

ssize_t Server::read_request(int fd, void* buffer, std::size_t size) {
  const ssize_t count = ::read(fd, buffer, size);
  if (count > 0 && !init_seen_.load(std::memory_order_relaxed))
    look_at_init_request(buffer, static_cast<std::size_t>(count));
  return count;
}

// The first request is INIT: which flags does the kernel offer that libfuse does not know?
void Server::look_at_init_request(const void* request, std::size_t size) {
  fuse_in_header header{};
  fuse_init_in init{};
  if (size < sizeof header) return;
  std::memcpy(&header, request, sizeof header);
  if (header.opcode != FUSE_INIT || init_seen_.exchange(true)) return;
  if (size < sizeof header + sizeof init) return;  // older kernels send less
  std::memcpy(&init, static_cast<const char*>(request) + sizeof header, sizeof init);
  std::uint64_t offered = init.flags;
  if ((init.flags & FUSE_INIT_EXT) != 0) offered |= std::uint64_t{init.flags2} << 32;
  added_flags_ =
      offered & (kHandleKillPrivileges | kParallelDirectories | (options_.cached_images ? 0 : kDirectIoAllowMmap));
  if (!rings_) return;
  if ((offered & kOverIoUring) != 0) {
    added_flags_ |= kOverIoUring;
    return;
  }
  spdlog::warn("the kernel offers no FUSE over io_uring for this mount");
  rings_.reset();
}

bool Server::maps_direct_files() const { return (added_flags_ & kDirectIoAllowMmap) != 0; }

ssize_t Server::write_reply(int fd, iovec* parts, int count) {
  if (opens_for_parallel_writes) patch_open_reply(parts, count);
  if (!init_answered_.load(std::memory_order_relaxed) && !init_answered_.exchange(true)) {
    patch_init_reply(parts, count);
    const ssize_t written = ::writev(fd, parts, count);
    if (written > 0 && rings_) start_rings();
    return written;
  }
  if (rings_ && repeats_interrupt(parts, count)) return 0;
  if (rings_ && rings_->answer({parts, static_cast<std::size_t>(count)})) return 0;
  return ::writev(fd, parts, count);
}

void Server::process(MutableBytes request) {
  const fuse_buf buffer{
      .size = request.size(), .flags = static_cast<fuse_buf_flags>(0), .mem = request.data(), .fd = -1, .pos = 0};
  fuse_session_process_buf(session_.get(), &buffer);
}

void Server::start_rings() {
  const auto fail = [this] {
    spdlog::error("the kernel takes no ring of FUSE over io_uring; mount with io_uring=off");
    rings_failed_ = true;
    stop();
  };
  rings_->start({fuse_session_fd(session_.get()), [this](MutableBytes request) { process(request); }, fail},
                options_.threads, options_.most_threads);
}

// An INTERRUPT comes through /dev/fuse, and may be there before libfuse gets its request from a ring. libfuse answers
// EAGAIN then. The kernel repeats interrupts for requests of /dev/fuse only.
bool Server::repeats_interrupt(const iovec* parts, int count) {
  fuse_out_header out{};
  if (count != 1 || parts[0].iov_len != sizeof out) return false;
  std::memcpy(&out, parts[0].iov_base, sizeof out);
  if ((out.unique & kInterruptBit) == 0 || out.error != -EAGAIN) return false;
  const std::uint64_t request = out.unique & ~kInterruptBit;
  if (!rings_->holds(request)) return false;
  struct {
    fuse_in_header header{};
    fuse_interrupt_in interrupt{};
  } again;
  again.header.len = sizeof again;
  again.header.opcode = FUSE_INTERRUPT;
  again.header.unique = out.unique;
  again.interrupt.unique = request;
  process({reinterpret_cast<std::byte*>(&again), sizeof again});
  return true;
}

int Server::reply_open(fuse_req* req, const fuse_file_info& info, bool parallel_writes) {
  opens_for_parallel_writes = parallel_writes;
  const int status = fuse_reply_open(req, &info);
  opens_for_parallel_writes = false;
  return status;
}

// The first answer is that to INIT.
void Server::patch_init_reply(iovec* parts, int count) {
  fuse_init_out init{};
  if (added_flags_ == 0) return;
  if (count != 2 || parts[1].iov_len < sizeof init) {
    added_flags_ = 0;
    rings_.reset();
    return;
  }
  std::memcpy(&init, parts[1].iov_base, sizeof init);
  init.flags |= static_cast<std::uint32_t>(added_flags_);
  if (added_flags_ >> 32 != 0) init.flags |= FUSE_INIT_EXT;
  init.flags2 |= static_cast<std::uint32_t>(added_flags_ >> 32);
  std::memcpy(parts[1].iov_base, &init, sizeof init);
}

void Server::run() {
  apply_queue_ = std::make_unique<WorkQueue>(kApplyThreads);
  notify_queue_ = std::make_unique<WorkQueue>(kNotifyThreads);
  notified_replies_ = std::make_unique<NotifiedReplies>(*notify_queue_);
  long_queue_ = std::make_unique<FairQueue>(kLongThreads, kLongShare);
  sync_queue_ = std::make_unique<WorkQueue>(kSyncThreads);
  list_queue_ = std::make_unique<FairQueue>(kListThreads, kListShare, kListNiceness);
  render_queue_ = std::make_unique<FairQueue>(kRenderThreads, kRenderShare);
  trim_queue_ = std::make_unique<WorkQueue>(1);
  if (options_.streams) streams_ = std::make_unique<streams::Streams>(volume_, *options_.streams);
  trial_queue_ = std::make_unique<FairQueue>(1, 1);
  if (options_.channels) options_.channels->start(volume_, *render_queue_, staging(), options_.trace.get());
  struct sigaction wake {};
  wake.sa_handler = [](int) {};
  sigaction(kWakeSignal, &wake, nullptr);
  loop_thread_ = pthread_self();
  running_ = true;

  fuse_loop_config* const config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, options_.most_threads);
  fuse_loop_cfg_set_idle_threads(config, options_.threads);  // others end; starting one takes some 50 us
  fuse_loop_cfg_set_clone_fd(config, 0);
  const int status = fuse_session_loop_mt(session_.get(), config);
  fuse_loop_cfg_destroy(config);
  running_ = false;
  if (status < 0) spdlog::error("the FUSE session ended with errno {}", -status);
  if (rings_) rings_->quiesce(kWakeSignal);
  if (options_.channels) options_.channels->stop();
  // Jobs still queued answer their requests.
  apply_queue_.reset();
  long_queue_.reset();
  notify_queue_.reset();
  notified_replies_.reset();
  sync_queue_.reset();
  list_queue_.reset();
  render_queue_.reset();
  trim_queue_.reset();
  trial_queue_.reset();
  streams_.reset();
  if (rings_) rings_->end();
}

void Server::stop() {
  fuse_session_exit(session_.get());
  // The signal may come just before the loop waits: until it has returned, again.
  while (running_) {
    pthread_kill(loop_thread_, kWakeSignal);
    ::usleep(10'000);
  }
}

}  // namespace mdfs::fuse
