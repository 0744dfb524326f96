// The ring that disks are read and written with.
// SPDX-License-Identifier: Apache-2.0
#include "device/uring_context.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "device/unique_fd.h"

namespace mdfs::device {
namespace {

// What a request that `prepare` fills in ends with.
template <typename Prepare>
int result_of(io_uring& ring, const Prepare& prepare) {
  io_uring_sqe* const entry = io_uring_get_sqe(&ring);
  prepare(entry);
  EXPECT_EQ(io_uring_submit(&ring), 1);
  io_uring_cqe* end = nullptr;
  EXPECT_EQ(io_uring_wait_cqe(&ring, &end), 0);
  const int result = end->res;
  io_uring_cqe_seen(&ring, end);
  return result;
}

TEST(UringContext, ARingReadsAndWritesAndCanBeAskedForNothingElse) {
  io_uring ring{};
  const Status made = make_ring(ring);
  ASSERT_TRUE(made.ok()) << made.error().message();
  char byte = 1;
  const UniqueFd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(result_of(ring, [](auto* entry) { io_uring_prep_nop(entry); }), 0);
  EXPECT_EQ(result_of(ring, [&](auto* entry) { io_uring_prep_read(entry, zero.get(), &byte, 1, 0); }), 1);
  EXPECT_EQ(byte, 0);
  EXPECT_EQ(result_of(ring, [](auto* entry) { io_uring_prep_openat(entry, AT_FDCWD, "/dev/null", O_RDONLY, 0); }),
            -EACCES);
  EXPECT_EQ(result_of(ring, [](auto* entry) { io_uring_prep_unlinkat(entry, AT_FDCWD, "/nowhere", 0); }), -EACCES);
  EXPECT_EQ(result_of(ring, [&](auto* entry) { io_uring_prep_close(entry, zero.get()); }), -EACCES);
  io_uring_queue_exit(&ring);
}

}  // namespace
}  // namespace mdfs::device
