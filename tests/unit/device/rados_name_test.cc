// Names, headers, descriptors and holders of disks in RADOS: all that needs no cluster.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_name.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "device/open.h"
#include "device/rados/lock_holder.h"
#include "device/rados/rados_description.h"
#include "device/rados/rados_header.h"
#include "temp_dir.h"

namespace mdfs::device {
namespace {

TEST(RadosNameTest, ANameHasAPoolAndPerhapsANamespace) {
  const RadosName plain = RadosName::parse("rados:pool0/v").value();
  EXPECT_EQ(plain.pool, "pool0");
  EXPECT_EQ(plain.name_space, "");
  EXPECT_EQ(plain.header_object(), "v");
  EXPECT_EQ(plain.data_object(0x1f), "v.000000000000001f");
  const RadosName spaced = RadosName::parse("rados:p/lab-3/v.1").value();
  EXPECT_EQ(spaced.name_space, "lab-3");
  EXPECT_EQ(spaced.name, "v.1");
}

TEST(RadosNameTest, TheObjectsOfADiskAreNotThoseOfAnother) {
  const RadosName name = RadosName::parse("rados:pool/v").value();
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{0x1f}, UINT64_MAX})
    EXPECT_TRUE(name.is_data_object(name.data_object(number)));
  for (const char* const other :
       {"v", "", "v.", "v.1f", "w.000000000000001f", "v2.000000000000001f", "v.000000000000001F", "v.00000000000000011",
        "v-000000000000001f", "v.x.000000000000001f"})
    EXPECT_FALSE(name.is_data_object(other)) << other;
}

TEST(RadosNameTest, OtherTextsAreRefusedWithTheRule) {
  for (const std::string text : {"rados:", "rados:p", "rados:p/", "rados:/v", "rados:p//v", "rados:p/n/v/w",
                                 "rados:p/ü", "rados:p/a b", "rados:p/v.0000000000000001", "disk"}) {
    const auto name = RadosName::parse(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(name.error().where.starts_with(text)) << name.error().where;
  }
  EXPECT_FALSE(RadosName::parse("rados:p/" + std::string(101, 'a')).ok());
  EXPECT_FALSE(is_path("rados:p"));
  EXPECT_TRUE(is_path("./rados:p/v"));
  EXPECT_TRUE(is_remote("rados:p/v"));
  EXPECT_FALSE(is_remote("/dev/null"));
}

TEST(RadosHeaderTest, AHeaderIsReadBackAndEveryOtherTextIsNamed) {
  const RadosHeader header{std::uint64_t{1} << 40, 4u << 20};
  EXPECT_EQ(encode_rados_header(header), "mdfs-disk 1 1099511627776 4194304\n");
  EXPECT_EQ(decode_rados_header("d", encode_rados_header(header)).value(), header);
  const auto code = [](std::string_view text) { return decode_rados_header("d", text).error().code; };
  EXPECT_EQ(code(""), Errc::kForeignDisk);
  EXPECT_EQ(code("rbd_data"), Errc::kForeignDisk);
  EXPECT_EQ(code("mdfs-disk x"), Errc::kForeignDisk);
  EXPECT_EQ(code("mdfs-disk 2 anything"), Errc::kNewerFormat);
  for (const std::string_view text :
       {"mdfs-disk 1 4096 4194304", "mdfs-disk 1 4096 4194304\n\n", "mdfs-disk 1 4097 4194304\n",
        "mdfs-disk 1 0 4194304\n", "mdfs-disk 1 4096 4194305\n", "mdfs-disk 1 4096 4096\n", "mdfs-disk 1 -1 4194304\n",
        "mdfs-disk 1 99999999999999999999 4194304\n", "mdfs-disk 1 2305843009213693952 4194304\n"})
    EXPECT_EQ(code(text), Errc::kCorrupt) << text;
}

TEST(RadosDescriptionTest, ADescriptorCarriesAllThatItWasMadeOfAndOnlyMemoryThatWasSealedIsOne) {
  const RadosDescription description{"rados:p/v", OpenMode::kReadOnly, "client.lab", "c2VjcmV0", "[global]\na = b\n"};
  const UniqueFd fd = make_rados_descriptor(description).value();
  EXPECT_TRUE(is_rados_descriptor(fd.get()));
  EXPECT_EQ(read_rados_descriptor(fd.get()).value(), description);
  EXPECT_FALSE(make_rados_descriptor({"rados:p/v\n", OpenMode::kLook, "", "", ""}).ok());

  const test::TempDir dir;
  const std::string path = dir.path() / "copy";
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(::pread(fd.get(), text.data(), text.size(), 0)));
  std::ofstream(path) << text;
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(is_rados_descriptor(file.get()));
  EXPECT_FALSE(read_rados_descriptor(file.get()).ok());
  const UniqueFd unsealed(::memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(is_rados_descriptor(unsealed.get()));
  EXPECT_FALSE(is_rados_descriptor(-1));
}

TEST(RadosDescriptionTest, TheKeyOfAUserIsThatOfItsSection) {
  constexpr const char* kKeyring =
      "[client.other]\n\tkey = no\n\n[client.lab]\n\tcaps mon = \"allow r\"\n\tkey = A+b/c==\n[client.last]\nkey=x\n";
  EXPECT_EQ(key_in_keyring(kKeyring, "client.lab"), "A+b/c==");
  EXPECT_EQ(key_in_keyring(kKeyring, "client.last"), "x");
  EXPECT_EQ(key_in_keyring(kKeyring, "client.la"), "");
  EXPECT_EQ(key_in_keyring("", "client.lab"), "");
}

TEST(LockHolderTest, ACookieIsReadBackAndThatOfAnotherProgramIsNot) {
  const LockHolder self = LockHolder::self("token");
  EXPECT_EQ(LockHolder::parse(self.cookie()), self);
  EXPECT_NE(self.text().find(std::to_string(::getpid())), std::string::npos);
  for (const std::string_view text : {"", "auto 1234", "mdfs1|h|b|1|2|3", "mdfs1|h|b|x|2|3|t", "mdfs1|h|b|1|2|3|t|u"})
    EXPECT_FALSE(LockHolder::parse(text)) << text;
}

TEST(LockHolderTest, OnlyAProcessOfThisMachineThatHasEndedIsDead) {
  const LockHolder self = LockHolder::self("token");
  EXPECT_FALSE(is_dead(self, self));
  LockHolder other = self;
  other.start = self.start + 1;  // the number was given to another process
  EXPECT_TRUE(is_dead(other, self));
  other.boot = "another machine, or before a restart";
  EXPECT_FALSE(is_dead(other, self));
  other = self;
  other.process_space = self.process_space + 1;
  other.start = self.start + 1;
  EXPECT_FALSE(is_dead(other, self));

  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  LockHolder ended = self;
  ended.process = static_cast<std::uint64_t>(child);
  ended.start = 1;
  std::string field;
  for (int i = 0; i < 22; ++i) stat >> field;
  ended.start = std::stoull(field);
  EXPECT_FALSE(is_dead(ended, self));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_dead(ended, self));
}

}  // namespace
}  // namespace mdfs::device
