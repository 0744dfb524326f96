// A decorator that injects the worst faults of real disks by a plan, and reports them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "device/disk.h"

namespace mdfs::device {

enum class FaultKind : std::uint8_t {
  kError,             // EIO; nothing is transferred
  kShort,             // the first half, in blocks, is transferred; then EIO. Reads and writes
  kBitFlip,           // one bit is wrong without an error: in the bytes of a read, or in the stored bytes of a write
  kPhantomWrite,      // success, but nothing is written
  kMisdirectedWrite,  // written to `target` instead, as far as that lies inside the disk
  kSwappedWrites,     // the data of this write and of the next matching one of equal length are exchanged
  kDroppedFlush,      // success, but nothing is flushed (a recorder below sees no flush)
  kStuck,             // does not complete before release()
  kGone,              // from now on every request fails
  kStale,             // from now on writes, flushes and discards succeed without reaching the disk
};

const char* fault_name(FaultKind kind);

// When a fault strikes. Requests of kind `op` that touch bytes [from, to) are counted: the first `skip` pass, the next
// `times` are struck. A flush touches every byte. Kinds about writes or flushes ignore `op`.
struct Fault {
  static constexpr std::uint64_t kSticky = UINT64_MAX;  // for `times`: without end

  FaultKind kind = FaultKind::kError;
  Op op = Op::kRead;
  std::uint64_t from = 0;
  std::uint64_t to = UINT64_MAX;
  std::uint64_t skip = 0;
  std::uint64_t times = 1;
  std::uint64_t target = 0;  // kMisdirectedWrite
};

// An injected fault, so that a test knows its own faults. Injected errors have the word "injected" in their text.
struct Injection {
  FaultKind kind;
  Op op;
  std::uint64_t offset;
  std::uint64_t length;
};

struct SeededPlan {
  std::vector<FaultKind> kinds;  // drawn from these
  std::size_t faults = 1;
  std::uint64_t horizon = 100;  // each fault strikes one of so many first matching requests
};
// The same seed gives the same plan.
std::vector<Fault> seeded_plan(std::uint64_t seed, const SeededPlan& plan, std::uint64_t disk_bytes);

// Passes everything on with an empty plan. At most one fault strikes a request: the first of the plan that matches. Any
// thread may call any method. Borrows `inner`; all requests must have ended before it is destroyed.
class FaultyDisk final : public Disk {
 public:
  FaultyDisk(Disk& inner, std::vector<Fault> plan, std::uint64_t seed = 1);
  ~FaultyDisk() override;

  const std::string& name() const override { return inner_.name(); }
  std::uint64_t size_bytes() const override { return inner_.size_bytes(); }
  Result<std::uint64_t> measure() override { return inner_.measure(); }
  Result<Condition> condition() override { return inner_.condition(); }
  std::uint64_t room_bytes() override { return inner_.room_bytes(); }
  bool writable() const override { return inner_.writable(); }
  void submit(std::span<Io* const> batch) override;

  void add(Fault fault);
  // Ends all faults, also kGone and kStale. Stuck requests stay stuck.
  void work_again();
  // Starts the stuck requests.
  void release();
  std::size_t stuck() const;
  std::vector<Injection> injections() const;

 private:
  struct Pending;
  struct Armed {
    Fault fault;
    std::uint64_t seen = 0;
  };

  // The fault that strikes this request, counted and noted.
  std::optional<Fault> strike(const Io& io);
  void start(Io& io, std::vector<Io*>& batch);
  void start_swapped(Io& io, std::vector<Io*>& batch);
  void start_with(Io& io, const Fault& fault, std::vector<Io*>& batch);
  std::uint64_t random();
  static void part_ended(Io& io);

  Disk& inner_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<Armed> plan_;
  std::mt19937_64 generator_;
  std::vector<Injection> injections_;
  std::vector<Io*> stuck_;
  struct Held {
    std::uint64_t offset;
    ByteVector data;
  };
  std::optional<Held> held_;  // the first of two swapped writes
  bool gone_ = false;
  bool stale_ = false;
};

}  // namespace mdfs::device
