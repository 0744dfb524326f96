// Warm windows out of the cache of the engine, against a memcpy of as many bytes, and the way into it.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstring>

#include "base/environment.h"
#include "engine/engine.h"
#include "fake_store.h"

namespace mdfs::engine {
namespace {

constexpr std::uint64_t kSide = 4096;
constexpr unsigned kChannels = 3;

// 4096x4096x3 u8 over four disks in memory.
class Picture {
 public:
  explicit Picture(geometry::Codec codec, std::uint64_t extent = 128) {
    geometry_.rank = 2;
    geometry_.shape = {kSide, kSide, 0};
    geometry_.extent = {extent, extent, 0};
    geometry_.channels = kChannels;
    geometry_.codec = codec;
    geometry_.axes = "yx";
    EngineOptions options;
    options.cache_bytes = 256u << 20;
    engine_ = std::move(Engine::create(store_, options, environment_)).value();
    ObjectSpec spec;
    spec.number = 5;
    spec.geometry = geometry_;
    spec.placement = std::make_shared<geometry::Placement>(geometry::default_placement(2, {0, 1, 2, 3}));
    spec.size_bytes = geometry_.size_bytes();
    object_ = engine_->open(spec, [](store::Transaction&, const ObjectState&) { return Status{}; }).value();
  }
  ~Picture() { engine_->discard(object_); }

  void fill() {
    ByteVector megabyte(1u << 20);
    for (std::size_t i = 0; i < megabyte.size(); ++i) megabyte[i] = static_cast<std::byte>(i * i >> 9);
    for (std::uint64_t offset = 0; offset < geometry_.size_bytes(); offset += megabyte.size())
      MDFS_CHECK(engine_->write(*object_, offset, megabyte).ok());
    MDFS_CHECK(engine_->write_back(*object_).ok());
  }
  Engine& engine() { return *engine_; }
  OpenObject& object() { return *object_; }
  std::uint64_t bytes() const { return geometry_.size_bytes(); }

 private:
  test::FakeStore store_{4, 128u << 20};
  SystemEnvironment environment_;
  geometry::Geometry geometry_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<OpenObject> object_;
};

void BM_Memcpy(benchmark::State& state) {
  const auto side = static_cast<std::size_t>(state.range(0));
  ByteVector from(side * side * kChannels), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Memcpy)->Arg(64)->Arg(512)->Arg(2048);

void BM_WarmWindow(benchmark::State& state) {
  static Picture* const picture = [] {
    auto* made = new Picture(geometry::Codec::kZstd);
    made->fill();
    return made;
  }();
  const auto side = static_cast<std::uint64_t>(state.range(0));
  geometry::Window window;
  window.start = {75, 67, 0};
  window.length = {side, side, 0};
  ByteVector into(side * side * kChannels);
  for (auto _ : state) MDFS_CHECK(picture->engine().read_window(picture->object(), window, 0, into).ok());
}
BENCHMARK(BM_WarmWindow)->Arg(64)->Arg(512)->Arg(2048);

// As cp does: a megabyte at a time, in the order of rows.
void BM_Ingest(benchmark::State& state) {
  const auto codec = static_cast<geometry::Codec>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    auto picture = std::make_unique<Picture>(codec);
    state.ResumeTiming();
    picture->fill();
    state.PauseTiming();
    state.SetBytesProcessed(state.bytes_processed() + static_cast<std::int64_t>(picture->bytes()));
    picture.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_Ingest)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace mdfs::engine

BENCHMARK_MAIN();
