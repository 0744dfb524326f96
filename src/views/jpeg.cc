// JPEG through libjpeg-turbo.
// SPDX-License-Identifier: Apache-2.0
#include "views/jpeg.h"

// jpeglib.h needs FILE and size_t before it.
#include <csetjmp>
#include <cstdio>
// clang-format off
#include <jpeglib.h>
// clang-format on

#include <array>
#include <string>

#include "base/check.h"

namespace mdfs::views {
namespace {

constexpr std::size_t kOutputBytes = 64 << 10;

// libjpeg reports errors by a call that must not return. Each call of the library is made within guarded(), to which
// the report jumps: no frame between has anything to destroy.
class JpegEncoder {
 public:
  explicit JpegEncoder(const ByteSink& sink) : sink_(sink) {
    compress_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr common) { self(common).fail(); };
    errors_.output_message = [](j_common_ptr) {};
    compress_.client_data = this;
    destination_.init_destination = [](j_compress_ptr compress) { self(compress).restart_output(); };
    destination_.empty_output_buffer = [](j_compress_ptr compress) -> boolean {
      self(compress).put(kOutputBytes);
      self(compress).restart_output();
      return TRUE;
    };
    destination_.term_destination = [](j_compress_ptr compress) {
      self(compress).put(kOutputBytes - self(compress).destination_.free_in_buffer);
    };
  }
  ~JpegEncoder() { jpeg_destroy_compress(&compress_); }
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  Status begin(const Raster& raster) {
    return guarded([&] {
      jpeg_create_compress(&compress_);
      compress_.dest = &destination_;
      compress_.image_width = static_cast<JDIMENSION>(raster.width);
      compress_.image_height = static_cast<JDIMENSION>(raster.height);
      compress_.input_components = static_cast<int>(raster.channels);
      compress_.in_color_space = raster.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
      jpeg_set_defaults(&compress_);
      jpeg_set_quality(&compress_, kJpegQuality, TRUE);
      for (int i = 0; i < compress_.num_components; ++i)
        compress_.comp_info[i].h_samp_factor = compress_.comp_info[i].v_samp_factor = 1;
      jpeg_start_compress(&compress_, TRUE);
    });
  }
  Status row(MutableBytes samples) {
    return guarded([&] {
      JSAMPROW row = reinterpret_cast<JSAMPROW>(samples.data());
      jpeg_write_scanlines(&compress_, &row, 1);
    });
  }
  Status end() {
    return guarded([&] { jpeg_finish_compress(&compress_); });
  }

 private:
  template <typename Common>
  static JpegEncoder& self(Common* common) {
    return *static_cast<JpegEncoder*>(common->client_data);
  }
  template <typename Calls>
  Status guarded(const Calls& calls) {
    if (setjmp(jump_) == 0) calls();
    if (failed_ && status_.ok()) status_ = Error{Errc::kNoMemory, "JPEG: " + message()};
    return status_;
  }
  [[noreturn]] void fail() {
    failed_ = true;
    std::longjmp(jump_, 1);
  }
  std::string message() {
    std::array<char, JMSG_LENGTH_MAX> text{};
    errors_.format_message(reinterpret_cast<j_common_ptr>(&compress_), text.data());
    return text.data();
  }
  void restart_output() {
    destination_.next_output_byte = reinterpret_cast<JOCTET*>(output_.data());
    destination_.free_in_buffer = kOutputBytes;
  }
  // The first error stays, and guarded() returns it.
  void put(std::size_t count) {
    if (status_.ok()) status_ = sink_(ConstBytes(output_).first(count));
  }

  const ByteSink& sink_;
  Status status_;
  bool failed_ = false;
  std::jmp_buf jump_;
  jpeg_error_mgr errors_{};
  jpeg_destination_mgr destination_{};
  jpeg_compress_struct compress_{};
  ByteVector output_ = ByteVector(kOutputBytes);
};

}  // namespace

std::uint64_t max_jpeg_bytes(const Raster& raster) {
  // The bound of libjpeg-turbo: 2 bytes for each sample of whole blocks of 8 by 8, and headers.
  const auto whole = [](std::uint64_t side) { return (side + 7) / 8 * 8; };
  return whole(raster.width) * whole(raster.height) * raster.channels * 2 + 4096;
}

Status encode_jpeg(const Raster& raster, const RowSource& rows, const ByteSink& sink) {
  MDFS_CHECK(raster.sample_bytes == 1 && (raster.channels == 1 || raster.channels == 3));
  MDFS_CHECK(raster.width >= 1 && raster.width <= kMaxJpegSide && raster.height >= 1 && raster.height <= kMaxJpegSide);
  JpegEncoder encoder(sink);
  MDFS_TRY(encoder.begin(raster));
  ByteVector row(static_cast<std::size_t>(raster.row_bytes()));
  for (std::uint64_t y = 0; y < raster.height; ++y) {
    MDFS_TRY(rows(row));
    MDFS_TRY(encoder.row(row));
  }
  return encoder.end();
}

}  // namespace mdfs::views
