// Decodes one strip or tile of a TIFF file as a stream, and finds all damage that the compression can show.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

// The numbers of field 259.
enum class TiffCompression : std::uint64_t {
  kNone = 1,
  kLzw = 5,
  kDeflate = 8,
  kPackBits = 32773,
  kOldDeflate = 32946,
  kLzma = 34925,
  kZstd = 50000,
};

// Used by one thread. Holds at most a few hundred KiB, beside the window that zstd or LZMA asks for (128 MiB at most).
class ChunkStream {
 public:
  virtual ~ChunkStream() = default;
  // Decodes up to all of `into`. Fewer bytes come only at the end of the stream, which has then been verified: deflate,
  // LZMA and zstd have an end mark, and checksums where the writer made them. Damage is kBadData; errors have no name.
  virtual Result<std::size_t> read(MutableBytes into) = 0;
};

// True if open_chunk() decodes this compression.
bool is_known_compression(std::uint64_t number);

// The stream of `length` bytes at `at`, which lie inside `bytes`. The compression is a known one; `bytes` outlives the
// stream. LZW streams of writers before TIFF 6.0 are refused when they are read.
std::unique_ptr<ChunkStream> open_chunk(TiffCompression compression, ByteSource& bytes, std::uint64_t at,
                                        std::uint64_t length);

}  // namespace mdfs::imagefile
