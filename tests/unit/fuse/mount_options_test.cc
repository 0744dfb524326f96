// The table of mount options.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/mount_options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace mdfs::fuse {
namespace {

TEST(MountOptions, EveryWordOfAnFstabLineIsUnderstood) {
  MountOptions options;
  const Status status = parse_mount_options(
      "defaults,noauto,_netdev,user,x-systemd.automount,nosuid,nodev,ro,cache=1G,commit=30,degraded,noatime,"
      "allow_other,max_window=64M,staging=/srv/tmp,model=gigaview-t800,trace=/tmp/t,foreground,io_uring=on,"
      "channel=off,log=debug,,",
      options);
  ASSERT_TRUE(status.ok()) << status.error().message();
  EXPECT_TRUE(options.read_only && options.degraded && options.foreground);
  EXPECT_EQ(options.cache_bytes, std::optional(std::uint64_t{1} << 30));
  EXPECT_EQ(options.commit_interval_ns, 30'000'000'000);
  EXPECT_EQ(options.max_window_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(options.staging_directory, "/srv/tmp");
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.io_uring, RingUse::kOn);
  EXPECT_FALSE(options.channel);
  EXPECT_EQ(options.model, "gigaview-t800");
  EXPECT_EQ(options.trace, "/tmp/t");
  EXPECT_EQ(options.atime, volume::AtimeMode::kNoAtime);
  EXPECT_EQ(options.kernel_options, (std::vector<std::string>{"nosuid", "nodev", "noatime"}));
  EXPECT_EQ(options.allow_other, std::optional(true));
}

TEST(MountOptions, WhatMountPassesIsTaken) {
  for (const char* word :
       {"nodiratime", "diratime", "lazytime", "nolazytime", "nofail", "_netdev", "x-systemd.automount", "X-mount.mkdir",
        "comment=backup", "uhelper=udisks2", "silent", "norelatime", "owner"}) {
    MountOptions options;
    EXPECT_TRUE(parse_mount_options(word, options).ok()) << word;
  }
  MountOptions options;
  ASSERT_TRUE(parse_mount_options("nodiratime", options).ok());
  EXPECT_EQ(options.atime, volume::AtimeMode::kNoDirAtime);
  ASSERT_TRUE(parse_mount_options("noatime,nodiratime", options).ok());
  EXPECT_EQ(options.atime, volume::AtimeMode::kNoAtime);
}

TEST(MountOptions, LaterWordsWin) {
  MountOptions options;
  ASSERT_TRUE(parse_mount_options("ro,rw,cache=16M,cache=32M,noatime,relatime", options).ok());
  EXPECT_FALSE(options.read_only);
  EXPECT_EQ(options.cache_bytes, std::optional(std::uint64_t{32} << 20));
  EXPECT_EQ(options.atime, volume::AtimeMode::kRelatime);
}

TEST(MountOptions, NonsenseIsNamed) {
  for (const char* word :
       {"cache",    "cache=",       "model=",       "trace",       "cache=1",      "cache=-1", "cache=999999999999T",
        "cache=1Q", "commit=0",     "commit=x",     "commit=-5",   "commit=99999", "ro=1",     "log",
        "log=loud", "max_window=1", "staging=here", "staging=",    "bogus",        "cach=1G",  "=",
        "io_uring", "io_uring=1",   "channel=auto", "allow_others"}) {
    MountOptions options;
    const Status status = parse_mount_options(word, options);
    ASSERT_FALSE(status.ok()) << word;
    EXPECT_EQ(status.error().message().find('\n'), std::string::npos);
  }
}

TEST(MountOptions, ARangeIsSaidWhateverIsWrongWithTheValue) {
  const std::pair<const char*, const char*> cases[] = {
      {"commit", "1 to 3600 seconds"}, {"cache", "16 MiB to 16 TiB"}, {"max_window", "1 MiB to 16 TiB"}};
  for (const auto& [name, range] : cases)
    for (const char* value : {"0", "-1", "x", "99999999999999999999", "17179869185K"}) {
      MountOptions options;
      const Status status = parse_mount_options(fmt::format("{}={}", name, value), options);
      ASSERT_FALSE(status.ok()) << name << " " << value;
      EXPECT_EQ(status.error().code, Errc::kUsage);
      EXPECT_NE(status.error().where.find(fmt::format("mount option {}={}: ", name, value)), std::string::npos);
      EXPECT_NE(status.error().where.find(range), std::string::npos) << status.error().where;
    }
}

TEST(MountOptions, StreamsTakeAShareOfTheDisksOrNone) {
  MountOptions options;
  EXPECT_EQ(options.streams_limit, std::optional(0.8));
  ASSERT_TRUE(parse_mount_options("streams=0.25", options).ok());
  EXPECT_EQ(options.streams_limit, std::optional(0.25));
  ASSERT_TRUE(parse_mount_options("streams=off", options).ok());
  EXPECT_EQ(options.streams_limit, std::nullopt);
  for (const char* word : {"streams", "streams=", "streams=1", "streams=0", "streams=0.04", "streams=-0.5",
                           "streams=0.5x", "streams=nan", "streams=inf", "streams=on", "streams=80%"}) {
    const Status status = parse_mount_options(word, options);
    EXPECT_EQ(status.ok() ? "" : std::string(info(status.error().code).name), "usage") << word;
  }
  EXPECT_EQ(options.streams_limit, std::nullopt);
}

TEST(MountOptions, ACephUserIsNamedWithoutItsType) {
  MountOptions options;
  ASSERT_TRUE(parse_mount_options("ceph_conf=/etc/ceph/lab.conf,ceph_id=lab", options).ok());
  EXPECT_EQ(options.ceph_conf, "/etc/ceph/lab.conf");
  EXPECT_EQ(options.ceph_id, "lab");
  for (const char* const wrong : {"ceph_conf=", "ceph_id=", "ceph_id=client.lab"})
    EXPECT_EQ(parse_mount_options(wrong, options).error().code, Errc::kUsage) << wrong;
}

TEST(MountOptions, TheTableNamesWhatIsParsed) {
  for (const MountOptionInfo& info : mount_option_table()) {
    MountOptions options;
    std::string word(info.name);
    if (info.value == "SIZE") word += "=64M";
    if (info.value == "SECONDS") word += "=7";
    if (info.value == "DIRECTORY") word += "=/tmp";
    if (info.value == "LEVEL") word += "=info";
    if (info.value == "POLICY") word += "=near";
    if (info.value == "HOW") word += "=zero";
    if (info.value == "USE") word += "=on";
    if (info.value == "NAME") word += "=lab";
    if (info.value == "SHARE") word += "=0.5";
    if (info.value == "MACHINE" || info.value == "FILE") word += "=" + std::string(info.name);
    EXPECT_TRUE(parse_mount_options(word, options).ok()) << word;
    EXPECT_FALSE(info.help.empty());
  }
}

TEST(MountOptions, EveryListedChoiceIsParsed) {
  unsigned listed = 0;
  for (const MountOptionInfo& info : mount_option_table()) {
    for (std::string_view rest = info.choices; !rest.empty(); ++listed) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      MountOptions options;
      const std::string word = fmt::format("{}={}", info.name, rest.substr(0, comma));
      EXPECT_TRUE(parse_mount_options(word, options).ok()) << word;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  EXPECT_GE(listed, 10U);  // errors, policy, log
}

TEST(MountOptions, ZerosForWhatIsLostAreForReadingAlone) {
  for (const auto& [words, fit] : {std::pair{"errors=zero", false},
                                   {"errors=zero,ro", true},
                                   {"ro,errors=zero,rw", false},
                                   {"errors=zero,errors=eio", true},
                                   {"", true}}) {
    MountOptions options;
    ASSERT_TRUE(parse_mount_options(words, options).ok()) << words;
    EXPECT_EQ(check_mount_options(options).ok(), fit) << words;
  }
  MountOptions options;
  for (const char* word : {"errors", "errors=", "errors=zeros", "errors=ZERO"})
    EXPECT_FALSE(parse_mount_options(word, options).ok()) << word;
}

}  // namespace
}  // namespace mdfs::fuse
