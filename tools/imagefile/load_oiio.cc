// Loads the module for OpenImageIO when the first picture is read or written.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "imagefile/oiio.h"
#include "imagefile/oiio_module.h"

namespace mdfs::imagefile {
namespace {

// Found in the program's run path. Stays loaded: what it made lives in it.
Result<const OiioModule*> load() {
  void* library = ::dlopen("mdfs_oiio.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{Errc::kNotSupported, std::string("OpenImageIO cannot be loaded: ") + ::dlerror()};
  const auto* module = static_cast<const OiioModule*>(::dlsym(library, "mdfs_oiio_module"));
  if (module == nullptr || std::string_view(module->version) != MDFS_VERSION_STRING)
    return Error{Errc::kNotSupported, "mdfs_oiio.so belongs to another version of MDFS"};
  return module;
}

Result<const OiioModule*> loaded(const std::string& path) {
  static const Result<const OiioModule*> module = load();
  if (module.ok()) return *module;
  return Error{module.error().code, path + ": " + module.error().where};
}

}  // namespace

Result<std::unique_ptr<ImageSource>> open_oiio(const std::string& path, std::optional<unsigned> page,
                                               const PageFacts& facts) {
  MDFS_TRY_ASSIGN(const OiioModule* module, loaded(path));
  return module->open(path, page, facts);
}

Result<std::unique_ptr<ImageSink>> create_oiio(const std::string& path, const ArrayInfo& array, bool overwrite) {
  MDFS_TRY_ASSIGN(const OiioModule* module, loaded(path));
  return module->create(path, array, overwrite);
}

}  // namespace mdfs::imagefile
