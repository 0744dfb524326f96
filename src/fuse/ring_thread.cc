// The loop of a thread with one ring entry.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ring_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"
#include "fuse/processors.h"

namespace mdfs::fuse {
namespace {

constexpr std::uint64_t kEntry = 1;  // token
// By then the overflow thread has given its entry back, which is to lie behind this thread's.
constexpr auto kKickDelay = std::chrono::microseconds(100);

}  // namespace

Result<std::unique_ptr<RingThread>> RingThread::create(std::uint16_t queue, const std::vector<unsigned>& processors,
                                                       KeptPayloads& kept) {
  MDFS_TRY_ASSIGN(device::CommandRing ring, device::CommandRing::create());
  std::unique_ptr<RingThread> made(new RingThread(std::move(ring), processors));
  MDFS_TRY_ASSIGN(made->entry_, RingEntry::create(*made, queue, kept));
  return made;
}

RingThread::~RingThread() { join(); }

void RingThread::join() {
  if (thread_.joinable()) thread_.join();
}

void RingThread::start(const RingConnection& connection) {
  state_ = State::kServing;
  thread_ = std::thread([this, &connection] {
    run(connection);
    state_ = State::kGone;
  });
}

void RingThread::stop(int signal) {
  stopping_ = true;
  if (state_ == State::kWaiting) pthread_kill(thread_.native_handle(), signal);
}

void RingThread::deliver(RingEntry&, bool in_serve) {
  if (in_serve) return;
  delivered_ = true;
  delivered_.notify_one();
}

void RingThread::run(const RingConnection& connection) {
  pthread_setname_np(pthread_self(), ("ring-" + std::to_string(entry_->queue())).c_str());
  run_near_caller(true);
  if (const Status status = ring_.enable(); !status.ok()) return spdlog::error("{}", status.error().message());
  entry_->hand_over(ring_, connection.fd, kEntry);
  for (;;) {
    state_ = State::kWaiting;
    if (stopping_) return ring_.submit();
    if (entry_->keeps_too_much()) {
      ring_.submit();
      if (!ring_.has_next()) entry_->drop_payload();
    }
    ring_.wait();
    state_ = State::kServing;
    if (stopping_ || !take(connection)) return;
  }
}

bool RingThread::take(const RingConnection& connection) {
  std::uint64_t token = 0;
  int result = 0;
  if (!ring_.next(token, result)) return true;
  if (result == 0) {
    serve(connection);
  } else if (result != -EINTR && result != -EAGAIN) {
    if (result != -ENOTCONN && result != -ECONNABORTED && result != -ECANCELED)
      spdlog::error("FUSE over io_uring, processor {}: {}", entry_->queue(), std::strerror(-result));
    return false;
  }
  entry_->hand_over(ring_, connection.fd, kEntry);
  return true;
}

void RingThread::run_near_caller(bool near) {
  if (near == near_caller_) return;
  near_caller_ = near;
  if (!run_on(near ? std::vector<unsigned>{entry_->queue()} : processors_))
    spdlog::debug("a thread of the ring of processor {} keeps its processors", entry_->queue());
}

// Returns when the request has been answered.
void RingThread::serve(const RingConnection& connection) {
  delivered_ = false;
  entry_->note_arrival();
  if (entry_->answer_kick()) return std::this_thread::sleep_for(kKickDelay);
  run_near_caller(!entry_->reads_ahead());
  if (entry_->serve(connection.serve)) return;
  state_ = State::kAnswerPending;
  delivered_.wait(false);
}

}  // namespace mdfs::fuse
