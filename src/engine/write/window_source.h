// The source of the bytes of a window write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::engine {

// Bytes [begin, end) of a window's canonical layout.
struct WindowRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// One extent that has been encoded already: `frame` is what the codec of the image decodes to `decoded`, which are all
// samples of the extent in their stored order. The frame is as FORMAT.md demands it, and not above the codec's bound.
struct ReadyExtent {
  ConstBytes frame;
  ConstBytes decoded;
};

// Gives bytes of the window's canonical layout on request, so that a window larger than memory can come from a staging
// file. With a list of written ranges nothing else is requested. The window's other bytes keep their values at the
// moment of the write, with the earlier writes of other programs. Several threads may read from a source.
class WindowSource {
 public:
  using Read = std::function<Status(std::uint64_t offset, MutableBytes into)>;

  // All bytes are written.
  template <typename F>
  requires std::is_invocable_r_v<Status, F&, std::uint64_t, MutableBytes> WindowSource(F give)
      : read_(std::move(give)) {}
  // `written`: ascending, disjoint, inside the window.
  WindowSource(Read give, std::vector<WindowRange> written) : read_(std::move(give)), written_(std::move(written)) {}

  // For the window of one extent: the frame is stored as it is, if the extent becomes exactly these samples. The bytes
  // must last as long as the source.
  void offer(const ReadyExtent& ready) { ready_ = ready; }
  const std::optional<ReadyExtent>& offered() const { return ready_; }

  bool is_whole() const { return !written_; }
  Status read(std::uint64_t offset, MutableBytes into) const { return read_(offset, into); }

  // visit(begin, end) -> Status for the written parts of [begin, end), in order.
  template <typename Visit>
  Status each_written(std::uint64_t begin, std::uint64_t end, Visit&& visit) const {
    if (!written_) return visit(begin, end);
    auto range = std::upper_bound(written_->begin(), written_->end(), begin,
                                  [](std::uint64_t at, const WindowRange& other) { return at < other.end; });
    for (; range != written_->end() && range->begin < end; ++range)
      MDFS_TRY(visit(std::max(begin, range->begin), std::min(end, range->end)));
    return {};
  }
  std::uint64_t written_bytes(std::uint64_t begin, std::uint64_t end) const {
    std::uint64_t bytes = 0;
    const Status counted = each_written(begin, end, [&](std::uint64_t first, std::uint64_t last) -> Status {
      bytes += last - first;
      return {};
    });
    MDFS_CHECK(counted.ok());
    return bytes;
  }

 private:
  Read read_;
  std::optional<std::vector<WindowRange>> written_;
  std::optional<ReadyExtent> ready_;
};

}  // namespace mdfs::engine
