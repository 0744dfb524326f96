// Messages with descriptors between two ends of a socket.
// SPDX-License-Identifier: Apache-2.0
#include "base/socket_message.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace mdfs {
namespace {

class SocketMessageTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_.data()), 0); }
  void TearDown() override {
    for (const int end : ends_) ::close(end);
  }
  std::string received_text(const ReceivedMessage& message) const {
    return {text_.data(), static_cast<std::size_t>(message.bytes)};
  }
  ReceivedMessage receive(std::size_t most) {
    return receive_message(ends_[1], std::as_writable_bytes(std::span(text_)), most, MSG_DONTWAIT);
  }

  std::array<int, 2> ends_{};
  std::array<char, 64> text_{};
};

TEST_F(SocketMessageTest, BytesAndDescriptorsArriveTogether) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_TRUE(send_message(ends_[0], as_bytes("hello"), pipe));
  const ReceivedMessage message = receive(4);
  EXPECT_EQ(received_text(message), "hello");
  EXPECT_FALSE(message.is_cut);
  ASSERT_EQ(message.descriptors.size(), 2u);
  ASSERT_EQ(::write(message.descriptors[1], "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  for (const int descriptor : message.descriptors) ::close(descriptor);
  for (const int descriptor : pipe) ::close(descriptor);
}

TEST_F(SocketMessageTest, AMessageWithoutDescriptorsHasNone) {
  ASSERT_TRUE(send_message(ends_[0], as_bytes("a"), {}));
  const ReceivedMessage message = receive(1);
  EXPECT_EQ(received_text(message), "a");
  EXPECT_TRUE(message.descriptors.empty());
}

TEST_F(SocketMessageTest, DescriptorsThatAreNotWantedAreCutOff) {
  const std::array<int, 3> many = {ends_[0], ends_[0], ends_[0]};
  ASSERT_TRUE(send_message(ends_[0], as_bytes("a"), many));
  const ReceivedMessage message = receive(1);
  EXPECT_TRUE(message.is_cut);
  for (const int descriptor : message.descriptors) ::close(descriptor);
}

TEST_F(SocketMessageTest, AnEmptySocketAndAnEndAreToldApart) {
  EXPECT_EQ(receive(1).bytes, -1);
  EXPECT_EQ(errno, EAGAIN);
  ::shutdown(ends_[0], SHUT_RDWR);
  EXPECT_EQ(receive(1).bytes, 0);
  EXPECT_FALSE(send_message(ends_[1], as_bytes("a"), {}));
}

}  // namespace
}  // namespace mdfs
