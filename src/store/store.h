// The store: one copy-on-write tree of small items on the disks of a volume, its transactions and commits, and the
// space of data blocks. The store knows nothing of files; the volume gives items their meaning.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/result.h"
#include "base/uuid.h"
#include "device/disk.h"
#include "geometry/geometry.h"
#include "store/block_space.h"
#include "store/commits.h"
#include "store/discards.h"
#include "store/items.h"
#include "store/members.h"

namespace mdfs::store {

struct StoreOptions {
  bool read_only = false;
  bool degraded = false;  // write without a majority of disks
  // Opens an older commit: of this generation, or for 0 the one before the newest. Only with read_only.
  std::optional<std::uint64_t> rollback;
  std::size_t node_cache_bytes = 16u << 20;
  std::size_t dirty_node_limit = 512;  // more dirty nodes than this start a commit
  geometry::AllocationPolicy policy =
      geometry::AllocationPolicy::kDefault;  // kDefault: the policy in the label of the volume
  bool discard = false;                      // see set_discard()
};

// An open volume. Code that needs one part takes a reference to that part and includes its header alone. All methods
// may be called from any thread.
class Store : public Items, public BlockSpace, public Members, public Commits, public Discards {
 public:
  // Takes the disks of one volume, in any order. Recovers the newest valid commit, and makes it present on all disks
  // (unless read_only). Errors: kForeignDisk, kNewerFormat, kFork, kNoQuorum, kCorrupt.
  static Result<std::unique_ptr<Store>> open(std::vector<std::unique_ptr<device::Disk>> disks,
                                             const StoreOptions& options, Environment& environment);

  virtual const Uuid& volume_uuid() const = 0;
  virtual std::string volume_name() const = 0;
  virtual std::uint64_t features_incompat() const = 0;  // MDFS_INCOMPAT_* of the volume
  // Bits MDFS_RO_COMPAT_* that the volume has from the next commit on. Called before the first transaction that needs
  // them.
  virtual void add_features_ro_compat(std::uint64_t bits) { (void)bits; }
  virtual std::uint64_t features_ro_compat() const { return 0; }
  // The same of MDFS_INCOMPAT_*.
  virtual void add_features_incompat(std::uint64_t bits) { (void)bits; }
  virtual bool read_only() const = 0;
  virtual std::string read_only_reason() const = 0;  // empty if not read-only
  virtual bool has_failed() const { return false; }  // read-only since a commit failed

  // Null: a store without disks (of tests).
  virtual class Verifier* verifier() { return nullptr; }
};

}  // namespace mdfs::store
