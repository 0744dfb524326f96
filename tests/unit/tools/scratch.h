// A scratch folder for tests of image files, and whole files in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include "imagefile/image_file.h"
#include "temp_dir.h"

namespace mdfs::imagefile {

class ScratchTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  std::string get(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }

  static ByteVector random_bytes(std::size_t count, unsigned seed = 1) {
    std::mt19937 generator(seed);
    ByteVector bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
    return bytes;
  }

  // Writes `bytes` in uneven pieces of whole elements.
  static Status write_all(const std::string& path, const ArrayInfo& array, ConstBytes bytes, bool overwrite = false) {
    MDFS_TRY_ASSIGN(auto sink, create_sink(path, array, overwrite));
    const std::size_t element = geometry::element_bytes(array.type);
    for (std::size_t at = 0, step = element; at < bytes.size(); at += step, step = step * 3 + element)
      MDFS_TRY(sink->write(bytes.subspan(at, std::min(step, bytes.size() - at))));
    return sink->finish();
  }

  // Reads all in uneven pieces of whole elements.
  static Result<std::pair<ArrayInfo, ByteVector>> read_all(const std::string& path, const SourceOptions& options = {}) {
    MDFS_TRY_ASSIGN(auto source, open_source(path, options));
    MDFS_TRY_ASSIGN(const std::uint64_t size, array_bytes(source->array()));
    ByteVector bytes(size);
    const std::size_t element = geometry::element_bytes(source->array().type);
    for (std::size_t at = 0, step = element; at < bytes.size(); at += step, step = step * 3 + element)
      MDFS_TRY(source->read(MutableBytes(bytes).subspan(at, std::min(step, bytes.size() - at))));
    return std::pair(source->array(), std::move(bytes));
  }

  test::TempDir folder_;
};

}  // namespace mdfs::imagefile
