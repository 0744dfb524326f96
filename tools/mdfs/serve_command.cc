// mdfs serve: a web server for the files and views of a mounted volume.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "address.h"
#include "base/module.h"
#include "commands.h"
#include "mounted.h"
#include "serve/serve_module.h"
#include "support/file.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

struct ServeArguments {
  std::string mount, root = ".", listen = "127.0.0.1:8080";
  bool is_public = false;
};

bool is_loopback(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (host == "localhost") return true;
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  return ::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Status serve_command(const ServeArguments& arguments) {
  MDFS_TRY_ASSIGN(const Address address, parse_address(arguments.listen, "--listen"));
  if (!arguments.is_public && !is_loopback(address.host))
    return Error{Errc::kInvalidArgument,
                 arguments.listen + ": other machines can reach this address: add --public, or listen on 127.0.0.1"};
  MDFS_TRY(volume_info(arguments.mount));
  MDFS_TRY_ASSIGN(const File mount, File::open(arguments.mount, O_PATH | O_DIRECTORY));
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const auto root = static_cast<int>(::syscall(SYS_openat2, mount.fd(), arguments.root.c_str(), &how, sizeof how));
  if (root < 0)
    return from_errno(errno, fmt::format("{}: --root, a directory below {}", arguments.root, arguments.mount));
  const File kept(root, arguments.root);
  // Loaded by this command alone: the library brings those of TLS and of compression.
  MDFS_TRY_ASSIGN(const serve::Module* module,
                  load_module<serve::Module>("mdfs_serve.so", "mdfs_serve_module", "the web server"));
  const bool brackets = address.host.find(':') != std::string::npos;
  return module->serve({root, address.host, address.port}, [&](int port) {
    print_out("http://{}{}{}:{}/\n", brackets ? "[" : "", address.host, brackets ? "]" : "", port);
    (void)finish_output();  // now, not when the server ends; an error does not stop it
  });
}

}  // namespace

void add_serve_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command = app.add_subcommand("serve", "Serve files, windows and views to browsers, read-only");
  command->add_option("MOUNT", arguments->mount, "Mount point of the volume")->required();
  command->add_option("--listen", arguments->listen, "Address and port; port 0 takes a free port")
      ->capture_default_str();
  command->add_option("--root", arguments->root, "Serve this directory of the volume only")->capture_default_str();
  command->add_flag("--public", arguments->is_public, "Allow an address that other machines reach");
  command->callback([arguments, &action] { action = [arguments] { return serve_command(*arguments); }; });
}

}  // namespace mdfs::tools
