// Making, filling, mounting and taking down a volume for a measurement.
// SPDX-License-Identifier: Apache-2.0
#include "volume.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "convert.h"
#include "mdfs/ioctl.h"
#include "model/random.h"
#include "support/file.h"
#include "support/progress.h"
#include "support/streams.h"

extern char** environ;

namespace mdfs::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWriteBytes = 1u << 20;
constexpr std::uint64_t kSpareBytes = 96u << 20;  // of a disk, beside its share of the image
constexpr unsigned kShareFactor = 2;  // of the image's bytes on a disk: placements of few extents are uneven

// Beside this program, else to be found in the PATH.
std::string program_path(const std::string& name) {
  std::error_code problem;
  const fs::path own = fs::read_symlink("/proc/self/exe", problem);
  if (!problem && fs::exists(own.parent_path() / name, problem)) return own.parent_path() / name;
  return name;
}

std::string last_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::string last;
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  return last;
}

}  // namespace

Result<TemporaryVolume> TemporaryVolume::make(const MeasuredVolume& wanted) {
  std::string pattern = (fs::path(wanted.scratch) / "mdfs-compare-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return from_errno(errno, pattern);
  TemporaryVolume volume{fs::path(pattern)};
  MDFS_TRY(volume.build(wanted));
  return volume;
}

TemporaryVolume::TemporaryVolume(TemporaryVolume&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), mounted_(std::exchange(other.mounted_, false)) {}

TemporaryVolume::~TemporaryVolume() {
  if (folder_.empty()) return;
  if (mounted_)
    if (const Status status = unmount(); !status.ok()) {
      print_err("mdfs-sim: {}: {}\n", folder_.string(), status.error().message());
      return;  // nothing below a mount is removed
    }
  std::error_code problem;
  fs::remove_all(folder_, problem);
  if (problem) print_err("mdfs-sim: {}: {}\n", folder_.string(), problem.message());
}

Status TemporaryVolume::run(const std::string& program, std::vector<std::string> arguments) {
  const std::string path = program_path(program);
  const std::string log = (folder_ / "log").string();
  arguments.insert(arguments.begin(), path);
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, standard, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, path.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return from_errno(problem, path);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return from_errno(errno, path);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{Errc::kIo, fmt::format("{} failed: {}", program, last_line(log))};
}

Status TemporaryVolume::build(const MeasuredVolume& wanted) {
  std::error_code problem;
  fs::create_directory(folder_ / "mnt", problem);
  if (problem) return from_errno(problem.value(), folder_.string());
  const std::uint64_t share = kShareFactor * wanted.image.size_bytes() / wanted.disks;
  std::vector<std::string> arguments = {"--sparse", "--size",
                                        std::to_string((share + kSpareBytes) / kWriteBytes * kWriteBytes)};
  for (unsigned i = 0; i < wanted.disks; ++i) arguments.push_back((folder_ / fmt::format("disk{}", i)).string());
  MDFS_TRY(run("mkmdfs", std::move(arguments)));
  // Filled at the speed of the files themselves; mounted anew, nothing is in a cache.
  MDFS_TRY(mount("cache=64M"));
  MDFS_TRY(fill(wanted));
  MDFS_TRY(unmount());
  return mount("noatime,cache=256M,model=" + wanted.model);
}

Status TemporaryVolume::mount(const std::string& options) {
  MDFS_TRY(run("mdfs", {"mount", "-o", options, (folder_ / "disk0").string(), (folder_ / "mnt").string()}));
  mounted_ = true;
  return {};
}

Status TemporaryVolume::unmount() {
  MDFS_TRY(run("mdfs", {"umount", (folder_ / "mnt").string()}));
  mounted_ = false;
  return {};
}

Status TemporaryVolume::fill(const MeasuredVolume& wanted) {
  MDFS_TRY_ASSIGN(File file, File::open(image_path(), O_RDWR | O_CREAT | O_EXCL));
  mdfs_ioc_geometry geometry = client::from_geometry(wanted.image);
  if (wanted.row_offset) {
    geometry.row_offset = static_cast<std::int32_t>(*wanted.row_offset);
    geometry.plane_offset = 0;
  }
  if (::ioctl(file.fd(), MDFS_IOC_SET_GEOMETRY, &geometry) != 0) return from_errno(errno, "making the image");
  model::Random random(wanted.seed);
  std::vector<std::uint64_t> noise(kWriteBytes / sizeof(std::uint64_t));
  for (std::uint64_t& word : noise) word = random.bits();
  const std::uint64_t size = wanted.image.size_bytes();
  Progress progress("filling", size);
  for (std::uint64_t at = 0; at < size;) {
    noise[0] = at;  // no two blocks alike
    const std::size_t bytes = std::min<std::uint64_t>(kWriteBytes, size - at);
    MDFS_TRY(file.write_at(at, std::as_bytes(std::span(noise)).first(bytes)));
    at += bytes;
    progress.add(bytes);
  }
  progress.finish();
  return file.close();
}

}  // namespace mdfs::tools
