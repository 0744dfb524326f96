// The build without OpenImageIO: says what is missing.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/oiio.h"

namespace mdfs::imagefile {

Result<std::unique_ptr<ImageSource>> open_oiio(const std::string& path, std::optional<unsigned>, const PageFacts&) {
  return Error{
      Errc::kNotSupported,
      path + ": not NPY or PNM, and this MDFS was built without OpenImageIO; raw samples require --shape and --type"};
}

Result<std::unique_ptr<ImageSink>> create_oiio(const std::string& path, const ArrayInfo&, bool, const Metadata&) {
  return Error{Errc::kNotSupported,
               path + ": not .raw, .npy, .pgm or .ppm, and this MDFS was built without OpenImageIO"};
}

std::vector<MetadataField> describe_by_oiio(const Metadata&) { return {}; }

}  // namespace mdfs::imagefile
