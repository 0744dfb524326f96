// What lists of extents take in memory: as much for an image of many extents as for one of few. All allocations of this
// program are seen.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <new>
#include <set>

#include "base/log.h"
#include "fixture.h"
#include "mdfs/ondisk.h"
#include "volume/operations.h"

namespace {

std::atomic<std::size_t> largest_allocation{0};

void* allocate(std::size_t bytes, std::size_t alignment) {
  for (std::size_t most = largest_allocation; most < bytes;)
    if (largest_allocation.compare_exchange_weak(most, bytes)) break;
  void* const memory = alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes)
                                      : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 0); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace mdfs::volume {
namespace {

constexpr std::uint64_t kExtents = 20'000;
constexpr std::size_t kMost = 1u << 20;  // a list of all extents takes more in one piece

class ListMemoryTest : public VolumeTest {
 protected:
  ListMemoryTest() {
    EXPECT_OK(set_log_level("off"));
    ino_ = make_file("image");
    ImageOptions options;
    options.geometry.rank = 2;
    options.geometry.shape = {4, 64 * kExtents};
    options.geometry.extent = {4, 64};
    options.geometry.axes = "yx";
    options.geometry.codec = geometry::Codec::kZstd;
    EXPECT_OK(volume().make_image(ino_, options));
    const ByteVector bytes(64 * kExtents, std::byte{1});
    for (std::uint64_t row = 0; row < 4; ++row) EXPECT_OK(volume().write(ino_, row * bytes.size(), bytes, false));
    EXPECT_OK(volume().fsync(ino_, false));
    // What was written over takes memory until it is free.
    for (unsigned i = 0; i < 3; ++i) EXPECT_OK(store().commit_freed());
  }

  // The disks of all extents, read page by page.
  std::set<unsigned> disks() {
    std::set<unsigned> found;
    engine::LayoutCursor at;
    std::uint64_t rows = 0;
    for (bool at_end = false; !at_end;) {
      const auto page = volume().layout(ino_, at, 200, {});
      EXPECT_OK(page);
      if (!page.ok()) return {};
      for (const layout::ExtentPlace& place : page->rows) found.insert(place.disk);
      rows += page->rows.size();
      at = page->next;
      at_end = page->at_end;
    }
    EXPECT_EQ(rows, kExtents);
    return found;
  }
  void run(const OperationRequest& request) {
    EXPECT_OK(volume().operations().start(request));
    for (;;) {
      const auto record = volume().operations().status(request.kind);
      ASSERT_OK(record);
      if (!record->running()) {
        EXPECT_EQ(record->state, MDFS_OPERATION_DONE) << record->reason;
        return;
      }
      (void)volume().operations().turn();
    }
  }

  Ino ino_ = 0;
};

TEST_F(ListMemoryTest, PagesOfALayoutTakeWhatTheirRowsTake) {
  EXPECT_EQ(disks().size(), 4u);
  largest_allocation = 0;
  EXPECT_EQ(disks().size(), 4u);
  EXPECT_LT(largest_allocation, kMost);
}

TEST_F(ListMemoryTest, DrainingADiskListsSomeExtentsAtATime) {
  OperationRequest request;
  request.kind = OperationKind::kDrain;
  request.parameters = {1, 0, 0, 0};
  largest_allocation = 0;
  run(request);
  EXPECT_LT(largest_allocation, kMost);
  EXPECT_EQ(disks(), (std::set<unsigned>{0, 2, 3}));
  ByteVector bytes(4 * 64 * kExtents);
  EXPECT_EQ(*volume().read(ino_, 0, bytes), bytes.size());
  EXPECT_EQ(bytes, ByteVector(bytes.size(), std::byte{1}));
}

TEST_F(ListMemoryTest, ADryRunOfABalancingListsSomeExtentsAtATime) {
  OperationRequest request;
  request.kind = OperationKind::kBalance;
  request.dry_run = true;
  request.parameters = {1, 0, 0, 0};
  largest_allocation = 0;
  run(request);
  EXPECT_LT(largest_allocation, kMost);
}

}  // namespace
}  // namespace mdfs::volume
