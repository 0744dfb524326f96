// Loads the module for OpenImageIO when the first picture is read or written.
// SPDX-License-Identifier: Apache-2.0
#include "base/module.h"
#include "imagefile/oiio.h"
#include "imagefile/oiio_module.h"

namespace mdfs::imagefile {
namespace {

Result<const OiioModule*> loaded(const std::string& path) {
  static const Result<const OiioModule*> module =
      load_module<OiioModule>("mdfs_oiio.so", "mdfs_oiio_module", "OpenImageIO");
  if (module.ok()) return *module;
  return Error{module.error().code, path + ": " + module.error().where};
}

}  // namespace

Result<std::unique_ptr<ImageSource>> open_oiio(const std::string& path, std::optional<unsigned> page,
                                               const PageFacts& facts) {
  MDFS_TRY_ASSIGN(const OiioModule* module, loaded(path));
  return module->open(path, page, facts);
}

Result<std::unique_ptr<ImageSink>> create_oiio(const std::string& path, const ArrayInfo& array, bool overwrite,
                                               const Metadata& metadata) {
  MDFS_TRY_ASSIGN(const OiioModule* module, loaded(path));
  return module->create(path, array, overwrite, metadata);
}

std::vector<MetadataField> describe_by_oiio(const Metadata& metadata) {
  const auto module = loaded("");
  return module.ok() ? (*module)->describe(metadata) : std::vector<MetadataField>();
}

}  // namespace mdfs::imagefile
