// Durable and outstanding writes, and the bounded enumeration of what a cut leaves.
// SPDX-License-Identifier: Apache-2.0
#include "device/testing/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "base/checked.h"

namespace mdfs::device {
namespace {

constexpr std::uint32_t kTornUnits[] = {512, 4096};

bool covers(const Event& later, const Event& earlier) {
  return later.disk == earlier.disk && later.offset <= earlier.offset &&
         earlier.offset + earlier.length <= later.offset + later.length;
}

// Collects cuts; a set of kept writes is taken once.
class CutList {
 public:
  CutList(std::size_t position, std::size_t writes) : position_(position), writes_(writes) {}

  void add(const std::vector<bool>& kept, std::string text) {
    if (!seen_.insert(kept).second) return;
    Cut cut{position_, std::vector<Keep>(writes_), std::move(text)};
    for (std::size_t i = 0; i < writes_; ++i) cut.keep[i].kept = kept[i];
    cuts_.push_back(std::move(cut));
  }

  // Write `i` is torn; those before it are kept.
  void add_torn(std::size_t i, const Keep& torn) {
    Cut cut{position_, std::vector<Keep>(writes_), ""};
    for (std::size_t j = 0; j < i; ++j) cut.keep[j].kept = true;
    cut.keep[i] = torn;
    cut.text = fmt::format("write {} torn: units [{}, {}) of {} bytes", i, torn.first, torn.last, torn.torn_unit_bytes);
    cuts_.push_back(std::move(cut));
  }

  std::vector<Cut> take() { return std::move(cuts_); }

 private:
  const std::size_t position_;
  const std::size_t writes_;
  std::set<std::vector<bool>> seen_;
  std::vector<Cut> cuts_;
};

void add_all_subsets(std::size_t writes, CutList& list) {
  for (std::uint64_t mask = 0; mask < (1ull << writes); ++mask) {
    std::vector<bool> kept(writes);
    for (std::size_t i = 0; i < writes; ++i) kept[i] = (mask >> i & 1) != 0;
    list.add(kept, fmt::format("subset {:#x} of {} writes", mask, writes));
  }
}

// At most `most` numbers below `n`, evenly spaced.
std::vector<std::size_t> spread(std::size_t n, std::size_t most) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < std::min(n, most); ++i) numbers.push_back(n <= most ? i : i * n / most);
  return numbers;
}

void add_regular(const std::vector<const Event*>& outstanding, std::size_t most, CutList& list) {
  const std::size_t n = outstanding.size();
  list.add(std::vector<bool>(n, true), fmt::format("all of {} writes", n));
  for (const std::size_t i : spread(n, most)) {
    std::vector<bool> kept(n);
    std::fill_n(kept.begin(), i, true);
    list.add(kept, fmt::format("the first {} of {} writes", i, n));
  }
  for (const std::size_t i : spread(n, most)) {
    std::vector<bool> kept(n);
    kept[i] = true;
    list.add(kept, fmt::format("write {} of {} alone", i, n));
    kept.flip();
    list.add(kept, fmt::format("all but write {} of {}", i, n));
  }
  std::set<std::uint32_t> disks;
  for (const Event* event : outstanding) disks.insert(event->disk);
  for (const std::uint32_t disk : disks) {
    std::vector<bool> kept(n);
    for (std::size_t i = 0; i < n; ++i) kept[i] = outstanding[i]->disk == disk;
    list.add(kept, fmt::format("disk {} alone complete", disk));
    kept.flip();
    list.add(kept, fmt::format("disk {} alone empty", disk));
  }
}

void add_samples(const std::vector<const Event*>& outstanding, std::uint64_t seed, std::size_t samples, CutList& list) {
  const std::size_t n = outstanding.size();
  std::uint32_t disks = 0;
  for (const Event* event : outstanding) disks = std::max(disks, event->disk + 1);
  std::mt19937_64 generator(seed);
  for (std::size_t s = 0; s < samples; ++s) {
    std::vector<bool> kept(n);
    if (s % 2 == 0) {
      std::vector<std::size_t> prefix(disks);
      for (auto& length : prefix) length = generator() % (n + 1);
      std::vector<std::size_t> count(disks);
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t disk = outstanding[i]->disk;
        kept[i] = count[disk]++ < prefix[disk];
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) kept[i] = generator() % 2 == 0;
    }
    list.add(kept, fmt::format("sample {} with seed {}", s, seed));
  }
}

// The head half, the tail half, all but the first and all but the last unit.
void add_torn(const std::vector<const Event*>& outstanding, std::size_t most, CutList& list) {
  for (const std::size_t i : spread(outstanding.size(), most)) {
    if (outstanding[i]->op != Op::kWrite) continue;
    for (const std::uint32_t unit : kTornUnits) {
      const auto units = static_cast<std::uint32_t>(outstanding[i]->length / unit);
      if (units < 2) continue;
      const std::set<std::pair<std::uint32_t, std::uint32_t>> ranges = {
          {0, units / 2}, {units / 2, units}, {1, units}, {0, units - 1}};
      for (const auto& [first, last] : ranges) list.add_torn(i, Keep{true, unit, first, last});
    }
  }
}

}  // namespace

Replayer::Replayer(const std::vector<const MemoryDisk*>& bases, std::vector<Event> log) : log_(std::move(log)) {
  for (const MemoryDisk* base : bases) {
    durable_.push_back(base->clone());
    durable_.back()->set_writable(true);
  }
  for (const Event& event : log_) MDFS_CHECK(event.kind == EventKind::kMark || event.disk < durable_.size());
}

void Replayer::advance_to(std::size_t position) {
  MDFS_CHECK(position >= position_ && position <= log_.size());
  for (; position_ < position; ++position_) {
    const Event& event = log_[position_];
    if (event.kind == EventKind::kStart) start(event);
    if (event.kind == EventKind::kEnd) end(event);
  }
}

std::vector<const Event*> Replayer::outstanding() const {
  std::vector<const Event*> events;
  for (const Write& write : outstanding_) events.push_back(write.event);
  return events;
}

void Replayer::start(const Event& event) {
  if (event.op != Op::kFlush) {
    outstanding_.push_back({&event});
    return;
  }
  Flush flush{event.request, event.disk, {}};
  for (const Write& write : outstanding_) {
    if (write.event->disk == event.disk && write.ended && !write.failed) flush.covers.push_back(write.event->request);
  }
  flushes_.push_back(std::move(flush));
}

void Replayer::end(const Event& event) {
  if (event.op == Op::kFlush) {
    const auto flush = std::ranges::find(flushes_, event.request, &Flush::request);
    MDFS_CHECK(flush != flushes_.end());
    if (event.ok) make_durable(*flush);
    flushes_.erase(flush);
    return;
  }
  for (Write& write : outstanding_) {
    if (write.event->request != event.request) continue;
    write.ended = true;
    write.failed = !event.ok;
  }
}

void Replayer::make_durable(const Flush& flush) {
  std::vector<Write> left;
  for (const Write& write : outstanding_) {
    if (std::ranges::find(flush.covers, write.event->request) == flush.covers.end()) {
      left.push_back(write);
      continue;
    }
    apply(*durable_[write.event->disk], *write.event, Keep{true, 0, 0, 0});
    // A failed write below this one can no longer come to light.
    std::erase_if(left, [&](const Write& earlier) { return earlier.failed && covers(*write.event, *earlier.event); });
  }
  outstanding_ = std::move(left);
}

void Replayer::apply(MemoryDisk& disk, const Event& event, const Keep& keep) {
  if (!keep.kept) return;
  if (event.op == Op::kDiscard) {
    disk.zero(event.offset, event.length);
    return;
  }
  const ConstBytes data(*event.data);
  if (keep.torn_unit_bytes == 0) {
    disk.poke(event.offset, data);
    return;
  }
  const std::uint64_t from = std::uint64_t{keep.first} * keep.torn_unit_bytes;
  const std::uint64_t to = std::uint64_t{keep.last} * keep.torn_unit_bytes;
  MDFS_CHECK(from <= to && to <= data.size());
  disk.poke(event.offset + from, data.subspan(from, to - from));
}

std::vector<std::unique_ptr<MemoryDisk>> Replayer::build(const Cut& cut) const {
  MDFS_CHECK(cut.position == position_ && cut.keep.size() == outstanding_.size());
  std::vector<std::unique_ptr<MemoryDisk>> disks;
  for (const auto& disk : durable_) disks.push_back(disk->clone());
  for (std::size_t i = 0; i < outstanding_.size(); ++i) {
    const Event& event = *outstanding_[i].event;
    apply(*disks[event.disk], event, cut.keep[i]);
  }
  return disks;
}

std::vector<std::size_t> cut_positions(const std::vector<Event>& log) {
  std::set<std::size_t> positions;
  for (std::size_t i = 0; i < log.size(); ++i) {
    const bool mark = log[i].kind == EventKind::kMark;
    if (mark || (log[i].kind == EventKind::kEnd && log[i].op == Op::kFlush)) positions.insert(i);
    if (mark) positions.insert(i + 1);
  }
  positions.insert(log.size());
  return {positions.begin(), positions.end()};
}

std::vector<Cut> cuts(std::size_t position, const std::vector<const Event*>& outstanding, const CutBounds& bounds) {
  CutList list(position, outstanding.size());
  MDFS_CHECK(bounds.all_subsets_up_to < 24);
  if (outstanding.size() <= bounds.all_subsets_up_to) {
    add_all_subsets(outstanding.size(), list);
  } else {
    add_regular(outstanding, bounds.each_one_up_to, list);
    add_samples(outstanding, bounds.seed + position, bounds.samples, list);
  }
  if (bounds.torn) add_torn(outstanding, bounds.each_one_up_to, list);
  return list.take();
}

namespace {

using Disks = std::vector<std::unique_ptr<MemoryDisk>>;

// Every cut at every position, with the disks that it leaves, unless such disks were visited since the last mark. The
// replayer stands at the cut. Gives the number of visits.
std::size_t for_each_state(const std::vector<const MemoryDisk*>& bases, const std::vector<Event>& log,
                           const CutBounds& bounds,
                           const std::function<bool(const Replayer& replayer, Disks disks, const Cut& cut)>& visit) {
  Replayer replayer(bases, log);
  std::set<std::vector<std::uint64_t>> visited;
  std::size_t count = 0;
  for (const std::size_t position : cut_positions(log)) {
    if (position < bounds.from) continue;
    if (position > 0 && log[position - 1].kind == EventKind::kMark) visited.clear();
    replayer.advance_to(position);
    for (const Cut& cut : cuts(position, replayer.outstanding(), bounds)) {
      Disks disks = replayer.build(cut);
      std::vector<std::uint64_t> digests;
      for (const auto& disk : disks) digests.push_back(disk->digest());
      if (!visited.insert(std::move(digests)).second) continue;
      ++count;
      if (!visit(replayer, std::move(disks), cut)) return count;
    }
  }
  return count;
}

}  // namespace

std::size_t for_each_kill(const std::vector<const MemoryDisk*>& bases, const std::vector<Event>& log,
                          const CutBounds& bounds, const std::function<bool(Kill kill)>& visit) {
  CutBounds untorn = bounds;
  untorn.torn = false;
  return for_each_state(bases, log, untorn, [&](const Replayer& replayer, Disks seen, const Cut& cut) {
    Kill kill{cut.position, cut.text, std::move(seen), {}, {}};
    const std::vector<const Event*> outstanding = replayer.outstanding();
    kill.durable = replayer.build({cut.position, std::vector<Keep>(outstanding.size()), ""});
    for (std::size_t i = 0; i < outstanding.size(); ++i) {
      if (!cut.keep[i].kept) continue;
      kill.in_cache.push_back(*outstanding[i]);
      Event end = *outstanding[i];
      end.kind = EventKind::kEnd;
      end.data.reset();
      kill.in_cache.push_back(std::move(end));
    }
    return visit(std::move(kill));
  });
}

std::size_t for_each_cut(
    const std::vector<const MemoryDisk*>& bases, const std::vector<Event>& log, const CutBounds& bounds,
    const std::function<bool(std::vector<std::unique_ptr<MemoryDisk>> disks, const Cut& cut)>& visit) {
  return for_each_state(bases, log, bounds,
                        [&](const Replayer&, Disks disks, const Cut& cut) { return visit(std::move(disks), cut); });
}

}  // namespace mdfs::device
