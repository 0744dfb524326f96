// Encoding and decoding of extents: the default level beside zstd's own level of the same number and level 1, and a
// memcpy of as many bytes as the floor. Samples: 16-bit counts with noise, as of a camera, or with MDFS_BENCH_SAMPLES
// the bytes of a file, for example a picture as PPM.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <zstd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "base/check.h"
#include "codec/codec.h"

namespace mdfs::codec {
namespace {

constexpr std::size_t kExtentBytes = 256 * 256 * 3;
constexpr std::size_t kExtents = 64;
constexpr std::size_t kBytes = kExtents * kExtentBytes;

ByteVector counts() {
  std::mt19937 generator(1);
  ByteVector bytes(kBytes);
  for (std::size_t i = 0; i + 1 < kBytes; i += 2) {
    const double signal = 200 + 150 * std::sin(static_cast<double>(i) / 900);
    std::poisson_distribution<std::uint16_t> noise(signal);
    store_le<std::uint16_t>(bytes, i, noise(generator));
  }
  return bytes;
}

ByteVector read_samples(const char* path) {
  std::ifstream file(path, std::ios::binary);
  ByteVector bytes(kBytes);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  MDFS_CHECK(file.gcount() == static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

const ByteVector& samples() {
  const char* path = std::getenv("MDFS_BENCH_SAMPLES");
  static const ByteVector bytes = path == nullptr ? counts() : read_samples(path);
  return bytes;
}

ConstBytes extent(std::size_t i) { return ConstBytes(samples()).subspan(i * kExtentBytes, kExtentBytes); }

void count(benchmark::State& state, std::size_t stored) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kBytes));
  state.counters["stored/decoded"] = static_cast<double>(stored) / static_cast<double>(kBytes);
}

void BM_Memcpy(benchmark::State& state) {
  ByteVector to(kExtentBytes);
  benchmark::DoNotOptimize(samples().data());  // made before the clock starts
  for (auto _ : state)
    for (std::size_t i = 0; i < kExtents; ++i) {
      std::memcpy(to.data(), extent(i).data(), kExtentBytes);
      benchmark::ClobberMemory();
    }
  count(state, kBytes);
}
BENCHMARK(BM_Memcpy);

void BM_EncodeAsZstdItself(benchmark::State& state) {
  ByteVector out(ZSTD_compressBound(kExtentBytes));
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::size_t stored = 0;
  for (auto _ : state) {
    stored = 0;
    for (std::size_t i = 0; i < kExtents; ++i)
      stored += ZSTD_compressCCtx(context, out.data(), out.size(), extent(i).data(), kExtentBytes,
                                  static_cast<int>(state.range(0)));
  }
  ZSTD_freeCCtx(context);
  count(state, stored);
}
BENCHMARK(BM_EncodeAsZstdItself)->Arg(1)->Arg(2)->Arg(3);

void BM_Encode(benchmark::State& state) {
  ByteVector out(compress_bound(Codec::kZstd, kExtentBytes));
  Encoder encoder;
  std::size_t stored = 0;
  for (auto _ : state) {
    stored = 0;
    for (std::size_t i = 0; i < kExtents; ++i)
      stored += *encode(Codec::kZstd, static_cast<int>(state.range(0)), extent(i), out, encoder);
  }
  count(state, stored);
}
BENCHMARK(BM_Encode)->Arg(1)->Arg(2)->Arg(3);

void BM_Decode(benchmark::State& state) {
  std::vector<ByteVector> stored;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kExtents; ++i) {
    stored.emplace_back(compress_bound(Codec::kZstd, kExtentBytes));
    stored.back().resize(*encode(Codec::kZstd, static_cast<int>(state.range(0)), extent(i), stored.back()));
    bytes += stored.back().size();
  }
  ByteVector decoded(kExtentBytes);
  for (auto _ : state)
    for (const ByteVector& one : stored) MDFS_CHECK(decode(Codec::kZstd, one, decoded).ok());
  count(state, bytes);
}
BENCHMARK(BM_Decode)->Arg(1)->Arg(3);

}  // namespace
}  // namespace mdfs::codec

BENCHMARK_MAIN();
