// Makes each kind of disk for the conformance suite.
// SPDX-License-Identifier: Apache-2.0
#include "backends.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "device/modelled_disk.h"
#include "device/open.h"
#include "device/testing/faulty_disk.h"
#include "device/testing/memory_disk.h"
#include "device/testing/recorder_disk.h"
#include "rados.h"
#include "temp_dir.h"

namespace mdfs::device {
namespace {

class MemoryBackend : public Backend {
 public:
  MemoryBackend(std::uint64_t size_bytes, bool writable) : memory_("memory", size_bytes) {
    memory_.set_writable(writable);
  }
  Disk& disk() override { return memory_; }

 protected:
  MemoryDisk memory_;
};

class RecorderBackend final : public MemoryBackend {
 public:
  RecorderBackend(std::uint64_t size_bytes, bool writable)
      : MemoryBackend(size_bytes, writable), recorder_(memory_, log_, 0) {}
  Disk& disk() override { return recorder_; }

 private:
  RecorderLog log_;
  RecorderDisk recorder_;
};

class FaultyBackend final : public MemoryBackend {
 public:
  FaultyBackend(std::uint64_t size_bytes, bool writable) : MemoryBackend(size_bytes, writable), faulty_(memory_, {}) {}
  Disk& disk() override { return faulty_; }

 private:
  FaultyDisk faulty_;
};

// A machine fast enough for tests, by the real clock.
class ModelledBackend final : public Backend {
 public:
  ModelledBackend(std::uint64_t size_bytes, bool writable) {
    const auto machine = model::parse_machine(R"(
name = "fast"
[[resource]]
name = "disk"
count = "disks"
servers = 2
[[stage]]
name = "access"
resource = "disk"
cost = ["uniform 0 us .. 4 us", "full / 10 GB/s"]
)",
                                              "fast");
    auto memory = std::make_unique<MemoryDisk>("memory", size_bytes);
    memory->set_writable(writable);
    disk_ = std::make_unique<ModelledDisk>(std::move(memory),
                                           ModelledMachine::start(machine.value(), 1, 1, waiter_).value(), 0);
  }
  Disk& disk() override { return *disk_; }

 private:
  SystemWaiter waiter_;
  std::unique_ptr<ModelledDisk> disk_;
};

// A file in `parent`, made by create_file_disk() and opened by open_disk().
class UringBackend : public Backend {
 public:
  UringBackend(const std::filesystem::path& parent, std::uint64_t size_bytes, bool writable) : dir_(parent) {
    const std::string path = dir_.path() / "disk";
    create_file_disk(path, size_bytes, false).value();
    auto context = UringContext::create();
    disk_ = open_disk(path, writable ? OpenMode::kReadWrite : OpenMode::kReadOnly, context.value()).value();
  }
  Disk& disk() override { return *disk_; }

 private:
  test::TempDir dir_;
  std::unique_ptr<Disk> disk_;
};

struct UringFileBackend final : UringBackend {
  UringFileBackend(std::uint64_t size_bytes, bool writable)
      : UringBackend(std::filesystem::temp_directory_path(), size_bytes, writable) {}
};

// Without O_DIRECT before Linux 6.6.
struct UringTmpfsBackend final : UringBackend {
  UringTmpfsBackend(std::uint64_t size_bytes, bool writable) : UringBackend("/dev/shm", size_bytes, writable) {}
};

class RadosBackend final : public Backend {
 public:
  RadosBackend(std::uint64_t size_bytes, bool writable) : name_(test::new_rados_disk()) {
    create_disk(name_, size_bytes, false).value();
    disk_ = open_disk(name_, writable ? OpenMode::kReadWrite : OpenMode::kReadOnly, nullptr).value();
  }
  ~RadosBackend() override {
    disk_.reset();
    EXPECT_TRUE(remove_disk(name_).ok());
  }
  Disk& disk() override { return *disk_; }

 private:
  const std::string name_;
  std::unique_ptr<Disk> disk_;
};

template <typename T>
std::unique_ptr<Backend> make(std::uint64_t size_bytes, bool writable) {
  return std::make_unique<T>(size_bytes, writable);
}

}  // namespace

const std::vector<BackendKind>& backend_kinds() {
  static const std::vector<BackendKind> local = {
      {"Memory", make<MemoryBackend>},
      {"RecorderOverMemory", make<RecorderBackend>},
      {"FaultyWithoutFaultsOverMemory", make<FaultyBackend>},
      {"ModelledOverMemory", make<ModelledBackend>},
      {"UringOnFile", make<UringFileBackend>},
      {"UringOnTmpfs", make<UringTmpfsBackend>},
  };
  static const std::vector<BackendKind> kinds = [] {
    std::vector<BackendKind> all = local;
    if (test::has_rados()) all.push_back({"Rados", make<RadosBackend>});
    return all;
  }();
  return kinds;
}

}  // namespace mdfs::device
