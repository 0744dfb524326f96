// Tracks the inodes with pages in the kernel's cache, so that writes past the page cache can drop the pages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "volume/volume.h"

namespace mdfs::fuse {

// The kernel drops the pages under a direct write before it sends the request. A read that fills a page between that
// and the write would keep the old bytes. The pages are therefore dropped once more after the write.
//
// Any thread. An inode is known while the kernel knows it and a page of it may have been filled.
class FilledPages {
 public:
  enum class Drop : std::uint8_t { kNothing, kRange, kAll };

  // Before the bytes for a page are read. `first` of this open file description.
  void note_fill(volume::Ino ino, bool first);
  // A description that has filled pages was closed.
  void note_closed(volume::Ino ino);
  // The kernel has forgotten the inode, with its pages.
  void forget(volume::Ino ino);
  // After a direct write: the range to drop before the answer; then call dropped(). All pages, while no description is
  // open that could fill pages again, so that the next write need not drop anything.
  Drop begin_drop(volume::Ino ino);
  void dropped(volume::Ino ino);

 private:
  struct State {
    std::uint64_t descriptions = 0;
    bool filled = false;
    std::uint64_t dropping = 0;
    bool is_idle() const { return descriptions == 0 && !filled && dropping == 0; }
  };
  std::mutex mutex_;  // guards states_
  std::unordered_map<volume::Ino, State> states_;
};

}  // namespace mdfs::fuse
