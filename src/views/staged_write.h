// Bytes that replace samples of an image once all of them are there, in one atomic step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/options.h"
#include "geometry/geometry.h"

namespace mdfs::views {

// One thread at a time.
class StagedWrite {
 public:
  virtual ~StagedWrite() = default;

  // The samples of the image that change.
  virtual const geometry::Window& window() const = 0;
  // Stages bytes of the virtual file. Returns the number, less than given at the end of the largest possible file;
  // kTooBig beyond it.
  virtual Result<std::size_t> write(std::uint64_t offset, ConstBytes from) = 0;
  // Reads the virtual file as it would be after apply().
  virtual Result<std::size_t> read(std::uint64_t offset, MutableBytes into) const = 0;

  // Marks that more was written than the largest possible file holds, which makes the staged bytes invalid.
  virtual bool overran() const = 0;
  virtual bool empty() const = 0;
  // True if every byte has been written.
  virtual bool is_full() const = 0;
  // True if apply() may be called.
  virtual bool is_complete() const = 0;
  // Replaces the samples. kInvalidArgument: the staged bytes are not what they must be, and nothing has changed. After
  // a success the writer is empty again.
  virtual Status apply(const engine::Stop& stop = {}) = 0;
};

}  // namespace mdfs::views
