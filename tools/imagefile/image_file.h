// Image files of other programs, read and written as one stream of canonical bytes.
//
// Raw, NPY and PNM are read and written here; PNG, TIFF, JPEG, EXR, DPX and others by OpenImageIO where it was built
// in. Nothing holds a whole image: an open file takes a few megabytes at most (OpenImageIO holds some formats whole).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"
#include "imagefile/metadata.h"

namespace mdfs::imagefile {

// At most five axes, and the channels.
inline constexpr std::size_t kMaxDimensions = geometry::kMaxRank + 1;

// The array in a file. Canonical bytes: little endian, slowest axis first, the last axis fastest.
struct ArrayInfo {
  std::vector<std::uint64_t> lengths;  // 1..kMaxDimensions, channels (if any) last
  geometry::ElementType type = geometry::ElementType::kU8;
  std::string axes;  // one letter for each dimension ("yxc", "tyx") if the format gives them; else empty
  // Samples in a centimetre; 0 = unknown, also if the value of the file is not a measurement.
  double rows_per_cm = 0;
  double columns_per_cm = 0;
  double resolution_error = 0;  // error of both, because the format holds whole numbers only
  double first_spacing = 0;     // along the first axis, in first_unit; 0 = unknown
  std::string first_unit = {};

  bool operator==(const ArrayInfo&) const = default;
};

// True if both have one shape, type and order of axes, so that one can follow the other.
bool is_alike(const ArrayInfo& a, const ArrayInfo& b);

// Bytes of the array; kOverflow or kTooBig if it is more than an image may hold.
Result<std::uint64_t> array_bytes(const ArrayInfo& array);

// Reads one image from start to end. Used by one thread at a time.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual const ArrayInfo& array() const = 0;
  // The next canonical bytes, exactly as many as `into` holds: whole elements, and no more than the array has left.
  // An error names the file and where in it.
  virtual Status read(MutableBytes into) = 0;
  // How the samples that were read so far differ from those of the file, beyond what mdfs(1) says of every file of the
  // format; empty: in no way.
  virtual std::string warning() const { return ""; }

  // Of the file; of the first one of a sequence.
  const Metadata& metadata() const { return metadata_; }
  void set_metadata(Metadata metadata) { metadata_ = std::move(metadata); }

 private:
  Metadata metadata_;
};

struct SourceOptions {
  // Contents of a file without a header. Both or none.
  std::vector<std::uint64_t> raw_lengths;
  std::optional<geometry::ElementType> raw_type;
  // A sequence such as shot.%04d.dpx: first and last frame; absent = all that exist.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> frames;
  // One page of a file that has several; absent = all of them, as axis z.
  std::optional<unsigned> page;
  // Pages along several axes, or parts of different meaning, become axis z as well.
  bool flatten = false;
};

// Opens by content for NPY and PNM, by the pattern %d or %0Nd for a sequence, as raw if raw_type is given.
// Refuses a truncated file if its size shows it; else read() does.
Result<std::unique_ptr<ImageSource>> open_source(const std::string& path, const SourceOptions& options);

// Takes one image from start to end. One thread at a time. An unfinished image leaves no file behind.
class ImageSink {
 public:
  virtual ~ImageSink() = default;
  // The next canonical bytes: whole elements, and no more than the array has left.
  virtual Status write(ConstBytes from) = 0;
  // Gives the file its name after all bytes have been written. Refuses if bytes are missing.
  virtual Status finish() = 0;

  // A block of metadata that the file does not get, and why.
  struct Dropped {
    std::string block, reason;
  };
  const std::vector<Dropped>& dropped() const { return dropped_; }
  void drop(std::string block, std::string reason = "the format has no place for it") {
    dropped_.push_back({std::move(block), std::move(reason)});
  }

 private:
  std::vector<Dropped> dropped_;
};

// The format follows the name: .raw .npy .pgm .ppm .pnm, and what OpenImageIO writes; "-" is raw to standard output.
// A pattern (%04d) makes one file for each step of the slowest axis. An array that the format cannot hold unchanged is
// refused. An existing file is replaced only if `overwrite`.
Result<std::unique_ptr<ImageSink>> create_sink(const std::string& path, const ArrayInfo& array, bool overwrite,
                                               const Metadata& metadata = {});
// Fields of the blocks that OpenImageIO knows; none in a build without it.
std::vector<MetadataField> describe(const Metadata& metadata);

// Rank, shape, axes, channels and type of the image that an array becomes, and the spacing of its rows and columns if
// their resolution is known: the shortest decimal fractions that agree with it. Extent and codec are left alone.
// `axes` has one letter for each dimension (x y z t, c for channels, last); empty = as in the file, else the
// last dimension becomes the channels if its length is 2..4 and at least two come before it.
Result<geometry::Geometry> choose_geometry(const ArrayInfo& array, std::string_view axes);
// Takes the resolution of the array's rows and columns from the spacing of the image, where that has units of length.
void set_resolution(ArrayInfo& array, const geometry::Geometry& geometry);
// True if a TIFF file of such pages needs 64-bit offsets (BigTIFF), assuming that samples do not shrink.
bool needs_big_tiff(const ArrayInfo& array);
// The array of an image's canonical bytes: its axes, and channels if there is more than one.
ArrayInfo array_of(const geometry::Geometry& geometry);

}  // namespace mdfs::imagefile
