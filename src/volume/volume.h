// The volume: files, directories, images and windows over the store and the engine. FUSE, tools and tests call it; it
// runs without FUSE.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/result.h"
#include "engine/engine.h"
#include "geometry/geometry.h"
#include "geometry/reduce.h"
#include "store/store.h"

namespace mdfs::volume {

using Ino = std::uint64_t;
inline constexpr Ino kRootIno = 1;

// The caller of an operation: owner and group of new inodes. The kernel checks permissions of ordinary operations (the
// mount uses default_permissions). check_access() is for operations that the kernel does not see (views, ioctls).
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t umask = 0;
  std::vector<gid_t> groups;

  bool is_in(gid_t group) const {
    return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
  }
};

struct Attributes {
  Ino ino = 0;
  mode_t mode = 0;
  std::uint32_t links = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t stored_bytes = 0;  // with those of an image's levels
  std::int64_t atime_ns = 0, mtime_ns = 0, ctime_ns = 0, btime_ns = 0;
  std::uint64_t device = 0;
  bool is_image = false;
  std::uint64_t data_generation = 0;  // changes with every change of the data, also before the commit
};

struct SetAttributes {
  std::optional<mode_t> mode;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<std::uint64_t> size_bytes;
  std::optional<std::int64_t> atime_ns, mtime_ns, ctime_ns;
  bool atime_now = false, mtime_now = false;
  bool keeps_owner = false;  // a chown(2) of neither owner nor group, or a write
  bool by_outsider = false;  // a chown(2) by a caller who is neither root nor in the file's group
  engine::Stop stop;         // may end a change of size
  bool is_chown() const { return uid || gid || keeps_owner; }
};

struct DirectoryEntry {
  std::string name;
  Ino ino = 0;
  std::uint8_t type = 0;     // d_type
  std::uint64_t cookie = 0;  // of the entry; readdir continues after it
};

enum class RenameMode : std::uint8_t { kReplace, kNoReplace, kExchange };
enum class XattrMode : std::uint8_t { kSet, kCreate, kReplace };
// kNoDirAtime: relatime for files, none for directories.
enum class AtimeMode : std::uint8_t { kNoAtime, kRelatime, kNoDirAtime };

struct VolumeOptions {
  engine::EngineOptions engine;
  // The longest time from a change of data or names to the commit that makes it durable. 0: commits on request only
  // (tests).
  std::int64_t commit_interval_ns = 5'000'000'000;
  AtimeMode atime = AtimeMode::kRelatime;
  // On a volume with spare room the rebuild starts by itself when a disk has been lost for so long; absent: never.
  std::optional<std::int64_t> rebuild_delay_ns = 600'000'000'000;
};

struct ImageOptions {
  geometry::Geometry geometry;
  std::optional<unsigned> disks;       // number of disks, from the image's base on
  std::optional<unsigned> row_offset;  // else the default tables
  std::optional<unsigned> plane_offset;
};

struct ImageInfo {
  geometry::Geometry geometry;
  std::uint64_t size_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t data_generation = 0;
  std::uint64_t base = 0;
  unsigned levels = 0;  // that are stored above the image
  geometry::Placement placement;
};

struct LayoutPage {
  std::vector<layout::ExtentPlace> rows;  // without holes
  engine::LayoutCursor next;              // start of the next page
  bool at_end = false;                    // no row is left
  std::uint32_t block_size = 0;
  unsigned disk_count = 0;
};

// The fragmentation of the images of a volume, with equal weight for each image. Each call looks at some images in
// turn. The figures are those of the last whole round, or of the part seen so far.
struct VolumeFragmentation {
  layout::Fragmentation fragmentation;
  std::uint64_t images = 0;  // with stored extents
  bool complete = false;     // true: of all images
  double worst_factor = 0;
  Ino worst = 0;
};

// Called, from a thread that holds no lock, when a window write has changed the plain bytes [offset, offset + length)
// of `ino`. The kernel must drop its cached bytes of the other views.
using ChangeListener = std::function<void(Ino ino, std::uint64_t offset, std::uint64_t length)>;
// Called by a writing thread after a write or a change of size has removed the set-uid bit or capabilities, and before
// it changes bytes. Must not wait for other requests.
using PrivilegesListener = std::function<void(Ino ino)>;

// The stored levels of an image.
struct LevelsInfo {
  geometry::Reduction reduction = geometry::Reduction::kMean;
  struct Level {
    std::uint64_t extents = 0;  // of the present image
    std::uint64_t built = 0;    // stored extents; the others are built when they are read
    std::uint64_t stored_bytes = 0;
    Ino ino = 0;
  };
  std::vector<Level> levels;  // level 1, 2, ..
};

// The protection of a file or directory.
struct WantedProtection {
  bool copies = false;
  unsigned group_members = 1;  // extents of an image that share one parity in place of their copies; 1: none do
};

struct Protection {
  bool copies = false;  // its extents or cells have, or get, second copies; of a directory: those of new files in it
  unsigned group_members = 1;  // as in WantedProtection
  bool is_image = false, is_directory = false;
  engine::ProtectionState state;  // not of a directory
};

// Takes bytes of a window, from an offset on. After a change of the image they come again, from the first one on.
using LevelSink = std::function<Status(std::uint64_t offset, ConstBytes bytes)>;

// A file or image with data on missing or failed disks.
struct LostFile {
  Ino ino = 0;
  std::uint64_t lost_bytes = 0, stored_bytes = 0;  // stored bytes
  std::uint64_t disks = 0;                         // bits of the missing disks with its data
};
struct LostFiles {
  std::vector<LostFile> files;         // by inode
  std::uint64_t disks = 0;             // the missing ones, bits
  std::uint64_t looked_at = 0;         // number of files
  std::uint64_t looked_at_bytes = 0;   // stored bytes of these files
  std::uint64_t unreadable_items = 0;  // of the tree
  Ino next = 0;                        // start of the next call; 0: all files are done
};

class DiskStatistics;
class Operations;
class MaintainedVolume;
// Called while the volume is being made. The function keeps the reference, and must not use it before
// Operations::load().
using MakeOperations = std::function<std::unique_ptr<Operations>(MaintainedVolume& volume)>;

// A window at one moment. All reads see the same version, in spite of later writes, or fail with ESTALE
// (Engine::pin_window). Any thread; must end before the volume.
class PinnedWindow {
 public:
  virtual ~PinnedWindow() = default;
  virtual Status read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) = 0;
  // Windows inside this one (else kOutOfRange), from all disks at once: one after another in `into`, with all channels.
  virtual Status read_parts(std::span<const geometry::Window> parts, MutableBytes into, const engine::Stop& stop) = 0;
};

// The frame of one extent at one moment, as it is stored. All reads see the same frame, in spite of later writes, or
// fail with ESTALE. Any thread; must end before the volume.
class PinnedFrame {
 public:
  virtual ~PinnedFrame() = default;
  virtual std::uint64_t size_bytes() const = 0;
  // Bytes [offset, offset + into.size()), within the frame (abort).
  virtual Status read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) = 0;
};

// Any thread may call any method. Look-up counts hold inodes, as in FUSE: lookup and every call that makes an entry add
// one, and forget removes them. open_file and release_file hold inodes as well. Data of an unlinked inode live until
// both are gone. A crash before that leaves an orphan, which the next mount frees.
class Volume {
 public:
  // `make_operations` makes the long work of the volume (src/maintenance).
  static Result<std::unique_ptr<Volume>> open(std::unique_ptr<store::Store> store, const VolumeOptions& options,
                                              Environment& environment, const MakeOperations& make_operations);
  virtual ~Volume() = default;
  // Writes everything back, commits, and stops the background threads. Later calls fail with kReadOnly. An error means
  // that written data are lost.
  virtual Status close() = 0;

  virtual store::Store& store() = 0;
  virtual engine::Engine& engine() = 0;
  // Waits until calls of the former listener have returned. Must not be called by a listener.
  virtual void set_change_listener(ChangeListener listener) = 0;
  virtual void set_privileges_listener(PrivilegesListener listener) = 0;

  // ---- names
  virtual Result<Attributes> lookup(Ino parent, std::string_view name) = 0;
  virtual void forget(Ino ino, std::uint64_t lookups) = 0;
  virtual Result<Attributes> make_node(Ino parent, std::string_view name, mode_t mode, std::uint64_t device,
                                       const Caller& caller) = 0;  // files, fifos, sockets, device nodes
  virtual Result<Attributes> make_directory(Ino parent, std::string_view name, mode_t mode, const Caller& caller) = 0;
  virtual Result<Attributes> make_symlink(Ino parent, std::string_view name, std::string_view target,
                                          const Caller& caller) = 0;
  virtual Result<Attributes> link(Ino ino, Ino new_parent, std::string_view new_name) = 0;
  virtual Status unlink(Ino parent, std::string_view name) = 0;
  virtual Status remove_directory(Ino parent, std::string_view name) = 0;
  virtual Status rename(Ino parent, std::string_view name, Ino new_parent, std::string_view new_name,
                        RenameMode mode) = 0;
  virtual Result<std::string> read_symlink(Ino ino) = 0;
  // At most `limit` entries after `cookie`; 0 begins with . and .. . An entry that stays is returned exactly once, in
  // spite of concurrent changes.
  virtual Result<std::vector<DirectoryEntry>> read_directory(Ino directory, std::uint64_t cookie,
                                                             std::size_t limit) = 0;

  // ---- attributes
  virtual Result<Attributes> attributes(Ino ino) = 0;
  // As setattr(2), after the kernel has checked the caller. chown drops setuid and setgid, a size changes the data.
  virtual Result<Attributes> set_attributes(Ino ino, const SetAttributes& change) = 0;
  // Called before a change of the bytes or size of a file; asks for the caller only if it matters. As in ext4, unless
  // the caller is root: set-uid is removed, and set-gid if the group may execute or the caller is not in the group.
  // Capabilities are removed in any case. The calls that change bytes do not do this.
  virtual Status drop_privileges(Ino ino, const std::function<Caller()>& caller) = 0;
  // Checks R_OK | W_OK | X_OK against mode and ACL.
  virtual Status check_access(Ino ino, int mask, const Caller& caller) = 0;
  virtual Status set_xattr(Ino ino, std::string_view name, ConstBytes value, XattrMode mode) = 0;
  // Sets the access control list. As chmod(2), removes the set-gid bit unless the caller is root or in the file's
  // group.
  virtual Status set_access_acl(Ino ino, ConstBytes value, const Caller& caller) = 0;
  virtual Result<ByteVector> get_xattr(Ino ino, std::string_view name) = 0;  // kNoData if absent
  virtual Result<std::vector<std::string>> list_xattrs(Ino ino) = 0;
  virtual Status remove_xattr(Ino ino, std::string_view name) = 0;

  // ---- data of files and images (canonical bytes)
  virtual Status open_file(Ino ino, bool truncate) = 0;
  virtual void release_file(Ino ino) = 0;
  virtual Result<std::size_t> read(Ino ino, std::uint64_t offset, MutableBytes into, const engine::Stop& stop) = 0;
  Result<std::size_t> read(Ino ino, std::uint64_t offset, MutableBytes into) { return read(ino, offset, into, {}); }
  virtual Result<std::size_t> write(Ino ino, std::uint64_t offset, ConstBytes from, bool append,
                                    const engine::Stop& stop) = 0;
  Result<std::size_t> write(Ino ino, std::uint64_t offset, ConstBytes from, bool append) {
    return write(ino, offset, from, append, {});
  }
  // As fallocate(2).
  virtual Status allocate(Ino ino, int mode, std::uint64_t offset, std::uint64_t length, const engine::Stop& stop) = 0;
  Status allocate(Ino ino, int mode, std::uint64_t offset, std::uint64_t length) {
    return allocate(ino, mode, offset, length, {});
  }
  virtual Result<std::uint64_t> seek(Ino ino, std::uint64_t offset, int whence) = 0;  // SEEK_DATA, SEEK_HOLE
  virtual Result<std::size_t> copy_range(Ino from, std::uint64_t from_offset, Ino to, std::uint64_t to_offset,
                                         std::size_t length, const engine::Stop& stop) = 0;
  Result<std::size_t> copy_range(Ino from, std::uint64_t from_offset, Ino to, std::uint64_t to_offset,
                                 std::size_t length) {
    return copy_range(from, from_offset, to, to_offset, length, {});
  }
  // Returns when the file's data, its inode and the names that lead to it are on the disks.
  virtual Status fsync(Ino ino, bool data_only) = 0;
  virtual Status sync() = 0;  // everything

  // ---- images
  // Gives an empty ordinary file a geometry. Its size becomes the canonical size (a hole, which reads as zeros).
  virtual Status make_image(Ino ino, const ImageOptions& options) = 0;
  // The same for a file that has its bytes already: as many as the geometry gives, or fewer of the last step along the
  // slowest axis. The bytes are stored again, and stay the same. kInvalidArgument: another size. kBusy: the file
  // changed meanwhile. kCancelled: by `stop`. After an error the file is unchanged. An image with these samples takes
  // over spacing and units; kExists for an image with others.
  virtual Status become_image(Ino ino, const ImageOptions& options, const engine::Stop& stop) = 0;
  virtual Result<ImageInfo> image_info(Ino ino) = 0;  // kNotImage
  // The geometry alone, which is in memory for an open image.
  virtual Result<geometry::Geometry> image_geometry(Ino ino) = 0;
  // The places of an image's extents: at most `most` rows from a position on. The first page, from the position {},
  // writes the image back and commits first. Later pages show the state at their call. An extent that is stored all the
  // time is in exactly one page. No state is kept between pages. EINVAL: a position that no row can have.
  virtual Result<LayoutPage> layout(Ino ino, const engine::LayoutCursor& from, std::size_t most,
                                    const engine::Stop& stop) = 0;
  // True if an extent has been written, dirty or not. All others are holes. False outside of the grid.
  virtual Result<bool> is_written(Ino ino, const geometry::Coord& extent) = 0;
  // The written extents of one row of the grid along the fastest axis, from the extent `from` on: their indices along
  // that axis, at most `most`, ascending. Fewer: the row has no more.
  virtual Result<std::vector<std::uint64_t>> written_in_row(Ino ino, const geometry::Coord& from, std::size_t most,
                                                            const engine::Stop& stop) = 0;
  // Moves stored bytes of a file or an image to other blocks without changing the data. Does not commit.
  virtual Result<engine::MoveOutcome> move_data(Ino ino, const engine::MoveRequest& request) = 0;
  virtual Result<layout::Fragmentation> fragmentation(Ino ino,
                                                      const engine::Stop& stop) = 0;  // of published data
  // At most `most` files from an inode on, in bounded time and memory. Data on stale disks are not lost.
  virtual Result<LostFiles> lost_files(Ino from, std::size_t most, const engine::Stop& stop) = 0;
  virtual Result<VolumeFragmentation> volume_fragmentation(const engine::Stop& stop) = 0;
  Result<layout::Fragmentation> fragmentation(Ino ino) { return fragmentation(ino, {}); }
  Result<VolumeFragmentation> volume_fragmentation() { return volume_fragmentation({}); }
  // Engine::consolidate() of an image. Does not commit.
  virtual Result<std::uint64_t> consolidate(Ino ino, std::uint64_t most_bytes, bool all) = 0;
  virtual Status start_window(Ino ino, const geometry::Window& window) = 0;
  virtual Status read_window(Ino ino, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                             const engine::Stop& stop) = 0;
  Status read_window(Ino ino, const geometry::Window& window, std::uint64_t offset, MutableBytes into) {
    return read_window(ino, window, offset, into, {});
  }
  // The whole window, if the cache has it. False, with any bytes in `into`: read_window() waits for disks. `progress`
  // is told how many bytes are there, unless it is empty.
  virtual Result<bool> read_cached_window(Ino ino, const geometry::Window& window, MutableBytes into,
                                          const engine::ReadProgress& progress) = 0;
  // Pins the present state of the window, to be read in parts (PinnedWindow).
  virtual Result<std::unique_ptr<PinnedWindow>> pin_window(Ino ino, const geometry::Window& window) = 0;
  // The frame of an extent of the image (level 0) or of a stored level. Null if the extent is not stored as one frame
  // now: dirty or in strips, a hole, not built, in an image without a codec, or outside of the grid. Null also for an
  // extent of a level on a lost disk, which read_level() may leave to its caller.
  virtual Result<std::unique_ptr<PinnedFrame>> pin_frame(Ino ino, unsigned level, const geometry::Coord& extent,
                                                         const engine::Stop& stop) = 0;
  virtual Status write_window(Ino ino, const geometry::Window& window, const engine::WindowSource& from,
                              const engine::Stop& stop) = 0;
  Status write_window(Ino ino, const geometry::Window& window, const engine::WindowSource& from) {
    return write_window(ino, window, from, {});
  }
  virtual Result<engine::WindowPlan> plan_window(Ino ino, const geometry::Window& window, const engine::Stop& stop) = 0;

  // ---- stored levels of images
  // Sets their number and how they are made. Levels that stay the same keep what is built. kOutOfRange: the image has
  // fewer levels (geometry::level_count).
  virtual Status set_levels(Ino ino, unsigned count, geometry::Reduction reduction) = 0;
  // The number of stored levels and their reduction, which is in memory for an open image.
  virtual Result<std::pair<unsigned, geometry::Reduction>> stored_levels(Ino ino) = 0;
  virtual Result<LevelsInfo> levels_info(Ino ino, const engine::Stop& stop) = 0;
  // plan_window() of a stored level, whose samples the window is in; what is not built counts as holes. kOutOfRange:
  // the level is not stored.
  virtual Result<engine::WindowPlan> plan_level(Ino ino, unsigned level, const geometry::Window& window,
                                                const engine::Stop& stop) = 0;
  // Bytes [offset, offset + length) of a window of a stored level, in the samples of that level, which has been
  // checked. All of them are the reduction of one state of the image. Extents that are not built are built and stored.
  // False: the level is not stored, lacks extents that cannot be stored now, or writers have changed what it is made of
  // in each of `most_attempts`; the sink may have got bytes.
  virtual Result<bool> read_level(Ino ino, unsigned level, const geometry::Window& window, std::uint64_t offset,
                                  std::uint64_t length, const LevelSink& sink, unsigned most_attempts,
                                  const engine::Stop& stop) = 0;
  // The same window to be read in parts, of one state of the image (PinnedWindow). Null where read_level() says false.
  virtual Result<std::unique_ptr<PinnedWindow>> pin_level(Ino ino, unsigned level, const geometry::Window& window,
                                                          unsigned most_attempts, const engine::Stop& stop) = 0;

  // ---- second copies of extents
  // Of an image or another file: writers make copies from now on, or none, and long work (operations.h) converts what
  // is stored. Of a directory: of new files in it. kNotSupported: there are too few disks. kInvalidArgument: an inode
  // that is neither, or groups of other than 1, 2, 4 or 8.
  virtual Status set_protection(Ino ino, const WantedProtection& wanted) = 0;
  Status set_copies(Ino ino, bool wanted) { return set_protection(ino, {wanted, 1}); }
  // The widest groups with which the volume rebuilds a lost disk: 2 or 4; 1: it has too few disks for parities.
  virtual unsigned usual_group_members() const = 0;
  virtual Result<Protection> protection(Ino ino, const engine::Stop& stop) = 0;

  // ---- disks; errors are those of the store. New files and images use added disks at once.
  // Frees deleted files, as far as that takes a moment, and commits until their blocks may be discarded
  // (store::Store::trim_some).
  virtual Status free_deleted() = 0;
  virtual Result<std::vector<unsigned>> add_disks(std::vector<store::JoiningDisk> disks) = 0;
  virtual Status set_disk_weight(unsigned disk, std::uint16_t weight) = 0;
  // Lets a disk that was being drained get new blocks again. kBusy while the drain is running.
  virtual Status keep_disk(unsigned disk) = 0;
  // Keeps room free for the rebuild of so many lost disks (store::Members::set_spare_disks), from now on and in later
  // mounts. kInvalidArgument: more than the disks of the volume less two.
  virtual Status set_spare_disks(unsigned disks) = 0;

  // ---- the whole
  virtual store::SpaceInfo space() = 0;
  // Blocks of data that can still be written to a file or directory, by its protection: images with copies, of a
  // directory new ones in it, take two blocks for each.
  virtual Result<std::uint64_t> available_blocks(Ino ino) = 0;
  // Scrub and other long work (operations.h). Runs in the background, or without background threads (no commit
  // interval) step by step, when turn() is called.
  virtual Operations& operations() = 0;
  virtual DiskStatistics& disk_statistics() = 0;
};

// Reserved names: those that end in "@", and ".mdfs" in the root directory.
bool is_reserved_name(Ino parent, std::string_view name);

}  // namespace mdfs::volume
