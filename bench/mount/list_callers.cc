// Threads that ask for lists of an image again and again, as long as standard input is open.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <mdfs/ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "timed_image.h"

namespace {

// Its extents page by page; every second thread also wants its fragmentation.
void ask(const std::string& image, bool both, const std::atomic<bool>& ended, std::atomic<unsigned long>& answers) {
  const int fd = ::open(image.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) bench::die_errno(image);
  while (!ended) {
    mdfs_ioc_layout page{};
    do {
      if (::ioctl(fd, MDFS_IOC_LAYOUT, &page) != 0) bench::die_errno("MDFS_IOC_LAYOUT");
      ++answers;
    } while (!ended && page.count > 0);
    mdfs_ioc_fragmentation fragmentation{};
    if (both && !ended && ::ioctl(fd, MDFS_IOC_FRAGMENTATION, &fragmentation) != 0)
      bench::die_errno("MDFS_IOC_FRAGMENTATION");
  }
  ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  std::string image;
  unsigned threads = 64;
  CLI::App app("Asks for lists of an image until standard input ends; prints how many answers came.");
  app.add_option("IMAGE", image)->required();
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  std::atomic<bool> ended{false};
  std::atomic<unsigned long> answers{0};
  std::vector<std::thread> callers;
  for (unsigned i = 0; i < threads; ++i) callers.emplace_back([&, i] { ask(image, i % 2 == 1, ended, answers); });
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
  ended = true;
  for (std::thread& caller : callers) caller.join();
  std::printf("%lu\n", answers.load());
}
