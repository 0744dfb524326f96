// Windows of an open image, through the channel or through the kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "channel.h"
#include "mdfs/mdfs.h"

namespace mdfs::client {

// mdfs_read_window() and mdfs_write_window().
ssize_t move_window(mdfs_image* image, const mdfs_ioc_window* asked, std::byte* buffer, std::size_t buffer_bytes,
                    const std::int64_t* strides, bool writing);

// All bytes of what is bound to the descriptor, from the first one on; -errno, or 0.
int read_bound(int fd, const std::string& path, std::byte* buffer, std::uint64_t bytes);
// The bytes of the window, if it can be one of the image.
std::optional<std::uint64_t> bytes_of(const mdfs_image& image, const mdfs_ioc_window& window);
// The taker of a window of so many bytes, which puts its samples into a buffer. Nothing: they do not fit. It refers to
// the window and the strides.
std::optional<Taker> taker_of(const mdfs_image& image, const mdfs_ioc_window& asked, std::uint64_t bytes,
                              std::byte* buffer, std::size_t buffer_bytes, const std::int64_t* strides);

}  // namespace mdfs::client
