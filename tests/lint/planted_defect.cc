// A defect that a sanitizer must report: one write behind a buffer, and one value that two threads change. `./dev asan`
// and `./dev tsan` run it in the background before the tests.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <thread>

int main(int argc, char**) {
  const auto buffer = std::make_unique<char[]>(static_cast<std::size_t>(argc));
  volatile char* behind = buffer.get() + argc;
  int raced = 0;
  std::thread other([&] { ++raced; });
  ++raced;
  other.join();
#ifndef __SANITIZE_THREAD__  // which does not see it, while the heap does
  *behind = static_cast<char>(raced);
#else
  static_cast<void>(behind);
#endif
  return 0;
}
