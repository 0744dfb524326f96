// A source that decodes a band of rows at a time, and is read in pieces of any size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "imagefile/image_file.h"

namespace mdfs::imagefile {

// Derived classes decode bands; read() copies out of them. One thread.
class BandSource : public ImageSource {
 public:
  Status read(MutableBytes into) final;

 protected:
  // Fills band_ with the canonical bytes of the next rows, at least one byte.
  virtual Status next_band() = 0;

  ByteVector band_;

 private:
  std::size_t used_ = 0;  // bytes of band_
};

}  // namespace mdfs::imagefile
