// Reads of files through io_uring: one disk and eight, one ring for all disks against a ring for each.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "base/aligned_buffer.h"
#include "device/open.h"

namespace mdfs::device {
namespace {

constexpr std::uint64_t kDiskBytes = 64u << 20;
constexpr std::size_t kDisks = 8;

// Eight files full of data in the temporary directory.
class Files {
 public:
  Files() {
    std::string name = std::filesystem::temp_directory_path() / "mdfs-bench-XXXXXX";
    MDFS_CHECK(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
    auto context = UringContext::create().value();
    AlignedBuffer data(kMaxIoBytes);
    for (std::size_t i = 0; i < data.size(); ++i) data.data()[i] = static_cast<std::byte>(i * i >> 8);
    for (std::size_t i = 0; i < kDisks; ++i) {
      create_file_disk(path(i), kDiskBytes, false).value();
      auto disk = open_disk(path(i), OpenMode::kReadWrite, context).value();
      for (std::uint64_t at = 0; at < kDiskBytes; at += data.size()) write(*disk, at, data.bytes()).value();
      flush(*disk).value();
    }
  }
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path(std::size_t i) const { return folder_ / ("disk" + std::to_string(i)); }

 private:
  std::filesystem::path folder_;
};

// A read of `bytes` in requests of `request` bytes, spread over `disks` disks: what a window costs.
void read_spread(benchmark::State& state, bool ring_for_each) {
  static const Files files;
  const auto disk_count = static_cast<std::size_t>(state.range(0));
  const auto request = static_cast<std::size_t>(state.range(1));
  const auto requests = static_cast<std::size_t>(state.range(2));
  std::vector<std::unique_ptr<Disk>> disks;
  auto context = UringContext::create().value();
  for (std::size_t i = 0; i < disk_count; ++i) {
    if (ring_for_each) context = UringContext::create().value();
    disks.push_back(open_disk(files.path(i), OpenMode::kReadOnly, context).value());
  }
  AlignedBuffer memory(request * requests);
  std::vector<Io> ios(requests);
  std::vector<Addressed> addressed;
  for (std::size_t i = 0; i < requests; ++i) {
    ios[i].buffers.push_back(memory.bytes().subspan(i * request, request));
    addressed.push_back({disks[i % disk_count].get(), &ios[i]});
  }
  std::minstd_rand generator(1);
  for (auto _ : state) {
    for (auto& io : ios) io.offset = generator() % (kDiskBytes / request) * request;
    run(addressed).value();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(memory.size()));
}

void one_ring(benchmark::State& state) { read_spread(state, false); }
void ring_for_each_disk(benchmark::State& state) { read_spread(state, true); }

// Disks, bytes of a request, requests at once.
void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({1, 4096, 1})->Args({1, 131072, 8})->Args({8, 4096, 8})->Args({8, 131072, 8})->Args({8, 65536, 64});
}

BENCHMARK(one_ring)->Apply(shapes)->UseRealTime();
BENCHMARK(ring_for_each_disk)->Apply(shapes)->UseRealTime();

}  // namespace
}  // namespace mdfs::device

BENCHMARK_MAIN();
