// A volume in plain memory: what the layers above need of it, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "volume/volume.h"

namespace mdfs::test {

// Files and images are byte vectors in canonical order, so windows are read and written by the plainest of loops. No
// permissions are checked but the mode bits for "other". What it does not need aborts.
class FakeVolume final : public volume::Volume {
 public:
  FakeVolume();
  ~FakeVolume() override;

  // A ready image under the root directory, with bytes that differ from place to place.
  volume::Ino add_image(const std::string& name, const geometry::Geometry& geometry);
  ByteVector& bytes(volume::Ino ino);
  // Runs as each window write begins: what somebody else does at that moment.
  void before_window_writes(std::function<void()> hook) { before_window_write_ = std::move(hook); }

  Status close() override { return {}; }
  store::Store& store() override;
  engine::Engine& engine() override;
  void set_change_listener(volume::ChangeListener) override {}
  void set_privileges_listener(volume::PrivilegesListener) override {}

  Result<volume::Attributes> lookup(volume::Ino parent, std::string_view name) override;
  void forget(volume::Ino, std::uint64_t) override {}
  Result<volume::Attributes> make_node(volume::Ino parent, std::string_view name, mode_t mode, std::uint64_t device,
                                       const volume::Caller& caller) override;
  Result<volume::Attributes> make_directory(volume::Ino parent, std::string_view name, mode_t mode,
                                            const volume::Caller& caller) override;
  Result<volume::Attributes> make_symlink(volume::Ino, std::string_view, std::string_view,
                                          const volume::Caller&) override;
  Result<volume::Attributes> link(volume::Ino, volume::Ino, std::string_view) override;
  Status unlink(volume::Ino parent, std::string_view name) override;
  Status remove_directory(volume::Ino parent, std::string_view name) override;
  Status rename(volume::Ino parent, std::string_view name, volume::Ino new_parent, std::string_view new_name,
                volume::RenameMode mode) override;
  Result<std::string> read_symlink(volume::Ino) override;
  Result<std::vector<volume::DirectoryEntry>> read_directory(volume::Ino directory, std::uint64_t cookie,
                                                             std::size_t limit) override;
  Result<volume::Attributes> attributes(volume::Ino ino) override;
  Result<volume::Attributes> set_attributes(volume::Ino ino, const volume::SetAttributes& change) override;
  Status check_access(volume::Ino, int, const volume::Caller&) override { return {}; }
  Status set_xattr(volume::Ino, std::string_view, ConstBytes, volume::XattrMode) override;
  Status set_access_acl(volume::Ino ino, ConstBytes value, const volume::Caller&) override {
    return set_xattr(ino, "system.posix_acl_access", value, volume::XattrMode::kSet);
  }
  Result<ByteVector> get_xattr(volume::Ino, std::string_view) override;
  Result<std::vector<std::string>> list_xattrs(volume::Ino) override;
  Status remove_xattr(volume::Ino, std::string_view) override;
  Status open_file(volume::Ino ino, bool truncate) override;
  void release_file(volume::Ino) override {}
  using Volume::read, Volume::write, Volume::copy_range, Volume::read_window;
  Result<std::size_t> read(volume::Ino ino, std::uint64_t offset, MutableBytes into, const engine::Stop&) override;
  Result<std::size_t> write(volume::Ino ino, std::uint64_t offset, ConstBytes from, bool append,
                            const engine::Stop&) override;
  using Volume::allocate;
  Status allocate(volume::Ino, int, std::uint64_t, std::uint64_t, const engine::Stop&) override;
  Status drop_privileges(volume::Ino, const std::function<volume::Caller()>&) override { return {}; }
  Result<std::uint64_t> seek(volume::Ino, std::uint64_t, int) override;
  Result<std::size_t> copy_range(volume::Ino, std::uint64_t, volume::Ino, std::uint64_t, std::size_t,
                                 const engine::Stop&) override;
  Status fsync(volume::Ino, bool) override { return {}; }
  Status sync() override { return {}; }

  Status make_image(volume::Ino ino, const volume::ImageOptions& options) override;
  Status become_image(volume::Ino, const volume::ImageOptions&, const engine::Stop&) override {
    return {Errc::kNotSupported, ""};
  }
  Result<volume::ImageInfo> image_info(volume::Ino ino) override;
  Result<geometry::Geometry> image_geometry(volume::Ino ino) override;
  Result<volume::LayoutPage> layout(volume::Ino, const engine::LayoutCursor&, std::size_t,
                                    const engine::Stop& stop) override;
  // Asked by layout() before it answers; its error is the answer.
  void before_layout(std::function<Status(const engine::Stop&)> call) { before_layout_ = std::move(call); }
  // All extents of an image are written.
  Result<bool> is_written(volume::Ino ino, const geometry::Coord& extent) override;
  Result<std::vector<std::uint64_t>> written_in_row(volume::Ino ino, const geometry::Coord& from, std::size_t most,
                                                    const engine::Stop& stop) override;
  Result<engine::MoveOutcome> move_data(volume::Ino, const engine::MoveRequest&) override {
    return engine::MoveOutcome{};
  }
  Result<layout::Fragmentation> fragmentation(volume::Ino, const engine::Stop&) override {
    return layout::Fragmentation{};
  }
  Result<volume::LostFiles> lost_files(volume::Ino, std::size_t, const engine::Stop&) override {
    return volume::LostFiles{};
  }
  Result<volume::VolumeFragmentation> volume_fragmentation(const engine::Stop&) override {
    return volume::VolumeFragmentation{};
  }
  Result<std::uint64_t> consolidate(volume::Ino, std::uint64_t, bool) override { return std::uint64_t{0}; }
  Status start_window(volume::Ino, const geometry::Window&) override { return {}; }
  Status read_window(volume::Ino ino, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                     const engine::Stop&) override;
  // Nothing is cached, but some bytes come as if it were.
  Result<bool> read_cached_window(volume::Ino, const geometry::Window&, MutableBytes into,
                                  const engine::ReadProgress& progress) override {
    if (progress) progress(into.size() / 2);
    return false;
  }
  Result<std::unique_ptr<volume::PinnedWindow>> pin_window(volume::Ino ino, const geometry::Window& window) override;
  // No extent is stored as a frame, until the test says how to make one.
  Result<std::unique_ptr<volume::PinnedFrame>> pin_frame(volume::Ino, unsigned, const geometry::Coord&,
                                                         const engine::Stop&) override {
    return make_frame_ ? make_frame_() : nullptr;
  }
  void make_frames(std::function<std::unique_ptr<volume::PinnedFrame>()> make) { make_frame_ = std::move(make); }
  // From now on reads of windows that are pinned end with the error of ESTALE.
  void give_up_pinned() { ++given_up_; }
  using Volume::write_window;
  Status write_window(volume::Ino ino, const geometry::Window& window, const engine::WindowSource& from,
                      const engine::Stop& stop) override;
  Status set_protection(volume::Ino, const volume::WantedProtection&) override {
    return Error{Errc::kNotSupported, "fake"};
  }
  unsigned usual_group_members() const override { return 1; }
  Result<volume::Protection> protection(volume::Ino, const engine::Stop&) override {
    return Error{Errc::kNotSupported, "fake"};
  }
  Status set_levels(volume::Ino, unsigned, geometry::Reduction) override { return Error{Errc::kNotSupported, "fake"}; }
  Result<std::pair<unsigned, geometry::Reduction>> stored_levels(volume::Ino) override {
    return std::pair(0u, geometry::Reduction::kMean);
  }
  Result<volume::LevelsInfo> levels_info(volume::Ino, const engine::Stop&) override { return volume::LevelsInfo{}; }
  Result<engine::WindowPlan> plan_level(volume::Ino, unsigned, const geometry::Window&, const engine::Stop&) override {
    return Error{Errc::kOutOfRange, "fake"};
  }
  Result<bool> read_level(volume::Ino, unsigned, const geometry::Window&, std::uint64_t, std::uint64_t,
                          const volume::LevelSink&, unsigned, const engine::Stop&) override {
    return false;
  }
  Result<std::unique_ptr<volume::PinnedWindow>> pin_level(volume::Ino, unsigned, const geometry::Window&, unsigned,
                                                          const engine::Stop&) override {
    return std::unique_ptr<volume::PinnedWindow>();
  }
  Result<engine::WindowPlan> plan_window(volume::Ino, const geometry::Window&, const engine::Stop&) override;
  Result<std::vector<unsigned>> add_disks(std::vector<store::JoiningDisk> disks) override;
  Status set_disk_weight(unsigned disk, std::uint16_t weight) override;
  Status keep_disk(unsigned disk) override;
  Status set_spare_disks(unsigned disks) override;
  Status free_deleted() override;
  store::SpaceInfo space() override;
  Result<std::uint64_t> available_blocks(volume::Ino) override { return std::uint64_t{0}; }
  volume::Operations& operations() override;
  volume::DiskStatistics& disk_statistics() override;

 private:
  struct Inode;
  class FakeStore;
  // The mutex is held for all of these.
  Result<Inode*> find(volume::Ino ino);
  Result<Inode*> find_directory(volume::Ino ino);
  Result<volume::Attributes> add(volume::Ino parent, std::string_view name, mode_t mode, const volume::Caller& caller);
  volume::Attributes attributes_of(const Inode& inode) const;
  // Offsets of the window's samples in the image's bytes, in canonical order.
  std::vector<std::uint64_t> sample_offsets(const Inode& inode, const geometry::Window& window) const;

  std::function<void()> before_window_write_;
  std::function<std::unique_ptr<volume::PinnedFrame>()> make_frame_;
  std::function<Status(const engine::Stop&)> before_layout_;
  unsigned given_up_ = 0;
  std::mutex mutex_;  // guards everything below
  std::map<volume::Ino, std::unique_ptr<Inode>> inodes_;
  volume::Ino next_ino_ = 16;
  std::int64_t clock_ns_ = 1'700'000'000'000'000'000;
  std::unique_ptr<FakeStore> store_;
};

}  // namespace mdfs::test
