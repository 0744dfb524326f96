// Blocks of clients, joined to transfers.
// SPDX-License-Identifier: Apache-2.0
#include "sim/meter.h"

#include <algorithm>
#include <map>

namespace mdfs::sim {
namespace {

// A transfer that may continue.
class Transfer {
 public:
  explicit Transfer(const MeteredBlock& block)
      : object_(block.object), write_(block.write), begin_s_(block.begin_s), covered_until_s_(block.begin_s) {
    take(block);
  }

  bool goes_on_with(const MeteredBlock& block) const {
    return end_byte_ && block.first_byte == end_byte_ && block.object == object_ && block.write == write_;
  }

  void take(const MeteredBlock& block) {
    ++blocks_;
    bytes_ += block.bytes;
    end_byte_ = block.first_byte ? std::optional(*block.first_byte + block.bytes) : std::nullopt;
    transfer_s_ += std::max(0.0, block.end_s - std::max(block.begin_s, covered_until_s_));
    covered_until_s_ = std::max(covered_until_s_, block.end_s);
  }

  void count_in(MeterReading& reading) const {
    Transfers& kind = write_ ? (blocks_ > 1 ? reading.sequential_write : reading.random_write)
                             : (blocks_ > 1 ? reading.sequential_read : reading.random_read);
    const double latency_s = std::max(0.0, covered_until_s_ - begin_s_ - transfer_s_);
    ++kind.count;
    kind.blocks += blocks_;
    kind.bytes += bytes_;
    kind.transfer_s += transfer_s_;
    kind.latency_s += latency_s;
    kind.most_latency_s = std::max(kind.most_latency_s, latency_s);
  }

 private:
  const std::uint64_t object_;
  const bool write_;
  const double begin_s_;
  double covered_until_s_;  // by blocks under way
  double transfer_s_ = 0;
  std::size_t blocks_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<std::uint64_t> end_byte_;
};

}  // namespace

void add_transfers(std::span<const MeteredBlock> blocks, MeterReading& reading) {
  std::map<std::uint64_t, Transfer> under_way;  // by client
  for (const MeteredBlock& block : blocks) {
    const auto last = under_way.find(block.client);
    if (last != under_way.end() && last->second.goes_on_with(block)) {
      last->second.take(block);
      continue;
    }
    if (last != under_way.end()) {
      last->second.count_in(reading);
      under_way.erase(last);
    }
    under_way.emplace(block.client, Transfer(block));
  }
  for (const auto& [client, transfer] : under_way) transfer.count_in(reading);
}

}  // namespace mdfs::sim
