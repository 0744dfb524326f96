// SPDX-License-Identifier: Apache-2.0
#include "imagefile/chunk_stream.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <array>

#include "base/check.h"

namespace mdfs::imagefile {
namespace {

constexpr std::uint64_t kInputBytes = 64u << 10;

Error damaged_stream(const std::string& what) { return Error{Errc::kBadData, what}; }

// The bytes of a chunk, a block at a time.
class ChunkInput {
 public:
  ChunkInput(ByteSource& bytes, std::uint64_t at, std::uint64_t length) : bytes_(bytes), at_(at), left_(length) {}

  // Bytes that are not skipped yet; none at the end.
  Result<ConstBytes> peek() {
    if (used_ == block_.size() && left_ > 0) {
      block_.resize(static_cast<std::size_t>(std::min(left_, kInputBytes)));
      used_ = 0;
      MDFS_TRY(bytes_.read_at(at_, block_));
      at_ += block_.size();
      left_ -= block_.size();
    }
    return ConstBytes(block_).subspan(used_);
  }
  void skip(std::size_t count) { used_ += count; }

  // The next byte; -1 at the end.
  Result<int> next() {
    MDFS_TRY_ASSIGN(const ConstBytes there, peek());
    if (there.empty()) return -1;
    skip(1);
    return std::to_integer<int>(there[0]);
  }

 private:
  ByteSource& bytes_;
  std::uint64_t at_, left_;
  ByteVector block_;
  std::size_t used_ = 0;
};

class PlainStream final : public ChunkStream {
 public:
  PlainStream(ByteSource& bytes, std::uint64_t at, std::uint64_t length) : bytes_(bytes), at_(at), left_(length) {}

  Result<std::size_t> read(MutableBytes into) override {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left_));
    MDFS_TRY(bytes_.read_at(at_, into.first(part)));
    at_ += part;
    left_ -= part;
    return part;
  }

 private:
  ByteSource& bytes_;
  std::uint64_t at_, left_;
};

class PackBitsStream final : public ChunkStream {
 public:
  PackBitsStream(ByteSource& bytes, std::uint64_t at, std::uint64_t length) : input_(bytes, at, length) {}

  Result<std::size_t> read(MutableBytes into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      if (left_ == 0) {
        MDFS_TRY_ASSIGN(const int head, input_.next());
        if (head < 0) break;
        if (head == kNothing) continue;
        repeats_ = head > kNothing;
        left_ = static_cast<std::size_t>(repeats_ ? 257 - head : head + 1);
        fetched_ = false;
      }
      if (!repeats_ || !fetched_) {
        MDFS_TRY_ASSIGN(value_, input_.next());
        fetched_ = true;
      }
      if (value_ < 0) {
        left_ = 0;
        break;
      }
      const std::size_t part = repeats_ ? std::min(left_, into.size() - done) : 1;
      std::fill_n(into.begin() + static_cast<std::ptrdiff_t>(done), part, static_cast<std::byte>(value_));
      done += part;
      left_ -= part;
    }
    return done;
  }

 private:
  static constexpr int kNothing = 128;

  ChunkInput input_;
  bool repeats_ = false, fetched_ = false;
  int value_ = 0;
  std::size_t left_ = 0;  // of the current run
};

// TIFF 6.0, section 13: codes of 9 to 12 bits, the highest bit first, that grow one code early.
class LzwStream final : public ChunkStream {
 public:
  LzwStream(ByteSource& bytes, std::uint64_t at, std::uint64_t length) : input_(bytes, at, length) {
    for (unsigned code = 0; code < kClear; ++code) {
      table_[code].first = table_[code].last = static_cast<std::byte>(code);
      table_[code].length = 1;
    }
  }

  Result<std::size_t> read(MutableBytes into) override {
    std::size_t done = 0;
    for (;;) {
      const std::size_t part = std::min(into.size() - done, text_.size() - used_);
      std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(used_), part,
                  into.begin() + static_cast<std::ptrdiff_t>(done));
      used_ += part;
      done += part;
      if (done == into.size() || ended_) return done;
      MDFS_TRY(decode_code());
    }
  }

 private:
  static constexpr unsigned kClear = 256, kEnd = 257, kFirst = 258, kMostCodes = 4096, kLeastWidth = 9, kMostWidth = 12;
  static constexpr unsigned kNone = kMostCodes;

  struct Entry {
    std::uint16_t before = 0, length = 0;
    std::byte first{}, last{};
  };

  // kEnd where the stream ends without an end mark.
  Result<unsigned> next_code() {
    while (bits_ < width_) {
      MDFS_TRY_ASSIGN(const int byte, input_.next());
      if (byte < 0) return kEnd;
      buffer_ = buffer_ << 8 | static_cast<unsigned>(byte);
      bits_ += 8;
    }
    bits_ -= width_;
    return buffer_ >> bits_ & ((1u << width_) - 1);
  }

  Status check_age() {
    MDFS_TRY_ASSIGN(const ConstBytes start, input_.peek());
    fresh_ = false;
    if (start.size() >= 2 && start[0] == std::byte{0} && (start[1] & std::byte{1}) != std::byte{0})
      return {Errc::kNotSupported,
              "the LZW codes are in the bit order of before TIFF 6.0; convert the file to TIFF with deflate"};
    return {};
  }

  // Sets text_ to the string of the next code, or ended_.
  Status decode_code() {
    const bool first = fresh_;
    if (fresh_) MDFS_TRY(check_age());
    text_.clear();
    used_ = 0;
    MDFS_TRY_ASSIGN(const unsigned code, next_code());
    if (first && code != kClear) return damaged_stream("it does not begin as LZW");
    if (code == kClear) {
      width_ = kLeastWidth;
      codes_ = kFirst;
      last_ = kNone;
      return {};
    }
    if (code == kEnd) {
      ended_ = true;
      return {};
    }
    if (code >= codes_ + (last_ == kNone ? 0u : 1u)) return damaged_stream("an LZW code is not in the table");
    if (last_ != kNone) {
      if (codes_ == kMostCodes) return damaged_stream("the LZW table overflows");
      Entry& entry = table_[codes_];
      entry.before = static_cast<std::uint16_t>(last_);
      entry.length = static_cast<std::uint16_t>(table_[last_].length + 1);
      entry.first = table_[last_].first;
      entry.last = code == codes_ ? table_[last_].first : table_[code].first;
      ++codes_;
      if (codes_ >= (1u << width_) - 1 && width_ < kMostWidth) ++width_;
    }
    last_ = code;
    put_text(code);
    return {};
  }

  void put_text(unsigned code) {
    text_.resize(table_[code].length);
    for (std::size_t i = text_.size(); i-- > 0; code = table_[code].before) text_[i] = table_[code].last;
  }

  ChunkInput input_;
  std::array<Entry, kMostCodes> table_{};
  unsigned codes_ = kFirst, width_ = kLeastWidth, last_ = kNone, bits_ = 0;
  std::uint32_t buffer_ = 0;
  ByteVector text_;  // of the last code
  std::size_t used_ = 0;
  bool fresh_ = true, ended_ = false;
};

// What the libraries below have in common: they are given input and room until their stream ends.
class LibraryStream : public ChunkStream {
 public:
  LibraryStream(ByteSource& bytes, std::uint64_t at, std::uint64_t length) : input_(bytes, at, length) {}

  Result<std::size_t> read(MutableBytes into) final {
    std::size_t done = 0;
    while (done < into.size() && !ended_) {
      MDFS_TRY_ASSIGN(const ConstBytes there, input_.peek());
      MDFS_TRY_ASSIGN(const Step step, decode(there, into.subspan(done)));
      input_.skip(step.taken);
      done += step.made;
      ended_ = step.ended;
      if (!ended_ && step.taken == 0 && step.made == 0) return damaged_stream("the compressed samples are truncated");
    }
    return done;
  }

 protected:
  struct Step {
    std::size_t taken = 0, made = 0;
    bool ended = false;
  };
  // `from` is empty at the end of the input only.
  virtual Result<Step> decode(ConstBytes from, MutableBytes into) = 0;

 private:
  ChunkInput input_;
  bool ended_ = false;
};

Error no_decoder() { return Error{Errc::kNoMemory, "no memory for a decoder"}; }

class DeflateStream final : public LibraryStream {
 public:
  DeflateStream(ByteSource& bytes, std::uint64_t at, std::uint64_t length) : LibraryStream(bytes, at, length) {
    begun_ = ::inflateInit(&zlib_) == Z_OK;
  }
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;
  ~DeflateStream() override {
    if (begun_) ::inflateEnd(&zlib_);
  }

 private:
  Result<Step> decode(ConstBytes from, MutableBytes into) override {
    constexpr std::size_t kMost = 1u << 30;  // zlib counts in 32 bits
    if (!begun_) return no_decoder();
    const std::size_t room = std::min(into.size(), kMost);
    zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(from.data()));  // zlib does not change it
    zlib_.avail_in = static_cast<uInt>(from.size());
    zlib_.next_out = reinterpret_cast<Bytef*>(into.data());
    zlib_.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&zlib_, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return damaged_stream(std::string("damaged deflate stream: ") +
                            (zlib_.msg != nullptr ? zlib_.msg : "it does not begin as one"));
    return Step{from.size() - zlib_.avail_in, room - zlib_.avail_out, result == Z_STREAM_END};
  }

  z_stream zlib_{};
  bool begun_ = false;
};

class ZstdStream final : public LibraryStream {
 public:
  ZstdStream(ByteSource& bytes, std::uint64_t at, std::uint64_t length) : LibraryStream(bytes, at, length) {}

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  Result<Step> decode(ConstBytes from, MutableBytes into) override {
    if (!context_) context_.reset(ZSTD_createDCtx());
    if (!context_) return no_decoder();
    ZSTD_inBuffer in{from.data(), from.size(), 0};
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    const std::size_t result = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_isError(result) != 0)
      return damaged_stream(std::string("damaged zstd frame: ") + ZSTD_getErrorName(result));
    return Step{in.pos, out.pos, result == 0};
  }

  std::unique_ptr<ZSTD_DCtx, Free> context_;
};

class LzmaStream final : public LibraryStream {
 public:
  LzmaStream(ByteSource& bytes, std::uint64_t at, std::uint64_t length) : LibraryStream(bytes, at, length) {
    begun_ = ::lzma_stream_decoder(&lzma_, kMostMemory, 0) == LZMA_OK;
  }
  LzmaStream(const LzmaStream&) = delete;
  LzmaStream& operator=(const LzmaStream&) = delete;
  ~LzmaStream() override { ::lzma_end(&lzma_); }

 private:
  static constexpr std::uint64_t kMostMemory = std::uint64_t{128} << 20;

  Result<Step> decode(ConstBytes from, MutableBytes into) override {
    if (!begun_) return no_decoder();
    lzma_.next_in = reinterpret_cast<const std::uint8_t*>(from.data());
    lzma_.avail_in = from.size();
    lzma_.next_out = reinterpret_cast<std::uint8_t*>(into.data());
    lzma_.avail_out = into.size();
    const lzma_ret result = ::lzma_code(&lzma_, LZMA_RUN);
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
      return damaged_stream("damaged LZMA stream");
    return Step{from.size() - lzma_.avail_in, into.size() - lzma_.avail_out, result == LZMA_STREAM_END};
  }

  lzma_stream lzma_ = LZMA_STREAM_INIT;
  bool begun_ = false;
};

}  // namespace

bool is_known_compression(std::uint64_t number) {
  switch (TiffCompression{number}) {
    case TiffCompression::kNone:
    case TiffCompression::kLzw:
    case TiffCompression::kDeflate:
    case TiffCompression::kPackBits:
    case TiffCompression::kOldDeflate:
    case TiffCompression::kLzma:
    case TiffCompression::kZstd:
      return true;
  }
  return false;
}

std::unique_ptr<ChunkStream> open_chunk(TiffCompression compression, ByteSource& bytes, std::uint64_t at,
                                        std::uint64_t length) {
  MDFS_CHECK(inside(at, length, bytes.size()));
  switch (compression) {
    case TiffCompression::kNone:
      return std::make_unique<PlainStream>(bytes, at, length);
    case TiffCompression::kLzw:
      return std::make_unique<LzwStream>(bytes, at, length);
    case TiffCompression::kDeflate:
    case TiffCompression::kOldDeflate:
      return std::make_unique<DeflateStream>(bytes, at, length);
    case TiffCompression::kPackBits:
      return std::make_unique<PackBitsStream>(bytes, at, length);
    case TiffCompression::kLzma:
      return std::make_unique<LzmaStream>(bytes, at, length);
    case TiffCompression::kZstd:
      return std::make_unique<ZstdStream>(bytes, at, length);
  }
  MDFS_CHECK(false);
  return nullptr;
}

}  // namespace mdfs::imagefile
