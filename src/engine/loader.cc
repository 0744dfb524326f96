// Loading: claims of units, and the calls that wait.
// SPDX-License-Identifier: Apache-2.0
#include "engine/loader.h"

#include <algorithm>

#include "engine/load_operation.h"

namespace mdfs::engine {

namespace {

enum class Claim : std::uint8_t { kCovered, kBusy, kClaimed };

bool covers_all(const Unit& unit, const std::vector<ByteRanges::Range>& ranges) {
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](const ByteRanges::Range& range) { return unit.covers(range.begin, range.end); });
}

// The numbers of the parts under the ranges that are not wholly valid.
std::vector<std::uint32_t> missing_parts(const Content& content, const Unit& unit,
                                         const std::vector<ByteRanges::Range>& ranges) {
  std::vector<std::uint32_t> parts;
  for (const ByteRanges::Range& range : ranges)
    for (std::uint32_t part = range.begin / content.part_bytes; part * content.part_bytes < range.end; ++part) {
      const std::uint32_t begin = part * content.part_bytes;
      const std::uint32_t end = std::min(begin + content.part_bytes, content.unit_bytes);
      if (!unit.covers(begin, end)) parts.push_back(part);
    }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

// `buffer` is set when all is there; `fetch` when this thread is to load it.
Claim claim(const Content& content, const Want& want, std::size_t number, BufferRef& buffer,
            std::unique_ptr<Fetch>& fetch) {
  Unit& unit = *want.unit;
  const std::lock_guard lock(unit.mutex);
  if (covers_all(unit, want.ranges)) {
    buffer = unit.buffer;
    return Claim::kCovered;
  }
  if (unit.loading) return Claim::kBusy;
  unit.loading = true;
  fetch = std::make_unique<Fetch>();
  fetch->unit = want.unit;
  fetch->coord = want.coord;
  fetch->want = number;
  fetch->parts = missing_parts(content, unit, want.ranges);
  return Claim::kClaimed;
}

// Memory that loading a unit may need: the unit, and its stored form.
std::size_t load_bytes(const Content& content) {
  const std::size_t strips = content.may_have_strips ? content.capacity_bytes : 0;
  return strips +
         (content.is_raw() || !content.is_image() ? content.capacity_bytes : 2 * std::size_t{content.capacity_bytes});
}

void wait_for_loads(const std::vector<Want>& wants, const std::vector<std::size_t>& busy) {
  for (const std::size_t number : busy) {
    Unit& unit = *wants[number].unit;
    std::unique_lock lock(unit.mutex);
    unit.changed.wait(lock, [&] { return !unit.loading; });
  }
}

}  // namespace

Status Loader::load(Content& content, std::vector<Want> wants, const Loaded& loaded) {
  Status first_error;
  const std::size_t each = load_bytes(content);
  const std::size_t at_once = std::max<std::size_t>(1, core_.loads.limit_bytes() / 2 / each);
  std::vector<std::size_t> open(wants.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  while (!open.empty()) {
    std::vector<std::size_t> busy;
    for (std::size_t begin = 0; begin < open.size(); begin += at_once) {
      const std::size_t count = std::min(at_once, open.size() - begin);
      ByteBudget::Share share = core_.loads.wait_for(count * each);
      const InsideGate inside(content.gate);
      auto operation = std::make_shared<LoadOperation>(core_, content, &loaded);
      for (std::size_t i = begin; i < begin + count; ++i) {
        BufferRef buffer;
        std::unique_ptr<Fetch> fetch;
        const Claim outcome = claim(content, wants[open[i]], open[i], buffer, fetch);
        if (outcome == Claim::kCovered) loaded(open[i], buffer);
        if (outcome == Claim::kClaimed) operation->add(std::move(fetch));
        if (outcome == Claim::kBusy)
          busy.push_back(open[i]);
        else
          wants[open[i]].unit.reset();
      }
      Status status = operation->run();
      if (!status.ok() && first_error.ok()) first_error = std::move(status);
    }
    if (!first_error.ok()) return first_error;
    wait_for_loads(wants, busy);
    open = std::move(busy);
  }
  return {};
}

void Loader::start(const std::shared_ptr<Content>& content, const std::vector<Want>& wants) {
  static const Loaded nothing = [](std::size_t, const BufferRef&) {};
  const std::size_t each = load_bytes(*content);
  const std::size_t at_once = std::max<std::size_t>(1, core_.loads.limit_bytes() / 2 / each);
  for (std::size_t begin = 0; begin < wants.size(); begin += at_once) {
    const std::size_t count = std::min(at_once, wants.size() - begin);
    ByteBudget::Share share = core_.loads.try_for(count * each);
    if (!share) return;
    auto operation = std::make_shared<LoadOperation>(core_, *content, &nothing);
    content->gate.enter();
    operation->keep(content, std::move(share));
    for (std::size_t i = begin; i < begin + count; ++i) {
      BufferRef buffer;
      std::unique_ptr<Fetch> fetch;
      if (claim(*content, wants[i], i, buffer, fetch) == Claim::kClaimed) operation->add(std::move(fetch));
    }
    operation->start();
  }
}

Status Loader::load_whole(Content& content, const std::vector<std::pair<UnitPtr, geometry::Coord>>& units) {
  std::vector<Want> wants;
  wants.reserve(units.size());
  for (const auto& [unit, coord] : units) wants.push_back({unit, coord, {{0, content.unit_bytes}}});
  return load(content, std::move(wants), [](std::size_t, const BufferRef&) {});
}

}  // namespace mdfs::engine
