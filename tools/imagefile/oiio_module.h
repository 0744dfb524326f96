// Interface of mdfs_oiio.so: OpenImageIO needs hundreds of libraries, so MDFS loads it only for pictures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "imagefile/image_file.h"
#include "imagefile/page_facts.h"
#include "mdfs/version.h"

namespace mdfs::imagefile {

// Both sides must come from one build: a module of another version is not called.
struct OiioModule {
  const char* version;
  // As open_oiio(), create_oiio() and describe_by_oiio() of oiio.h.
  Result<std::unique_ptr<ImageSource>> (*open)(const std::string& path, std::optional<unsigned> page,
                                               const PageFacts& facts);
  Result<std::unique_ptr<ImageSink>> (*create)(const std::string& path, const ArrayInfo& array, bool overwrite,
                                               const Metadata& metadata);
  std::vector<MetadataField> (*describe)(const Metadata& metadata);
};

}  // namespace mdfs::imagefile

extern "C" __attribute__((visibility("default"))) const mdfs::imagefile::OiioModule mdfs_oiio_module;
