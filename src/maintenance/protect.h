// Protection: gives the extents of images the second copies that they should have, and removes those of others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "maintenance/operation.h"

namespace mdfs::maintenance {

// Walks over all images, page by page. An image with copies gets those that it lacks, also in place of pieces on disks
// that are not there: so this is the rebuild of a lost disk as well. An image without copies loses those that it has.
// Bytes in strips of an image with copies are consolidated first. What is as it should be costs a look at its records,
// so an operation that resumes walks again. Images whose protection changes meanwhile get another pass. In a dry run
// items_changed counts the extents that are not as they should be.
// Takes no parameters. The cursor: the object. The figures are those of Figure.
class Protect final : public Operation {
 public:
  enum Figure : std::uint8_t {
    kMade,      // copies
    kRepaired,  // pieces made anew in place of those that were lost
    kRemoved,   // copies
    kNoRoom,    // extents for whose copy no other disk has room, in the last pass
    kWrittenBytes,
  };

  explicit Protect(MaintainedVolume& volume) : volume_(volume) {}

  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;
  Result<bool> step(OperationRun& run) override;
  void rest() override { image_.reset(); }
  bool has_new_work() const override;

 private:
  static constexpr std::int64_t kFindNs = 20'000'000;            // most time of a step without work
  static constexpr std::uint64_t kBytesPerCommit = 64ull << 20;  // so that freed blocks can be used again
  static constexpr unsigned kMostPasses = 8;

  struct Image {
    Ino ino = 0;
    std::shared_ptr<engine::OpenObject> open;
    bool copies = false;         // that it should have
    unsigned group_members = 1;  // extents that should share a parity
    bool consolidates = false;   // there may be bytes in strips
    std::uint64_t page = 0;      // the next one
  };

  void begin_pass(OperationRun& run);
  // The next image that has copies, or should have; false: there is none.
  Result<bool> find(OperationRun& run);
  Status work(OperationRun& run);
  Result<std::uint64_t> strips_left();
  Status protect_some(OperationRun& run);
  Result<engine::ProtectOutcome> protect_as_fits(const engine::ProtectRequest& request);
  Status note_written(std::uint64_t bytes);
  void pass_over(OperationRun& run, const Error& error);

  MaintainedVolume& volume_;
  std::optional<Image> image_;
  Ino next_ = 0;
  std::atomic<std::uint64_t> changes_{0};  // of protection, when the pass began
  std::uint64_t gone_ = 0;                 // disks that were not there when the pass began, a bit each
  unsigned passes_ = 0;
  bool again_ = false;  // the pass has left work that another one can do
  std::uint64_t uncommitted_bytes_ = 0;
};

}  // namespace mdfs::maintenance
