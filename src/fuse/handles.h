// State of an open file description in the daemon.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "fuse/low_level.h"
#include "fuse/node_table.h"
#include "fuse/staged_files.h"
#include "views/staged_write.h"
#include "views/view.h"
#include "views/window_reader.h"
#include "volume/volume.h"

namespace mdfs::fuse {

constexpr bool can_read(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }
constexpr bool can_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

// Used by several threads at once; the mutex guards the members that change. Made by open, freed by release.
struct Handle {
  volume::Ino ino = 0;                          // the file or image
  int flags = 0;                                // of open(2)
  bool direct = false;                          // without page cache: every read sees a binding
  std::atomic<bool> fills_pages{false};         // the kernel has filled pages through it
  std::atomic<std::uint64_t> seen_failures{0};  // FailedWrites
  std::mutex mutex;
  // Replaces the plain file: the bound window, which may be one of a level, or what the virtual file shows.
  std::shared_ptr<views::View> view;
  // The same object, if it is a window of the image as it is stored, perhaps behind a header. Writes go there, too.
  std::shared_ptr<views::WindowReader> window;
  // True if the window was recorded in a trace, and its first byte has not been read since.
  bool traced_window = false;
  // Bytes staged and not yet applied.
  std::unique_ptr<views::StagedWrite> writer;
  // The FUSE lock owners that have staged bytes. Each table of descriptors has its own lock owner, so a child process
  // that closes its copy of the descriptor has another one.
  std::vector<std::uint64_t> stagers;
  bool refused = false;   // a stager has been told that the staged bytes are not stored
  unsigned applying = 0;  // applications under way
  // Closes that wait for them, and get their result.
  std::vector<std::function<void(const Status&)>> waiting;
  std::uint64_t stream = 0;  // its number; 0: none
  // Virtual files only.
  std::shared_ptr<const Node> node;
  std::optional<geometry::Window> chunk;  // the samples that a chunk of a Zarr array shows
  std::shared_ptr<StagedFile> staged;     // instead of `writer`

  // The mutex is held for these.
  bool has_staged(std::uint64_t owner) const {
    return std::find(stagers.begin(), stagers.end(), owner) != stagers.end();
  }
  void note_stager(std::uint64_t owner) {
    if (!has_staged(owner)) stagers.push_back(owner);
  }
  // The staged bytes, to be given to apply_and_reply().
  std::unique_ptr<views::StagedWrite> take_staged() {
    ++applying;
    return std::move(writer);
  }

  // The samples that a write changes, if a write may come.
  std::optional<geometry::Window> written_window() const {
    return window ? std::optional(window->file()->window) : chunk;
  }

  std::shared_ptr<views::View> current_view() {
    const std::lock_guard lock(mutex);
    return view;
  }
  std::shared_ptr<views::WindowReader> current_window() {
    const std::lock_guard lock(mutex);
    return window;
  }
  // Exchanges the binding of a real file, and drops staged bytes. `of_image`: as `window`.
  void bind(std::shared_ptr<views::View> bound, std::shared_ptr<views::WindowReader> of_image) {
    const std::lock_guard lock(mutex);
    view = std::move(bound);
    window = std::move(of_image);
    writer.reset();
    traced_window = window != nullptr && can_read(flags);
  }
};

inline Handle& handle_of(const fuse_file_info* fi) { return *reinterpret_cast<Handle*>(fi->fh); }
inline void keep_in(fuse_file_info* fi, std::unique_ptr<Handle> handle) {
  fi->fh = reinterpret_cast<std::uint64_t>(handle.release());
}
inline std::unique_ptr<Handle> take_from(const fuse_file_info* fi) { return std::unique_ptr<Handle>(&handle_of(fi)); }

}  // namespace mdfs::fuse
