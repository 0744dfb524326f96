// An engine over a store in memory, one object, and a plain byte array that says what must be read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <random>

#include "base/environment.h"
#include "engine/engine.h"
#include "fake_store.h"

namespace mdfs::engine::testing {

// What the inode item of the object would say.
struct InodeSays {
  std::uint64_t size_bytes = 0;
  std::int64_t stored_bytes = 0;
  bool is_inline = false;
  unsigned updates = 0;
};

struct Setting {
  std::optional<geometry::Geometry> geometry;  // absent: an ordinary file
  unsigned disks = 3;
  std::uint64_t disk_bytes = 32u << 20;
  std::size_t cache_bytes = 4u << 20;
  std::size_t early_batch_bytes = EngineOptions{}.early_batch_bytes;
  std::uint32_t block_size = 4096;
  Environment* environment = nullptr;  // absent: the system's
  bool copies = false;                 // the image has second copies
  unsigned group_members = 1;          // with copies: extents that share a parity
  std::uint64_t base = 1;              // of its placement
  bool on_disks = false;               // the real store on disks in memory, committed and opened again by reopen()
};

geometry::Geometry image_of(unsigned rank, geometry::Coord shape, geometry::Coord extent, geometry::Codec codec,
                            unsigned channels = 1, geometry::ElementType type = geometry::ElementType::kU8);

// An object to be tried, of tests with parameters, and the name that it gives them.
struct Kind {
  const char* name;
  std::optional<geometry::Geometry> geometry;  // absent: an ordinary file
};
inline constexpr auto kNameOf = [](const auto& one) { return one.param.name; };

class Bench {
 public:
  explicit Bench(const Setting& setting);
  ~Bench();

  Engine& engine() { return *engine_; }
  OpenObject& object() { return *object_; }
  test::FakeStore& store() { return *fake_; }
  store::Store& any_store() { return on_disks_ ? *on_disks_ : *fake_; }
  const InodeSays& inode() const { return inode_; }
  const std::shared_ptr<OpenObject>& shared() { return object_; }

  // Closes, and opens as the inode says, with an empty cache.
  Status reopen();
  // The same, and the inode has forgotten what lies beyond this size.
  Status forget_end(std::uint64_t size_bytes);
  void start_engine();
  void stop_engine();
  void open_object();
  // What is written from now on gets copies, or none; then all that is stored.
  void set_copies(bool wanted) { set_protection(wanted, 1); }
  void set_protection(bool copies, unsigned group_members);
  // Makes parities in place of copies, as the relocator does on an idle volume.
  Result<RelocationOutcome> form_groups();
  Result<ProtectOutcome> convert();
  // All rows, with those of copies, sorted by their extents.
  Result<std::vector<layout::ExtentPlace>> layout();
  std::uint64_t size() { return engine_->size_bytes(*object_); }

  // The canonical bytes by one call of read().
  ByteVector read_all();
  ByteVector read(std::uint64_t offset, std::size_t length);
  ByteVector read_window(const geometry::Window& window);
  Status write_window(const geometry::Window& window, ConstBytes bytes);
  // Only the bytes of the window that `mask` marks.
  Status write_window(const geometry::Window& window, ConstBytes bytes, const std::vector<bool>& mask);
  geometry::Geometry geometry_now();  // with shape[0] as the size says

 private:
  Setting setting_;
  void make_volume();
  void open_volume();

  SystemEnvironment system_;
  Environment& environment_;
  std::unique_ptr<test::FakeStore> fake_;
  std::unique_ptr<store::Store> on_disks_;
  std::vector<std::unique_ptr<device::MemoryDisk>> disks_;  // what the next open_volume() finds
  std::vector<device::MemoryDisk*> open_disks_;             // the store's
  std::shared_ptr<const geometry::Placement> placement_;
  InodeSays inode_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<OpenObject> object_;
};

ByteVector noise(std::mt19937_64& random, std::size_t bytes, bool compressible = false);
// Copies a window between the array (as the geometry says) and its canonical bytes.
void array_put(const geometry::Geometry& geometry, ByteVector& array, const geometry::Window& window, ConstBytes bytes);
ByteVector array_get(const geometry::Geometry& geometry, const ByteVector& array, const geometry::Window& window);
geometry::Window random_window(std::mt19937_64& random, const geometry::Geometry& geometry);

}  // namespace mdfs::engine::testing
