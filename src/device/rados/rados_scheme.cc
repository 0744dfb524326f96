// Reads configurations, and calls the module.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_scheme.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/module.h"
#include "device/rados/rados_description.h"
#include "device/rados/rados_module.h"
#include "device/rados/rados_name.h"

namespace mdfs::device {
namespace {

RadosCluster rados_settings;  // written before threads are made
std::atomic<bool> is_loaded{false}, is_refused{false};

Result<const RadosModule*> module_for(const std::string& disk) {
  if (is_refused && !is_loaded)
    return Error{Errc::kNotSupported,
                 disk + ": this mount was made without disks in RADOS; unmount, and name such a disk when mounting"};
#ifdef MDFS_RADOS
  static const Result<const RadosModule*> module =
      load_module<RadosModule>("mdfs_rados.so", "mdfs_rados_module", "the module for RADOS");
  if (!module.ok()) return Error{module.error().code, disk + ": " + module.error().where};
  is_loaded = true;
  return *module;
#else
  return Error{Errc::kNotSupported, disk + ": this MDFS was built without librados"};
#endif
}

std::string conf_path() {
  if (!rados_settings.conf.empty()) return rados_settings.conf;
  const char* const given = std::getenv("CEPH_CONF");
  return given != nullptr && *given != '\0' ? given : "/etc/ceph/ceph.conf";
}

Result<std::string> read_conf(const std::string& disk, const std::string& path) {
  const auto wrong = [&](int error) {
    return Error{from_errno(error, "").code,
                 fmt::format("{}: the configuration of the cluster, {}: {} (option ceph_conf, or CEPH_CONF)", disk,
                             path, from_errno(error, "").message())};
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat st {};
  if (!fd.open() || ::fstat(fd.get(), &st) != 0) return wrong(errno);
  if (!S_ISREG(st.st_mode) || st.st_size > static_cast<off_t>(kMaxCephConfBytes)) return wrong(EINVAL);
  std::string text(static_cast<std::size_t>(st.st_size), '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return wrong(errno);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

Result<RadosDescription> describe(const std::string& disk, OpenMode mode, const RadosModule& module) {
  MDFS_TRY(RadosName::parse(disk));
  RadosDescription description{.disk = disk, .mode = mode, .user = {}, .key = {}, .conf = {}};
  description.user = "client." + (rados_settings.user.empty() ? std::string("admin") : rados_settings.user);
  const std::string path = conf_path();
  MDFS_TRY_ASSIGN(description.conf, read_conf(disk, path));
  auto key = module.find_key(path, description.user);
  if (!key.ok()) return Error{key.error().code, disk + ": " + key.error().where};
  description.key = *std::move(key);
  return description;
}

// What a function of the module is called with, for a disk that is given by its name.
struct Named {
  const RadosModule* module;
  RadosDescription description;
};
Result<Named> look_up(const std::string& disk, OpenMode mode) {
  MDFS_TRY_ASSIGN(const RadosModule* module, module_for(disk));
  MDFS_TRY_ASSIGN(RadosDescription description, describe(disk, mode, *module));
  return Named{module, std::move(description)};
}

}  // namespace

void set_rados_cluster(RadosCluster cluster) { rados_settings = std::move(cluster); }

void refuse_rados() { is_refused = true; }

Result<UniqueFd> open_rados(const std::string& disk, OpenMode mode) {
  MDFS_TRY_ASSIGN(const Named named, look_up(disk, mode));
  return make_rados_descriptor(named.description);
}

Result<std::unique_ptr<Disk>> adopt_rados(const std::string& disk, UniqueFd fd,
                                          std::shared_ptr<UringContext> /*context*/) {
  MDFS_TRY_ASSIGN(const RadosModule* module, module_for(disk));
  MDFS_TRY_ASSIGN(const RadosDescription description, read_rados_descriptor(fd.get()));
  if (description.disk != disk)
    return Error{Errc::kInvalidArgument, fmt::format("{}: the descriptor is of {}", disk, description.disk)};
  return module->open(description);
}

Status create_rados(const std::string& disk, std::uint64_t size_bytes, bool replace) {
  MDFS_TRY_ASSIGN(const Named named, look_up(disk, OpenMode::kReadWrite));
  return named.module->create(named.description, size_bytes, replace);
}

Status grow_rados(const std::string& disk, std::uint64_t size_bytes) {
  MDFS_TRY_ASSIGN(const Named named, look_up(disk, OpenMode::kReadWrite));
  return named.module->grow(named.description, size_bytes);
}

Result<std::vector<std::string>> take_over_rados(const std::string& disk) {
  MDFS_TRY_ASSIGN(const Named named, look_up(disk, OpenMode::kReadWrite));
  return named.module->take_over(named.description);
}

Status remove_rados(const std::string& disk) {
  MDFS_TRY_ASSIGN(const Named named, look_up(disk, OpenMode::kReadWrite));
  return named.module->remove(named.description);
}

}  // namespace mdfs::device
