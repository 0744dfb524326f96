// Writes the sample volume of the checker's tests into three files, for the decoder: make_volume FOLDER.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>
#include <string>

#include "../unit/store/check/lab.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  mdfs::store::Lab lab;
  lab.protect_image();
  lab.protect_cells();
  if (testing::Test::HasFailure()) return 1;
  for (std::size_t i = 0; i < lab.disks.size(); ++i) {
    mdfs::ByteVector bytes(lab.disks[i]->size_bytes());
    lab.disks[i]->peek(0, bytes);
    std::ofstream file(fmt::format("{}/disk{}", argv[1], i), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) return 1;
  }
  return 0;
}
