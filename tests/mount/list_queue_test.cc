// List requests of a mount run on a work queue of their own, two at a time, and end with their callers. The volume is
// not a real one, so that the test says when a list request is answered. Needs root and /dev/fuse.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "fuse/server.h"
#include "fuse/session.h"
#include "mdfs/ioctl.h"
#include "support/fake_volume.h"
#include "support/temp_dir.h"

namespace mdfs::fuse {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);  // of what never comes when the test fails
constexpr auto kStep = std::chrono::milliseconds(2);

class ListQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || ::access("/dev/fuse", R_OK | W_OK) != 0) GTEST_SKIP() << "needs root and /dev/fuse";
    volume_.before_layout([this](const engine::Stop& stop) { return wait_in_list(stop); });
    auto server = Server::create(volume_, {});
    ASSERT_TRUE(server.ok()) << server.error().message();
    server_ = std::move(server).value();
    auto requests = mount_session({}, folder_.path().string());
    ASSERT_TRUE(requests.ok()) << requests.error().message();
    ASSERT_TRUE(server_->attach(std::move(requests).value()).ok());
    runner_ = std::thread([this] { server_->run(); });
    file_ = (folder_.path() / "file").string();
    fd_ = ::open(file_.c_str(), O_RDWR | O_CREAT, 0644);
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override {
    if (!server_) return;
    open_ = true;
    for (std::thread& caller : callers_) caller.join();
    ::close(fd_);
    ::umount2(folder_.path().c_str(), MNT_DETACH);
    server_->stop();
    if (runner_.joinable()) runner_.join();
  }

  // A list request that lasts until the test lets it go, or until its caller is gone.
  Status wait_in_list(const engine::Stop& stop) {
    const unsigned now = ++under_way_;
    for (unsigned most = most_; most < now && !most_.compare_exchange_weak(most, now);) continue;
    ++entered_;
    niceness_ = ::getpriority(PRIO_PROCESS, 0);
    bool stopped = false;
    while (!open_ && !stopped) {
      std::this_thread::sleep_for(kStep);
      stopped = stop && stop();
    }
    --under_way_;
    return stopped ? Status(Errc::kCancelled, "stopped") : Status();
  }
  int ask() const {
    const int fd = ::open(file_.c_str(), O_RDONLY);
    mdfs_ioc_layout page{};
    const int answer = ::ioctl(fd, MDFS_IOC_LAYOUT, &page);
    ::close(fd);
    return answer;
  }
  void ask_by(unsigned callers) {
    for (unsigned i = 0; i < callers; ++i) callers_.emplace_back([this] { answered_ += ask() == 0 ? 1 : 0; });
  }
  template <typename Condition>
  static bool wait_until(Condition&& condition) {
    for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;) {
      if (condition()) return true;
      std::this_thread::sleep_for(kStep);
    }
    return false;
  }

  std::atomic<bool> open_{false};
  std::atomic<unsigned> under_way_{0}, most_{0}, entered_{0}, answered_{0};
  std::atomic<int> niceness_{0};
  test::TempDir folder_;
  test::FakeVolume volume_;
  std::unique_ptr<Server> server_;
  std::thread runner_;
  std::vector<std::thread> callers_;
  std::string file_;
  int fd_ = -1;
};

TEST_F(ListQueueTest, FsyncIsAnsweredWhileListRequestsAreNot) {
  ask_by(64);
  ASSERT_TRUE(wait_until([&] { return entered_ >= 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // so that the others are queued; decides nothing
  std::future<int> synced = std::async(std::launch::async, [this] { return ::fsync(fd_); });
  EXPECT_EQ(synced.wait_for(kPatience), std::future_status::ready);
  open_ = true;
  EXPECT_EQ(synced.get(), 0);
}

TEST_F(ListQueueTest, TwoListRequestsAreUnderWayHoweverManyCallersAsk) {
  ask_by(64);
  ASSERT_TRUE(wait_until([&] { return entered_ >= 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  open_ = true;
  ASSERT_TRUE(wait_until([&] { return answered_ == 64; }));
  EXPECT_EQ(most_, 2u);
}

TEST_F(ListQueueTest, ListRequestsLeaveTheProcessorsToOtherRequests) {
  open_ = true;
  ASSERT_EQ(ask(), 0);
  EXPECT_GT(niceness_, ::getpriority(PRIO_PROCESS, 0));
}

TEST_F(ListQueueTest, AListRequestEndsWithItsCaller) {
  const pid_t child = ::fork();
  if (child == 0) {
    ask();
    ::_exit(0);
  }
  ASSERT_TRUE(wait_until([&] { return entered_ == 1; }));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  const bool ended = wait_until([&] { return ::waitpid(child, &status, WNOHANG) == child; });
  EXPECT_TRUE(ended);
  open_ = true;
  if (!ended) ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(wait_until([&] { return under_way_ == 0; }));
}

}  // namespace
}  // namespace mdfs::fuse
