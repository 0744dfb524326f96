// Blocks of a receiver.
// SPDX-License-Identifier: Apache-2.0
#include "fec_receiver.h"

#include <algorithm>
#include <utility>

#include "reed_solomon.h"

namespace mdfs::gst {
namespace {

std::size_t lost_of(std::uint8_t sources, const std::map<std::uint8_t, Packet>& symbols) {
  const auto arrived = std::ranges::count_if(symbols, [&](const auto& symbol) { return symbol.first < sources; });
  return sources - static_cast<std::size_t>(arrived);
}

// The RTP packet in the symbol of a source; nothing if the symbol is none.
std::optional<Packet> packet_in(std::span<const std::byte> symbol) {
  const std::size_t bytes = read_big_endian(symbol, kSymbolLengthBytes);
  if (bytes < kMinRtpBytes || bytes > symbol.size() - kSymbolLengthBytes) return std::nullopt;
  const auto packet = symbol.subspan(kSymbolLengthBytes, bytes);
  return Packet(packet.begin(), packet.end());
}

}  // namespace

// Null: the block was dropped. Makes room for a new one.
FecReceiver::Block* FecReceiver::block_of(const FecHeader& header) {
  const std::int64_t number =
      newest_ < 0 ? header.block
                  : newest_ + static_cast<std::int32_t>(header.block - static_cast<std::uint32_t>(newest_));
  if (number < dropped_to_) return nullptr;
  newest_ = std::max(newest_, number);
  while (!blocks_.empty() && blocks_.begin()->first <= newest_ - kMaxOpenBlocks) drop_oldest();
  dropped_to_ = std::max(dropped_to_, newest_ - kMaxOpenBlocks + 1);
  return &blocks_[number];
}

void FecReceiver::drop_oldest() {
  const auto oldest = blocks_.begin();
  if (!oldest->second.done) counters_.lost += lost_of(oldest->second.sources, oldest->second.symbols);
  open_bytes_ -= oldest->second.bytes;
  dropped_to_ = oldest->first + 1;
  blocks_.erase(oldest);
}

void FecReceiver::close(Block& block) {
  block.done = true;
  open_bytes_ -= std::exchange(block.bytes, 0);
  block.symbols.clear();
}

std::vector<Packet> FecReceiver::take(std::span<const std::byte> datagram) {
  const std::optional<FecHeader> header = parse_fec_header(datagram);
  if (!header) {
    ++counters_.refused;
    return {};
  }
  if (!stream_) stream_ = header->stream;
  if (*stream_ != header->stream) {
    ++counters_.of_other_streams;
    return {};
  }
  if (header->kind == FecKind::kEnd) {
    frames_sent_ = read_big_endian(datagram.subspan(kFecHeaderBytes), 4);
    return {};
  }
  Block* const block = block_of(*header);
  if (block == nullptr || block->done || block->symbols.contains(header->index)) {
    ++counters_.late;
    return {};
  }
  const std::span<const std::byte> body = datagram.subspan(kFecHeaderBytes);
  const bool is_source = header->kind == FecKind::kSource;
  const std::size_t symbol_bytes = is_source ? kSymbolLengthBytes + body.size() : body.size();
  const bool contradicts =
      (block->sources != 0 && block->sources != header->sources) ||
      (block->symbol_bytes != 0 &&
       (is_source ? symbol_bytes > block->symbol_bytes : symbol_bytes != block->symbol_bytes)) ||
      (!is_source && block->symbol_bytes == 0 && block->bytes > 0 &&
       std::ranges::any_of(block->symbols, [&](const auto& symbol) { return symbol.second.size() > symbol_bytes; }));
  if (contradicts) {
    ++counters_.refused;
    return {};
  }
  block->sources = header->sources;
  Packet symbol;
  symbol.reserve(symbol_bytes);
  if (is_source) {
    symbol.resize(kSymbolLengthBytes);
    write_big_endian(static_cast<std::uint32_t>(body.size()), symbol, kSymbolLengthBytes);
  } else {
    block->symbol_bytes = symbol_bytes;
  }
  symbol.insert(symbol.end(), body.begin(), body.end());
  block->bytes += symbol.size();
  open_bytes_ += symbol.size();
  block->symbols.emplace(header->index, std::move(symbol));
  ++(is_source ? counters_.source_packets : counters_.repair_packets);

  std::vector<Packet> ready;
  if (is_source) ready.emplace_back(body.begin(), body.end());
  if (block->symbols.size() >= block->sources) std::ranges::move(recover(*block), std::back_inserter(ready));
  while (open_bytes_ > kMaxOpenBytes) drop_oldest();
  return ready;
}

// The sources that are missing; the block is done.
std::vector<Packet> FecReceiver::recover(Block& block) {
  std::vector<const std::byte*> sources(block.sources);
  std::vector<RepairSymbol> repairs;
  for (auto& [index, symbol] : block.symbols) {
    if (index >= block.sources) {
      repairs.push_back({index, symbol.data()});
    } else if (block.symbol_bytes != 0) {
      open_bytes_ += block.symbol_bytes - symbol.size();
      block.bytes += block.symbol_bytes - symbol.size();
      symbol.resize(block.symbol_bytes);
      sources[index] = symbol.data();
    } else {
      sources[index] = symbol.data();
    }
  }
  const auto missing = static_cast<std::size_t>(std::ranges::count(sources, nullptr));
  repairs.resize(missing);  // there are as many, or more
  std::vector<Packet> packets;
  if (missing > 0) {
    for (const auto& symbol : missing_sources(sources, repairs, block.symbol_bytes)) {
      if (std::optional<Packet> packet = packet_in(symbol)) {
        packets.push_back(std::move(*packet));
        ++counters_.recovered;
      } else {
        ++counters_.lost;
      }
    }
  }
  close(block);
  return packets;
}

FecReceiver::Counters FecReceiver::counters() const {
  Counters all = counters_;
  for (const auto& [number, block] : blocks_)
    if (!block.done) all.lost += lost_of(block.sources, block.symbols);
  return all;
}

}  // namespace mdfs::gst
