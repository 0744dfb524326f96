// Random access to the bytes of a file, for checks of its structure before another library opens it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/result.h"
#include "support/file.h"

namespace mdfs::imagefile {

// Bytes of a file or of memory, at any offset. One thread.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Reads all of `into`; the caller has checked that it lies inside.
  virtual Status read_at(std::uint64_t offset, MutableBytes into) = 0;
};

// An unsigned integer of at most 8 bytes, as headers have them.
inline std::uint64_t to_integer(ConstBytes bytes, bool big_endian) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[big_endian ? i : bytes.size() - 1 - i]);
  return value;
}

// Bytes in memory, which the caller owns.
class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(ConstBytes bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Status read_at(std::uint64_t offset, MutableBytes into) override {
    MDFS_CHECK(inside(offset, into.size(), bytes_.size()));
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  }

 private:
  const ConstBytes bytes_;
};

// A file, read a block at a time.
class FileBytes final : public ByteSource {
 public:
  FileBytes(tools::File& file, std::uint64_t size) : file_(file), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Status read_at(std::uint64_t offset, MutableBytes into) override {
    if (into.size() > kBlockBytes) return read_through(offset, into);
    if (!inside(offset, into.size(), size_)) return cut_short();
    if (offset < begin_ || offset + into.size() > begin_ + block_.size()) {
      block_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, size_ - offset)));
      begin_ = offset;
      MDFS_TRY(read_through(offset, block_));
    }
    std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(offset - begin_), into.size(), into.begin());
    return {};
  }

 private:
  static constexpr std::size_t kBlockBytes = 64u << 10;

  Status cut_short() const { return {Errc::kBadData, file_.name() + ": the file is truncated"}; }
  Status read_through(std::uint64_t offset, MutableBytes into) {
    MDFS_TRY_ASSIGN(const std::size_t got, file_.read_at(offset, into));
    return got == into.size() ? Status() : cut_short();
  }

  tools::File& file_;
  const std::uint64_t size_;
  std::uint64_t begin_ = 0;
  ByteVector block_;
};

}  // namespace mdfs::imagefile
