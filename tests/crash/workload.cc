// Operations on a volume as words.
// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <linux/falloc.h>
#include <sys/stat.h>

#include <charconv>
#include <map>
#include <sstream>

#include "geometry/level.h"
#include "geometry/reduce.h"

namespace mdfs::crash {

using volume::Ino;

namespace {

struct Verb {
  std::size_t arguments;
  Effect effect;
};

const std::map<std::string, Verb, std::less<>>& verbs() {
  static const std::map<std::string, Verb, std::less<>> kVerbs{
      {"create", {1, Effect::kNames}},        {"mkdir", {1, Effect::kNames}},
      {"symlink", {1, Effect::kNames}},       {"link", {2, Effect::kNames}},
      {"unlink", {1, Effect::kNames}},        {"rmdir", {1, Effect::kNames}},
      {"rename", {2, Effect::kReplace}},      {"exchange", {2, Effect::kReplace}},
      {"chmod", {2, Effect::kNames}},         {"xattr", {2, Effect::kNames}},
      {"hold", {1, Effect::kNames}},          {"write", {3, Effect::kWrite}},
      {"append", {2, Effect::kWrite}},        {"truncate", {2, Effect::kData}},
      {"punch", {3, Effect::kWrite}},         {"window", {5, Effect::kData}},
      {"fsync", {1, Effect::kFsync}},         {"sync", {0, Effect::kSync}},
      {"finalize", {0, Effect::kWriteBack}},  {"writeback", {0, Effect::kWriteBack}},
      {"move", {1, Effect::kWriteBack}},      {"scrub", {0, Effect::kNames}},
      {"scrub-begin", {1, Effect::kNames}},   {"drain", {1, Effect::kNames}},
      {"drain-begin", {2, Effect::kNames}},   {"keep", {1, Effect::kNames}},
      {"balance", {1, Effect::kNames}},       {"consolidate", {1, Effect::kWriteBack}},
      {"defrag", {0, Effect::kNames}},        {"defrag-begin", {1, Effect::kNames}},
      {"return", {0, Effect::kNames}},        {"become", {1, Effect::kNames}},
      {"levels", {1, Effect::kWriteBack}},    {"protect", {1, Effect::kNames}},
      {"protect-begin", {2, Effect::kNames}}, {"unprotect", {1, Effect::kNames}},
      {"parity", {1, Effect::kNames}},        {"group", {0, Effect::kNames}},
      {"group-begin", {1, Effect::kNames}},
  };
  return kVerbs;
}

std::uint64_t number_of(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

ByteVector bytes_of(unsigned number, std::size_t size) {
  ByteVector bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(1 + (number * 41 + i / 512 * 3 + i % 7) % 250);
  return bytes;
}

const volume::Caller kRoot;

}  // namespace

Effect Operation::effect() const { return verbs().find(verb)->second.effect; }

std::string Operation::text() const {
  std::string text = verb;
  for (const std::string& argument : arguments) text += " " + argument;
  return text;
}

std::string to_text(const std::vector<Operation>& operations) {
  std::string text;
  for (const Operation& operation : operations) text += (text.empty() ? "" : "; ") + operation.text();
  return text;
}

Result<std::vector<Operation>> parse_operations(std::string_view text) {
  std::vector<Operation> operations;
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ';');) {
    std::istringstream words(part);
    Operation operation;
    if (!(words >> operation.verb)) continue;
    for (std::string word; words >> word;) operation.arguments.push_back(word);
    const auto verb = verbs().find(operation.verb);
    if (verb == verbs().end() || verb->second.arguments != operation.arguments.size())
      return Error{Errc::kUsage, "operation '" + operation.text() + "'"};
    operations.push_back(std::move(operation));
  }
  return operations;
}

Runner::~Runner() {
  for (const Ino ino : held_) volume_.release_file(ino);
}

Result<Runner::Place> Runner::place(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  MDFS_TRY_ASSIGN(const Ino parent, find(path.substr(0, slash == std::string::npos ? 0 : slash)));
  return Place{parent, path.substr(slash + 1)};
}

Result<Ino> Runner::find(const std::string& path) {
  Ino at = volume::kRootIno;
  std::istringstream names(path);
  for (std::string name; std::getline(names, name, '/');) {
    if (name.empty()) continue;
    MDFS_TRY_ASSIGN(const volume::Attributes found, volume_.lookup(at, name));
    volume_.forget(found.ino, 1);
    at = found.ino;
  }
  return at;
}

Ino Runner::target(const Operation& operation) {
  if (operation.arguments.empty()) return 0;
  const auto ino = find(operation.arguments[0]);
  return ino.ok() ? *ino : 0;
}

Status Runner::run(const Operation& operation, unsigned number) {
  if (operation.verb == "sync") return volume_.sync();
  if (operation.verb == "finalize") return volume_.store().finalize();
  if (operation.verb == "writeback") return volume_.engine().write_back_all(0);
  if (operation.verb == "move") return run_move(operation, number);
  if (operation.verb == "scrub") return scrub(operation, UINT64_MAX);
  if (operation.verb == "scrub-begin") return scrub(operation, number_of(operation.arguments[0]));
  if (operation.verb == "drain") return change_disks(operation, UINT64_MAX);
  if (operation.verb == "drain-begin") return change_disks(operation, number_of(operation.arguments[1]));
  if (operation.verb == "balance") return change_disks(operation, UINT64_MAX);
  if (operation.verb == "defrag") return defragment(operation, UINT64_MAX);
  if (operation.verb == "defrag-begin") return defragment(operation, number_of(operation.arguments[0]));
  if (operation.verb == "keep") return keep_disk(operation);
  if (operation.verb == "protect-begin") return protect(operation, number_of(operation.arguments[1]));
  if (operation.verb == "protect" || operation.verb == "unprotect") return protect(operation, UINT64_MAX);
  if (operation.verb == "parity") return protect(operation, UINT64_MAX);
  if (operation.verb == "group") return form_groups(operation, UINT64_MAX);
  if (operation.verb == "group-begin") return form_groups(operation, number_of(operation.arguments[0]));
  if (operation.verb == "return") return relocate_home();
  const Effect effect = operation.effect();
  const bool names = effect == Effect::kNames || effect == Effect::kReplace;
  return names ? run_names(operation) : run_data(operation, number);
}

// Begins one, or goes on with the one of its kind that runs; nothing in these volumes is damaged beyond repairing.
Status Runner::run_operation(const Operation& operation, const volume::OperationRequest& request, std::uint64_t steps) {
  volume::Operations& operations = volume_.operations();
  const auto before = operations.status(request.kind);
  if (!before.ok() || !before->running()) MDFS_TRY(operations.start(request));
  while (steps-- > 0 && operations.turn().worked) {
  }
  MDFS_TRY_ASSIGN(const volume::OperationRecord record, operations.status(request.kind));
  if (record.state == MDFS_OPERATION_FAILED) return {Errc::kIo, operation.text() + ": " + record.reason};
  if (record.items_failed > 0) return {Errc::kIo, operation.text() + ": damaged"};
  return {};
}

Status Runner::scrub(const Operation& operation, std::uint64_t steps) { return run_operation(operation, {}, steps); }

// Of whatever lies in more pieces than it must.
Status Runner::defragment(const Operation& operation, std::uint64_t steps) {
  volume::OperationRequest request;
  request.kind = volume::OperationKind::kDefrag;
  request.threshold = 1000;
  return run_operation(operation, request, steps);
}

// Drains a disk, which is then removed, or lets one take its share.
Status Runner::change_disks(const Operation& operation, std::uint64_t steps) {
  const std::uint64_t disk = number_of(operation.arguments[0]);
  const bool balance = operation.verb == "balance";
  volume::OperationRequest request;
  request.kind = balance ? volume::OperationKind::kBalance : volume::OperationKind::kDrain;
  request.parameters[0] = balance ? std::uint64_t{1} << disk : disk;
  return run_operation(operation, request, steps);
}

// An image gets second copies or parities, or loses them.
Status Runner::protect(const Operation& operation, std::uint64_t steps) {
  MDFS_TRY_ASSIGN(const Ino ino, find(operation.arguments[0]));
  MDFS_TRY(volume_.set_protection(ino, {operation.verb != "unprotect", operation.verb == "parity" ? 2u : 1u}));
  return form_groups(operation, steps);
}

// All images get what they should have.
Status Runner::form_groups(const Operation& operation, std::uint64_t steps) {
  volume::OperationRequest request;
  request.kind = volume::OperationKind::kProtect;
  return run_operation(operation, request, steps);
}

// Rewritten extents, to their home blocks.
Status Runner::relocate_home() {
  const auto relocated = volume_.operations().relocate_home();
  return relocated.ok() ? Status() : Status(relocated.error());
}

Status Runner::keep_disk(const Operation& operation) {
  const Status cancelled = volume_.operations().cancel(volume::OperationKind::kDrain);
  if (!cancelled.ok() && cancelled.error().code != Errc::kNoData) return cancelled;
  return volume_.keep_disk(static_cast<unsigned>(number_of(operation.arguments[0])));
}

// A row of bytes in extents of one block.
Status Runner::become_image(Ino ino) {
  MDFS_TRY_ASSIGN(const volume::Attributes attributes, volume_.attributes(ino));
  volume::ImageOptions options;
  options.geometry.rank = 1;
  options.geometry.shape[0] = attributes.size_bytes;
  options.geometry.extent[0] = 4096;
  options.geometry.codec = geometry::Codec::kRaw;
  options.geometry.axes = "x";
  return volume_.become_image(ino, options, {});
}

Status Runner::run_names(const Operation& operation) {
  const std::string& verb = operation.verb;
  const auto forget = [&](Result<volume::Attributes> made) -> Status {
    if (!made.ok()) return made.error();
    volume_.forget(made->ino, 1);
    return {};
  };
  if (verb == "link" || verb == "chmod" || verb == "xattr" || verb == "hold" || verb == "become") {
    MDFS_TRY_ASSIGN(const Ino ino, find(operation.arguments[0]));
    if (verb == "become") return become_image(ino);
    if (verb == "hold") {
      MDFS_TRY(volume_.open_file(ino, false));
      held_.push_back(ino);
      return {};
    }
    if (verb == "xattr")
      return volume_.set_xattr(ino, "user.x", as_bytes(operation.arguments[1]), volume::XattrMode::kSet);
    if (verb == "chmod") {
      volume::SetAttributes change;
      change.mode = static_cast<mode_t>(number_of(operation.arguments[1]));
      const auto changed = volume_.set_attributes(ino, change);
      return changed.ok() ? Status() : Status(changed.error());
    }
    MDFS_TRY_ASSIGN(const Place to, place(operation.arguments[1]));
    return forget(volume_.link(ino, to.parent, to.name));
  }
  MDFS_TRY_ASSIGN(const Place at, place(operation.arguments[0]));
  if (verb == "create") return forget(volume_.make_node(at.parent, at.name, S_IFREG | 0644, 0, kRoot));
  if (verb == "mkdir") return forget(volume_.make_directory(at.parent, at.name, 0755, kRoot));
  if (verb == "symlink") return forget(volume_.make_symlink(at.parent, at.name, "target", kRoot));
  if (verb == "unlink") return volume_.unlink(at.parent, at.name);
  if (verb == "rmdir") return volume_.remove_directory(at.parent, at.name);
  MDFS_TRY_ASSIGN(const Place to, place(operation.arguments[1]));
  return volume_.rename(at.parent, at.name, to.parent, to.name,
                        verb == "rename" ? volume::RenameMode::kReplace : volume::RenameMode::kExchange);
}

Status Runner::run_data(const Operation& operation, unsigned number) {
  const std::string& verb = operation.verb;
  MDFS_TRY_ASSIGN(const Ino ino, find(operation.arguments[0]));
  if (verb == "fsync") return volume_.fsync(ino, false);
  if (verb == "levels") return check_levels(volume_, ino);
  if (verb == "consolidate") {
    const auto consolidated = volume_.consolidate(ino, UINT64_MAX, true);
    return consolidated.ok() ? Status() : Status(consolidated.error());
  }
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 1; i < operation.arguments.size(); ++i) numbers.push_back(number_of(operation.arguments[i]));
  if (verb == "truncate") {
    volume::SetAttributes change;
    change.size_bytes = numbers[0];
    const auto changed = volume_.set_attributes(ino, change);
    return changed.ok() ? Status() : Status(changed.error());
  }
  if (verb == "punch") return volume_.allocate(ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, numbers[0], numbers[1]);
  if (verb == "window") {  // y, height, x, width
    geometry::Window window;
    window.start = {numbers[0], numbers[2]};
    window.length = {numbers[1], numbers[3]};
    const ByteVector bytes = bytes_of(number, numbers[1] * numbers[3]);
    return volume_.write_window(ino, window, [&](std::uint64_t offset, MutableBytes into) -> Status {
      MDFS_CHECK(offset + into.size() <= bytes.size());
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return {};
    });
  }
  const bool append = verb == "append";
  const ByteVector bytes = bytes_of(number, append ? numbers[0] : numbers[1]);
  const auto written = volume_.write(ino, append ? 0 : numbers[0], bytes, append);
  return written.ok() ? Status() : Status(written.error());
}

// All of a file or image, to one disk or where the placement wants it.
Status Runner::run_move(const Operation& operation, unsigned number) {
  MDFS_TRY_ASSIGN(const Ino ino, find(operation.arguments[0]));
  engine::MoveRequest request;
  for (std::uint64_t row = 0; row < 3; ++row)
    for (std::uint64_t column = 0; column < 2; ++column) request.extents.push_back({row, column, 0});
  MDFS_TRY(volume_.engine().write_back_all(0));
  request.most_runs = number % 2;
  const unsigned disks = volume_.store().disk_count();
  if (number % 3 != 0) request.disk = [disk = number % disks](const geometry::Coord&) { return disk; };
  const auto moved = volume_.move_data(ino, request);
  if (!moved.ok()) return moved.error();
  if (!moved->damaged.empty()) return moved->damaged[0].error;
  return {};
}

Status make_base(volume::Volume& volume) {
  MDFS_TRY_ASSIGN(const auto operations,
                  parse_operations("create /f; write /f 0 9000; create /g; write /g 0 100; mkdir /d; mkdir /e;"
                                   "create /d/h; write /d/h 0 5000; create /big; write /big 0 300000; create /image;"
                                   "create /packed; create /stack"));
  Runner runner(volume);
  unsigned number = 100;
  for (const Operation& operation : operations) MDFS_TRY(runner.run(operation, number++));
  volume::ImageOptions options;
  options.geometry.rank = 2;
  options.geometry.shape = {64, 64};
  options.geometry.extent = {32, 32};
  options.geometry.axes = "yx";
  for (const auto& [name, codec] : {std::pair("image", geometry::Codec::kRaw), {"packed", geometry::Codec::kZstd}}) {
    options.geometry.codec = codec;
    MDFS_TRY_ASSIGN(const volume::Attributes image, volume.lookup(volume::kRootIno, name));
    volume.forget(image.ino, 1);
    MDFS_TRY(volume.make_image(image.ino, options));
    MDFS_TRY(runner.run({"window", {std::string("/") + name, "0", "64", "0", "64"}}, 99));
  }
  options.geometry.codec = geometry::Codec::kRaw;
  options.geometry.rank = 5;
  options.geometry.shape = {0, 2, 2, 32, 32};
  options.geometry.extent = {8, 1, 1, 32, 32};
  options.geometry.axes = "tczyx";
  MDFS_TRY_ASSIGN(const volume::Attributes stack, volume.lookup(volume::kRootIno, "stack"));
  volume.forget(stack.ino, 1);
  MDFS_TRY(volume.make_image(stack.ino, options));
  for (const char* name : {"/image", "/packed", "/stack"}) {
    MDFS_TRY_ASSIGN(const volume::Attributes image, volume.lookup(volume::kRootIno, name + 1));
    volume.forget(image.ino, 1);
    MDFS_TRY(volume.set_levels(image.ino, 2, geometry::Reduction::kMean));
  }
  for (const char* frames : {"8192", "4096"}) {
    MDFS_TRY(runner.run({"append", {"/stack", frames}}, number++));
    MDFS_TRY(runner.run({"fsync", {"/stack"}}, 0));
  }
  for (const char* name : {"/image", "/packed", "/stack"}) MDFS_TRY(runner.run({"levels", {name}}, 0));
  return volume.sync();
}

Status check_levels(volume::Volume& volume, Ino ino) {
  MDFS_TRY_ASSIGN(const auto stored, volume.stored_levels(ino));
  MDFS_TRY_ASSIGN(geometry::Geometry geometry, volume.image_geometry(ino));
  ByteVector below(geometry.size_bytes());
  if (below.empty()) return {};
  MDFS_TRY(volume.read_window(ino, geometry::whole(geometry), 0, below));
  for (unsigned level = 1; level <= stored.first; ++level) {
    geometry::ReducedBox box{{1, 1, 1}, {1, 1, 1}, geometry.channels};
    const geometry::HalvedAxes halved = geometry::halved_axes(geometry);
    std::uint64_t volumes = 1;  // each reduced on its own
    const unsigned first = geometry::first_axis_in_box(geometry.rank);
    for (unsigned axis = 0; axis < first; ++axis) volumes *= geometry.shape[axis];
    for (unsigned axis = first; axis < geometry.rank; ++axis) {
      box.length[geometry::place_in_box(geometry.rank, axis)] = geometry.shape[axis];
      box.step[geometry::place_in_box(geometry.rank, axis)] = halved[axis] ? 2 : 1;
    }
    geometry = geometry::geometry_above(std::move(geometry));
    ByteVector wanted(geometry.size_bytes()), found(geometry.size_bytes());
    const std::size_t from = below.size() / volumes, into = wanted.size() / volumes;
    for (std::size_t i = 0; i < volumes; ++i)
      geometry::reduce(stored.second, geometry.type, box, ConstBytes(below).subspan(i * from, from),
                       MutableBytes(wanted).subspan(i * into, into));
    const auto take = [&](std::uint64_t offset, ConstBytes bytes) -> Status {
      std::copy(bytes.begin(), bytes.end(), found.begin() + static_cast<std::ptrdiff_t>(offset));
      return {};
    };
    MDFS_TRY_ASSIGN(const bool read,
                    volume.read_level(ino, level, geometry::whole(geometry), 0, found.size(), take, 1, {}));
    if (read && found != wanted) return {Errc::kCorrupt, "a level is not the reduction of the level below"};
    below = std::move(wanted);
  }
  return {};
}

std::vector<std::string> set_of_operations() {
  return {
      "create /n",
      "levels /image",
      "create /d/n; write /d/n 0 3000",
      "create /t; write /t 0 6000; rename /t /f",
      "create /t; write /t 0 60; rename /t /g",
      "mkdir /d/m",
      "rmdir /e",
      "symlink /d/s",
      "link /f /d/l",
      "unlink /f",
      "unlink /g",
      "hold /f; unlink /f",
      "unlink /big",
      "rename /f /g",
      "rename /d/h /f",
      "rename /d /e",
      "exchange /f /d/h",
      "exchange /d /f",
      "chmod /f 384",
      "xattr /f value",
      "write /f 4000 6000",
      "write /g 10 50",
      "write /g 0 5000",
      "write /big 100000 150000",
      "append /f 5000",
      "truncate /f 3000",
      "truncate /f 20000",
      "write /f 4000 6000; truncate /f 20000; fsync /g",
      "write /f 4000 6000; truncate /f 20000; punch /f 4096 4096; fsync /g",
      "write /big 1000 5000",
      "write /big 1000 5000; truncate /big 200000; fsync /g",
      "truncate /big 100",
      "punch /f 4096 4096",
      "punch /big 0 200000",
      "become /f",
      "become /g",
      "write /big 1000 5000; become /big",
      "window /image 16 32 16 32",
      "window /image 0 64 8 1",
      "window /packed 16 32 16 32",
      "write /image 0 500",
      "write /image 0 500; window /image 32 32 32 32; fsync /g",
      "truncate /image 3000",
      "truncate /image 5000",
      "write /packed 1000 1500",
      "append /stack 4096",
      "append /stack 4096; fsync /stack",
      "append /stack 20480; fsync /stack",
      "append /stack 24576; fsync /g",
      "append /stack 61440; fsync /stack",
      "write /stack 4096 4096",
      "truncate /stack 6000",
      "truncate /stack 40000",
      "punch /stack 0 8192",
      "append /stack 4096; punch /stack 0 8192; truncate /stack 40000; scrub-begin 4",
      "append /stack 61440; fsync /stack; append /stack 4096; punch /stack 0 8192; truncate /stack 40000; fsync /g",
      "consolidate /stack",
      "unlink /stack",
      "fsync /stack",
      "fsync /f",
      "write /f 4000 6000; fsync /f; finalize",
      "write /f 4000 6000; fsync /f; write /g 10 50; finalize; fsync /g",
      "fsync /g",
      "fsync /image",
      "fsync /packed",
      "fsync /big",
      "move /f",
      "move /big",
      "move /image",
      "sync",
      "writeback",
      "scrub",
      "scrub-begin 4",
      "defrag",
      "defrag-begin 2",
      "return",
      "write /image 0 500; fsync /image; return",
      "drain 0",
      "drain-begin 1 3",
      "drain-begin 1 5; keep 1; balance 1",
      "protect /image",
      "write /image 0 500; protect /image; window /image 32 32 32 32; fsync /g",
      "protect-begin /stack 2; append /stack 4096; fsync /stack",
      "protect /f",
      "write /f 0 500; protect /f; write /f 4000 6000; truncate /f 5000; fsync /g",
      "protect-begin /big 2; write /big 4000 6000; fsync /big",
  };
}

std::vector<std::string> set_of_parity_operations() {
  return {
      "parity /image",
      "parity /image; write /image 0 500; window /image 32 32 32 32; fsync /image; group-begin 1; fsync /g",
      "window /image 16 32 16 32; group; fsync /image",
      "punch /image 0 1024; group; truncate /image 3000; group; fsync /g",
  };
}

}  // namespace mdfs::crash
