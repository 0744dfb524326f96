// The segments of a JPEG file. Source: ITU-T T.81, annex B.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

inline constexpr unsigned kJpegEnd = 0xd9, kJpegScan = 0xda, kJpegExif = 0xe1;  // markers

struct JpegSegment {
  unsigned marker = 0;
  std::uint64_t at = 0;      // of its length, behind the marker
  std::uint64_t length = 0;  // as it says, its own two bytes included; the end of the image has none
};

// Walks from marker to marker, and passes over bytes that belong to no segment, as libjpeg does. The bytes and the name
// outlive it; the bytes begin as a JPEG file.
class JpegWalk {
 public:
  JpegWalk(ByteSource& bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  // kBadData: the file ends before. What a segment says of its length may lead beyond the end.
  Result<JpegSegment> next();
  // To the marker that ends a scan, after its segment.
  Status skip_scan();

 private:
  Result<unsigned> next_marker();

  ByteSource& bytes_;
  const std::string& name_;
  std::uint64_t at_ = 2;  // behind the start of the image
};

}  // namespace mdfs::imagefile
