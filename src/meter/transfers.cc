// Blocks of clients, joined to transfers.
// SPDX-License-Identifier: Apache-2.0
#include "meter/transfers.h"

#include <algorithm>
#include <array>
#include <map>

namespace mdfs::meter {
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

  // One block that continued another would have been part of its transfer.
  TimedTransfer finished() const {
    return {.write = write_,
            .sequential = blocks_ > 1,
            .blocks = blocks_,
            .bytes = bytes_,
            .transfer_s = transfer_s_,
            .total_s = covered_until_s_ - begin_s_};
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

void Transfers::add(const TimedTransfer& transfer) {
  ++count;
  blocks += transfer.blocks;
  bytes += transfer.bytes;
  transfer_s += transfer.transfer_s;
  latency_s += transfer.latency_s();
  most_latency_s = std::max(most_latency_s, transfer.latency_s());
}

void Transfers::add(const Transfers& others) {
  count += others.count;
  blocks += others.blocks;
  bytes += others.bytes;
  transfer_s += others.transfer_s;
  latency_s += others.latency_s;
  most_latency_s = std::max(most_latency_s, others.most_latency_s);
}

Kind kind_of(const TimedTransfer& transfer) {
  if (transfer.write) return transfer.sequential ? Kind::kSequentialWrite : Kind::kRandomWrite;
  return transfer.sequential ? Kind::kSequentialRead : Kind::kRandomRead;
}

const char* name_of(Kind kind) {
  constexpr std::array<const char*, kKinds> kNames = {"sequential_read", "random_read", "sequential_write",
                                                      "random_write"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string title_of(Kind kind) {
  std::string name = name_of(kind);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

const Transfers& MeterReading::of(Kind kind) const {
  const std::array<const Transfers*, kKinds> all = {&sequential_read, &random_read, &sequential_write, &random_write};
  return *all[static_cast<std::size_t>(kind)];
}

void add_transfers(std::span<const MeteredBlock> blocks, MeterReading& reading) {
  const auto count = [&](const Transfer& transfer) {
    const TimedTransfer finished = transfer.finished();
    reading.of(kind_of(finished)).add(finished);
  };
  std::map<std::uint64_t, Transfer> under_way;  // by client
  for (const MeteredBlock& block : blocks) {
    const auto last = under_way.find(block.client);
    if (last != under_way.end() && last->second.goes_on_with(block)) {
      last->second.take(block);
      continue;
    }
    if (last != under_way.end()) {
      count(last->second);
      under_way.erase(last);
    }
    under_way.emplace(block.client, Transfer(block));
  }
  for (const auto& [client, transfer] : under_way) count(transfer);
}

}  // namespace mdfs::meter
