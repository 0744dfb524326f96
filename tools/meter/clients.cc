// A thread for each client of a measurement.
// SPDX-License-Identifier: Apache-2.0
#include "meter/clients.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "meter/noise.h"
#include "meter/ramp.h"
#include "meter/requests.h"
#include "support/file.h"
#include "support/interruption.h"
#include "support/progress.h"

namespace mdfs::tools {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}
double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// What all clients share.
struct Shared {
  const ClientsRun& run;
  Progress& progress;
  Clock::time_point begun{};  // set once all clients are ready
  std::atomic<bool> ends = false;
  std::mutex mutex;
  std::optional<Error> error{};  // guarded by mutex; the first one

  void fail(const Error& why) {
    const std::lock_guard lock(mutex);
    if (!error) error = why;
    ends = true;
  }
};

// One client. The thread of the client uses it alone, and run_clients() before and after that.
class Client {
 public:
  Client(Shared& shared, unsigned number)
      : shared_(shared),
        profile_(shared.run.profile),
        number_(number),
        source_(profile_, shared.run.place.files(), shared.run.seed, number),
        noise_(std::min(profile_.block_bytes.high, shared.run.place.files().file_bytes), number + 1) {}

  // Opens what the profile wants open before the measurement.
  Status prepare() {
    if (profile_.open != meter::Open::kClient) return {};
    for (unsigned file = 0; file < shared_.run.place.files().files; ++file) {
      MDFS_TRY_ASSIGN(File opened, shared_.run.place.open(profile_, number_, file));
      open_.push_back(std::move(opened));
    }
    return {};
  }

  Status work() {
    const Clock::time_point end = shared_.begun + duration_of(shared_.run.duration_s);
    for (bool first = true; !shared_.ends; first = false) {
      const meter::PlannedTransfer planned = source_.next();
      Clock::time_point begins = shared_.begun;
      if (planned.due_s) begins += duration_of(*planned.due_s);
      if (!planned.due_s && !first) begins = Clock::now() + duration_of(planned.think_s);
      if (!first && std::max(begins, Clock::now()) >= end) break;
      if (!wait_until(begins, shared_.run.interrupted)) return stopped_by_signal();
      MDFS_TRY(make(planned));
    }
    if (profile_.sync == meter::Sync::kEnd) MDFS_TRY(sync_all());
    ended_ = Clock::now();
    return {};
  }

  const meter::Tally& tally() const { return tally_; }
  Clock::time_point ended() const { return ended_; }

 private:
  Status make(const meter::PlannedTransfer& planned) {
    meter::TimedTransfer timed{
        .write = planned.write, .sequential = planned.sequential, .blocks = planned.blocks(), .bytes = planned.bytes};
    const Clock::time_point begun = Clock::now();
    if (profile_.open == meter::Open::kTransfer) {
      MDFS_TRY_ASSIGN(File file, shared_.run.place.open(profile_, number_, planned.file));
      MDFS_TRY(move_blocks(file, planned, timed.transfer_s));
      MDFS_TRY(file.close());
    } else {
      MDFS_TRY(move_blocks(open_[planned.file], planned, timed.transfer_s));
    }
    const Clock::time_point ended = Clock::now();
    timed.total_s = seconds_between(begun, ended);
    tally_.add(timed);
    if (planned.due_s) {
      ++tally_.due;
      tally_.late += seconds_between(shared_.begun, ended) > *planned.due_s + profile_.deadline_s ? 1 : 0;
    }
    return {};
  }

  Status move_blocks(File& file, const meter::PlannedTransfer& planned, double& transfer_s) {
    if (planned.empties && ::ftruncate(file.fd(), 0) != 0) return from_errno(errno, file.name());
    for (std::uint64_t done = 0; done < planned.bytes; done += planned.block_bytes) {
      if (shared_.run.interrupted) return stopped_by_signal();
      const std::uint64_t bytes = std::min(planned.block_bytes, planned.bytes - done);
      const ConstBytes from = planned.write ? noise_.next(bytes) : ConstBytes();
      const Clock::time_point begun = Clock::now();
      if (planned.write) {
        MDFS_TRY(file.write_at(planned.offset_bytes + done, from));
      } else {
        MDFS_TRY_ASSIGN(const std::size_t got, file.read_at(planned.offset_bytes + done, noise_.room().first(bytes)));
        if (got < bytes) return Error{Errc::kIo, file.name() + ": became shorter while it was read"};
      }
      transfer_s += seconds_between(begun, Clock::now());
      shared_.progress.add(bytes);
    }
    if (planned.write && profile_.sync == meter::Sync::kTransfer) return sync(file);
    return {};
  }

  static Status sync(const File& file) {
    return ::fdatasync(file.fd()) == 0 ? Status() : from_errno(errno, file.name());
  }

  Status sync_all() {
    for (const File& file : open_) MDFS_TRY(sync(file));
    const unsigned closed = open_.empty() ? shared_.run.place.files().files : 0;
    for (unsigned number = 0; number < closed && profile_.writes > 0; ++number) {
      MDFS_TRY_ASSIGN(const File file, shared_.run.place.open(profile_, number_, number));
      MDFS_TRY(sync(file));
    }
    return {};
  }

  Shared& shared_;
  const meter::Profile& profile_;
  const unsigned number_;
  meter::RequestSource source_;
  Noise noise_;
  std::vector<File> open_;
  meter::Tally tally_;
  Clock::time_point ended_{};
};

}  // namespace

Status check_buffers(const meter::Profile& profile, unsigned clients) {
  const std::uint64_t bytes = profile.block_bytes.high * clients;
  if (bytes <= kMostBufferBytes) return {};
  return Error{Errc::kTooBig,
               fmt::format("{} clients with blocks of {}: their buffers have {} at most together", clients,
                           format_size(profile.block_bytes.high), format_size(kMostBufferBytes))};
}

Result<meter::Step> run_clients(const ClientsRun& run) {
  Progress progress(fmt::format("{}: {}", run.place.path(), meter::clients_text(run.clients)), 0);
  Shared shared{.run = run, .progress = progress, .mutex = {}};
  std::vector<Client> clients;
  clients.reserve(run.clients);
  for (unsigned number = 0; number < run.clients; ++number) {
    clients.emplace_back(shared, number);
    MDFS_TRY(clients.back().prepare());
  }
  std::barrier start(run.clients, [&shared]() noexcept { shared.begun = Clock::now(); });
  {
    std::vector<std::jthread> threads;
    for (Client& client : clients)
      threads.emplace_back([&] {
        start.arrive_and_wait();
        if (const Status status = client.work(); !status.ok()) shared.fail(status.error());
      });
  }
  if (shared.error) return *shared.error;
  meter::Step step{.clients = run.clients};
  step.measured_s = run.duration_s;  // clients that think have nothing to transfer at its end
  for (const Client& client : clients) {
    step.tally.add(client.tally());
    step.measured_s = std::max(step.measured_s, seconds_between(shared.begun, client.ended()));
  }
  return step;
}

}  // namespace mdfs::tools
