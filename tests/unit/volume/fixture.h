// A volume in memory, and short words for what tests of the volume do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memory_volume.h"
#include "volume/volume.h"

namespace mdfs::volume {

// EXPECT_OK(status), ASSERT_OK(result): print the error.
#define EXPECT_OK(expression)                                               \
  do {                                                                      \
    const auto& ok_result = (expression);                                   \
    EXPECT_TRUE(ok_result.ok()) << #expression << ": " << error(ok_result); \
  } while (false)
#define ASSERT_OK(expression)                                               \
  do {                                                                      \
    const auto& ok_result = (expression);                                   \
    ASSERT_TRUE(ok_result.ok()) << #expression << ": " << error(ok_result); \
  } while (false)
#define EXPECT_ERROR(code_wanted, expression)                                                    \
  do {                                                                                           \
    const auto& answer = (expression);                                                           \
    EXPECT_FALSE(answer.ok()) << #expression;                                                    \
    if (!answer.ok()) {                                                                          \
      EXPECT_EQ(info(answer.error().code).name, info(code_wanted).name) << answer.error().where; \
    }                                                                                            \
  } while (false)

template <typename T>
std::string error(const Result<T>& result) {
  return result.ok() ? "" : result.error().message();
}

std::string to_string(const ByteVector& bytes);

// A whole window of a level, with as many attempts as it takes. False: it is not stored, and cannot be.
Result<bool> read_level(Volume& volume, Ino ino, unsigned level, const geometry::Window& window, ByteVector& into);

class VolumeTest : public testing::Test {
 protected:
  explicit VolumeTest(std::uint64_t disk_bytes = 256u << 20);
  ~VolumeTest() override;

  Volume& volume() { return *volume_; }
  void mount(bool grouping = true);  // closes the volume first, if it is mounted
  // Makes things in the root, or in `parent`; the look-up count stays.
  Ino make_file(std::string_view name, Ino parent = kRootIno, mode_t mode = 0644);
  // A square of u8 zeros in raw extents of 64 x 64.
  Ino make_raw_image(std::string_view name, std::uint64_t side);
  Ino make_directory(std::string_view name, Ino parent = kRootIno, mode_t mode = 0755);
  Attributes stat(Ino ino);
  Attributes stat(Ino parent, std::string_view name);  // looks up and forgets
  Errc lookup_error(Ino parent, std::string_view name);
  std::vector<std::string> names(Ino directory, std::size_t at_once = 7);  // sorted, without . and ..
  void write(Ino ino, std::uint64_t offset, std::string_view text);
  std::string read(Ino ino, std::uint64_t offset = 0, std::size_t length = 1 << 20);
  store::Store& store() { return volume_->store(); }

  SeededEnvironment environment_{7};
  // For tests whose volume has background threads. Here, because it must outlive the volume: members of derived classes
  // end before.
  SystemEnvironment system_;
  test::MemoryDisks disks_;
  Caller root_;
  Caller user_{1000, 1000, 0022, {1000, 2000}};
  std::unique_ptr<Volume> volume_;
};

}  // namespace mdfs::volume
