// The plan of defragmentation: groups, and what moving each one does to the windows around it.
// SPDX-License-Identifier: Apache-2.0
#include "layout/defrag_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <tuple>

#include "base/checked.h"
#include "layout/typical_windows.h"

namespace mdfs::layout {
namespace {

constexpr std::size_t kWindowsOfGroup = 64;
constexpr double kLeastGain = 0.01;                           // for which what lies on other disks is moved
constexpr std::uint64_t kElsewhere = std::uint64_t{1} << 50;  // blocks that no disk has

class Planner {
 public:
  Planner(const ImageLayout& image, std::span<const ExtentPlace> places, const RoomOf& room)
      : image_(image),
        room_(room),
        now_(places.begin(), places.end()),
        fresh_(fresh_places(image, places)),
        shares_(fresh_, image.block_size),
        finder_(image, now_),
        shapes_(window_shapes(image.rank, image.grid)) {}

  std::vector<GroupMove> plan() {
    const std::vector<Group> groups = all_groups();
    std::vector<GroupMove> moves = plan_going_home(groups);
    if (!moves.empty()) return moves;
    for (const Group& group : groups) consider(group, moves);
    return moves;
  }

 private:
  using Group = std::vector<std::uint32_t>;  // numbers of places, in the order in which they are to lie

  std::vector<Group> all_groups() const {
    std::vector<std::uint32_t> order(now_.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto group_of = [&](std::uint32_t i) {
      return std::tuple(image_.groups->run_of(now_[i].index, image_.disks), fresh_[i].disk);
    };
    std::ranges::sort(order, {}, [&](std::uint32_t i) {
      return std::tuple_cat(group_of(i), std::tuple(image_.groups->order_of(now_[i].index)));
    });
    std::vector<Group> groups;
    for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
      while (last < order.size() && group_of(order[last]) == group_of(order[first])) ++last;
      groups.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(first),
                          order.begin() + static_cast<std::ptrdiff_t>(last));
    }
    return groups;
  }

  // None if windows would not gain by it; then all is as it was.
  std::vector<GroupMove> plan_going_home(const std::vector<Group>& groups) {
    std::map<unsigned, std::uint64_t> arriving;  // blocks on each disk, if everything went home
    for (const Group& group : groups) arriving[home_of(group)] += blocks_away(group);
    const auto goes_home = [&](const Group& group) {
      return blocks_away(group) > 0 && arriving.at(home_of(group)) <= room_(home_of(group)) / 2;
    };
    if (std::ranges::none_of(groups, goes_home)) return {};
    const double was = time_of(groups);
    const std::vector<ExtentPlace> before = now_;
    std::vector<GroupMove> moves;
    std::vector<const Group*> left;  // by those that go home: they are full of holes then
    for (const Group& group : groups) {
      if (goes_home(group))
        move(group, moves);
      else
        left.push_back(&group);
    }
    for (const Group* group : left) consider(*group, moves);
    if (time_of(groups) >= was * (1 - kLeastGain)) {
      now_ = before;
      return {};
    }
    // Region by region, so that windows have holes for a short time only.
    std::ranges::stable_sort(
        moves, {}, [&](const GroupMove& move) { return image_.groups->run_of(move.extents.front(), image_.disks); });
    return moves;
  }

  unsigned home_of(const Group& group) const { return fresh_[group.front()].disk; }

  std::uint64_t blocks_away(const Group& group) const {
    std::uint64_t blocks = 0;
    for (const std::uint32_t i : group)
      blocks += now_[i].disk == fresh_[i].disk ? 0 : stored_blocks(now_[i], image_.block_size);
    return blocks;
  }

  // Its own disk, its own order, no gaps.
  bool lies_well(const Group& group) const {
    std::uint64_t next = now_[group.front()].block;
    for (const std::uint32_t i : group) {
      if (now_[i].disk != fresh_[i].disk || now_[i].block != next || now_[i].pieces > 1) return false;
      next += stored_blocks(now_[i], image_.block_size);
    }
    return true;
  }

  void consider(const Group& group, std::vector<GroupMove>& moves) {
    if (lies_well(group) || blocks_away(group) > room_(home_of(group)) / 2) return;
    const std::vector<WindowAt> windows = windows_around(group);
    std::vector<ExtentPlace> old;
    for (const std::uint32_t i : group) old.push_back(now_[i]);
    const std::uint64_t before = runs_of(windows);
    move(group, moves);
    if (runs_of(windows) < before) return;
    for (std::size_t i = 0; i < group.size(); ++i) now_[group[i]] = old[i];
    moves.pop_back();
  }

  void move(const Group& group, std::vector<GroupMove>& moves) {
    GroupMove& move = moves.emplace_back();
    move.disk = home_of(group);
    for (const std::uint32_t i : group) {
      const std::uint64_t blocks = stored_blocks(now_[i], image_.block_size);
      now_[i].disk = move.disk;
      now_[i].block = next_elsewhere_;
      now_[i].pieces = 1;
      next_elsewhere_ += blocks;
      move.extents.push_back(now_[i].index);
      move.bytes += blocks * image_.block_size;
    }
    ++next_elsewhere_;  // groups do not touch
  }

  std::uint64_t runs_of(const std::vector<WindowAt>& windows) {
    std::uint64_t runs = 0;
    for (const WindowAt& window : windows) runs += count(window).runs;
    return runs;
  }

  // Of typical windows around all groups, in sum.
  double time_of(const std::vector<Group>& groups) {
    double time = 0;
    for (const Group& group : groups)
      for (const WindowAt& window : windows_around(group)) time += count(window).time;
    return time;
  }

  std::vector<WindowAt> windows_around(const Group& group) const {
    std::vector<WindowAt> windows;
    const std::size_t each = std::max<std::size_t>(1, kWindowsOfGroup / shapes_.size());
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape)
      for (std::size_t i = 0; i < std::min(each, group.size()); ++i)
        windows.push_back(draw_window(image_, shapes_[shape], shape << 32 | i,
                                      [&](std::uint64_t draw) { return now_[group[draw % group.size()]].index; }));
    return windows;
  }

  CountedRuns count(const WindowAt& window) {
    finder_.find(window, found_);
    return count_runs(now_, found_, image_.block_size, shares_);
  }

  const ImageLayout& image_;
  const RoomOf& room_;
  std::vector<ExtentPlace> now_;
  const std::vector<ExtentPlace> fresh_;
  const DiskShares shares_;
  const ExtentFinder finder_;
  const std::vector<geometry::Coord> shapes_;
  std::vector<std::uint32_t> found_;
  std::uint64_t next_elsewhere_ = kElsewhere;
};

}  // namespace

std::vector<GroupMove> plan_defrag(const ImageLayout& image, std::span<const ExtentPlace> places, const RoomOf& room) {
  if (places.empty()) return {};
  return Planner(image, places, room).plan();
}

}  // namespace mdfs::layout
