// Metadata from and to the fields that OpenImageIO gives and takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <OpenImageIO/imageio.h>

#include <string_view>
#include <vector>

#include "imagefile/metadata.h"

namespace mdfs::imagefile {

// TIFF has no end to its description: it is a block of its own, and belongs to all pages (`is_whole`).
Metadata metadata_of(std::string_view format, OIIO::ImageSpec spec, bool is_whole);
void put_metadata(const Metadata& metadata, OIIO::ImageSpec& spec);
// Takes away what lies in the directories of EXIF and GPS, which the library writes in part.
void erase_exif_directories(OIIO::ImageSpec& spec);
// True if libpng takes the bytes for an ICC profile of a picture with so many channels.
bool is_icc_of(std::string_view profile, int channels);
// True if the library was found to write this block in this format, or MDFS adds the block.
bool holds_block(std::string_view format, std::string_view block);
// 10 or 12 for samples of 16 bits that a DPX file is to hold in so many; else 0.
unsigned film_bits(std::string_view format, const OIIO::ImageSpec& spec, const Metadata& metadata);
std::vector<MetadataField> describe_blocks(const Metadata& metadata);

}  // namespace mdfs::imagefile
