// Files whose samples lie packed behind a header: raw, NPY, PNM.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/packed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "support/pending_file.h"

namespace mdfs::imagefile {
namespace {

constexpr std::size_t kSwapBytes = 1u << 20;

class PackedSource final : public ImageSource {
 public:
  PackedSource(tools::File file, const PackedHeader& header, std::uint64_t bytes)
      : file_(std::move(file)), header_(header), left_(bytes) {}

  const ArrayInfo& array() const override { return header_.array; }

  Status read(MutableBytes into) override {
    const unsigned element = geometry::element_bytes(header_.array.type);
    MDFS_CHECK(into.size() <= left_ && into.size() % element == 0);
    MDFS_TRY(file_.read_exactly(into));
    if (header_.big_endian) swap_elements(into, element);
    left_ -= into.size();
    return {};
  }

 private:
  tools::File file_;
  const PackedHeader header_;
  std::uint64_t left_;
};

class PackedSink final : public ImageSink {
 public:
  PackedSink(std::optional<tools::PendingFile> pending, const ArrayInfo& array, bool big_endian, std::uint64_t bytes)
      : pending_(std::move(pending)),
        element_bytes_(geometry::element_bytes(array.type)),
        big_endian_(big_endian),
        left_(bytes) {}

  Status write(ConstBytes from) override {
    MDFS_CHECK(from.size() <= left_ && from.size() % element_bytes_ == 0);
    left_ -= from.size();
    if (!big_endian_ || element_bytes_ == 1) return file().write(from);
    while (!from.empty()) {
      const ConstBytes part = from.first(std::min(from.size(), kSwapBytes));
      swapped_.assign(part.begin(), part.end());
      swap_elements(swapped_, element_bytes_);
      MDFS_TRY(file().write(swapped_));
      from = from.subspan(part.size());
    }
    return {};
  }

  Status finish() override {
    MDFS_CHECK(left_ == 0);
    return pending_ ? pending_->commit() : Status();
  }

 private:
  tools::File& file() { return pending_ ? pending_->file() : output_; }

  std::optional<tools::PendingFile> pending_;
  tools::File output_ = tools::File::standard_output();
  const unsigned element_bytes_;
  const bool big_endian_;
  std::uint64_t left_;
  ByteVector swapped_;
};

}  // namespace

void swap_elements(MutableBytes bytes, unsigned element_bytes) {
  for (std::size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + element_bytes));
}

Result<std::unique_ptr<ImageSource>> open_packed(tools::File file, const PackedHeader& header) {
  auto bytes = array_bytes(header.array);
  if (!bytes.ok()) return Error{bytes.error().code, file.name() + ": " + bytes.error().where};
  MDFS_TRY_ASSIGN(const std::uint64_t size, file.size_bytes());
  const std::uint64_t wanted = header.data_offset + *bytes;
  if (size != wanted)
    return Error{Errc::kBadData,
                 fmt::format("{}: the file {}: it has {} bytes, its header and shape require {}", file.name(),
                             size < wanted ? "is truncated" : "continues after its image", size, wanted)};
  if (::lseek(file.fd(), static_cast<off_t>(header.data_offset), SEEK_SET) < 0) return from_errno(errno, file.name());
  return std::unique_ptr<ImageSource>(std::make_unique<PackedSource>(std::move(file), header, *bytes));
}

Result<std::unique_ptr<ImageSink>> create_packed(const std::string& path, const std::string& header,
                                                 const ArrayInfo& array, bool big_endian, bool overwrite) {
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, array_bytes(array));
  std::optional<tools::PendingFile> pending;
  if (path != "-") {
    MDFS_TRY_ASSIGN(tools::PendingFile made, tools::PendingFile::create(path, overwrite));
    pending.emplace(std::move(made));
  }
  tools::File standard_output = tools::File::standard_output();
  MDFS_TRY((pending ? pending->file() : standard_output).write(as_bytes(header)));
  return std::unique_ptr<ImageSink>(std::make_unique<PackedSink>(std::move(pending), array, big_endian, bytes));
}

}  // namespace mdfs::imagefile
