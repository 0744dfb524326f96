// Runs one fuzz target without libFuzzer: over its seeds, and over simple changes of each.
// usage: fuzz_NAME [--changes N] FILE|DIRECTORY...
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

// What is being run, for the handler of a crash.
char current[512] = "";

extern "C" void name_the_input(int signal) {
  std::fputs(current, stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

using Input = std::vector<std::uint8_t>;

Input read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void change(Input& input, std::mt19937_64& generator) {
  for (auto edits = 1 + generator() % 4; edits > 0; --edits) {
    const std::size_t at = input.empty() ? 0 : generator() % input.size();
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    switch (input.empty() ? 0 : generator() % 6) {
      case 0:
        input.insert(place, static_cast<std::uint8_t>(generator()));
        break;
      case 1:
        input.erase(place,
                    place + static_cast<std::ptrdiff_t>(std::min<std::size_t>(input.size() - at, 1 + generator() % 8)));
        break;
      case 2:
        input[at] ^= static_cast<std::uint8_t>(1u << generator() % 8);
        break;
      case 3:
        input[at] = generator() % 2 == 0 ? 0 : 0xff;
        break;
      default:
        std::fill_n(place, std::min<std::size_t>(input.size() - at, 8), generator() % 2 == 0 ? 0 : 0xff);
        break;
    }
  }
}

void run(const std::filesystem::path& path, unsigned changes) {
  const Input seed = read(path);
  for (unsigned i = 0; i <= changes; ++i) {
    std::snprintf(current, sizeof current, "%s, change %u\n", path.c_str(), i);
    Input input = seed;
    std::mt19937_64 generator(i);
    if (i > 0) change(input, generator);
    // A copy of exactly that size, so that a sanitizer sees a step beyond it.
    const std::vector<std::uint8_t> exact(input.begin(), input.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  unsigned changes = 0;
  std::vector<std::filesystem::path> inputs;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--changes") == 0 && i + 1 < argc) {
      changes = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
    } else if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) inputs.push_back(entry.path());
    } else {
      inputs.emplace_back(argv[i]);
    }
  }
  std::sort(inputs.begin(), inputs.end());
  std::signal(SIGABRT, name_the_input);
#ifndef __SANITIZE_ADDRESS__  // which reports these itself
  for (const int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, name_the_input);
#endif
  for (const auto& path : inputs) run(path, changes);
  std::printf("%zu seeds, %u changes of each\n", inputs.size(), changes);
  return inputs.empty() ? 1 : 0;
}
