// The plan of defragmentation: groups, and what moving each one does to the windows around it.
// SPDX-License-Identifier: Apache-2.0
#include "engine/defrag_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/checked.h"
#include "engine/merit_windows.h"

namespace mdfs::engine {
namespace {

constexpr std::size_t kWindowsOfGroup = 64;
constexpr std::uint64_t kElsewhere = std::uint64_t{1} << 50;  // blocks that no disk has

class Planner {
 public:
  Planner(const LaidImage& image, std::span<const ExtentPlace> places)
      : image_(image),
        now_(places.begin(), places.end()),
        fresh_(fresh_places(image, places)),
        finder_(image, now_),
        shapes_(window_shapes(image.rank, image.grid)) {}

  std::vector<GroupMove> plan() {
    std::vector<std::uint32_t> order(now_.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto key = [&](std::uint32_t i) {
      return std::tuple(image_.groups->run_of(now_[i].index, image_.disks), fresh_[i].disk,
                        image_.groups->order_of(now_[i].index));
    };
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    std::vector<GroupMove> moves;
    for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
      const auto group = [&](std::size_t i) { return std::tuple(std::get<0>(key(order[i])), fresh_[order[i]].disk); };
      while (last < order.size() && group(last) == group(first)) ++last;
      consider(std::span(order).subspan(first, last - first), moves);
    }
    return moves;
  }

 private:
  // Its own disk, its own order, no gaps.
  bool lies_well(std::span<const std::uint32_t> group) const {
    std::uint64_t next = now_[group.front()].block;
    for (const std::uint32_t i : group) {
      if (now_[i].disk != fresh_[i].disk || now_[i].block != next || now_[i].pieces > 1) return false;
      next += stored_blocks(now_[i], image_.block_size);
    }
    return true;
  }

  void consider(std::span<const std::uint32_t> group, std::vector<GroupMove>& moves) {
    if (lies_well(group)) return;
    const std::vector<WindowAt> windows = windows_around(group);
    std::vector<std::uint64_t> before;
    for (const WindowAt& window : windows) before.push_back(count(now_, window).runs);
    std::vector<ExtentPlace> old;
    std::uint64_t next = kElsewhere + next_elsewhere_;
    for (const std::uint32_t i : group) {
      old.push_back(now_[i]);
      now_[i].disk = fresh_[i].disk;
      now_[i].block = next;
      now_[i].pieces = 1;
      next += stored_blocks(now_[i], image_.block_size);
    }
    std::uint64_t sum_before = 0, sum_after = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      sum_before += before[i];
      sum_after += count(now_, windows[i]).runs;
    }
    if (sum_after >= sum_before) {
      for (std::size_t i = 0; i < group.size(); ++i) now_[group[i]] = old[i];
      return;
    }
    GroupMove& move = moves.emplace_back();
    move.disk = fresh_[group.front()].disk;
    for (const std::uint32_t i : group) {
      move.units.push_back(now_[i].index);
      move.bytes += stored_blocks(now_[i], image_.block_size) * image_.block_size;
    }
    next_elsewhere_ = next - kElsewhere + 1;
  }

  std::vector<WindowAt> windows_around(std::span<const std::uint32_t> group) const {
    std::vector<WindowAt> windows;
    const std::size_t each = std::max<std::size_t>(1, kWindowsOfGroup / shapes_.size());
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape)
      for (std::size_t i = 0; i < std::min(each, group.size()); ++i)
        windows.push_back(draw_window(image_, shapes_[shape], shape << 32 | i,
                                      [&](std::uint64_t draw) { return now_[group[draw % group.size()]].index; }));
    return windows;
  }

  CountedRuns count(const std::vector<ExtentPlace>& places, const WindowAt& window) {
    finder_.find(window, found_);
    return count_runs(places, found_, image_.block_size);
  }

  const LaidImage& image_;
  std::vector<ExtentPlace> now_;
  const std::vector<ExtentPlace> fresh_;
  const ExtentFinder finder_;
  const std::vector<geometry::Coord> shapes_;
  std::vector<std::uint32_t> found_;
  std::uint64_t next_elsewhere_ = 0;
};

}  // namespace

std::vector<GroupMove> plan_defrag(const LaidImage& image, std::span<const ExtentPlace> places) {
  if (places.empty()) return {};
  return Planner(image, places).plan();
}

}  // namespace mdfs::engine
