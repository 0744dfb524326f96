// The module: image files through OpenImageIO, a band of rows at a time.
// SPDX-License-Identifier: Apache-2.0
#include <OpenImageIO/filesystem.h>
#include <OpenImageIO/imageio.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <exception>
#include <optional>

#include "base/check.h"
#include "base/crc32c.h"
#include "imagefile/band_source.h"
#include "imagefile/checked_stream.h"
#include "imagefile/oiio_metadata.h"
#include "imagefile/oiio_module.h"
#include "imagefile/picture_exif.h"
#include "imagefile/tiff_fields.h"
#include "support/pending_file.h"
#include "support/text.h"

namespace mdfs::imagefile {
namespace {

using geometry::ElementType;

constexpr int kBandRows = 64;
constexpr std::uint64_t kHeaderBytes = 4096;  // more than any format without proxy has
constexpr std::uint64_t kMaxBandBytes = std::uint64_t{1} << 30;
constexpr unsigned kMaxPages = 1'000'000;

struct TypeRow {
  OIIO::TypeDesc::BASETYPE oiio;
  ElementType type;
};
constexpr std::array kTypes = {
    TypeRow{OIIO::TypeDesc::UINT8, ElementType::kU8},   TypeRow{OIIO::TypeDesc::UINT16, ElementType::kU16},
    TypeRow{OIIO::TypeDesc::UINT32, ElementType::kU32}, TypeRow{OIIO::TypeDesc::UINT64, ElementType::kU64},
    TypeRow{OIIO::TypeDesc::INT8, ElementType::kI8},    TypeRow{OIIO::TypeDesc::INT16, ElementType::kI16},
    TypeRow{OIIO::TypeDesc::INT32, ElementType::kI32},  TypeRow{OIIO::TypeDesc::INT64, ElementType::kI64},
    TypeRow{OIIO::TypeDesc::HALF, ElementType::kF16},   TypeRow{OIIO::TypeDesc::FLOAT, ElementType::kF32},
    TypeRow{OIIO::TypeDesc::DOUBLE, ElementType::kF64},
};

// One line of what the library says.
std::string first_line(std::string text) {
  const std::size_t end = text.find('\n');
  if (end != std::string::npos) text.resize(end);
  return text.empty() ? "no reason given" : text;
}

// Libraries below the library write their own lines to stderr, and then say the same as an error.
class QuietErrors {
 public:
  QuietErrors() : kept_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0) return;
    if (kept_ >= 0) ::dup2(nowhere, STDERR_FILENO);
    ::close(nowhere);
  }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;
  ~QuietErrors() {
    if (kept_ < 0) return;
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
  }

 private:
  const int kept_;
};

// Runs what calls the library; its exceptions end here.
template <typename Function>
auto guarded(const std::string& name, Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& problem) {
    return Error{Errc::kBadData, name + ": " + first_line(problem.what())};
  }
}

constexpr std::string_view kSoftware = "MDFS";

// The formats whose fields are wide enough for a microscope: to these a resolution is written.
bool carries_resolution(std::string_view format) { return format == "tiff" || format == "png"; }

double units_per_cm(std::string_view unit) {
  constexpr double kCmPerInch = 2.54, kCmPerMetre = 100;
  if (unit == "in" || unit == "inch") return kCmPerInch;
  if (unit == "m") return kCmPerMetre;
  return unit == "cm" ? 1 : 0;
}

// What programs write that know nothing of the size of things: the dots of a screen, or one for a millimetre.
bool is_placeholder(double rows_per_cm, double columns_per_cm) {
  constexpr double kTolerance = 1e-3;
  constexpr std::array<double, 3> kPerCm = {72 / 2.54, 96 / 2.54, 10};
  return std::any_of(kPerCm.begin(), kPerCm.end(), [&](double one) {
    return std::abs(rows_per_cm - one) < kTolerance * one && std::abs(columns_per_cm - one) < kTolerance * one;
  });
}

// A photograph through a lens does not tell the size of its objects.
bool is_photograph(const OIIO::ImageSpec& spec) {
  return spec.get_float_attribute("FNumber") > 0 || spec.get_float_attribute("Exif:FocalLength") > 0;
}

// The resolution that the file names, if that is a measurement.
void get_resolution(std::string_view format, const OIIO::ImageSpec& spec, ArrayInfo& array) {
  constexpr double kLeastPerCm = 1e-6, kMostPerCm = 1e9;  // 10 km, and a hundredth of a nanometre
  constexpr double kPngError = 0.01;                      // whole numbers for a metre, which OpenImageIO cuts off
  const double unit = units_per_cm(spec.get_string_attribute("ResolutionUnit"));
  if (unit == 0) return;
  const double rows = static_cast<double>(spec.get_float_attribute("YResolution")) / unit;
  const double columns = static_cast<double>(spec.get_float_attribute("XResolution")) / unit;
  const auto known = [](double per_cm) { return per_cm >= kLeastPerCm && per_cm <= kMostPerCm; };
  if (!known(rows) || !known(columns)) return;
  const std::string_view software = spec.get_string_attribute("Software");
  const bool own = carries_resolution(format) && software == kSoftware;
  if (!own && (is_placeholder(rows, columns) || is_photograph(spec))) return;
  array.rows_per_cm = rows;
  array.columns_per_cm = columns;
  array.resolution_error = format == "png" ? kPngError : 0;
}

Result<ArrayInfo> array_of_spec(std::string_view format, const OIIO::ImageSpec& spec, const std::string& name) {
  const auto row = std::find_if(kTypes.begin(), kTypes.end(),
                                [&](const TypeRow& candidate) { return candidate.oiio == spec.format.basetype; });
  if (row == kTypes.end())
    return Error{Errc::kNotSupported, fmt::format("{}: samples of type {}; convert them to integers or floating point",
                                                  name, spec.format.c_str())};
  if (spec.width < 1 || spec.height < 1 || spec.nchannels < 1 || spec.depth > 1 || spec.deep)
    return Error{Errc::kNotSupported,
                 fmt::format("{}: a picture of {}x{}x{} with {} channels{}; it must have a depth of 1, and one "
                             "row, column and channel or more, without deep samples",
                             name, spec.depth, spec.height, spec.width, spec.nchannels, spec.deep ? " (deep)" : "")};
  ArrayInfo array;
  array.type = row->type;
  array.lengths = {static_cast<std::uint64_t>(spec.height), static_cast<std::uint64_t>(spec.width)};
  array.axes = "yx";
  if (spec.nchannels > 1) {
    array.lengths.push_back(static_cast<std::uint64_t>(spec.nchannels));
    array.axes += 'c';
  }
  get_resolution(format, spec, array);
  return array;
}

class OiioSource final : public BandSource {
 public:
  OiioSource(std::string name, std::unique_ptr<OIIO::ImageInput> input, ArrayInfo array, int first_page)
      : name_(std::move(name)),
        input_(std::move(input)),
        array_(std::move(array)),
        is_gif_(std::string_view(input_->format_name()) == "gif"),
        page_(first_page) {}

  const ArrayInfo& array() const override { return array_; }
  std::string warning() const override {
    return lost_colours_ ? "colours of transparent samples are stored as 0, as the reader of GIF returns them" : "";
  }

 private:
  Status next_band() override {
    return guarded(name_, [&] { return read_band(); });
  }

  Status read_band() {
    const OIIO::ImageSpec spec = input_->spec_dimensions(page_);
    if (row_ == spec.height) {
      row_ = 0;
      ++page_;
    }
    const bool tiled = spec.tile_width > 0;
    const int rows = std::min(tiled ? spec.tile_height : kBandRows, spec.height - row_);
    const std::uint64_t bytes = spec.scanline_bytes() * static_cast<std::uint64_t>(rows);
    if (bytes > kMaxBandBytes)
      return {Errc::kTooBig, fmt::format("{}: {} rows take {}; at most {} are read at once", name_, rows,
                                         tools::format_size(bytes), tools::format_size(kMaxBandBytes))};
    band_.resize(static_cast<std::size_t>(bytes));
    const int begin = spec.y + row_;
    const bool read = tiled ? input_->read_tiles(page_, 0, spec.x, spec.x + spec.width, begin, begin + rows, spec.z,
                                                 spec.z + 1, 0, spec.nchannels, spec.format, band_.data())
                            : input_->read_scanlines(page_, 0, begin, begin + rows, spec.z, 0, spec.nchannels,
                                                     spec.format, band_.data());
    if (!read)
      return {Errc::kBadData,
              fmt::format("{}: rows {} to {}: {}", name_, row_, row_ + rows - 1, first_line(input_->geterror()))};
    row_ += rows;
    if (is_gif_ && spec.nchannels == 4 && !lost_colours_)
      for (std::size_t alpha = 3; alpha < band_.size(); alpha += 4)
        if (band_[alpha] == std::byte{0}) lost_colours_ = true;
    return {};
  }

  const std::string name_;
  const std::unique_ptr<OIIO::ImageInput> input_;
  const ArrayInfo array_;
  const bool is_gif_;
  bool lost_colours_ = false;
  int page_;
  int row_ = 0;
};

// Formats of which truncated files were found to be refused, by their readers or by the checks of image_file.cc. Others
// are refused: the reader of ICO writes beyond the buffer it is given; those of DDS, IFF and Zfile return zeros for
// missing samples; that of movies returns fewer frames; that of PSD takes rows that are too short; that of FITS ignores
// BZERO and BSCALE; RLA changes single samples; that of "null" makes samples up.
constexpr std::array<std::string_view, 14> kReadFormats = {
    "bmp", "cineon", "dpx", "gif", "hdr", "heif", "jpeg", "png", "sgi", "jpeg2000", "openexr", "tiff", "webp", "targa"};

Status check_read_format(std::string_view format, const std::string& path) {
  if (std::find(kReadFormats.begin(), kReadFormats.end(), format) != kReadFormats.end()) return {};
  return {Errc::kNotSupported,
          fmt::format("{}: the reader of the format {} may return wrong samples; convert the file to TIFF or PNG", path,
                      format)};
}

// The reader of WebP multiplies colours by alpha, whatever it is asked for. Files without transparency have no alpha.
Status check_alpha(const OIIO::ImageInput& input, const std::string& path) {
  if (std::string_view(input.format_name()) != "webp" || input.spec().alpha_channel < 0) return {};
  return {Errc::kNotSupported,
          path + ": a WebP picture with alpha, whose reader multiplies colours by alpha; convert the file to PNG"};
}

// How many pages there are, all of the first one's shape and type. The resolution is known if all agree on it.
Result<unsigned> count_pages(OIIO::ImageInput& input, ArrayInfo& first, const PageFacts& facts,
                             const std::string& name) {
  unsigned pages = 1;
  for (; input.seek_subimage(static_cast<int>(pages), 0); ++pages) {
    MDFS_TRY_ASSIGN(const ArrayInfo array, array_of_spec(input.format_name(), input.spec(), name));
    if (!is_alike(array, first))
      return Error{Errc::kNotSupported,
                   fmt::format("{}: page {} is {} {}, page 0 {} {}; select one with --page", name, pages,
                               tools::format_shape(array.lengths), geometry::name(array.type),
                               tools::format_shape(first.lengths), geometry::name(first.type))};
    if (array != first) first.rows_per_cm = first.columns_per_cm = first.resolution_error = 0;
    if (pages == kMaxPages) return Error{Errc::kTooBig, fmt::format("{}: more than {} pages", name, kMaxPages)};
  }
  const std::string reason = input.geterror();  // why there is no further page: none, mostly
  const std::string_view format = input.format_name();
  if (pages > 1 && !facts.flatten && format != "tiff" && format != "gif")
    return Error{
        Errc::kNotSupported,
        fmt::format("{}: {} parts; select one with --page, or take all as axis z with --flatten", name, pages)};
  // The pages of a texture (maketx) are levels of one picture.
  if (facts.pages && *facts.pages > 1 && pages == 1 && input.seek_subimage(0, 1))
    return Error{Errc::kNotSupported,
                 fmt::format("{}: a pyramid of {} levels; select the largest with --page 0", name, *facts.pages)};
  if (facts.pages && pages != *facts.pages)
    return Error{Errc::kBadData, fmt::format("{}: of {} pages {} can be read: {}; select one with --page", name,
                                             *facts.pages, pages, first_line(reason))};
  return pages;
}

// Is what the opened file turned out to be what was asked for?
Status check_output(const OIIO::ImageOutput& output, const OIIO::ImageSpec& spec, const std::string& path) {
  const OIIO::ImageSpec& made = output.spec();
  if (made.format != spec.format || made.nchannels != spec.nchannels)
    return {Errc::kNotSupported,
            fmt::format("{}: {} would change {} channels of {} to {} of {}", path, output.format_name(), spec.nchannels,
                        spec.format.c_str(), made.nchannels, made.format.c_str())};
  return {};
}

// Has the reader of DPX made this sample of 16 bits out of one of `bits` bits? It repeats the first bits at the end.
bool is_spread(std::uint16_t sample, unsigned bits) {
  const unsigned lost = 16 - bits, kept = static_cast<unsigned>(sample) >> lost;
  return sample == (kept << lost | kept >> (bits - lost));
}

// Most writers of the library overlook failed writes. They write through a CheckedStream. The sink reads the file back
// where that cannot be done: the library writes SGI, and TIFF with several pages, only to files that it opens itself.
class OiioSink final : public ImageSink {
 public:
  OiioSink(tools::PendingFile file, std::unique_ptr<OIIO::ImageOutput> output, OIIO::ImageSpec spec, ArrayInfo array,
           std::uint64_t pages, unsigned bits)
      : file_(std::move(file)),
        output_(std::move(output)),
        spec_(std::move(spec)),
        array_(std::move(array)),
        pages_(pages),
        pages_left_(pages - 1),
        bits_(bits) {
    band_.reserve(spec_.scanline_bytes() * kBandRows);
  }

  // `exif`: of a JPEG or TIFF file, in place of what the library writes of it.
  Status open(std::string exif) {
    exif_ = std::move(exif);
    if (output_->supports("ioproxy") && pages_ == 1) {
      MDFS_TRY_ASSIGN(checked_, CheckedStream::create(file_.file()));
      if (format() == "jpeg" && !exif_.empty())
        checked_->change_start([this](ConstBytes start) { return with_exif(start, exif_); });
      proxy_.emplace(checked_->stream(), OIIO::Filesystem::IOProxy::Write);
      if (!output_->set_ioproxy(&*proxy_)) return failed();
    } else if (!file_.is_regular()) {
      return {Errc::kNotSupported, fmt::format("{}: this {} can be written only to a file", file_.target(), format())};
    }
    if (!output_->open(file_.path(), spec_)) {
      if (checked_) MDFS_TRY(checked_->flush());
      return {Errc::kNotSupported, file_.target() + ": " + first_line(output_->geterror())};
    }
    return check_output(*output_, spec_, file_.target());
  }

  void add_when_finished(std::string geo_fields) { geo_fields_ = std::move(geo_fields); }

  Status write(ConstBytes from) override {
    if (!checked_) checksum_ = crc32c(from, checksum_);
    while (!from.empty()) {
      const std::size_t wanted =
          spec_.scanline_bytes() * static_cast<std::size_t>(std::min(kBandRows, spec_.height - row_));
      const std::size_t part = std::min(from.size(), wanted - band_.size());
      band_.insert(band_.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(part));
      from = from.subspan(part);
      if (band_.size() == wanted) MDFS_TRY(guarded(file_.target(), [&] { return put_band(); }));
    }
    return {};
  }

  Status finish() override {
    MDFS_CHECK(pages_left_ == 0 && row_ == spec_.height && band_.empty());
    MDFS_TRY(guarded(file_.target(), [&] { return output_->close() ? Status() : failed(); }));
    MDFS_TRY(checked_ ? checked_->flush() : guarded(file_.target(), [&] { return read_back(); }));
    if (format() == "tiff" && !(geo_fields_.empty() && exif_.empty())) {
      MDFS_TRY_ASSIGN(tools::File file, tools::File::open(file_.path(), O_RDWR));
      MDFS_TRY(add_fields(file, geo_fields_, exif_));
    }
    return file_.commit();
  }

 private:
  std::string_view format() const { return output_->format_name(); }

  // Samples that fewer bits cannot hold would change.
  Status check_bits() const {
    for (std::size_t at = 0; bits_ > 0 && at < band_.size(); at += sizeof(std::uint16_t)) {
      const auto sample = load_le<std::uint16_t>(band_, at);
      if (is_spread(sample, bits_)) continue;
      const std::size_t row = static_cast<std::size_t>(row_) + at / spec_.scanline_bytes();
      return {Errc::kNotSupported, fmt::format("{}: row {} has a sample of {}, which {} bits cannot hold; the option "
                                               "--bits 16 exports all bits",
                                               file_.target(), row, sample, bits_)};
    }
    return {};
  }

  Status put_band() {
    MDFS_TRY(check_bits());
    const int rows = static_cast<int>(band_.size() / spec_.scanline_bytes());
    if (!output_->write_scanlines(spec_.y + row_, spec_.y + row_ + rows, 0, spec_.format, band_.data()))
      return failed();
    if (checked_) MDFS_TRY(checked_->status());
    band_.clear();
    row_ += rows;
    if (row_ < spec_.height || pages_left_ == 0) return {};
    spec_.erase_attribute("ImageDescription");  // of all pages, in the first one
    if (!output_->open(file_.path(), spec_, OIIO::ImageOutput::AppendSubimage)) return failed();
    --pages_left_;
    row_ = 0;
    return {};
  }

  // Does the file hold every sample that was written?
  Status read_back() {
    auto input = OIIO::ImageInput::create(std::string(format()));
    OIIO::ImageSpec found, config;
    config.attribute("oiio:UnassociatedAlpha", 1);  // as in open(): else colours are multiplied by what may be alpha
    if (!input || !input->open(file_.path(), found, config)) return incomplete();
    std::uint64_t left = spec_.image_bytes() * pages_;
    OiioSource source(file_.target(), std::move(input), array_, 0);
    std::uint32_t checksum = 0;
    for (band_.resize(spec_.scanline_bytes() * kBandRows); left > 0; left -= band_.size()) {
      band_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, band_.size())));
      if (!source.read(band_).ok()) return incomplete();
      checksum = crc32c(band_, checksum);
    }
    return checksum == checksum_ ? Status() : incomplete();
  }

  Status incomplete() {
    MDFS_TRY(check_room());
    return {Errc::kIo, file_.target() + ": the file does not hold what was written"};
  }

  // After a failed write: is the disk full?
  Status check_room() {
    const std::uint64_t bytes = spec_.image_bytes() * pages_ + kHeaderBytes;
    if (::fallocate(file_.file().fd(), 0, 0, static_cast<off_t>(bytes)) == 0) return {};
    return errno == ENOSPC || errno == EDQUOT ? Status(from_errno(errno, file_.target())) : Status();
  }

  Status failed() {
    const std::string reason = first_line(output_->geterror());
    MDFS_TRY(checked_ ? checked_->flush() : check_room());  // the first error names the cause
    return {Errc::kIo, file_.target() + ": " + reason};
  }

  tools::PendingFile file_;
  std::unique_ptr<CheckedStream> checked_;  // writes to file_
  std::optional<OIIO::Filesystem::IOFile> proxy_;
  const std::unique_ptr<OIIO::ImageOutput> output_;  // writes to proxy_ when it is closed
  OIIO::ImageSpec spec_;
  const ArrayInfo array_;
  const std::uint64_t pages_;
  std::uint64_t pages_left_;
  const unsigned bits_;         // that a sample of 16 bits is written with; 0: all
  std::uint32_t checksum_ = 0;  // of all samples, without proxy_
  int row_ = 0;
  ByteVector band_;
  std::string geo_fields_, exif_;
};

// Lossless formats, and JPEG, which users expect to be lossy. Others (GIF, WebP, HEIC, ICO, HDR, RLA) change samples of
// some shape or type without an error.
constexpr std::array<std::string_view, 8> kWrittenFormats = {"bmp", "dpx", "jpeg",  "openexr",
                                                             "png", "sgi", "targa", "tiff"};

// What the format would silently change is refused: PNG and JPEG by their own rules, before libpng and libjpeg print
// theirs to standard error, DPX before the library ends the program. check_output() judges the others.
Status check_known_format(const std::string& format, const OIIO::ImageSpec& spec, const std::string& path) {
  if (std::find(kWrittenFormats.begin(), kWrittenFormats.end(), format) == kWrittenFormats.end())
    return {Errc::kNotSupported, fmt::format("{}: {} may change samples; write tiff, png or openexr", path, format)};
  if (format == "dpx" && (spec.nchannels == 2 || spec.nchannels > 4))
    return {Errc::kNotSupported, fmt::format("{}: dpx cannot hold {} channels", path, spec.nchannels)};
  const bool png = format == "png", jpeg = format == "jpeg";
  const auto type = spec.format.basetype;
  if ((png || jpeg) && type != OIIO::TypeDesc::UINT8 && !(png && type == OIIO::TypeDesc::UINT16))
    return {Errc::kNotSupported,
            fmt::format("{}: {} holds u8{}, not {}", path, format, png ? " and u16" : "", spec.format.c_str())};
  if ((png && spec.nchannels > 4) || (jpeg && spec.nchannels != 1 && spec.nchannels != 3))
    return {Errc::kNotSupported, fmt::format("{}: {} cannot hold {} channels", path, format, spec.nchannels)};
  return {};
}

Result<OIIO::ImageSpec> spec_of_array(const ArrayInfo& array, const std::string& path) {
  const std::size_t rank = array.axes.size() - (array.axes.ends_with('c') ? 1 : 0);
  const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& r) { return r.type == array.type; });
  MDFS_CHECK(row != kTypes.end());
  constexpr std::uint64_t kMaxSide = std::uint64_t{1} << 30;
  if (rank < 2 || rank > 3) return Error{Errc::kNotSupported, path + ": pictures have two axes, or three as pages"};
  const std::uint64_t height = array.lengths[rank - 2], width = array.lengths[rank - 1];
  const std::uint64_t channels = array.axes.ends_with('c') ? array.lengths.back() : 1;
  if (array.lengths[0] == 0) return Error{Errc::kNotSupported, path + ": an empty image cannot be a picture"};
  if (height > kMaxSide || width > kMaxSide)
    return Error{Errc::kTooBig, fmt::format("{}: {}x{}: at most {} each way", path, height, width, kMaxSide)};
  OIIO::ImageSpec spec(static_cast<int>(width), static_cast<int>(height), static_cast<int>(channels),
                       OIIO::TypeDesc(row->oiio));
  spec.attribute("oiio:UnassociatedAlpha", 1);
  spec.attribute("CompressionQuality", 95);
  spec.attribute("Software", std::string(kSoftware));
  return spec;
}

void put_resolution(const std::string& format, const ArrayInfo& array, OIIO::ImageSpec& spec) {
  constexpr double kMaxPerCm = 1e7;
  const auto known = [](double per_cm) { return per_cm > 0 && per_cm <= kMaxPerCm; };
  if (!carries_resolution(format) || !known(array.rows_per_cm) || !known(array.columns_per_cm)) {
    // That of another program is no measurement of this one.
    if (spec.find_attribute("XResolution") != nullptr &&
        std::string_view(spec.get_string_attribute("Software")) == kSoftware)
      spec.erase_attribute("Software");
    return;
  }
  spec.attribute("Software", std::string(kSoftware));
  spec.attribute("ResolutionUnit", "cm");
  spec.attribute("XResolution", static_cast<float>(array.columns_per_cm));
  spec.attribute("YResolution", static_cast<float>(array.rows_per_cm));
  // Without it, rows are as far apart as columns for TIFF.
  if (format == "tiff")
    spec.attribute("PixelAspectRatio", static_cast<float>(array.rows_per_cm / array.columns_per_cm));
}

Result<std::unique_ptr<ImageSource>> open(const std::string& path, std::optional<unsigned> page,
                                          const PageFacts& facts) {
  return guarded(path, [&]() -> Result<std::unique_ptr<ImageSource>> {
    OIIO::ImageSpec config;
    config.attribute("oiio:UnassociatedAlpha", 1);
    if (facts.inks) config.attribute("oiio:RawColor", 1);
    auto input = [&] {
      const QuietErrors quiet;
      return OIIO::ImageInput::open(path, &config);
    }();
    if (!input) return Error{Errc::kBadData, path + ": no image file: " + first_line(OIIO::geterror())};
    input->threads(1);  // the reader of TIFF overlooks errors of its own threads
    MDFS_TRY(check_read_format(input->format_name(), path));
    MDFS_TRY(check_alpha(*input, path));
    if (page && !input->seek_subimage(static_cast<int>(std::min(*page, kMaxPages)), 0))
      return Error{Errc::kOutOfRange, fmt::format("{}: the file has no page {}; pages count from 0", path, *page)};
    MDFS_TRY_ASSIGN(ArrayInfo array, array_of_spec(input->format_name(), input->spec(), path));
    if (!page) {
      MDFS_TRY_ASSIGN(const unsigned count, count_pages(*input, array, facts, path));
      if (count > 1) {
        array.lengths.insert(array.lengths.begin(), count);
        array.axes = facts.axis + array.axes;
        array.first_spacing = facts.spacing;
        array.first_unit = facts.unit;
      }
    }
    if (facts.rows_per_cm > 0) {
      array.rows_per_cm = facts.rows_per_cm;
      array.columns_per_cm = facts.columns_per_cm;
    }
    const bool is_whole = !page || facts.pages.value_or(1) == 1;
    input->seek_subimage(static_cast<int>(page.value_or(0)), 0);
    Metadata metadata = metadata_of(input->format_name(), input->spec(), is_whole);
    auto source =
        std::make_unique<OiioSource>(path, std::move(input), std::move(array), static_cast<int>(page.value_or(0)));
    source->set_metadata(std::move(metadata));
    return std::unique_ptr<ImageSource>(std::move(source));
  });
}

Result<std::unique_ptr<ImageSink>> create(const std::string& path, const ArrayInfo& array, bool overwrite,
                                          const Metadata& metadata) {
  return guarded(path, [&]() -> Result<std::unique_ptr<ImageSink>> {
    MDFS_TRY_ASSIGN(OIIO::ImageSpec spec, spec_of_array(array, path));
    const bool several = array.axes.size() - (array.axes.ends_with('c') ? 1 : 0) == 3 && array.lengths[0] > 1;
    const std::uint64_t pages = several ? array.lengths[0] : 1;
    MDFS_TRY_ASSIGN(tools::PendingFile file, tools::PendingFile::create(path, overwrite));
    auto output = OIIO::ImageOutput::create(path);
    if (!output) return Error{Errc::kNotSupported, path + ": " + first_line(OIIO::geterror())};
    MDFS_TRY(check_known_format(output->format_name(), spec, path));
    if (pages > 1 && !output->supports("appendsubimage"))
      return Error{Errc::kNotSupported, fmt::format("{}: {} holds one page, the image has {}; name a sequence (%04d)",
                                                    path, output->format_name(), pages)};
    const unsigned bits = film_bits(output->format_name(), spec, metadata);
    if (bits > 0) spec.attribute("oiio:BitsPerSample", static_cast<int>(bits));
    Metadata held;
    std::vector<std::string> dropped, invalid;
    const bool is_png = std::string_view(output->format_name()) == "png";
    for (const auto& [block, bytes] : metadata.blocks) {
      if (block == kBitsBlock && bits > 0) continue;
      if (!holds_block(output->format_name(), block))
        dropped.push_back(block);
      else if (is_png && block == kIccBlock && !is_icc_of(bytes, spec.nchannels))
        invalid.push_back(block);
      else
        held.blocks.emplace(block, bytes);
    }
    const bool is_jpeg_file = std::string_view(output->format_name()) == "jpeg";
    std::string exif = held.blocks.contains(kExifBlock) ? held.blocks.at(std::string(kExifBlock)) : std::string();
    const bool too_long = is_jpeg_file && exif.size() > kMostJpegExifBytes;
    if (too_long) held.blocks.erase(std::string(kExifBlock));
    if (too_long) exif.clear();
    put_metadata(held, spec);
    if (!exif.empty()) erase_exif_directories(spec);
    put_resolution(output->format_name(), array, spec);
    const bool is_tiff = std::string_view(output->format_name()) == "tiff";
    if (is_tiff && needs_big_tiff(array)) spec.attribute("tiff:bigtiff", 1);
    auto sink = std::make_unique<OiioSink>(std::move(file), std::move(output), std::move(spec), array, pages, bits);
    MDFS_TRY(sink->open(exif));
    if (const auto geo = held.blocks.find(kGeoBlock); geo != held.blocks.end()) sink->add_when_finished(geo->second);
    for (std::string& block : dropped) sink->drop(std::move(block));
    if (too_long) sink->drop(std::string(kExifBlock), "JPEG holds at most 64 KiB of it");
    for (std::string& block : invalid) sink->drop(std::move(block), "it is not a valid one of such samples");
    return std::unique_ptr<ImageSink>(std::move(sink));
  });
}

}  // namespace
}  // namespace mdfs::imagefile

const mdfs::imagefile::OiioModule mdfs_oiio_module = {MDFS_VERSION_STRING, &mdfs::imagefile::open,
                                                      &mdfs::imagefile::create, &mdfs::imagefile::describe_blocks};
