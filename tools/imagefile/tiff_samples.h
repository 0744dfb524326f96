// Samples of TIFF files, read without libtiff and OpenImageIO, which overlook damage.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "imagefile/image_file.h"
#include "imagefile/tiff_directory.h"
#include "support/file.h"

namespace mdfs::imagefile {

// True if open_tiff_samples() can read this page as samples of `type` and `channels`: no YCbCr, no Lab, chunky or in
// planes, and a compression of chunk_stream.h. Samples of 1 to 7 and 9 to 15 bits are spread over 8 and 16 bits.
// Unsigned samples of a page in which 0 is white are inverted. Indices of a palette become RGB.
bool is_plain_tiff(const TiffLayout& layout, geometry::ElementType type, std::uint64_t channels);

bool has_palette(const TiffLayout& layout);
// Refuses a palette that open_tiff_samples() does not decode. The error tells the field and what is allowed, but
// neither the file nor the page.
Status check_tiff_palette(const TiffLayout& layout);

// Integers of 33 to 64 bits.
bool holds_long_integers(const TiffLayout& layout);

// Reads the pages of `array` from `first_page` on, each of which is plain. `file` is a file that parse_tiff() accepted.
// Holds a row of tiles, or about 1 MiB of strips. A strip or tile whose stream is damaged, or that does not have
// exactly the bytes of its rows, is an error.
std::unique_ptr<ImageSource> open_tiff_samples(tools::File file, std::uint64_t size_bytes, TiffFile tiff,
                                               ArrayInfo array, std::uint64_t first_page);

// Decodes all chunks of a page, and reports damage as open_tiff_samples() does, for pages that another library reads.
// Refuses compressions whose damage cannot be found: those that are neither known here nor JPEG.
Status verify_tiff_page(ByteSource& bytes, const TiffFile& tiff, std::uint64_t page, const std::string& name);

}  // namespace mdfs::imagefile
