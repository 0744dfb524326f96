// Times preads of a file, or windows of an image by bind and pread, beside the floor that the disks set.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <mdfs/ioctl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kAlignment = 4096;
constexpr int kPlacementTries = 20000;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "window_timer: %s\n", what.c_str());
  std::exit(1);
}
[[noreturn]] void die_errno(const std::string& what) { die(what + ": " + std::strerror(errno)); }

struct Options {
  std::string file;
  std::uint64_t bytes = 0;
  std::string window;
  std::uint64_t count = 100;
  std::uint64_t warmup = 0;
  std::uint64_t seed = 1;
  std::uint64_t apart = 0;
  bool same = false;
  bool direct = false;
  double rate = 0;
  double iops = 0;
  std::string source;
  std::uint64_t source_offset = 0;
};

struct Buffer {
  explicit Buffer(std::size_t size)
      : data(static_cast<char*>(std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment)),
             std::free) {
    if (!data) die("out of memory");
  }
  std::unique_ptr<char, void (*)(void*)> data;
};

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void read_whole(int fd, char* out, std::uint64_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (got < 0) die_errno("pread");
    if (got == 0) die("pread: unexpected end");
    out += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
}

// One measurement: its time and the floor of its plan, both in ms.
struct Sample {
  double time = 0;
  double floor = 0;
};

class Plain {
 public:
  Plain(int fd, const Options& options) : fd_(fd), bytes_(options.bytes), buffer_(options.bytes) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) die_errno("fstat");
    size_ = static_cast<std::uint64_t>(st.st_size);
    if (size_ < bytes_) die("the file is smaller than --bytes");
  }
  std::uint64_t bytes() const { return bytes_; }
  Sample measure(std::mt19937_64& generator) {
    const std::uint64_t offset = generator() % ((size_ - bytes_) / kAlignment + 1) * kAlignment;
    const auto start = Clock::now();
    read_whole(fd_, buffer_.data.get(), bytes_, offset);
    return {milliseconds_since(start), 0};
  }

 private:
  int fd_;
  std::uint64_t bytes_;
  std::uint64_t size_ = 0;
  Buffer buffer_;
};

class Windows {
 public:
  Windows(int fd, const Options& options) : fd_(fd), options_(options), geometry_(get_geometry(fd)), buffer_(1) {
    parse_lengths();
    sample_bytes_ = window_bytes();
    buffer_ = Buffer(sample_bytes_);
    if (!options.source.empty()) {
      source_ = ::open(options.source.c_str(), O_RDONLY | O_CLOEXEC);
      if (source_ < 0) die_errno(options.source);
    }
  }
  std::uint64_t bytes() const { return sample_bytes_; }

  Sample measure(std::mt19937_64& generator) {
    mdfs_ioc_window window = place(generator);
    Sample sample;
    if (options_.rate > 0 || options_.iops > 0) sample.floor = floor_of(window);
    const auto start = Clock::now();
    if (::ioctl(fd_, MDFS_IOC_BIND, &window) != 0) die_errno("bind");
    read_whole(fd_, buffer_.data.get(), sample_bytes_, 0);
    sample.time = milliseconds_since(start);
    if (window.bytes != sample_bytes_) die("bind gives another size");
    if (source_ >= 0) check(window);
    return sample;
  }

 private:
  static mdfs_ioc_geometry get_geometry(int fd) {
    mdfs_ioc_geometry geometry{};
    geometry.struct_bytes = sizeof geometry;
    if (::ioctl(fd, MDFS_IOC_GET_GEOMETRY, &geometry) != 0) die_errno("not an image");
    return geometry;
  }

  // "512x512", slowest axis first; 0 is the whole axis.
  void parse_lengths() {
    const char* at = options_.window.data();
    const char* end = at + options_.window.size();
    for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
      const auto parsed = std::from_chars(at, end, lengths_[axis]);
      if (parsed.ec != std::errc()) die("--window: one length for each axis, as in 512x512");
      if (lengths_[axis] == 0) lengths_[axis] = geometry_.shape[axis];
      if (lengths_[axis] > geometry_.shape[axis]) die("--window is larger than the image");
      at = parsed.ptr;
      if (axis + 1u < geometry_.rank && (at == end || *at++ != 'x')) die("--window: one length for each axis");
    }
    if (at != end) die("--window: one length for each axis");
  }

  std::uint64_t sample_size() const {
    static constexpr std::array<std::uint8_t, 12> kBytes = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
    if (geometry_.type == 0 || geometry_.type >= kBytes.size()) die("unknown element type");
    return std::uint64_t{kBytes[geometry_.type]} * geometry_.channels;
  }
  std::uint64_t window_bytes() const {
    std::uint64_t bytes = sample_size();
    for (unsigned axis = 0; axis < geometry_.rank; ++axis) bytes *= lengths_[axis];
    return bytes;
  }

  // With --apart, windows keep that many samples between them in at least one axis, so none finds what an earlier one
  // has left in a cache.
  bool too_near(const mdfs_ioc_window& window) const {
    for (const auto& other : placed_) {
      bool near = true;
      for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
        const std::uint64_t a = window.start[axis], b = other.start[axis];
        near = near && (a > b ? a - b : b - a) < lengths_[axis] + options_.apart;
      }
      if (near) return true;
    }
    return false;
  }

  mdfs_ioc_window place(std::mt19937_64& generator) {
    if (options_.same && !placed_.empty()) return placed_.front();
    for (int attempt = 0; attempt < kPlacementTries; ++attempt) {
      mdfs_ioc_window window{};
      window.struct_bytes = sizeof window;
      window.rank = geometry_.rank;
      window.channel = -1;
      for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
        window.length[axis] = lengths_[axis];
        window.start[axis] = generator() % (geometry_.shape[axis] - lengths_[axis] + 1);
      }
      if (options_.apart > 0 && too_near(window)) continue;
      if (options_.apart > 0 || options_.same) placed_.push_back(window);
      return window;
    }
    die("no room for so many windows so far apart");
  }

  double floor_of(const mdfs_ioc_window& window) {
    mdfs_ioc_plan plan{};
    plan.window = window;
    if (::ioctl(fd_, MDFS_IOC_PLAN, &plan) != 0) die_errno("plan");
    double seconds = 0;
    for (unsigned disk = 0; disk < std::min<unsigned>(plan.disk_count, MDFS_IOC_MAX_DISKS); ++disk) {
      const auto& load = plan.disks[disk];
      if (options_.rate > 0) seconds = std::max(seconds, static_cast<double>(load.bytes) / options_.rate);
      if (options_.iops > 0) seconds = std::max(seconds, static_cast<double>(load.requests) / options_.iops);
    }
    return seconds * 1000;
  }

  // Compares each row with the canonical bytes in the source file.
  void check(const mdfs_ioc_window& window) {
    const std::uint64_t element = sample_size();
    const unsigned fastest = geometry_.rank - 1u;
    const std::uint64_t row_bytes = lengths_[fastest] * element;
    std::vector<char> expected(row_bytes);
    for (std::uint64_t row = 0; row < sample_bytes_ / row_bytes; ++row) {
      std::uint64_t left = row;
      std::uint64_t offset = window.start[fastest];
      std::uint64_t stride = geometry_.shape[fastest];
      for (unsigned axis = fastest; axis-- > 0;) {
        offset += (window.start[axis] + left % lengths_[axis]) * stride;
        left /= lengths_[axis];
        stride *= geometry_.shape[axis];
      }
      read_whole(source_, expected.data(), row_bytes, options_.source_offset + offset * element);
      if (std::memcmp(expected.data(), buffer_.data.get() + row * row_bytes, row_bytes) != 0) die("WRONG BYTES");
    }
  }

  int fd_;
  int source_ = -1;
  const Options& options_;
  mdfs_ioc_geometry geometry_;
  std::array<std::uint64_t, MDFS_IOC_MAX_RANK> lengths_{};
  std::uint64_t sample_bytes_ = 0;
  Buffer buffer_;
  std::vector<mdfs_ioc_window> placed_;
};

template <typename Target>
void report(Target target, const Options& options) {
  std::mt19937_64 generator(options.seed);
  for (std::uint64_t i = 0; i < options.warmup; ++i) target.measure(generator);
  std::vector<double> times;
  double floors = 0;
  for (std::uint64_t i = 0; i < options.count; ++i) {
    const Sample sample = target.measure(generator);
    times.push_back(sample.time);
    floors += sample.floor;
  }
  double sum = 0;
  for (const double time : times) sum += time;
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double q) {
    return times[static_cast<std::size_t>(q * static_cast<double>(times.size() - 1))];
  };
  const auto count = static_cast<double>(times.size());
  nlohmann::json json = {{"bytes", target.bytes()},    {"count", times.size()},   {"mean_ms", sum / count},
                         {"median_ms", quantile(0.5)}, {"min_ms", times.front()}, {"p90_ms", quantile(0.9)},
                         {"p99_ms", quantile(0.99)},   {"max_ms", times.back()}};
  if (floors > 0) {
    json["floor_ms"] = floors / count;
    json["ratio_to_floor"] = sum / floors;
  }
  std::puts(json.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times preads of a file (--bytes) or windows of an image (--window); one line of JSON, times in ms.");
  Options options;
  app.add_option("file", options.file)->required();
  auto* bytes = app.add_option("--bytes", options.bytes, "preads of so many bytes at random multiples of 4096");
  auto* window = app.add_option("--window", options.window, "windows by bind and pread: 512x512; 0 = the whole axis");
  bytes->excludes(window);
  app.add_option("--count", options.count, "measurements")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "reads before the first measurement");
  app.add_option("--seed", options.seed);
  app.add_option("--apart", options.apart, "samples between windows, so that no two share an extent");
  app.add_flag("--same", options.same, "the same window every time");
  app.add_flag("--direct", options.direct, "open with O_DIRECT");
  app.add_option("--rate", options.rate, "bytes a second of a disk, for the floor");
  app.add_option("--iops", options.iops, "requests a second of a disk, for the floor");
  app.add_option("--source", options.source, "file of canonical bytes to compare each window with");
  app.add_option("--source-offset", options.source_offset, "where they begin in it");
  CLI11_PARSE(app, argc, argv);
  if (options.bytes == 0 && options.window.empty()) die("either --bytes or --window");
  const int fd = ::open(options.file.c_str(), O_RDONLY | O_CLOEXEC | (options.direct ? O_DIRECT : 0));
  if (fd < 0) die_errno(options.file);
  if (options.window.empty()) {
    report(Plain(fd, options), options);
  } else {
    report(Windows(fd, options), options);
  }
  return 0;
}
