// Claims about SGI files that are truncated or damaged.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/sgi_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace mdfs::imagefile {
namespace {

Status sgi_checked(const std::string& file) {
  MemoryBytes bytes(as_bytes(file));
  return check_sgi(bytes, "a.sgi");
}

std::string big(std::size_t value, unsigned length) {
  std::string text;
  for (unsigned i = length; i-- > 0;) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

std::string sgi_header(bool run_lengths, unsigned sample_bytes, unsigned width, unsigned height, unsigned channels) {
  std::string file = "\x01\xda" + big(run_lengths, 1) + big(sample_bytes, 1) + big(channels > 1 ? 3 : 2, 2) +
                     big(width, 2) + big(height, 2) + big(channels, 2);
  file.resize(512);
  return file;
}

// Rows of 5 samples: two of one value, and three others.
std::string sgi_of_run_lengths(unsigned sample_bytes, unsigned rows) {
  std::string row;
  for (const unsigned number : {2u, 9u, 0x83u, 1u, 2u, 3u, 0u}) row += big(number, sample_bytes);
  std::string file = sgi_header(true, sample_bytes, 5, rows, 1);
  for (unsigned i = 0; i < rows; ++i) file += big(512 + rows * 8 + i * row.size(), 4);
  for (unsigned i = 0; i < rows; ++i) file += big(row.size(), 4);
  for (unsigned i = 0; i < rows; ++i) file += row;
  return file;
}

void expect_sgi_needs_all(const std::string& file) {
  EXPECT_TRUE(is_sgi(as_bytes(file)));
  const Status whole = sgi_checked(file);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const Status cut = sgi_checked(file.substr(0, size));
    ASSERT_FALSE(cut.ok()) << size << " of " << file.size();
    EXPECT_TRUE(cut.error().where.starts_with("a.sgi: ")) << cut.error().where;
  }
}

TEST(SgiRowsTest, EveryTruncationIsRefused) {
  for (const unsigned sample_bytes : {1u, 2u}) {
    expect_sgi_needs_all(sgi_header(false, sample_bytes, 7, 4, 3) + std::string(7 * 4 * 3 * sample_bytes, 'x'));
    expect_sgi_needs_all(sgi_of_run_lengths(sample_bytes, 4));
  }
}

TEST(SgiRowsTest, ZerosInPlaceOfARowAreRefused) {
  for (const unsigned sample_bytes : {1u, 2u}) {
    const std::string file = sgi_of_run_lengths(sample_bytes, 4);
    const std::size_t rows = 512 + 4 * 8, row_bytes = 7 * sample_bytes;
    for (std::size_t at = 512; at < file.size(); at += at < rows ? 4 : row_bytes) {
      std::string zeros = file;
      zeros.replace(at, zeros.size() - at, zeros.size() - at, '\0');
      EXPECT_FALSE(sgi_checked(zeros).ok()) << at << " of " << file.size();
    }
  }
}

TEST(SgiRowsTest, ARowOfMoreSamplesThanItsWidthIsRefused) {
  std::string file = sgi_of_run_lengths(1, 1);
  file[7] = 4;
  EXPECT_FALSE(sgi_checked(file).ok());
}

}  // namespace
}  // namespace mdfs::imagefile
