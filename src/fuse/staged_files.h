// Files that clients of ome.zarr/ write beside a chunk, and then rename to it. They are on no disk and in no list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "views/chunk_writer.h"
#include "views/view.h"
#include "views/zarr_name.h"
#include "volume/volume.h"

namespace mdfs::fuse {

using StagedNumber = std::uint64_t;

// One file. Of the members that are not const, `mutex` guards those below it, StagedFiles all others.
struct StagedFile {
  StagedFile(StagedNumber number_, std::string key_, volume::Ino image_, const views::ZarrName& chunk_)
      : number(number_), key(std::move(key_)), image(image_), chunk(chunk_) {}
  const StagedNumber number;  // never used again; later files have larger ones
  const std::string key;      // of the image, the directory and the name
  const volume::Ino image;
  const views::ZarrName chunk;  // that it becomes
  bool is_lock = false;         // goes with its last descriptor
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;
  unsigned opens = 0;
  bool named = true;  // neither renamed nor removed

  std::mutex mutex;
  std::unique_ptr<views::ChunkWriter> writer;  // null while it is being installed, and once it has no use any more
  std::uint64_t size_bytes = 0;                // of what `writer` has, or had
};

// Cuts it to no bytes. kBusy: it is becoming a chunk.
Status empty_staged(StagedFile& file);

// The bytes of a staged file, whose size changes while it is open.
class StagedView final : public views::View {
 public:
  explicit StagedView(std::shared_ptr<StagedFile> file) : file_(std::move(file)) {}
  std::uint64_t size_bytes() const override;
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;

 private:
  const std::shared_ptr<StagedFile> file_;
};

// All of a mount. Any thread.
class StagedFiles {
 public:
  // Files with a name. Each user but root may have half of those that the other users do not have.
  static constexpr std::size_t kMost = 1024;
  // Closed files of a user. A client renames a file right after it has closed it. Beyond this number the oldest file is
  // removed, because its client has died.
  static constexpr std::size_t kMostClosed = 64;

  struct Request {
    std::string key;
    volume::Ino image = 0;
    views::ZarrName chunk;
    bool is_lock = false;
    uid_t uid = 0;
    gid_t gid = 0;
    mode_t mode = 0;
    bool exclusive = false;  // O_EXCL
  };
  // Opens the file with this key, kExists if `exclusive`, or makes it with this writer. Beyond the user's share,
  // removes the user's oldest closed file; kNoSpace: there is none.
  Result<std::shared_ptr<StagedFile>> open(const Request& request, std::unique_ptr<views::ChunkWriter> writer);
  // Opens a file that the kernel has looked up. It may have lost its name since: that is no error, as elsewhere.
  void reopen(StagedFile& file);
  void close(const std::shared_ptr<StagedFile>& file);

  std::shared_ptr<StagedFile> find(const std::string& key) const;
  bool has_name(const StagedFile& file) const;
  // Takes the name away; descriptors keep the file.
  void remove(StagedFile& file);
  // Removes the user's oldest closed file. False: there is none.
  bool drop_oldest(uid_t uid);

 private:
  // The mutex is held.
  void take_name(StagedFile& file);
  std::size_t closed_of(uid_t uid) const;
  bool drop_oldest_closed(uid_t uid);

  mutable std::mutex mutex_;  // guards all below
  StagedNumber next_ = 1;
  std::map<std::string, std::shared_ptr<StagedFile>> by_key_;
};

}  // namespace mdfs::fuse
