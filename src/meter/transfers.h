// Transfers of clients, by the definitions of the BBC's Media Storage Meter (2011; the project's seeds/003). Pure.
//
// A transfer is what a client reads or writes of one file in one go: requests for blocks, each beginning where the last
// one ended. Its data transfer time is the time in which a block is under way. The latency is the rest of its total
// time. In a trace the total time is from the first request to the last answer. A client that measures also counts
// opening, flushing and closing the file. A transfer of one block is a random one, unless it is the next one of a
// client that works through its files in order. All others are sequential.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace mdfs::meter {

// One finished transfer.
struct TimedTransfer {
  bool write = false;
  bool sequential = false;
  std::size_t blocks = 0;
  std::uint64_t bytes = 0;
  double transfer_s = 0;  // data transfer time
  double total_s = 0;

  double latency_s() const { return total_s > transfer_s ? total_s - transfer_s : 0; }
};

// Sums over transfers of one kind.
struct Transfers {
  std::size_t count = 0;
  std::size_t blocks = 0;
  std::uint64_t bytes = 0;
  double transfer_s = 0;  // the sum over transfers, as all times but the largest
  double latency_s = 0;
  double most_latency_s = 0;

  void add(const TimedTransfer& transfer);
  void add(const Transfers& others);
  // Bytes/s while data are transferred; 0 without transfers.
  double rate() const { return transfer_s > 0 ? static_cast<double>(bytes) / transfer_s : 0; }
  double mean_latency_s() const { return count > 0 ? latency_s / static_cast<double>(count) : 0; }
};

// The four kinds of transfers, in the order of reports.
enum class Kind : std::uint8_t { kSequentialRead, kRandomRead, kSequentialWrite, kRandomWrite };
inline constexpr std::array kAllKinds = {Kind::kSequentialRead, Kind::kRandomRead, Kind::kSequentialWrite,
                                         Kind::kRandomWrite};
inline constexpr std::size_t kKinds = kAllKinds.size();
Kind kind_of(const TimedTransfer& transfer);
const char* name_of(Kind kind);   // "sequential_read"
std::string title_of(Kind kind);  // "sequential read"

struct MeterReading {
  Transfers sequential_read, random_read, sequential_write, random_write;

  const Transfers& of(Kind kind) const;
  Transfers& of(Kind kind) { return const_cast<Transfers&>(std::as_const(*this).of(kind)); }
};

// A block of a trace.
struct MeteredBlock {
  std::uint64_t client = 0;
  std::uint64_t object = 0;
  bool write = false;
  std::optional<std::uint64_t> first_byte;  // in the file; absent: its bytes are apart, and it is a transfer of its own
  std::uint64_t bytes = 0;
  double begin_s = 0;
  double end_s = 0;
};

// Adds the transfers of these blocks, which come in the order of their requests. Those of different clients may
// overlap; so may those of one client, such as blocks that are read ahead.
void add_transfers(std::span<const MeteredBlock> blocks, MeterReading& reading);

}  // namespace mdfs::meter
