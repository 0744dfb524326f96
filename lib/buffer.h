// Memory for windows that the daemon may share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "channel.h"
#include "mdfs/mdfs.h"

// Of the daemon, or of this process alone. Outlives the image.
struct mdfs_buffer {
  // Null: this process may not have so much memory.
  static std::unique_ptr<mdfs_buffer> make(mdfs_image& image, std::uint64_t bytes);
  ~mdfs_buffer();
  mdfs_buffer(const mdfs_buffer&) = delete;
  mdfs_buffer& operator=(const mdfs_buffer&) = delete;

  const std::shared_ptr<mdfs::client::Channel> channel;  // null: the memory is that of this process alone
  const mdfs::MutableBytes bytes;

 private:
  mdfs_buffer(std::shared_ptr<mdfs::client::Channel> owner, mdfs::MutableBytes memory)
      : channel(std::move(owner)), bytes(memory) {}
};
