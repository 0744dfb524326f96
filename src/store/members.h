// The disks of a volume: what they are, and how they come, change and go.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "device/disk.h"
#include "format/key.h"

namespace mdfs::store {

using format::Key;

// kNone: a hole in the table, no disk has this index. kDraining: healthy, and being drained.
enum class DiskState : std::uint8_t { kHealthy, kMissing, kStale, kFailed, kNone, kDraining };

struct DiskInfo {
  std::string name;  // of the device or file, empty if missing
  Uuid uuid;
  DiskState state = DiskState::kHealthy;
  std::uint64_t blocks = 0;
  std::uint64_t free_blocks = 0;
  std::uint16_t weight = 1;
  std::uint64_t data_blocks = 0;       // outside of what is kept for metadata
  std::uint64_t data_free_blocks = 0;  // of them: could be given out now
  std::uint64_t zone_blocks = 0;
  std::uint64_t fallback_runs = 0;  // on other disks because this one was full, since the store was opened

  // What lies on it cannot be read.
  bool is_lost() const { return state == DiskState::kMissing || state == DiskState::kFailed; }
  // It can be read and written, whether new blocks are given out of it or not.
  bool is_there() const { return state == DiskState::kHealthy || state == DiskState::kDraining; }
};

// Where a walk over the tree nodes is: level by level, from the leaves up.
struct NodePosition {
  std::uint16_t level = 0;
  Key next = format::kMinKey;
};

// Sizes that a disk can be given: whole label areas, both included.
struct SizeRange {
  std::uint64_t least_blocks = 0;
  std::uint64_t most_blocks = 0;    // the device is no larger now, or the room is not
  std::uint64_t room_blocks = 0;    // what the space pages have room for
  std::uint64_t device_blocks = 0;  // what the device or file has
};

// A disk that is to become a member, open for writing; what it holds is lost.
struct JoiningDisk {
  std::unique_ptr<device::Disk> disk;
  std::uint16_t weight = 1;
};

// All methods may be called from any thread.
class Members {
 public:
  virtual ~Members() = default;
  virtual unsigned disk_count() const = 0;
  virtual DiskInfo disk_info(unsigned index) const = 0;
  bool is_whole() const;             // every member is there
  std::uint64_t lost_disks() const;  // those that are missing or have failed, a bit each
  // For data blocks only. A missing disk is one that answers every request with kMissingDisk.
  virtual device::Disk& disk(unsigned index) = 0;
  // What the disk was asked for since the mount, and what went wrong; null if nobody counts.
  virtual device::DiskCounters* counters(unsigned) { return nullptr; }
  // Bytes from this disk did not match their checksum, and the tree still insists on them.
  void note_checksum_error(unsigned disk);

  // ---- members. One such call works at a time; each change is one commit, and safe to cut anywhere. kReadOnly: the
  // store cannot be written. kInvalidArgument: no such disk, or it is in the wrong state. kNotSupported: a store whose
  // members are fixed.
  // Formats the disks and makes them members. Their indexes, in order; holes are filled first. Errors before the
  // commit leave the volume as it was, and the disks may be given again. On an error the disks are closed.
  virtual Result<std::vector<unsigned>> add_disks(std::vector<JoiningDisk> disks);
  virtual Status set_weight(unsigned index, std::uint16_t weight);
  // From now on the disk gets no new blocks; or it gets them again. A disk that is not there can leave, too.
  // kNoSpace: the others have no room for what lies on it; `missing_blocks`, unless null, is how much they lack.
  virtual Status set_draining(unsigned index, bool draining, std::uint64_t* missing_blocks);
  // ---- another size of a disk, which the device or file must have already (larger) or may get afterwards (smaller).
  // Asks the device for its size.
  virtual Result<SizeRange> size_range(unsigned index);
  // Nothing new is put behind the end that a disk of so many blocks has; the size it has: everywhere again. kNoSpace:
  // there is no room elsewhere for what lies there; `missing_blocks`, unless null, is how much is lacking.
  virtual Status set_disk_end(unsigned index, std::uint64_t blocks, std::uint64_t* missing_blocks);
  // Blocks in use behind that end, what waits for being reused included; 0 for a disk that is not there.
  virtual std::uint64_t used_behind_end(unsigned index) const;
  // The disk has so many blocks from now on; a smaller one after set_disk_end(). kNotEmpty: something lies behind the
  // end. kInvalidArgument names the sizes that are possible. After any other error the size is the old one, or the new
  // one and the next mount moves the labels.
  virtual Status resize_disk(unsigned index, std::uint64_t blocks);

  // Blocks in use on the disk, by data and nodes; what waits for being reused included. 0 for one that is not there.
  virtual std::uint64_t used_blocks(unsigned index) const;
  // Moves copies of tree nodes off a disk that is being drained, or off what lies behind its end, some at a time, and
  // commits: true when there are none left. `at` is where to go on.
  virtual Result<bool> move_nodes_off(unsigned index, NodePosition& at);
  // Nodes that were written when the volume had fewer disks have fewer copies than new ones get, or two on one disk.
  // Writes some of them anew, and commits: true when none is left. kNoSpace: there is no room for that; the rest waits
  // until a disk comes. A store looks for such nodes once after it was opened, and whenever disks have come.
  virtual Result<bool> spread_nodes();
  // False once spread_nodes() has looked at all nodes.
  virtual bool wants_spread() const;
  // A disk that is being drained and holds nothing any more stops being a member; then its labels are wiped and it is
  // closed. kNotEmpty: something is still there. For a disk that is not there nobody can know: the caller has looked.
  virtual Status remove_disk(unsigned index);
};

}  // namespace mdfs::store
