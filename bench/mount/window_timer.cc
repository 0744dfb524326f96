// Times preads of a file, or windows of an image (by bind and pread, by one ioctl, or by libmdfs), beside the floor
// that the disks set.
// SPDX-License-Identifier: Apache-2.0
//
// All places are chosen before and all bytes compared after the reads, so that nothing but reads lies between two of
// them: idle disks would gather credit, and a comparison would take the processor's caches.
#include <fcntl.h>
#include <mdfs/ioctl.h>
#include <mdfs/mdfs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "timed_image.h"

namespace {

using bench::die;
using bench::die_errno;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kAlignment = 4096;
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;  // of all answers together

struct Options {
  std::vector<std::string> files;
  std::uint64_t bytes = 0;
  std::string window;
  std::uint64_t count = 100;
  std::uint64_t warmup = 0;
  std::uint64_t seed = 1;
  std::uint64_t apart = 0;
  std::uint64_t align = 1;
  bool warm = false;
  bool direct = false;
  bool open_each = false;
  bool memory = false;
  bool one_call = false;
  bool library = false;
  bool write = false;
  double rate = 0;
  double iops = 0;
  std::string source;
  std::uint64_t source_offset = 0;
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

int open_file(const Options& options, std::size_t index) {
  const std::string& path = options.files[index % options.files.size()];
  const int fd =
      ::open(path.c_str(), (options.write ? O_RDWR : O_RDONLY) | O_CLOEXEC | (options.direct ? O_DIRECT : 0));
  if (fd < 0) die_errno(path);
  return fd;
}

std::span<const char> source_of(const Options& options) {
  if (options.source.empty()) return {};
  const std::span<const char> whole = bench::map_file(options.source);
  if (whole.size() < options.source_offset) die("--source-offset is beyond the end");
  return whole.subspan(options.source_offset);
}

// Room for every answer, touched, each at a page.
class Answers {
 public:
  Answers(std::uint64_t count, std::uint64_t bytes)
      : step_((bytes + kAlignment - 1) / kAlignment * kAlignment), size_(count * step_) {
    if (count > kMostBytes / step_) die("--count times the bytes of a read is too much memory");
    void* at = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) die_errno("memory");
    data_ = static_cast<char*>(at);
  }
  ~Answers() { ::munmap(data_, size_); }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  char* operator[](std::uint64_t index) const { return data_ + index * step_; }

 private:
  std::uint64_t step_, size_;
  char* data_ = nullptr;
};

struct Result {
  std::uint64_t bytes = 0;  // of one read
  std::vector<double> times_ms;
  double floor_ms = 0;        // mean of what the busiest disk of each window needs
  double batch_floor_ms = 0;  // of the disk that is busiest in all windows together, a window
  double planned_bytes = 0;   // mean of what all disks read for a window
  bool checked = false;
};

Result time_plain(const Options& options) {
  const int fd = open_file(options, 0);
  struct stat st {};
  if (::fstat(fd, &st) != 0) die_errno("fstat");
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (size < options.bytes) die("the file is smaller than --bytes");
  std::mt19937_64 generator(options.seed);
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i < options.warmup + options.count; ++i)
    offsets.push_back(generator() % ((size - options.bytes) / kAlignment + 1) * kAlignment);
  const Answers answers(offsets.size(), options.bytes);
  if (options.warm)
    for (std::size_t i = 0; i < offsets.size(); ++i) bench::read_whole(fd, answers[i], options.bytes, offsets[i]);
  Result result{options.bytes, {}, 0, 0, 0, false};
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto start = Clock::now();
    bench::read_whole(fd, answers[i], options.bytes, offsets[i]);
    if (i >= options.warmup) result.times_ms.push_back(milliseconds_since(start));
  }
  if (const auto source = source_of(options); !source.empty()) {
    for (std::size_t i = 0; i < offsets.size(); ++i)
      if (offsets[i] + options.bytes > source.size() ||
          std::memcmp(answers[i], source.data() + offsets[i], options.bytes) != 0)
        die("WRONG BYTES");
    result.checked = true;
  }
  ::close(fd);
  return result;
}

void read_window(int fd, mdfs_ioc_window window, std::uint64_t bytes, char* out) {
  if (::ioctl(fd, MDFS_IOC_BIND, &window) != 0) die_errno("bind");
  if (window.bytes != bytes) die("bind gives another size");
  bench::read_whole(fd, out, bytes, 0);
}

// MDFS_IOC_READ: for small windows.
void read_at_once(int fd, const mdfs_ioc_window& window, std::uint64_t bytes, char* out) {
  static std::array<char, sizeof(mdfs_ioc_window) + MDFS_IOC_READ_MAX> call;
  if (bytes > MDFS_IOC_READ_MAX) die("--one-call is for small windows");
  std::memcpy(call.data(), &window, sizeof window);
  if (::ioctl(fd, MDFS_IOC_READ(bytes), call.data()) != 0) die_errno("read");
  std::memcpy(out, call.data() + sizeof window, bytes);
}

// An image that libmdfs has opened. With the channel, unless the mount or MDFS_CHANNEL refuses it.
class LibraryImage {
 public:
  explicit LibraryImage(const std::string& path) {
    if (::mdfs_open(path.c_str(), O_RDONLY, &image_) != 0) die(::mdfs_last_error());
  }
  ~LibraryImage() { ::mdfs_close(image_); }
  LibraryImage(const LibraryImage&) = delete;
  LibraryImage& operator=(const LibraryImage&) = delete;

  void read(const mdfs_ioc_window& window, std::uint64_t bytes, char* out) const {
    if (::mdfs_read_window(image_, &window, out, bytes, nullptr) != static_cast<ssize_t>(bytes))
      die(::mdfs_last_error());
  }

 private:
  mdfs_image* image_ = nullptr;
};

void add_floors(const Options& options, int fd, const bench::TimedImage& image,
                const std::vector<mdfs_ioc_window>& windows, Result& result) {
  const auto count = static_cast<double>(options.count);
  bench::DiskTimes sum{};
  for (std::size_t i = options.warmup; i < windows.size(); ++i) {
    const bench::DiskTimes times = image.disk_times_ms(fd, windows[i], options.rate, options.iops);
    result.floor_ms += *std::max_element(times.begin(), times.end()) / count;
    for (std::size_t disk = 0; disk < times.size(); ++disk) sum[disk] += times[disk] / count;
    // At a byte a millisecond.
    for (const double bytes : image.disk_times_ms(fd, windows[i], 1000, 0)) result.planned_bytes += bytes / count;
  }
  result.batch_floor_ms = *std::max_element(sum.begin(), sum.end());
}

void write_window(int fd, mdfs_ioc_window window, std::uint64_t bytes, const char* from) {
  if (::ioctl(fd, MDFS_IOC_BIND, &window) != 0) die_errno("bind");
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t count = ::pwrite(fd, from + done, bytes - done, static_cast<off_t>(done));
    if (count <= 0) die_errno("pwrite");
    done += static_cast<std::uint64_t>(count);
  }
}

// Every window is written inverted, read again, and put back as it was. The windows do not overlap.
Result time_writes(int fd, const bench::TimedImage& image, const std::vector<mdfs_ioc_window>& windows,
                   std::span<const char> source, const Answers& answers, const Options& options, Result result) {
  const std::uint64_t bytes = result.bytes;
  const auto invert = [&](char* at) {
    std::transform(at, at + bytes, at, [](char c) { return static_cast<char>(~c); });
  };
  for (std::size_t i = 0; i < windows.size(); ++i) {
    image.copy(windows[i], source, answers[i]);
    invert(answers[i]);
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto start = Clock::now();
    write_window(fd, windows[i], bytes, answers[i]);
    if (i >= options.warmup) result.times_ms.push_back(milliseconds_since(start));
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    read_window(fd, windows[i], bytes, answers[i]);
    invert(answers[i]);
    if (!image.equal(windows[i], source, answers[i])) die("WRONG BYTES");
    write_window(fd, windows[i], bytes, answers[i]);
  }
  ::close(fd);
  return result;
}

Result time_windows(const Options& options) {
  int fd = open_file(options, 0);
  const bench::TimedImage image(fd, options.window);
  const std::uint64_t bytes = image.window_bytes();
  std::mt19937_64 generator(options.seed);
  const std::vector<mdfs_ioc_window> windows =
      image.place(generator, options.warmup + options.count, options.apart, options.align);
  const auto source = source_of(options);
  const Answers answers(windows.size(), bytes);

  Result result{bytes, {}, 0, 0, 0, !source.empty()};
  if (options.rate > 0 || options.iops > 0) add_floors(options, fd, image, windows, result);
  if (options.write) return time_writes(fd, image, windows, source, answers, options, std::move(result));
  if (options.warm)
    for (std::size_t i = 0; i < windows.size(); ++i) read_window(fd, windows[i], bytes, answers[i]);
  std::optional<LibraryImage> library;
  if (options.library) library.emplace(options.files.front());
  if (options.open_each) ::close(fd);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto start = Clock::now();
    if (options.open_each) fd = open_file(options, i);
    if (options.memory)
      image.copy(windows[i], source, answers[i]);
    else if (options.one_call)
      read_at_once(fd, windows[i], bytes, answers[i]);
    else if (library)
      library->read(windows[i], bytes, answers[i]);
    else
      read_window(fd, windows[i], bytes, answers[i]);
    if (i >= options.warmup) result.times_ms.push_back(milliseconds_since(start));
    if (options.open_each) ::close(fd);
  }
  if (!source.empty())
    for (std::size_t i = 0; i < windows.size(); ++i)
      if (!image.equal(windows[i], source, answers[i])) die("WRONG BYTES");
  return result;
}

void report(Result result) {
  std::vector<double>& times = result.times_ms;
  double sum = 0;
  for (const double time : times) sum += time;
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double q) {
    return times[static_cast<std::size_t>(q * static_cast<double>(times.size() - 1))];
  };
  const double mean = sum / static_cast<double>(times.size());
  nlohmann::json json = {{"bytes", result.bytes},      {"count", times.size()},   {"mean_ms", mean},
                         {"median_ms", quantile(0.5)}, {"min_ms", times.front()}, {"p90_ms", quantile(0.9)},
                         {"p99_ms", quantile(0.99)},   {"max_ms", times.back()},  {"checked", result.checked}};
  if (result.floor_ms > 0) json["floor_ms"] = result.floor_ms;
  if (result.batch_floor_ms > 0) json["batch_floor_ms"] = result.batch_floor_ms;
  if (result.planned_bytes > 0) json["planned_bytes"] = result.planned_bytes;
  std::puts(json.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times preads of a file (--bytes) or windows of an image (--window); one line of JSON, times in ms.");
  Options options;
  app.add_option("file", options.files, "with --open, several: one after another")->required();
  auto* bytes = app.add_option("--bytes", options.bytes, "preads of so many bytes at random multiples of 4096");
  auto* window = app.add_option("--window", options.window, "windows by bind and pread: 512x512; 0 = the whole axis");
  bytes->excludes(window);
  app.add_option("--count", options.count, "measurements")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "reads before the first measurement");
  app.add_option("--seed", options.seed);
  app.add_option("--apart", options.apart, "samples between windows, so that no two share an extent");
  app.add_option("--align", options.align, "windows begin at multiples of so many samples: 1 is anywhere")
      ->check(CLI::PositiveNumber);
  app.add_flag("--warm", options.warm, "read everything once before the first measurement");
  app.add_flag("--direct", options.direct, "open with O_DIRECT");
  app.add_flag("--open", options.open_each, "each measurement opens the file anew");
  app.add_flag("--memory", options.memory, "copy windows out of the --source in memory instead: a floor");
  app.add_flag("--one-call", options.one_call, "small windows by MDFS_IOC_READ instead of bind and pread");
  app.add_flag("--library", options.library, "windows by mdfs_read_window() of libmdfs instead of bind and pread");
  app.add_flag("--write", options.write, "write windows by bind and pwrite; needs --source, which the image must hold");
  app.add_option("--rate", options.rate, "bytes a second of a disk, for the floor; reads the extent table first");
  app.add_option("--iops", options.iops, "requests a second of a disk, for the floor");
  app.add_option("--source", options.source, "file of canonical bytes to compare all that is read with");
  app.add_option("--source-offset", options.source_offset, "where they begin in it");
  CLI11_PARSE(app, argc, argv);
  if (options.bytes == 0 && options.window.empty()) die("either --bytes or --window");
  if (options.memory && options.source.empty()) die("--memory copies out of --source");
  if (options.write && (options.source.empty() || options.apart == 0)) die("--write needs --source and --apart");
  if (options.files.size() > 1 && !options.open_each) die("several files go with --open");
  report(options.window.empty() ? time_plain(options) : time_windows(options));
  return 0;
}
