// A program that finds no memory, at every allocation in turn: it says so and ends, or refuses one operation; what was
// acknowledged is on the disks either way, and the next mount just works.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/check.h"
#include "base/log.h"
#include "crash/oracle.h"
#include "crash/workload.h"
#include "device/open.h"
#include "maintenance/maintenance.h"
#include "memory_volume.h"
#include "small_volume.h"
#include "store/check/check.h"
#include "store/format_volume.h"
#include "temp_dir.h"
#include "tried.h"

// The C library's own, behind the names that this program takes over for itself and for all its libraries.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> failing{0};  // this one finds no memory; 0: none

bool has_memory() { return allocations.fetch_add(1) + 1 != failing.load(); }

void* refuse() {
  errno = ENOMEM;
  return nullptr;
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) { return has_memory() ? __libc_malloc(size) : refuse(); }
void* calloc(std::size_t count, std::size_t size) { return has_memory() ? __libc_calloc(count, size) : refuse(); }
void* realloc(void* memory, std::size_t size) { return has_memory() ? __libc_realloc(memory, size) : refuse(); }
void* memalign(std::size_t alignment, std::size_t size) {
  return has_memory() ? __libc_memalign(alignment, size) : refuse();
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return has_memory() ? __libc_memalign(alignment, size) : refuse();
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  if (!has_memory()) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}

namespace mdfs::safety {
namespace {

using crash::Operation;

constexpr unsigned kDisks = 2;
constexpr std::uint64_t kDiskBytes = 4u << 20;
constexpr unsigned kSecondsPerCase = 60;
const Status quiet = set_log_level("off");

// What the part that may fail does: everything from the mount to the end of the unmounting.
constexpr const char* kWorkload =
    "write /f 4000 60000; fsync /f; mkdir /d/m; rename /g /d/m/g; window /image 10 40 10 40; fsync /image; "
    "create /new; write /new 0 200000; truncate /big 1000; sync; unlink /f; write /d/h 0 3000; fsync /d/h";

Result<std::unique_ptr<volume::Volume>> mount_files(const std::string& directory, Environment& environment) {
  MDFS_TRY_ASSIGN(const auto context, device::UringContext::create());
  std::vector<std::unique_ptr<device::Disk>> disks;
  for (unsigned i = 0; i < kDisks; ++i) {
    // The locks of a killed program go a while after its end.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(kSecondsPerCase);
    MDFS_TRY_ASSIGN(auto disk, device::open_disk_when_free(fmt::format("{}/disk{}", directory, i),
                                                           device::OpenMode::kReadWrite, context, patience));
    disks.push_back(std::move(disk));
  }
  MDFS_TRY_ASSIGN(auto store, store::Store::open(std::move(disks), {}, environment));
  return volume::Volume::open(std::move(store), test::quiet_options(4u << 20), environment,
                              maintenance::make_operations);
}

std::string check_files(const std::string& directory, Environment& environment) {
  const auto context = device::UringContext::create();
  if (!context.ok()) return context.error().message();
  std::vector<std::unique_ptr<device::Disk>> disks;
  for (unsigned i = 0; i < kDisks; ++i) {
    auto disk = device::open_disk(fmt::format("{}/disk{}", directory, i), device::OpenMode::kReadOnly, *context);
    if (!disk.ok()) return disk.error().message();
    disks.push_back(std::move(*disk));
  }
  store::CheckOptions options;
  options.data = true;
  const auto report = store::check_volume(std::move(disks), options, environment);
  if (!report.ok()) return report.error().message();
  return report->remaining() == 0 ? "" : "the checker has findings";
}

// How far the program came: operations started and returned, written to a pipe as they happen.
struct Told {
  std::size_t started = 0;
  std::size_t returned = 0;
  bool refused = false;           // an operation
  std::uint64_t allocations = 0;  // of a run that came to its end
  int status = 0;                 // of waitpid(2)
  std::string words;              // on standard error
};

void tell(int pipe, char what) {
  if (write(pipe, &what, 1) != 1) _exit(99);
}

// The child: ends here, one way or another. An exception ends it as it would end the daemon.
[[noreturn]] void run_child(const std::string& directory, int pipe, std::uint64_t fail_at) noexcept {
  alarm(kSecondsPerCase);
  end_when_out_of_memory();
  const auto operations = crash::parse_operations(kWorkload);
  SystemEnvironment environment;
  allocations = 0;
  failing = fail_at;
  {
    auto volume = mount_files(directory, environment);
    if (!volume.ok()) _exit(3);
    crash::Runner runner(**volume);
    unsigned number = 0;
    for (const Operation& operation : *operations) {
      tell(pipe, 's');
      const Status status = runner.run(operation, ++number);
      tell(pipe, status.ok() ? 'r' : 'x');
      if (!status.ok()) _exit(2);
    }
    if (!(*volume)->close().ok()) _exit(4);
  }
  failing = 0;
  const std::uint64_t count = allocations;
  tell(pipe, 'n');
  if (write(pipe, &count, sizeof count) != sizeof count) _exit(99);
  _exit(0);
}

Told run_case(const std::string& directory, std::uint64_t fail_at) {
  int told[2], words[2];
  EXPECT_EQ(pipe(told), 0);
  EXPECT_EQ(pipe(words), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(told[0]);
    dup2(words[1], STDERR_FILENO);
    run_child(directory, told[1], fail_at);
  }
  close(told[1]);
  close(words[1]);
  Told result;
  char what = 0;
  while (read(told[0], &what, 1) == 1) {
    if (what == 's') ++result.started;
    if (what == 'r') ++result.returned;
    if (what == 'x') result.refused = true;
    if (what == 'n' && read(told[0], &result.allocations, sizeof result.allocations) != sizeof result.allocations)
      result.allocations = 0;
  }
  char text[4096];
  for (ssize_t count = 0; (count = read(words[0], text, sizeof text)) > 0;)
    result.words.append(text, static_cast<std::size_t>(count));
  waitpid(child, &result.status, 0);
  close(told[0]);
  close(words[0]);
  return result;
}

// The disks of the base, and what the volume shows after each operation when nothing fails.
class Reference {
 public:
  explicit Reference(const std::string& directory) : directory_(directory) {
    std::filesystem::create_directory(base());
    SeededEnvironment environment(1);
    {
      const auto context = device::UringContext::create();
      std::vector<std::unique_ptr<device::Disk>> disks;
      std::vector<device::Disk*> pointers;
      for (unsigned i = 0; i < kDisks; ++i) {
        const std::string path = fmt::format("{}/disk{}", base(), i);
        MDFS_CHECK(device::create_file_disk(path, kDiskBytes, false).ok());
        auto disk = device::open_disk(path, device::OpenMode::kReadWrite, *context);
        MDFS_CHECK(disk.ok());
        disks.push_back(std::move(*disk));
        pointers.push_back(disks.back().get());
      }
      MDFS_CHECK(store::format_volume(pointers, {}, environment).ok());
    }
    {
      auto volume = mount_files(base(), environment);
      MDFS_CHECK(volume.ok() && crash::make_base(**volume).ok() && (*volume)->close().ok());
    }
    const std::string run = fresh();
    auto volume = mount_files(run, environment);
    MDFS_CHECK(volume.ok());
    history_ = std::make_unique<crash::History>(*test::read_tree(**volume));
    crash::Runner runner(**volume);
    unsigned number = 0;
    const auto operations = crash::parse_operations(kWorkload);
    for (const Operation& operation : *operations) {
      const volume::Ino target = runner.target(operation);
      const Status status = runner.run(operation, ++number);
      EXPECT_TRUE(status.ok()) << operation.text() << ": " << status.error().message();
      history_->add(operation, target, status.ok(), *test::read_tree(**volume));
    }
    EXPECT_TRUE((*volume)->close().ok());
  }

  // A directory with the disks as they were at first.
  std::string fresh() const {
    const std::string run = directory_ + "/run";
    std::filesystem::remove_all(run);
    std::filesystem::copy(base(), run);
    return run;
  }
  const crash::History& history() const { return *history_; }

 private:
  std::string base() const { return directory_ + "/base"; }
  std::string directory_;
  std::unique_ptr<crash::History> history_;
};

// "" if the disks hold what was promised and the volume can be used.
std::string judge(const std::string& directory, const crash::History& history, const Told& told) {
  SeededEnvironment environment(2);
  {
    const auto volume = mount_files(directory, environment);
    if (!volume.ok()) return "mounting: " + volume.error().message();
    const auto tree = test::read_tree(**volume);
    if (!tree.ok()) return tree.error().message();
    std::string wrong = history.explain(*tree, told.returned, told.started);
    if (wrong.empty()) wrong = test::find_inconsistency(**volume, false);
    if (wrong.empty()) wrong = write_something(**volume);
    if (!wrong.empty()) return wrong;
    if (const Status closed = (*volume)->close(); !closed.ok()) return closed.error().message();
  }
  return check_files(directory, environment);
}

// As it should end: in words, or with one operation refused, or as if nothing had happened.
std::string judge_end(const Told& told) {
  if (WIFSIGNALED(told.status) && WTERMSIG(told.status) == SIGABRT)
    return told.words.find("out of memory") != std::string::npos ? "" : "aborted without saying why: " + told.words;
  if (WIFSIGNALED(told.status)) return fmt::format("ended by signal {}", WTERMSIG(told.status));
  const int code = WEXITSTATUS(told.status);
  return code <= 4 ? "" : fmt::format("exit code {}", code);
}

TEST(Allocation, APlaceWithoutMemoryEndsTheProgramInWordsOrRefusesOneOperationAndNothingAcknowledgedIsLost) {
  const test::TempDir directory;
  const Reference reference(directory.path());
  const Told whole = run_case(reference.fresh(), 0);
  ASSERT_EQ(whole.status, 0) << whole.words;
  ASSERT_GT(whole.allocations, 1000u);
  // All of them, or some that another run does not choose again: threads make the numbers differ a little anyway.
  const std::uint64_t step = whole_run() ? 1 : whole.allocations / 150;
  std::uint64_t cases = 0, ended = 0, refused = 0;
  for (std::uint64_t fail_at = 1; fail_at <= whole.allocations; fail_at += step) {
    const std::string disks = reference.fresh();
    const Told told = run_case(disks, fail_at);
    std::string wrong = judge_end(told);
    if (wrong.empty()) wrong = judge(disks, reference.history(), told);
    ASSERT_EQ(wrong, "") << "allocation " << fail_at << " of " << whole.allocations << ", after " << told.returned
                         << " operations";
    ++cases;
    if (WIFSIGNALED(told.status)) ++ended;
    if (told.refused) ++refused;
  }
  test::tried("{} of {} allocations failed: {} ended the program, {} refused an operation", cases, whole.allocations,
              ended, refused);
  EXPECT_GT(ended, 0u);
}

}  // namespace
}  // namespace mdfs::safety
