// Many threads at once, with the background threads at work: nothing is lost, mixed up or left behind.
// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <thread>

#include "fixture.h"

namespace mdfs::volume {
namespace {

VolumeOptions busy_options() {
  VolumeOptions options;
  options.engine.cache_bytes = 4u << 20;
  options.engine.decode_threads = 2;
  options.commit_interval_ns = 3'000'000;
  return options;
}

class ThreadsTest : public VolumeTest {
 protected:
  ThreadsTest() {
    EXPECT_OK(volume().close());
    volume_.reset();
    volume_ = std::move(test::open_volume(test::borrowed(disks_), busy_options(), system_)).value();
  }
  void run(unsigned threads, const std::function<void(unsigned)>& work) {
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i) running.emplace_back(work, i);
    for (std::thread& thread : running) thread.join();
  }
};

TEST_F(ThreadsTest, NamesThatComeAndGoInOneDirectoryLeaveAConsistentTree) {
  const Ino d = make_directory("d"), e = make_directory("e");
  run(4, [&](unsigned thread) {
    std::mt19937 random(thread);
    for (int i = 0; i < 300; ++i) {
      const std::string name = "n" + std::to_string(random() % 10), other = "n" + std::to_string(random() % 10);
      const Ino parent = random() % 2 == 0 ? d : e, to = random() % 2 == 0 ? d : e;
      switch (random() % 6) {
        case 0: {
          const auto made = volume().make_node(parent, name, S_IFREG | 0644, 0, root_);
          if (!made.ok()) break;
          EXPECT_OK(volume().write(made->ino, 0, as_bytes(std::string(5000, 'x')), false));
          volume().forget(made->ino, 1);
          break;
        }
        case 1: {
          const auto found = volume().lookup(parent, name);
          if (!found.ok()) {
            EXPECT_EQ(found.error().code, Errc::kNotFound);
            break;
          }
          if (S_ISREG(found->mode) && volume().open_file(found->ino, random() % 4 == 0).ok()) {
            ByteVector bytes(6000);
            EXPECT_OK(volume().read(found->ino, 0, bytes));
            volume().release_file(found->ino);
          }
          volume().forget(found->ino, 1);
          break;
        }
        case 2:
          (void)volume().unlink(parent, name).ok();
          break;
        case 3:
          (void)volume().rename(parent, name, to, other, RenameMode::kReplace).ok();
          break;
        case 4: {
          const auto made = volume().make_directory(parent, name, 0755, root_);
          if (made.ok()) volume().forget(made->ino, 1);
          break;
        }
        default:
          (void)volume().remove_directory(parent, name).ok();
          (void)volume().read_directory(parent, 0, 100).ok();
      }
    }
  });
  EXPECT_OK(volume().close());
  volume_.reset();
  volume_ = std::move(test::open_volume(test::borrowed(disks_), busy_options(), system_)).value();
  EXPECT_OK(test::read_tree(volume()));
  EXPECT_EQ(test::find_inconsistency(volume(), false), "");
}

TEST_F(ThreadsTest, EachThreadsFileHoldsItsOwnBytes) {
  run(4, [&](unsigned thread) {
    const Ino f = make_file("f" + std::to_string(thread));
    std::string model;
    std::mt19937 random(thread);
    for (int i = 0; i < 60; ++i) {
      const std::string text(random() % 50000, static_cast<char>('a' + thread));
      const std::size_t offset = random() % 100000;
      EXPECT_OK(volume().write(f, offset, as_bytes(text), false));
      if (!text.empty()) model.resize(std::max(model.size(), offset + text.size()));
      if (!text.empty()) model.replace(offset, text.size(), text);
      if (i % 20 == 7) EXPECT_OK(volume().fsync(f, false));
      if (i % 20 == 13) {
        EXPECT_OK(volume().set_attributes(f, {.size_bytes = 60000}));
        model.resize(60000);
      }
      EXPECT_EQ(read(f), model);
    }
  });
}

TEST_F(ThreadsTest, AWindowIsSeenWholeOrNotAtAll) {
  const Ino ino = make_file("i");
  ImageOptions options;
  options.geometry.rank = 2;
  options.geometry.shape = {64, 64};
  options.geometry.extent = {16, 16};
  options.geometry.axes = "yx";
  ASSERT_OK(volume().make_image(ino, options));
  geometry::Window part;
  part.start = {8, 8};
  part.length = {40, 40};
  run(4, [&](unsigned thread) {
    for (int i = 0; i < 50; ++i) {
      if (thread < 2) {
        const std::byte value{static_cast<unsigned char>(1 + thread * 100 + i)};
        EXPECT_OK(volume().write_window(ino, part, [&](std::uint64_t, MutableBytes into) -> Status {
          std::fill(into.begin(), into.end(), value);
          return {};
        }));
      } else {
        ByteVector bytes(1600);
        EXPECT_OK(volume().read_window(ino, part, 0, bytes));
        EXPECT_EQ(std::count(bytes.begin(), bytes.end(), bytes[0]), 1600);
      }
    }
  });
}

// The end of the fixture commits what this test leaves behind, with the time and the random numbers of the environment.
TEST_F(ThreadsTest, AVolumeWithDirtyFilesIsClosedByItsDestructor) {
  for (int i = 0; i < 50; ++i) write(make_file("f" + std::to_string(i)), 0, "text");
}

TEST_F(ThreadsTest, OrphansAreFreedInTheBackground) {
  for (int i = 0; i < 50; ++i) {
    const Ino f = make_file("f" + std::to_string(i));
    write(f, 0, std::string(100'000, 'x'));
    EXPECT_OK(volume().unlink(kRootIno, "f" + std::to_string(i)));
    volume().forget(f, 1);
  }
  for (int i = 0; i < 1000 && volume().space().objects > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(volume().space().objects, 1u);
}

}  // namespace
}  // namespace mdfs::volume
