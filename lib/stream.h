// A stream of an open image, on an open file description of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "mdfs/mdfs.h"

struct mdfs_stream {
  // -errno, or 0 with `stream`.
  static int open(mdfs_image& image, mdfs_ioc_stream& request, std::unique_ptr<mdfs_stream>& stream);
  mdfs_stream(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~mdfs_stream();
  mdfs_stream(const mdfs_stream&) = delete;
  mdfs_stream& operator=(const mdfs_stream&) = delete;

  ssize_t next(std::byte* buffer, std::size_t buffer_bytes, mdfs_ioc_frame& frame);
  int change(mdfs_ioc_stream& request);

 private:
  const int fd_;
  const std::string path_;
};
