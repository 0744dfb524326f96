// Reads: cached bytes are copied from the cache, the others come from all disks at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/core.h"
#include "engine/read/loader.h"

namespace mdfs::engine {

// Any thread.
class Reader {
 public:
  Reader(Core& core, Loader& loader) : core_(core), loader_(loader) {}

  Result<std::size_t> read(OpenObject& object, std::uint64_t offset, MutableBytes into, const Stop& stop);
  Status read_window(OpenObject& object, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                     const Stop& stop);
  // The whole window, if the cache has it. False, with any bytes in `into`: a part is missing, one channel of many is
  // asked for, or window writes keep coming. Waits for no disk. Calls `progress`, unless it is empty, with how many
  // bytes are there while others are copied, and with 0 if it begins again.
  bool read_cached(OpenObject& object, const geometry::Window& window, MutableBytes into, const ReadProgress& progress);
  // The bytes of the version. Fails once the version has ended.
  Status read_version(WindowVersion& version, std::uint64_t offset, MutableBytes into, const Stop& stop);
  // Windows inside that of the version, at once: one after another in `into`, with all channels.
  Status read_version_parts(WindowVersion& version, std::span<const geometry::Window> parts, MutableBytes into,
                            const Stop& stop);
  void start_window(OpenObject& object, const geometry::Window& window);

 private:
  // Repeats `attempt` until no window write has changed the cache meanwhile. The read therefore sees a window write
  // whole or not at all.
  Status consistently(OpenObject& object, const std::function<Status()>& attempt);
  Status transfer(OpenObject& object, const Transfer& transfer, MutableBytes into, const Stop& stop);
  // Copies the parts that the cache has. Returns the others; with `first_only` at most one, and copies no further.
  std::vector<std::uint32_t> copy_cached(OpenObject& object, const Transfer& transfer, MutableBytes into,
                                         bool first_only);
  struct Hit {
    std::uint32_t part = 0;
    BufferRef buffer;
  };
  void copy_together(const OpenObject& object, const Transfer& transfer, std::vector<Hit>& hits, MutableBytes into);
  Status load_missing(OpenObject& object, const Transfer& transfer, std::vector<std::uint32_t>& missing,
                      MutableBytes into, const Stop& stop);
  // Of the object's present state, or of a version.
  Status read_channel(OpenObject& object, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                      const WindowVersion* version, const Stop& stop);
  Status read_box(OpenObject& object, const geometry::Box& box, std::uint64_t offset, MutableBytes into,
                  const WindowVersion* version, const Stop& stop);
  static Status end_if_stale(WindowVersion& version, Status status);
  Status transfer_version(OpenObject& object, const Transfer& transfer, const WindowVersion& version, MutableBytes into,
                          const Stop& stop);
  Status load_kept(OpenObject& object, const Transfer& transfer, const WindowVersion& version,
                   std::vector<std::uint32_t>& parts, MutableBytes into, const Stop& stop);
  void read_ahead(OpenObject& object, std::uint64_t offset, std::uint64_t length);
  // True if the cache has all bytes of the transfer.
  bool is_warm(const OpenObject& object, const Transfer& transfer);

  Core& core_;
  Loader& loader_;
};

}  // namespace mdfs::engine
