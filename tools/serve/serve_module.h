// The interface of mdfs_serve.so, the web server, to the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace mdfs::serve {

struct Options {
  int root = -1;  // a directory; nothing outside of it is served
  std::string host;
  int port = 0;  // 0: any
};

// The symbol mdfs_serve_module.
struct Module {
  const char* version;  // of MDFS
  // Serves until the process ends. `listening` is called once, with the port.
  Status (*serve)(const Options& options, const std::function<void(int port)>& listening);
};

}  // namespace mdfs::serve
