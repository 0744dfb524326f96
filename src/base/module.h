// Parts of a program that are loaded when they are first used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

#include "base/result.h"
#include "mdfs/version.h"

namespace mdfs {

// The structure `symbol` of a library in the program's run path; its first member, `version`, is that of MDFS. Stays
// loaded: what it made lives in it. kNotSupported: `what` is not installed, or belongs to another version.
template <typename Module>
Result<const Module*> load_module(const char* file, const char* symbol, std::string_view what) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{Errc::kNotSupported, fmt::format("{} cannot be loaded: {}", what, ::dlerror())};
  const auto* const module = static_cast<const Module*>(::dlsym(library, symbol));
  if (module == nullptr || std::string_view(module->version) != MDFS_VERSION_STRING)
    return Error{Errc::kNotSupported, fmt::format("{} belongs to another version of MDFS", file)};
  return module;
}

}  // namespace mdfs
