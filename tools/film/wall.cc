// mdfs wall: the controller, which has the clock and says when which frame is shown.
//
// Controller and panels exchange lines over TCP. A panel says "panel NAME" when it can show frames, and "end" at the
// end of the movie. The controller says "play BASE POSITION": the frame at the POSITION (ns) of the movie is shown when
// its clock says BASE (ns), and others follow; or "pause POSITION"; or "quit".
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gst/gst.h>
#include <gst/net/gstnet.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "film.h"
#include "line_socket.h"
#include "pipeline.h"
#include "support/interruption.h"
#include "support/streams.h"
#include "wall_layout.h"

namespace mdfs::film {
namespace {

constexpr int kLookMs = 50;                        // for signals and ended panels
constexpr GstClockTime kLead = 500 * GST_MSECOND;  // in which panels get ready to play
constexpr GstClockTime kMaxSeekS = 1'000'000'000;

struct Client {
  LineSocket socket;
  std::string name;  // empty: it has not said it yet
  bool ended = false;
};

struct Child {
  std::string name;
  pid_t process;
};

class Controller {
 public:
  Controller(const WallOptions& options, WallLayout layout, ObjectPtr<GstClock> clock, tools::File listening)
      : options_(options), layout_(std::move(layout)), clock_(std::move(clock)), listening_(std::move(listening)) {}
  ~Controller() {
    tell("quit");
    for (const Child& child : children_) ::waitpid(child.process, nullptr, 0);
  }
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  Status start_panels();
  Status run();

 private:
  GstClockTime now() const { return gst_clock_get_time(clock_.get()); }
  GstClockTime position() const;
  void tell(const std::string& line);
  std::string state() const;
  void play(GstClockTime position);
  void pause();
  void obey(const std::string& command);
  void accept_panel();
  void hear(Client& client, const std::string& line);
  void look_at_children();
  bool is_over() const;

  const WallOptions& options_;
  const WallLayout layout_;
  const ObjectPtr<GstClock> clock_;
  const tools::File listening_;
  std::vector<Client> clients_;
  std::vector<Child> children_;
  std::string typed_;  // of a command that is not complete
  bool reads_commands_ = true;
  bool begun_ = false;
  bool playing_ = false;
  bool quit_ = false;
  GstClockTime base_ = 0;      // the clock's time of position_, while it plays
  GstClockTime position_ = 0;  // in the movie
};

Status Controller::start_panels() {
  std::error_code failure;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", failure).string();
  if (failure) return from_errno(failure.value(), "/proc/self/exe");
  for (const WallPanel& panel : layout_.panels) {
    if (!panel.start) continue;
    const std::array<std::string, 6> words = {program, "wall", options_.layout, options_.path, "--panel", panel.name};
    std::array<char*, 7> arguments{};
    for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = const_cast<char*>(words[i].c_str());
    pid_t process = 0;
    if (const int number = ::posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments.data(), environ);
        number != 0)
      return from_errno(number, program);
    children_.push_back({panel.name, process});
  }
  return {};
}

GstClockTime Controller::position() const {
  if (!playing_ || now() < base_) return position_;
  return position_ + (now() - base_);
}

std::string Controller::state() const {
  return playing_ ? fmt::format("play {} {}", base_, position_) : fmt::format("pause {}", position_);
}

void Controller::tell(const std::string& line) {
  for (Client& client : clients_)
    if (!client.name.empty()) (void)client.socket.send(line);  // one that has gone is noticed when it is read
}

void Controller::play(GstClockTime position) {
  position_ = position;
  base_ = now() + kLead;
  playing_ = true;
  for (Client& client : clients_) client.ended = false;
  tell(state());
}

void Controller::pause() {
  position_ = position();
  playing_ = false;
  tell(state());
}

void Controller::obey(const std::string& command) {
  double seconds = 0;
  const std::string_view text = command;
  if (text == "play" && !playing_) {
    play(position_);
  } else if (text == "pause") {
    pause();
  } else if (text == "quit") {
    quit_ = true;
  } else if (text.starts_with("seek ") &&
             std::from_chars(text.data() + 5, text.data() + text.size(), seconds).ec == std::errc{} && seconds >= 0 &&
             seconds <= kMaxSeekS) {
    const auto to = static_cast<GstClockTime>(std::llround(seconds * GST_SECOND));
    if (playing_) {
      play(to);
    } else {
      position_ = to;
      tell(state());
    }
  } else if (text != "play" && !text.empty()) {
    tools::print_err("mdfs: {}: commands are play, pause, seek SECONDS and quit\n", command);
  }
}

void Controller::accept_panel() {
  const int fd = ::accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  tools::File socket(fd, "a panel");
  // More connections than panels: one of a panel that died is still open.
  if (clients_.size() < 2 * layout_.panels.size()) clients_.push_back({LineSocket(std::move(socket)), "", false});
}

void Controller::hear(Client& client, const std::string& line) {
  if (line == "end") {
    client.ended = playing_;
    return;
  }
  constexpr std::string_view kPanel = "panel ";
  if (!line.starts_with(kPanel)) return;
  client.name = line.substr(kPanel.size());
  if (begun_) (void)client.socket.send(state());
}

void Controller::look_at_children() {
  std::erase_if(children_, [](const Child& child) {
    int status = 0;
    if (::waitpid(child.process, &status, WNOHANG) != child.process) return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      tools::print_err("mdfs: panel {} has ended: {} {}\n", child.name, WIFEXITED(status) ? "status" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return true;
  });
}

// No panel is left, or all that are left have shown the movie.
bool Controller::is_over() const {
  if (quit_ || tools::Interruption::asked()) return true;
  if (begun_ && clients_.empty() && children_.empty()) return true;
  return begun_ && playing_ && !clients_.empty() && std::ranges::all_of(clients_, &Client::ended);
}

Status Controller::run() {
  const tools::Interruption interruption;
  const bool any_here = !children_.empty();
  while (!is_over()) {
    std::vector<pollfd> waiting = {{listening_.fd(), POLLIN, 0}, {reads_commands_ ? STDIN_FILENO : -1, POLLIN, 0}};
    for (const Client& client : clients_) waiting.push_back({client.socket.fd(), POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), kLookMs);
    for (std::size_t i = clients_.size(); i-- > 0;) {
      if (waiting[i + 2].revents == 0) continue;
      const auto lines = clients_[i].socket.take();
      if (!lines)
        clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
      else
        for (const std::string& line : *lines) hear(clients_[i], line);
    }
    if (waiting[0].revents != 0) accept_panel();
    if (waiting[1].revents != 0) {
      std::array<char, kMaxLineBytes> bytes;
      const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      if (got <= 0 || typed_.size() > kMaxLineBytes) reads_commands_ = false;
      if (got > 0) typed_.append(bytes.data(), static_cast<std::size_t>(got));
      for (std::size_t end = typed_.find('\n'); end != std::string::npos; end = typed_.find('\n')) {
        const std::string command = typed_.substr(0, end);
        typed_.erase(0, end + 1);
        if (begun_ || command == "quit") obey(command);
      }
    }
    look_at_children();
    if (!begun_ && any_here && children_.empty())
      return Error{Errc::kIo, "all panels of this machine have ended before the movie began"};
    const auto ready = [&](const WallPanel& panel) {
      return std::ranges::any_of(clients_, [&](const Client& client) { return client.name == panel.name; });
    };
    if (!begun_ && std::ranges::all_of(layout_.panels, ready)) {
      begun_ = true;
      tools::print_err("mdfs: {} panels play\n", layout_.panels.size());
      play(0);
    }
  }
  return {};
}

}  // namespace

Status control_wall(const WallOptions& options, const WallLayout& layout) {
  MDFS_TRY_ASSIGN(tools::File listening, listen_at(layout.host, layout.port));
  ObjectPtr<GstClock> clock(gst_system_clock_obtain());
  const ObjectPtr<GstNetTimeProvider> provider(
      gst_net_time_provider_new(clock.get(), layout.host.c_str(), layout.port));
  if (provider == nullptr)
    return Error{Errc::kIo, fmt::format("the clock cannot be served at {} port {}", layout.host, layout.port)};
  Controller controller(options, layout, std::move(clock), std::move(listening));
  MDFS_TRY(controller.start_panels());
  return controller.run();
}

}  // namespace mdfs::film
