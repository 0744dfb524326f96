// Operations on a volume as words: "write /f 4000 6000; rename /f /g; fsync /g". What crash tests run, print and
// replay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "volume/operations.h"
#include "volume/volume.h"

namespace mdfs::crash {

// What the oracle must know of an operation beyond what it did.
enum class Effect : std::uint8_t {
  kNames,      // the tree of names and attributes, at once
  kWrite,      // plain bytes of one file, written or punched: a crash may show a part of them
  kData,       // data of one file, whole or not at all
  kReplace,    // a rename over another: the source's data come with it
  kFsync,      // one file's data, and all names
  kSync,       // everything
  kWriteBack,  // data reach the tree, but nothing is promised
};

struct Operation {
  std::string verb;
  std::vector<std::string> arguments;
  Effect effect() const;
  std::string text() const;
};

// "verb argument argument; verb ..."; kUsage names the verb that is unknown or short of arguments.
Result<std::vector<Operation>> parse_operations(std::string_view text);
std::string to_text(const std::vector<Operation>& operations);

// Runs operations; bytes written are made from the number of the operation, so that each can be told apart.
class Runner {
 public:
  explicit Runner(volume::Volume& volume) : volume_(volume) {}
  ~Runner();  // releases what "hold" holds
  Status run(const Operation& operation, unsigned number);
  // The inode that the first path leads to, 0 if none.
  volume::Ino target(const Operation& operation);

 private:
  struct Place {
    volume::Ino parent = 0;
    std::string name;
  };
  Result<Place> place(const std::string& path);
  Result<volume::Ino> find(const std::string& path);
  Status run_operation(const Operation& operation, const volume::OperationRequest& request, std::uint64_t steps);
  Status scrub(const Operation& operation, std::uint64_t steps);
  Status defragment(const Operation& operation, std::uint64_t steps);
  Status change_disks(const Operation& operation, std::uint64_t steps);
  Status protect(const Operation& operation, std::uint64_t steps);
  Status form_groups(const Operation& operation, std::uint64_t steps);
  Status keep_disk(const Operation& operation);
  Status relocate_home();
  Status become_image(volume::Ino ino);
  Status run_names(const Operation& operation);
  Status run_move(const Operation& operation, unsigned number);
  Status run_data(const Operation& operation, unsigned number);

  volume::Volume& volume_;
  std::vector<volume::Ino> held_;
};

// The files on which workloads work, made and synced: /f of 9000 bytes, /g of 100, /d/h of 5000, /image of 64x64 in
// four extents, /big of 300 000, /stack of three frames of 64x64 in strips of four extents.
Status make_base(volume::Volume& volume);
// Reads all stored levels of an image, which builds them. kCorrupt: they are not the reductions of the image.
Status check_levels(volume::Volume& volume, volume::Ino ino);
// The operations of which sequences are made; some are several calls.
std::vector<std::string> set_of_operations();
// More of them, for images whose extents share parities.
std::vector<std::string> set_of_parity_operations();

}  // namespace mdfs::crash
