// A loop device on a file, for as long as the object lives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace mdfs::test {

class LoopDevice {
 public:
  explicit LoopDevice(const std::string& file) : path_(output_of("losetup --find --show " + file)) {}
  ~LoopDevice() {
    if (!path_.empty()) output_of("losetup --detach " + path_);
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;
  // Empty: none can be made here, which needs root.
  const std::string& path() const { return path_; }

 private:
  static std::string output_of(const std::string& command) {
    std::string text;
    if (FILE* pipe = ::popen(("PATH=$PATH:/sbin:/usr/sbin " + command + " 2>/dev/null").c_str(), "r")) {
      char line[256];
      while (std::fgets(line, sizeof line, pipe) != nullptr) text += line;
      ::pclose(pipe);
    }
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  const std::string path_;
};

}  // namespace mdfs::test
