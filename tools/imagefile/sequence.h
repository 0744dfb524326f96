// Numbered files (shot.%04d.dpx) as one image with an axis of frames.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "imagefile/image_file.h"

namespace mdfs::imagefile {

// A name with one %d or %0Nd (N = 1..9) in its last part.
struct Pattern {
  std::string folder;  // with the slash at its end, or empty
  std::string prefix, suffix;
  unsigned digits = 0;  // 0: no padding

  std::string path(std::uint64_t frame) const;
};

// Nothing if the name has no %; an error unless it has a single %d or %0Nd.
Result<std::optional<Pattern>> parse_pattern(const std::string& path);
// Numbers of the existing files, ascending.
Result<std::vector<std::uint64_t>> find_frames(const Pattern& pattern);

// All frames must have one shape and type. Without options.frames the existing files must be consecutive.
Result<std::unique_ptr<ImageSource>> open_sequence(const Pattern& pattern, const SourceOptions& options);
// One file for each step of the slowest axis, numbered from the first frame of the metadata, else from 0.
Result<std::unique_ptr<ImageSink>> create_sequence(const Pattern& pattern, const ArrayInfo& array, bool overwrite,
                                                   const Metadata& metadata);

}  // namespace mdfs::imagefile
