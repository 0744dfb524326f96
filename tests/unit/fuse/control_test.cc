// The control channel between a mount's daemon and the commands.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include "base/environment.h"
#include "temp_dir.h"

namespace mdfs::fuse {
namespace {

class ControlTest : public testing::Test {
 protected:
  ControlTest() : volume_(SystemEnvironment().new_uuid()) {
    setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);  // of those who are not root
  }

  std::unique_ptr<ControlServer> start() {
    auto server = ControlServer::listen(volume_, {::geteuid(), ::getegid()});
    EXPECT_TRUE(server.ok()) << server.error().message();
    if (!server.ok()) return nullptr;
    (*server)->serve(handler_);
    return std::move(*server);
  }

  const Uuid volume_;
  ControlHandler handler_;
  test::TempDir folder_;
};

TEST_F(ControlTest, ADaemonSaysWhetherItIsMountedOrEnding) {
  const auto server = start();
  auto client = ControlClient::connect(volume_);
  ASSERT_TRUE(client.ok()) << client.error().message();
  EXPECT_FALSE(client->is_ending().value());
  server->announce_end();
  EXPECT_TRUE(client->is_ending().value());
  ASSERT_TRUE(client->ask_for_end().ok()) << "a client may ask for the state first";
}

TEST_F(ControlTest, AChangeIsHandedOnWithItsDescriptorsAndAnsweredByItsOutcome) {
  handler_ = [&](ControlRequest request) -> Result<std::string> {
    if (request.lines.front() == "fail") return Error{Errc::kNoSpace, "too little"};
    struct stat seen {
    }, expected{};
    EXPECT_EQ(request.descriptors.size(), 1u);
    EXPECT_EQ(::fstat(request.descriptors.at(0).get(), &seen), 0);
    EXPECT_EQ(::stat(folder_.path().c_str(), &expected), 0);
    EXPECT_EQ(seen.st_ino, expected.st_ino);
    return request.lines.at(1) + "!";
  };
  const auto server = start();
  const device::UniqueFd folder(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY));
  auto client = ControlClient::connect(volume_);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(client->change({"add", "1 name with spaces"}, {folder.get()}).value(), "1 name with spaces!");
  auto second = ControlClient::connect(volume_);
  ASSERT_TRUE(second.ok());
  const auto failed = second->change({"fail"}, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::kNoSpace);
  EXPECT_EQ(failed.error().where, "too little");
  server->stop_changes();
  auto third = ControlClient::connect(volume_);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->change({"add", "late"}, {folder.get()}).error().code, Errc::kBusy);
}

TEST_F(ControlTest, AnErrorOfTheEndArrivesAsItIs) {
  for (const Error& error : {Error{Errc::kIo, "unsynced data are lost"}, Error{Errc::kNoSpace, "disk0"},
                             Error{Errc::kIo, std::string(10'000, 'x') + ": write: No space left on device"}}) {
    auto server = start();
    auto client = ControlClient::connect(volume_);
    ASSERT_TRUE(client.ok() && client->ask_for_end().ok());
    auto told = std::async(std::launch::async, [&] { return client->wait_for_end([](const std::string&) {}); });
    auto other = ControlClient::connect(volume_);
    ASSERT_TRUE(other.ok() && other->is_ending().ok());
    server->finish(error);
    const Status outcome = told.get();
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, error.code);
    if (error.where.size() < 1000)
      EXPECT_EQ(outcome.error().where, error.where);
    else
      EXPECT_TRUE(outcome.error().where.ends_with(": write: No space left on device")) << outcome.error().where;
  }
}

TEST_F(ControlTest, AVolumeHasOneDaemon) {
  const auto server = start();
  const auto second = ControlServer::listen(volume_, {::geteuid(), ::getegid()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::kBusy);
}

TEST_F(ControlTest, WhoWasToldOfTheEndMayStartTheNextDaemonAtOnce) {
  auto server = start();
  auto client = ControlClient::connect(volume_);
  ASSERT_TRUE(client.ok() && client->ask_for_end().ok());
  std::vector<std::string> notes;
  const auto told = std::async(std::launch::async, [&] {
    EXPECT_TRUE(client->wait_for_end([&](const std::string& line) { notes.push_back(line); }).ok());
  });
  // The request may still be on its way: an answer to a later one of another client shows that it has arrived.
  auto other = ControlClient::connect(volume_);
  ASSERT_TRUE(other.ok() && other->is_ending().ok());
  server->finish({}, "two\nlines\n");
  told.wait();
  EXPECT_EQ(notes, (std::vector<std::string>{"two", "lines"}));
  EXPECT_FALSE(ControlClient::connect(volume_).ok()) << "a daemon that said it has ended still listens";
  const auto next = start();
  server.reset();
  EXPECT_TRUE(ControlClient::connect(volume_).ok()) << "the end of a daemon took the next one's socket away";
}

TEST_F(ControlTest, WhoConnectedBeforeTheEndIsToldOfIt) {
  for (int turn = 0; turn < 100; ++turn) {
    const auto server = start();
    std::vector<ControlClient> clients;
    for (int i = 0; i < 8; ++i) {
      auto client = ControlClient::connect(volume_);
      ASSERT_TRUE(client.ok());
      clients.push_back(std::move(*client));
    }
    for (ControlClient& client : clients) ASSERT_TRUE(client.ask_for_end().ok());
    server->finish({});
    for (ControlClient& client : clients) ASSERT_TRUE(client.wait_for_end([](const std::string&) {}).ok()) << turn;
  }
}

}  // namespace
}  // namespace mdfs::fuse
