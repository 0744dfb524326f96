// mdfs image import: an image file becomes an image of the volume.
// SPDX-License-Identifier: Apache-2.0
#include "import.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "codec/codec.h"
#include "convert.h"
#include "geometry/shape_text.h"
#include "image_text.h"
#include "imagefile/image_file.h"
#include "metadata_attributes.h"
#include "mounted.h"
#include "pending_image.h"
#include "support/command.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/progress.h"
#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr std::uint64_t kChunkBytes = 8u << 20;      // about; a chunk ends at extents where it can
constexpr std::uint64_t kMaxChunkBytes = 64u << 20;  // however large the extents are
constexpr unsigned kWriters = 2;
constexpr std::size_t kChunks = kWriters + 2;  // in memory at once
constexpr std::size_t kSampleBytes = 64u << 10;
constexpr std::size_t kSamples = 16;
constexpr int kSampleLevel = 3;
constexpr double kWorthwhile = 0.9;  // stored with zstd if a sample shrinks below this

struct Chunk {
  std::uint64_t offset = 0;
  AlignedBuffer buffer;
  std::size_t bytes = 0;
};

// Full chunks from the reader to the writers, empty ones back. An error from either side stops both.
class Exchange {
 public:
  explicit Exchange(std::size_t chunk_bytes) {
    for (std::size_t i = 0; i < kChunks; ++i) empty_.push_back({0, AlignedBuffer(chunk_bytes), 0});
  }

  std::optional<Chunk> take_empty() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !empty_.empty() || !failure_.ok(); });
    if (!failure_.ok()) return std::nullopt;
    return take(empty_);
  }
  void put_full(Chunk chunk) { put(full_, std::move(chunk)); }
  void put_empty(Chunk chunk) { put(empty_, std::move(chunk)); }
  // Nothing once the reader is done and all is taken, or after a failure.
  std::optional<Chunk> take_full() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !full_.empty() || done_ || !failure_.ok(); });
    if (!failure_.ok() || full_.empty()) return std::nullopt;
    return take(full_);
  }
  void finish(Status status) {
    const std::lock_guard lock(mutex_);
    done_ = true;
    if (failure_.ok()) failure_ = std::move(status);
    changed_.notify_all();
  }
  void fail(Status status) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    changed_.notify_all();
  }
  Status failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  static Chunk take(std::deque<Chunk>& from) {
    Chunk chunk = std::move(from.front());
    from.pop_front();
    return chunk;
  }
  void put(std::deque<Chunk>& to, Chunk chunk) {
    const std::lock_guard lock(mutex_);
    to.push_back(std::move(chunk));
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Chunk> empty_, full_;
  bool done_ = false;
  Status failure_;
};

// Would zstd shrink samples out of the first chunk by a tenth?
Result<bool> shrinks(ConstBytes chunk) {
  if (chunk.empty()) return true;
  const std::size_t step = std::max(chunk.size() / kSamples, kSampleBytes);
  std::size_t before = 0, after = 0;
  ByteVector packed(codec::compress_bound(geometry::Codec::kZstd, kSampleBytes));
  for (std::size_t at = 0; at < chunk.size(); at += step) {
    const ConstBytes sample = chunk.subspan(at, std::min(kSampleBytes, chunk.size() - at));
    MDFS_TRY_ASSIGN(const std::size_t stored, codec::encode(geometry::Codec::kZstd, kSampleLevel, sample, packed));
    before += sample.size();
    after += stored;
  }
  return static_cast<double>(after) < kWorthwhile * static_cast<double>(before);
}

// Whole rows of extents if they fit, so that the daemon gets each extent complete.
std::uint64_t chunk_bytes(const geometry::Geometry& geometry) {
  const std::uint64_t total = geometry.size_bytes();
  const std::uint64_t slab = std::max<std::uint64_t>(1, geometry.slab_bytes());
  const auto band = checked_mul(slab, std::max<std::uint64_t>(1, geometry.extent[0]));
  std::uint64_t bytes = kChunkBytes;
  if (band && *band <= kMaxChunkBytes) bytes = std::max<std::uint64_t>(1, kChunkBytes / *band) * *band;
  const std::uint64_t element = geometry::element_bytes(geometry.type);
  return std::max<std::uint64_t>(align_down(std::min(bytes, total), element), element);
}

void read_chunks(imagefile::ImageSource& source, std::uint64_t at, std::uint64_t total, Exchange& exchange) {
  while (at < total) {
    auto chunk = exchange.take_empty();
    if (!chunk) return;
    chunk->offset = at;
    const std::uint64_t to_boundary = chunk->buffer.size() - at % chunk->buffer.size();
    chunk->bytes = static_cast<std::size_t>(std::min<std::uint64_t>(to_boundary, total - at));
    const Status status = source.read(chunk->buffer.bytes().first(chunk->bytes));
    if (!status.ok()) return exchange.fail(status);
    at += chunk->bytes;
    exchange.put_full(std::move(*chunk));
  }
  exchange.finish({});
}

void write_chunks(File& image, Exchange& exchange, Progress& progress) {
  while (auto chunk = exchange.take_full()) {
    const Status status = image.write_at(chunk->offset, chunk->buffer.bytes().first(chunk->bytes));
    if (!status.ok()) return exchange.fail(status);
    progress.add(chunk->bytes);
    exchange.put_empty(std::move(*chunk));
  }
}

// All canonical bytes, read by one thread while others write. `first` was read already.
Status copy(imagefile::ImageSource& source, ConstBytes first, File& image, const geometry::Geometry& geometry,
            Progress& progress) {
  const std::uint64_t total = geometry.size_bytes();
  MDFS_TRY(image.write_at(0, first));
  progress.add(first.size());
  Exchange exchange(static_cast<std::size_t>(chunk_bytes(geometry)));
  std::thread reader([&] { read_chunks(source, first.size(), total, exchange); });
  std::vector<std::thread> writers;
  for (unsigned i = 0; i < kWriters; ++i) writers.emplace_back([&] { write_chunks(image, exchange, progress); });
  reader.join();
  for (std::thread& writer : writers) writer.join();
  return exchange.failure();
}

Result<imagefile::SourceOptions> source_options(const ImportArguments& arguments) {
  MDFS_TRY(arguments.image.check_axes());
  imagefile::SourceOptions options;
  options.page = arguments.page;
  options.flatten = arguments.flatten;
  if (!arguments.frames.empty()) {
    const std::size_t dash = arguments.frames.find('-');
    if (arguments.frames.find_first_not_of("0123456789-") != std::string::npos || dash == 0)
      return {Errc::kUsage, "--frames '" + arguments.frames + "': the first and the last one are wanted, such as 0-99"};
    MDFS_TRY_ASSIGN(const std::uint64_t first, parse_number(arguments.frames.substr(0, dash), "--frames"));
    std::uint64_t last = first;
    if (dash != std::string::npos) {
      MDFS_TRY_ASSIGN(last, parse_number(arguments.frames.substr(dash + 1), "--frames"));
    }
    options.frames = {first, last};
  }
  if (!arguments.shape.empty()) {
    MDFS_TRY_ASSIGN(const geometry::Lengths shape, named("--shape", geometry::parse_shape(arguments.shape)));
    options.raw_lengths.assign(shape.length.begin(), shape.length.begin() + shape.rank);
    if (arguments.channels) options.raw_lengths.push_back(*arguments.channels);
  } else if (arguments.channels) {
    return Error{Errc::kUsage, "--channels requires --shape, for raw samples"};
  }
  if (!arguments.type.empty()) {
    MDFS_TRY_ASSIGN(options.raw_type, named("--type", geometry::parse_element_type(arguments.type)));
  }
  return options;
}

void print_result(const ImportArguments& arguments, const geometry::Geometry& geometry, const mdfs_ioc_geometry& made) {
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["output_version"] = kOutputVersion;
    json["path"] = arguments.path;
    json["axes"] = geometry.axes;
    json["shape"] = std::vector<std::uint64_t>(geometry.shape.begin(), geometry.shape.begin() + geometry.rank);
    json["channels"] = geometry.channels;
    json["type"] = geometry::name(geometry.type);
    json["extent"] = std::vector<std::uint64_t>(geometry.extent.begin(), geometry.extent.begin() + geometry.rank);
    json["codec"] = codec::info(geometry.codec).name;
    json["spacing"] = std::vector<double>(geometry.spacing.begin(), geometry.spacing.begin() + geometry.rank);
    json["unit"] = std::vector<std::string>(geometry.unit.begin(), geometry.unit.begin() + geometry.rank);
    json["disks"] = made.placed_disks;
    json["size_bytes"] = made.size_bytes;
    json["stored_bytes"] = made.stored_bytes;
    print_out("{}\n", dump_json(json));
    return;
  }
  if (arguments.quiet) return;
  print_out("{}, {} stored in {}\n", image_line(arguments.path, geometry, made), format_size(made.size_bytes),
            format_size(made.stored_bytes));
}

Status check_paths(const ImportArguments& arguments) {
  MDFS_TRY(PendingImage::check_name(arguments.path));
  if (!arguments.force && PendingImage::is_taken(arguments.path))
    return {Errc::kExists, arguments.path + ": give --force to replace it"};
  // The plain file of an image does not say what its bytes are.
  struct stat source {};
  const bool regular = ::stat(arguments.source.c_str(), &source) == 0 && S_ISREG(source.st_mode);
  if (regular && arguments.type.empty() && open_image(arguments.source, O_RDONLY).ok()) {
    const std::string name = arguments.source.substr(arguments.source.rfind('/') + 1);
    return {Errc::kUsage,
            fmt::format("{0}: an image of a volume; to copy it, import {0}@/{1}.npy", arguments.source, name)};
  }
  return {};
}

}  // namespace

Status import_image(const ImportArguments& arguments) {
  MDFS_TRY(arguments.levels.check());
  MDFS_TRY(check_paths(arguments));
  MDFS_TRY_ASSIGN(const imagefile::SourceOptions options, source_options(arguments));
  MDFS_TRY_ASSIGN(const auto source, imagefile::open_source(arguments.source, options));
  MDFS_TRY_ASSIGN(geometry::Geometry wanted,
                  named(arguments.source, imagefile::choose_geometry(source->array(), arguments.image.axes)));
  MDFS_TRY(arguments.image.apply(wanted));

  const std::uint64_t total = wanted.size_bytes();
  const std::uint64_t element = geometry::element_bytes(wanted.type);
  ByteVector first(static_cast<std::size_t>(align_down(std::min(total, kChunkBytes), element)));
  MDFS_TRY(source->read(first));
  if (arguments.image.codec.empty()) {
    MDFS_TRY_ASSIGN(const bool worthwhile, shrinks(first));
    if (!worthwhile) wanted.codec = geometry::Codec::kRaw;
  }

  const mdfs_ioc_geometry request = arguments.image.request(wanted);
  auto created = PendingImage::create(arguments.path, request);
  if (!created.ok()) return with_options(created.error());
  PendingImage pending = std::move(*created);
  MDFS_TRY(arguments.levels.check_for(pending.geometry(), arguments.path));
  {
    MDFS_TRY_ASSIGN(File file, File::open(pending.descriptor_path(), O_WRONLY));
    Progress progress("importing", total, !arguments.quiet);
    MDFS_TRY(copy(*source, first, file, pending.geometry(), progress));
    MDFS_TRY(file.close());
  }
  MDFS_TRY(store_metadata(pending.descriptor_path(), arguments.path, source->metadata()));
  MDFS_TRY(arguments.levels.apply(pending.descriptor_path(), arguments.path));
  MDFS_TRY(pending.finish(arguments.force, !arguments.quiet));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry made, image_info(pending.image(), arguments.path));
  if (const std::string warning = source->warning(); !warning.empty() && !arguments.quiet)
    print_err("mdfs: {}: warning: {}\n", arguments.source, warning);
  print_result(arguments, pending.geometry(), made);
  return {};
}

}  // namespace mdfs::tools
