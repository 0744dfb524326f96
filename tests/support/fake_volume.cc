// The volume in memory.
// SPDX-License-Identifier: Apache-2.0
#include "support/fake_volume.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "base/checked.h"
#include "geometry/copy_box.h"
#include "geometry/decompose.h"

namespace mdfs::test {
namespace {

using geometry::Geometry;
using geometry::Window;
using volume::Attributes;
using volume::Ino;

constexpr std::uint64_t kBlockSize = 4096;
constexpr std::uint64_t kBlocks = 1u << 20;

Error missing(std::string_view what) { return {Errc::kNotFound, std::string(what)}; }
Error not_here(std::string_view what) { return {Errc::kNotSupported, "the fake volume: " + std::string(what)}; }

}  // namespace

struct FakeVolume::Inode {
  Ino ino = 0;
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t generation = 1;
  std::optional<Geometry> geometry;
  ByteVector bytes;
  std::map<std::string, Ino, std::less<>> entries;
  std::map<std::string, ByteVector, std::less<>> xattrs;
};

class FakeVolume::FakeStore final : public store::Store {
 public:
  const Uuid& volume_uuid() const override { return uuid_; }
  std::string volume_name() const override { return "fake"; }
  std::uint32_t block_size() const override { return kBlockSize; }
  std::uint64_t features_incompat() const override { return 0; }
  geometry::AllocationPolicy policy() const override { return geometry::AllocationPolicy::kScatter; }
  std::uint64_t generation() const override { return 1; }
  bool read_only() const override { return false; }
  std::string read_only_reason() const override { return {}; }
  unsigned disk_count() const override { return 0; }
  store::DiskInfo disk_info(unsigned) const override { std::abort(); }
  device::Disk& disk(unsigned) override { std::abort(); }
  Result<std::optional<ByteVector>> get(const store::Key&) override { std::abort(); }
  Result<std::vector<store::Item>> scan(const store::Key&, const store::Key&, std::size_t) override { std::abort(); }
  Status transact(store::Purpose, const std::function<Status(store::Transaction&)>&,
                  const store::Reservation*) override {
    std::abort();
  }
  Status commit() override { return {}; }
  bool dirty() const override { return false; }
  Result<store::Run> allocate(const store::AllocationRequest&, store::Reservation*) override { std::abort(); }
  void abandon(const store::Run&) override { std::abort(); }
  void release_preallocations(std::uint64_t) override { std::abort(); }
  Result<store::Run> freeze_range(unsigned, std::uint32_t, const std::vector<store::Run>&) override { std::abort(); }
  void thaw_range(const store::Run&) override { std::abort(); }
  bool reserve_run(const store::Run&) override { std::abort(); }
  void release_run(const store::Run&) override { std::abort(); }
  bool is_free(const store::Run&) override { std::abort(); }
  Status commit_freed() override { return {}; }
  Result<store::Reservation> reserve(const store::SpaceAmount&, store::Purpose) override { std::abort(); }
  store::SpaceInfo space() const override { return {}; }
  std::vector<std::uint64_t> free_of_disks() const override { return {}; }
  Result<std::vector<store::ZoneUse>> zone_use(unsigned, std::uint64_t, std::size_t) override {
    return std::vector<store::ZoneUse>{};  // a disk of no zones
  }

 protected:
  void give_back(const store::SpaceAmount&) override {}

 private:
  Uuid uuid_{};
};

FakeVolume::FakeVolume() : store_(std::make_unique<FakeStore>()) {
  auto root = std::make_unique<Inode>();
  root->ino = volume::kRootIno;
  root->mode = S_IFDIR | 0755;
  inodes_.emplace(volume::kRootIno, std::move(root));
}
FakeVolume::~FakeVolume() = default;

Ino FakeVolume::add_image(const std::string& name, const Geometry& geometry) {
  const auto made = make_node(volume::kRootIno, name, S_IFREG | 0644, 0, {});
  MDFS_CHECK(made.ok());
  const Status status =
      make_image(made->ino, {.geometry = geometry, .disks = {}, .row_offset = {}, .plane_offset = {}});
  MDFS_CHECK(status.ok());
  ByteVector& data = bytes(made->ino);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
  return made->ino;
}

ByteVector& FakeVolume::bytes(Ino ino) {
  const std::lock_guard lock(mutex_);
  return inodes_.at(ino)->bytes;
}

store::Store& FakeVolume::store() { return *store_; }
engine::Engine& FakeVolume::engine() { std::abort(); }

Result<FakeVolume::Inode*> FakeVolume::find(Ino ino) {
  const auto found = inodes_.find(ino);
  if (found == inodes_.end()) return missing("inode");
  return found->second.get();
}

Result<FakeVolume::Inode*> FakeVolume::find_directory(Ino ino) {
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  if (!S_ISDIR(inode->mode)) return Error{Errc::kNotDirectory, ""};
  return inode;
}

Attributes FakeVolume::attributes_of(const Inode& inode) const {
  Attributes attributes;
  attributes.ino = inode.ino;
  attributes.mode = inode.mode;
  attributes.links = 1;
  attributes.uid = inode.uid;
  attributes.gid = inode.gid;
  attributes.size_bytes = inode.bytes.size();
  attributes.stored_bytes = inode.bytes.size();
  attributes.atime_ns = attributes.mtime_ns = attributes.ctime_ns = inode.mtime_ns;
  attributes.is_image = inode.geometry.has_value();
  attributes.data_generation = inode.generation;
  return attributes;
}

Result<Attributes> FakeVolume::lookup(Ino parent, std::string_view name) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * directory, find_directory(parent));
  const auto found = directory->entries.find(name);
  if (found == directory->entries.end()) return missing(name);
  return attributes_of(*inodes_.at(found->second));
}

Result<Attributes> FakeVolume::add(Ino parent, std::string_view name, mode_t mode, const volume::Caller& caller) {
  MDFS_TRY_ASSIGN(Inode * directory, find_directory(parent));
  if (directory->entries.contains(name)) return Error{Errc::kExists, std::string(name)};
  auto inode = std::make_unique<Inode>();
  inode->ino = next_ino_++;
  inode->mode = mode & ~(caller.umask & 0777);
  inode->uid = caller.uid;
  inode->gid = caller.gid;
  inode->mtime_ns = ++clock_ns_;
  directory->entries.emplace(name, inode->ino);
  const Attributes attributes = attributes_of(*inode);
  inodes_.emplace(attributes.ino, std::move(inode));
  return attributes;
}

Result<Attributes> FakeVolume::make_node(Ino parent, std::string_view name, mode_t mode, std::uint64_t,
                                         const volume::Caller& caller) {
  const std::lock_guard lock(mutex_);
  return add(parent, name, mode, caller);
}
Result<Attributes> FakeVolume::make_directory(Ino parent, std::string_view name, mode_t mode,
                                              const volume::Caller& caller) {
  const std::lock_guard lock(mutex_);
  return add(parent, name, S_IFDIR | (mode & 07777), caller);
}
Result<Attributes> FakeVolume::make_symlink(Ino, std::string_view, std::string_view, const volume::Caller&) {
  return not_here("symlinks");
}
Result<Attributes> FakeVolume::link(Ino, Ino, std::string_view) { return not_here("links"); }
Result<std::string> FakeVolume::read_symlink(Ino) { return not_here("symlinks"); }

Status FakeVolume::unlink(Ino parent, std::string_view name) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * directory, find_directory(parent));
  const auto found = directory->entries.find(name);
  if (found == directory->entries.end()) return missing(name);
  directory->entries.erase(found);  // the inode stays: holders are not counted here
  return {};
}
Status FakeVolume::remove_directory(Ino parent, std::string_view name) { return unlink(parent, name); }

Status FakeVolume::rename(Ino parent, std::string_view name, Ino new_parent, std::string_view new_name,
                          volume::RenameMode) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * from, find_directory(parent));
  MDFS_TRY_ASSIGN(Inode * to, find_directory(new_parent));
  const auto found = from->entries.find(name);
  if (found == from->entries.end()) return missing(name);
  const Ino ino = found->second;
  from->entries.erase(found);
  to->entries[std::string(new_name)] = ino;
  return {};
}

Result<std::vector<volume::DirectoryEntry>> FakeVolume::read_directory(Ino directory, std::uint64_t cookie,
                                                                       std::size_t limit) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find_directory(directory));
  std::vector<volume::DirectoryEntry> entries = {{".", directory, DT_DIR, 1}, {"..", directory, DT_DIR, 2}};
  for (const auto& [name, ino] : inode->entries)
    entries.push_back({name, ino, static_cast<std::uint8_t>(inodes_.at(ino)->mode >> 12), ino + 256});
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.cookie < b.cookie; });
  std::erase_if(entries, [&](const auto& entry) { return entry.cookie <= cookie; });
  entries.resize(std::min(entries.size(), limit));
  return entries;
}

Result<Attributes> FakeVolume::attributes(Ino ino) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  return attributes_of(*inode);
}

Result<Attributes> FakeVolume::set_attributes(Ino ino, const volume::SetAttributes& change) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  if (change.mode) inode->mode = (inode->mode & S_IFMT) | (*change.mode & 07777);
  if (change.uid) inode->uid = *change.uid;
  if (change.gid) inode->gid = *change.gid;
  if (change.mtime_ns) inode->mtime_ns = *change.mtime_ns;
  if (change.size_bytes) {
    inode->bytes.resize(*change.size_bytes);
    ++inode->generation;
    inode->mtime_ns = ++clock_ns_;
    if (inode->geometry) inode->geometry->shape[0] = ceil_div(inode->bytes.size(), inode->geometry->slab_bytes());
  }
  return attributes_of(*inode);
}

Status FakeVolume::set_xattr(Ino ino, std::string_view name, ConstBytes value, volume::XattrMode) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  inode->xattrs[std::string(name)] = ByteVector(value.begin(), value.end());
  return {};
}
Result<ByteVector> FakeVolume::get_xattr(Ino ino, std::string_view name) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  const auto found = inode->xattrs.find(name);
  if (found == inode->xattrs.end()) return Error{Errc::kNoData, std::string(name)};
  return found->second;
}
Result<std::vector<std::string>> FakeVolume::list_xattrs(Ino ino) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  std::vector<std::string> names;
  for (const auto& [name, value] : inode->xattrs) names.push_back(name);
  return names;
}
Status FakeVolume::remove_xattr(Ino ino, std::string_view name) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  if (inode->xattrs.erase(std::string(name)) == 0) return Error{Errc::kNoData, std::string(name)};
  return {};
}

Status FakeVolume::open_file(Ino ino, bool truncate) {
  volume::SetAttributes change;
  change.size_bytes = 0;
  if (truncate) MDFS_TRY(set_attributes(ino, change));
  return {};
}

Result<std::size_t> FakeVolume::read(Ino ino, std::uint64_t offset, MutableBytes into, const engine::Stop&) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  if (offset >= inode->bytes.size()) return std::size_t{0};
  const std::size_t count = std::min<std::size_t>(into.size(), inode->bytes.size() - offset);
  std::copy_n(inode->bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
  return count;
}

Result<std::size_t> FakeVolume::write(Ino ino, std::uint64_t offset, ConstBytes from, bool append,
                                      const engine::Stop&) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  if (append) offset = inode->bytes.size();
  inode->bytes.resize(std::max(inode->bytes.size(), offset + from.size()));
  std::copy(from.begin(), from.end(), inode->bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  if (inode->geometry) inode->geometry->shape[0] = ceil_div(inode->bytes.size(), inode->geometry->slab_bytes());
  ++inode->generation;
  inode->mtime_ns = ++clock_ns_;
  return from.size();
}

Status FakeVolume::allocate(Ino, int, std::uint64_t, std::uint64_t, const engine::Stop&) {
  return not_here("fallocate");
}
Result<std::uint64_t> FakeVolume::seek(Ino ino, std::uint64_t offset, int whence) {
  MDFS_TRY_ASSIGN(const Attributes now, attributes(ino));
  if (offset >= now.size_bytes) return Error{Errc::kNoDevice, "beyond the end"};
  return whence == SEEK_DATA ? offset : now.size_bytes;
}
Result<std::size_t> FakeVolume::copy_range(Ino, std::uint64_t, Ino, std::uint64_t, std::size_t, const engine::Stop&) {
  return not_here("copy_file_range");
}

Status FakeVolume::make_image(Ino ino, const volume::ImageOptions& options) {
  MDFS_TRY(geometry::check(options.geometry));
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  if (inode->geometry || !inode->bytes.empty()) return Error{Errc::kInvalidArgument, "not an empty file"};
  inode->geometry = options.geometry;
  inode->bytes.resize(options.geometry.size_bytes());
  return {};
}

Result<volume::ImageInfo> FakeVolume::image_info(Ino ino) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  if (!inode->geometry) return Error{Errc::kNotImage, ""};
  volume::ImageInfo info;
  info.geometry = *inode->geometry;
  info.size_bytes = info.stored_bytes = inode->bytes.size();
  info.data_generation = inode->generation;
  info.placement.row = info.placement.plane = info.placement.slot = {0};
  return info;
}

Result<geometry::Geometry> FakeVolume::image_geometry(Ino ino) {
  MDFS_TRY_ASSIGN(const volume::ImageInfo info, image_info(ino));
  return info.geometry;
}

Result<volume::LayoutPage> FakeVolume::layout(Ino, const engine::LayoutCursor&, std::size_t, const engine::Stop& stop) {
  if (before_layout_) MDFS_TRY(before_layout_(stop));
  return volume::LayoutPage{};
}

Result<bool> FakeVolume::is_written(Ino ino, const geometry::Coord& extent) {
  MDFS_TRY_ASSIGN(const Geometry geometry, image_geometry(ino));
  return geometry::in_grid(geometry.rank, geometry.grid(), extent);
}

Result<std::vector<std::uint64_t>> FakeVolume::written_in_row(Ino ino, const geometry::Coord& from, std::size_t most,
                                                              const engine::Stop&) {
  MDFS_TRY_ASSIGN(const Geometry geometry, image_geometry(ino));
  std::vector<std::uint64_t> row;
  for (std::uint64_t i = from[geometry.rank - 1]; i < geometry.grid()[geometry.rank - 1] && row.size() < most; ++i)
    row.push_back(i);
  return row;
}

std::vector<std::uint64_t> FakeVolume::sample_offsets(const Inode& inode, const Window& window) const {
  const Geometry& geometry = *inode.geometry;
  std::vector<std::uint64_t> offsets = {0};
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    std::vector<std::uint64_t> next;
    for (const std::uint64_t offset : offsets)
      for (std::uint64_t i = 0; i < window.length[axis]; ++i)
        next.push_back(offset * geometry.shape[axis] + window.start[axis] + i);
    offsets = std::move(next);
  }
  const std::uint64_t element = geometry::element_bytes(geometry.type);
  for (std::uint64_t& offset : offsets)
    offset = offset * geometry.sample_bytes() + (window.channel ? *window.channel * element : 0);
  return offsets;
}

Status FakeVolume::read_window(Ino ino, const Window& window, std::uint64_t offset, MutableBytes into,
                               const engine::Stop&) {
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  MDFS_TRY(geometry::check(*inode->geometry, window));
  MDFS_CHECK(inside(offset, into.size(), geometry::window_bytes(*inode->geometry, window)));
  const std::uint64_t piece =
      window.channel ? geometry::element_bytes(inode->geometry->type) : inode->geometry->sample_bytes();
  const std::vector<std::uint64_t> offsets = sample_offsets(*inode, window);
  for (std::size_t i = 0; i < into.size(); ++i) {
    const std::uint64_t at = offset + i;
    const std::uint64_t from = offsets[at / piece] + at % piece;
    into[i] = from < inode->bytes.size() ? inode->bytes[from] : std::byte{0};
  }
  return {};
}

Result<std::unique_ptr<volume::PinnedWindow>> FakeVolume::pin_window(Ino ino, const Window& window) {
  // A copy of all its bytes.
  class Copy final : public volume::PinnedWindow {
   public:
    Copy(const FakeVolume& owner, const Geometry& geometry, const Window& window, ByteVector bytes)
        : owner_(owner), given_up_(owner.given_up_), geometry_(geometry), window_(window), bytes_(std::move(bytes)) {}
    Status read(std::uint64_t offset, MutableBytes into, const engine::Stop&) override {
      if (owner_.given_up_ != given_up_) return {Errc::kStaleDisk, "given up"};
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return {};
    }
    Status read_parts(std::span<const Window> parts, MutableBytes into, const engine::Stop&) override {
      if (owner_.given_up_ != given_up_) return {Errc::kStaleDisk, "given up"};
      const geometry::Box whole = geometry::byte_box(geometry_, window_);
      for (const Window& part : parts) {
        geometry::Box box = geometry::byte_box(geometry_, part);
        for (unsigned axis = 0; axis < geometry_.rank; ++axis) box.start[axis] -= whole.start[axis];
        const std::uint64_t bytes = geometry::window_bytes(geometry_, part);
        geometry::copy_box(geometry_.rank, box.length, bytes_, whole.length, box.start, into.first(bytes), box.length,
                           {});
        into = into.subspan(bytes);
      }
      return {};
    }

   private:
    const FakeVolume& owner_;
    const unsigned given_up_;
    const Geometry geometry_;
    const Window window_;
    const ByteVector bytes_;
  };
  std::uint64_t size = 0;
  Geometry geometry;
  {
    const std::lock_guard lock(mutex_);
    MDFS_TRY_ASSIGN(Inode * inode, find(ino));
    MDFS_TRY(geometry::check(*inode->geometry, window));
    geometry = *inode->geometry;
    size = geometry::window_bytes(geometry, window);
  }
  ByteVector bytes(size);
  MDFS_TRY(read_window(ino, window, 0, bytes));
  return std::unique_ptr<volume::PinnedWindow>(std::make_unique<Copy>(*this, geometry, window, std::move(bytes)));
}

Status FakeVolume::write_window(Ino ino, const Window& window, const engine::WindowSource& from, const engine::Stop&) {
  if (before_window_write_) before_window_write_();
  const std::lock_guard lock(mutex_);
  MDFS_TRY_ASSIGN(Inode * inode, find(ino));
  MDFS_TRY(geometry::check(*inode->geometry, window));
  ByteVector bytes(geometry::window_bytes(*inode->geometry, window));
  const std::uint64_t piece =
      window.channel ? geometry::element_bytes(inode->geometry->type) : inode->geometry->sample_bytes();
  const std::vector<std::uint64_t> offsets = sample_offsets(*inode, window);
  const auto put = [&](std::uint64_t begin, std::uint64_t end) -> Status {
    MDFS_TRY(from.read(begin, MutableBytes(bytes).subspan(begin, end - begin)));
    for (std::uint64_t i = begin; i < end; ++i) inode->bytes[offsets[i / piece] + i % piece] = bytes[i];
    return {};
  };
  MDFS_TRY(from.each_written(0, bytes.size(), put));
  ++inode->generation;
  inode->mtime_ns = ++clock_ns_;
  return {};
}

Result<engine::WindowPlan> FakeVolume::plan_window(Ino, const Window&, const engine::Stop&) {
  engine::WindowPlan plan;
  plan.extents = 1;
  plan.disks.resize(1);
  return plan;
}

volume::Operations& FakeVolume::operations() { std::abort(); }
volume::DiskStatistics& FakeVolume::disk_statistics() { std::abort(); }

Result<std::vector<unsigned>> FakeVolume::add_disks(std::vector<store::JoiningDisk>) {
  return Error{Errc::kNotSupported, "fake"};
}
Status FakeVolume::keep_disk(unsigned) { return Error{Errc::kNotSupported, "fake"}; }
Status FakeVolume::set_spare_disks(unsigned) { return Error{Errc::kNotSupported, "fake"}; }
Status FakeVolume::free_deleted() { return Error{Errc::kNotSupported, "fake"}; }
Status FakeVolume::set_disk_weight(unsigned, std::uint16_t) { return Error{Errc::kNotSupported, "fake"}; }
store::SpaceInfo FakeVolume::space() {
  return {.total_blocks = kBlocks, .free_blocks = kBlocks, .available_blocks = kBlocks, .objects = 1};
}

}  // namespace mdfs::test
