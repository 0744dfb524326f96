// Makes each kind of disk for the conformance suite.
// SPDX-License-Identifier: Apache-2.0
#include "backends.h"

#include "device/memory_disk.h"
#include "device/recorder_disk.h"

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

template <typename T>
std::unique_ptr<Backend> make(std::uint64_t size_bytes, bool writable) {
  return std::make_unique<T>(size_bytes, writable);
}

}  // namespace

const std::vector<BackendKind>& backend_kinds() {
  static const std::vector<BackendKind> kinds = {
      {"Memory", make<MemoryBackend>},
      {"RecorderOverMemory", make<RecorderBackend>},
  };
  return kinds;
}

}  // namespace mdfs::device
