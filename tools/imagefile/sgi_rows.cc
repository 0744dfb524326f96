// SPDX-License-Identifier: Apache-2.0
#include "imagefile/sgi_rows.h"

#include <fmt/format.h>

#include <array>

namespace mdfs::imagefile {
namespace {

constexpr std::uint64_t kSgiHeaderBytes = 512, kWord = 4;

struct SgiHeader {
  std::uint64_t width = 0, rows = 0;  // of all channels
  std::uint64_t sample_bytes = 1;
  bool run_lengths = false;
};

class SgiWalk {
 public:
  SgiWalk(ByteSource& bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Status run() {
    MDFS_TRY(read_header());
    const std::uint64_t samples = header_.width * header_.rows * header_.sample_bytes;  // below 2^49
    const std::uint64_t needed = header_.run_lengths ? header_.rows * 2 * kWord : samples;
    if (!inside(kSgiHeaderBytes, needed, bytes_.size()))
      return {Errc::kBadData,
              fmt::format("{}: the file is truncated: its SGI header requires {} bytes, the file has {}", name_,
                          kSgiHeaderBytes + needed, bytes_.size())};
    if (!header_.run_lengths) return {};
    for (std::uint64_t row = 0; row < header_.rows; ++row) MDFS_TRY(check_row(row));
    return {};
  }

 private:
  Result<std::uint64_t> number_at(std::uint64_t at, std::size_t length) {
    std::array<std::byte, 8> number{};
    const MutableBytes into = MutableBytes(number).first(length);
    MDFS_TRY(bytes_.read_at(at, into));
    return to_integer(into, true);
  }

  Status read_header() {
    if (bytes_.size() < kSgiHeaderBytes)
      return {Errc::kBadData, name_ + ": the file is truncated within the SGI header"};
    MDFS_TRY_ASSIGN(const std::uint64_t storage, number_at(2, 1));
    MDFS_TRY_ASSIGN(header_.sample_bytes, number_at(3, 1));
    MDFS_TRY_ASSIGN(const std::uint64_t dimensions, number_at(4, 2));
    MDFS_TRY_ASSIGN(header_.width, number_at(6, 2));
    MDFS_TRY_ASSIGN(const std::uint64_t height, number_at(8, 2));
    MDFS_TRY_ASSIGN(const std::uint64_t channels, number_at(10, 2));
    if (storage > 1 || header_.sample_bytes < 1 || header_.sample_bytes > 2 || dimensions < 1 || dimensions > 3)
      return {Errc::kBadData, fmt::format("{}: an SGI header of storage {}, {} bytes and {} dimensions", name_, storage,
                                          header_.sample_bytes, dimensions)};
    header_.run_lengths = storage == 1;
    header_.rows = (dimensions > 1 ? height : 1) * (dimensions > 2 ? channels : 1);
    return {};
  }

  Error damaged_row(std::uint64_t row, const std::string& what) const {
    return Error{Errc::kBadData,
                 fmt::format("{}: row {} of the SGI file {}: it is truncated or damaged", name_, row, what)};
  }

  // Each run begins with a number of the width of a sample. Its 7 low bits count the samples; bit 7 says that they
  // follow, else one follows for all. A count of 0 ends the row.
  Status check_row(std::uint64_t row) {
    MDFS_TRY_ASSIGN(std::uint64_t at, number_at(kSgiHeaderBytes + row * kWord, kWord));
    MDFS_TRY_ASSIGN(const std::uint64_t length, number_at(kSgiHeaderBytes + (header_.rows + row) * kWord, kWord));
    if (at < kSgiHeaderBytes || !inside(at, length, bytes_.size()))
      return damaged_row(row, fmt::format("has {} bytes at byte {} of {}", length, at, bytes_.size()));
    const std::uint64_t end = at + length, each = header_.sample_bytes;
    std::uint64_t found = 0;
    while (at + each <= end) {
      MDFS_TRY_ASSIGN(const std::uint64_t head, number_at(at, static_cast<std::size_t>(each)));
      const std::uint64_t count = head & 0x7f;
      if (count == 0) break;
      const std::uint64_t following = (head & 0x80) != 0 ? count : 1;
      if (following * each > end - at - each) return damaged_row(row, "ends within a run");
      at += each + following * each;
      found += count;
    }
    if (found != header_.width) return damaged_row(row, fmt::format("has {} samples of {}", found, header_.width));
    return {};
  }

  ByteSource& bytes_;
  const std::string& name_;
  SgiHeader header_;
};

}  // namespace

bool is_sgi(ConstBytes start) { return as_text(start).starts_with("\x01\xda"); }

Status check_sgi(ByteSource& bytes, const std::string& name) { return SgiWalk(bytes, name).run(); }

}  // namespace mdfs::imagefile
