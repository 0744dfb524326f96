// Transfers of clients, by the definitions of the BBC's Media Storage Meter (2011; the project's seeds/003). Pure.
//
// A transfer is what a client reads or writes of one file in one go: requests for blocks, each beginning where the last
// one ended. Its data transfer time is the time in which a block is under way. The latency is the rest of its total
// time, from the first request to the last answer. A transfer of one block is a random one, one of more is sequential.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace mdfs::sim {

struct MeteredBlock {
  std::uint64_t client = 0;
  std::uint64_t object = 0;
  bool write = false;
  std::optional<std::uint64_t> first_byte;  // in the file; absent: its bytes are apart, and it is a transfer of its own
  std::uint64_t bytes = 0;
  double begin_s = 0;
  double end_s = 0;
};

struct Transfers {
  std::size_t count = 0;
  std::size_t blocks = 0;
  std::uint64_t bytes = 0;
  double transfer_s = 0;  // the sum over transfers, as all times but the largest
  double latency_s = 0;
  double most_latency_s = 0;

  // Bytes/s while data are transferred; 0 without transfers.
  double rate() const { return transfer_s > 0 ? static_cast<double>(bytes) / transfer_s : 0; }
  double mean_latency_s() const { return count > 0 ? latency_s / static_cast<double>(count) : 0; }
};

struct MeterReading {
  Transfers sequential_read, random_read, sequential_write, random_write;
};

// Adds the transfers of these blocks, which come in the order of their requests. Those of different clients may
// overlap; so may those of one client, such as blocks that are read ahead.
void add_transfers(std::span<const MeteredBlock> blocks, MeterReading& reading);

}  // namespace mdfs::sim
