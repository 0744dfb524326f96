// Adding transfers up.
// SPDX-License-Identifier: Apache-2.0
#include "meter/reading.h"

namespace mdfs::meter {

void Tally::add(const TimedTransfer& transfer) {
  const Kind kind = kind_of(transfer);
  transfers.of(kind).add(transfer);
  totals[static_cast<std::size_t>(kind)].add(transfer.total_s);
  latencies[static_cast<std::size_t>(kind)].add(transfer.latency_s());
}

void Tally::add(const Tally& others) {
  for (const Kind kind : kAllKinds) {
    const auto i = static_cast<std::size_t>(kind);
    transfers.of(kind).add(others.transfers.of(kind));
    totals[i].add(others.totals[i]);
    latencies[i].add(others.latencies[i]);
  }
  due += others.due;
  late += others.late;
}

std::uint64_t Tally::count() const {
  std::uint64_t sum = 0;
  for (const Kind kind : kAllKinds) sum += transfers.of(kind).count;
  return sum;
}

std::uint64_t Tally::bytes() const {
  std::uint64_t sum = 0;
  for (const Kind kind : kAllKinds) sum += transfers.of(kind).bytes;
  return sum;
}

Distribution Tally::all_totals() const {
  Distribution all;
  for (const Distribution& kind : totals) all.add(kind);
  return all;
}

void Step::add(const Step& again) {
  clients = again.clients;
  measured_s += again.measured_s;
  tally.add(again.tally);
}

}  // namespace mdfs::meter
