// mdfs play, send, receive, wall: movies on screens and over networks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "address.h"
#include "base/module.h"
#include "commands.h"
#include "film/film_module.h"
#include "mdfs/ioctl.h"
#include "support/complete.h"
#include "support/json_output.h"
#include "support/ranges.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMostPercent = 200;  // as gst/fec_sender.h
constexpr unsigned kMostImportantEvery = 10'000;
constexpr unsigned kMostIntervalMs = 10'000;
constexpr unsigned kMostTimeoutS = 86'400;

struct SendArguments {
  film::SendOptions wanted;
  std::string to, redundancy = "20%", important;
  bool json = false;
};

struct ReceiveArguments {
  film::ReceiveOptions wanted;
  bool view = false, json = false;
};

Result<const film::Module*> film_module() {
  return load_module<film::Module>("mdfs_film.so", "mdfs_film_module",
                                   "the module for movies (of the package mdfs-gstreamer)");
}

// "20%" or "20".
Result<unsigned> parse_percent(std::string_view text, std::string_view option) {
  const std::string_view digits = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  unsigned value = 0;
  const auto [last, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure == std::errc{} && last == digits.data() + digits.size() && value <= kMostPercent) return value;
  return Error{Errc::kInvalidArgument,
               fmt::format("{}: {} requires a percentage, 0% to {}%", text, option, kMostPercent)};
}

Status play_command(const film::PlayOptions& options) {
  MDFS_TRY_ASSIGN(const film::Module* module, film_module());
  return module->play(options);
}

Status send_command(SendArguments arguments) {
  film::SendOptions& wanted = arguments.wanted;
  MDFS_TRY_ASSIGN(const Address address, parse_address(arguments.to, "--to"));
  if (address.port == 0) return Error{Errc::kInvalidArgument, arguments.to + ": --to requires a port, 1 to 65535"};
  wanted.host = address.host;
  wanted.port = address.port;
  MDFS_TRY_ASSIGN(wanted.redundancy, parse_percent(arguments.redundancy, "--fec"));
  if (!arguments.important.empty()) {
    MDFS_TRY_ASSIGN(const unsigned important, parse_percent(arguments.important, "--fec-important"));
    wanted.important_redundancy = important;
  }
  MDFS_TRY_ASSIGN(const film::Module* module, film_module());
  MDFS_TRY_ASSIGN(const film::SendReport report, module->send(wanted));
  if (arguments.json) {
    const nlohmann::ordered_json json = {
        {"output_version", kOutputVersion},
        {"frames", report.frames},
        {"dropped", report.dropped},
        {"packets", {{"source", report.source_packets}, {"repair", report.repair_packets}}},
        {"started_ns", report.started_ns},
        {"cpu_s", report.cpu_s}};
    print_out("{}\n", dump_json(json));
  } else {
    print_out("sent {} frames, dropped {}; {} packets and {} repair packets\n", report.frames, report.dropped,
              report.source_packets, report.repair_packets);
  }
  return {};
}

nlohmann::ordered_json receive_json(const film::ReceiveReport& report) {
  const auto or_null = [](const auto& value) { return value ? nlohmann::ordered_json(*value) : nullptr; };
  return {{"output_version", kOutputVersion},
          {"frames", report.frames},
          {"sent", or_null(report.sent)},
          {"lost", report.lost},
          {"repeated", report.repeated},
          {"timed_out", report.timed_out},
          {"packets",
           {{"source", report.source_packets},
            {"repair", report.repair_packets},
            {"recovered", report.recovered_packets},
            {"lost", report.lost_packets}}},
          {"delay_ms",
           {{"p50", or_null(report.delay_p50_ms)},
            {"p99", or_null(report.delay_p99_ms)},
            {"max", or_null(report.delay_max_ms)}}},
          {"cpu_s", report.cpu_s}};
}

Status receive_command(const ReceiveArguments& arguments) {
  const film::ReceiveOptions& wanted = arguments.wanted;
  if (wanted.to.empty() != arguments.view) return Error{Errc::kUsage, "one of --to and --view is required"};
  MDFS_TRY_ASSIGN(const film::Module* module, film_module());
  MDFS_TRY_ASSIGN(const film::ReceiveReport report, module->receive(wanted, [&](int port) {
    print_err("mdfs: receiving at {}, port {}\n", wanted.address, port);
  }));
  if (report.timed_out)
    print_err("mdfs: nothing came for {} s, and the sender has not ended the movie\n", wanted.timeout_s);
  if (arguments.json)
    print_out("{}\n", dump_json(receive_json(report)));
  else
    print_out("received {} frames, lost {}; {} packets arrived, {} were recovered, {} lost\n", report.frames,
              report.lost, report.source_packets, report.recovered_packets, report.lost_packets);
  if (report.timed_out || report.lost > 0) end_with(kUnhealthyStatus);
  return {};
}

void add_reserve_options(CLI::App& command, film::ReserveOptions& time) {
  CLI::Option* const reserve =
      command.add_flag("--reserve", time.reserve, "The disks keep time for the movie, or it does not begin");
  command
      .add_flag("--coarser", time.coarser,
                "With --reserve: frames that are short of time come from a coarser stored level")
      ->needs(reserve);
}

void add_movie_options(CLI::App& command, film::MovieOptions& movie) {
  command.add_option("PATH", movie.path, "Image on a mounted volume")->required();
  command.add_option("--fps", movie.fps, "Frames a second, such as 25 or 30000/1001; default: those of the image")
      ->type_name("R");
  command.add_option("--window", movie.window, "Part of the image, such as y90+180,x160+320; default: all of it")
      ->type_name("SPEC");
  command.add_option("--level", movie.level, "Resolution level")
      ->check(whole_number(0, MDFS_IOC_MAX_LEVELS))
      ->capture_default_str();
  add_reserve_options(command, movie.time);
}

void add_sink_option(CLI::App& command, std::string& sink) {
  command
      .add_option("--sink", sink,
                  "Show frames with this element of GStreamer and its properties; default: autovideosink")
      ->type_name("ELEMENT");
}

void add_play_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<film::PlayOptions>();
  CLI::App* const command = app.add_subcommand("play", "Show an image as a movie on the screen");
  add_movie_options(*command, options->movie);
  add_sink_option(*command, options->sink);
  command->callback([options, &action] { action = [options] { return play_command(*options); }; });
}

void add_send_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<SendArguments>();
  film::SendOptions& wanted = arguments->wanted;
  CLI::App* const command = app.add_subcommand("send", "Send a movie over a network that loses packets");
  add_movie_options(*command, wanted.movie);
  command->add_option("--to", arguments->to, "Receiver: HOST:PORT")->required();
  CLI::Option* const codec =
      command->add_option("--codec", wanted.codec, "What travels: jpeg, or raw for exact samples");
  codec->check(CLI::IsMember({"jpeg", "raw"}))->capture_default_str();
  complete_with(codec, {{"jpeg", "8 bits, each frame compressed by itself"}, {"raw", "exact samples"}});
  command->add_option("--quality", wanted.quality, "Quality of JPEG")
      ->check(whole_number(1, film::kMaxQuality))
      ->capture_default_str();
  command->add_option("--fec", arguments->redundancy, "Repair packets for 100 packets")
      ->type_name("PERCENT")
      ->capture_default_str();
  command->add_option("--fec-important", arguments->important, "Repair packets for 100 packets of important frames")
      ->type_name("PERCENT");
  command->add_option("--important-every", wanted.important_every, "Each N-th frame is important; 0: none")
      ->check(whole_number(0, kMostImportantEvery))
      ->capture_default_str();
  command->add_option("--interval", wanted.interval_ms, "Milliseconds of the movie that are protected together")
      ->check(whole_number(1, kMostIntervalMs))
      ->capture_default_str();
  command->add_option("--mtu", wanted.mtu, "Bytes of an RTP packet, at most")
      ->check(whole_number(film::kMinMtu, film::kMaxMtu))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments, &action] { action = [arguments] { return send_command(*arguments); }; });
}

void add_receive_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ReceiveArguments>();
  film::ReceiveOptions& wanted = arguments->wanted;
  wanted.address = "0.0.0.0";
  CLI::App* const command = app.add_subcommand("receive", "Receive a movie of mdfs send: store or show it");
  command->add_option("--port", wanted.port, "UDP port; 0 takes a free port")
      ->required()
      ->check(whole_number(0, 65535));
  command->add_option("--address", wanted.address, "Address of this machine, or of a multicast group")
      ->capture_default_str();
  CLI::Option* const to =
      command->add_option("--to", wanted.to, "New image on a mounted volume, or new file NAME.mkv")->type_name("FILE");
  command->add_option("--codec", wanted.codec, "Codec of the new image: raw, zstd or zstd:LEVEL")
      ->capture_default_str();
  command->add_flag("--view", arguments->view, "Show the movie on the screen")->excludes(to);
  add_sink_option(*command, wanted.sink);
  command->add_option("--latency", wanted.latency_ms, "Milliseconds that a packet may come late")
      ->check(whole_number(0, film::kMaxLatencyMs))
      ->capture_default_str();
  command->add_option("--timeout", wanted.timeout_s, "End when nothing has come for so many seconds")
      ->check(whole_number(1, kMostTimeoutS))
      ->capture_default_str();
  command->add_option("--times", wanted.times, "Write when each frame arrived to this new file (CSV)")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments, &action] { action = [arguments] { return receive_command(*arguments); }; });
}

void add_wall_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<film::WallOptions>();
  CLI::App* const command = app.add_subcommand("wall", "Show a movie on several synchronized panels");
  command->add_option("LAYOUT", options->layout, "TOML file of the panels")->required();
  command->add_option("PATH", options->path, "Image on a mounted volume")->required();
  command->add_option("--panel", options->panel, "Be this panel; default: start the panels, and control them")
      ->type_name("NAME");
  command->callback([options, &action] {
    action = [options]() -> Status {
      MDFS_TRY_ASSIGN(const film::Module* module, film_module());
      return module->wall(*options);
    };
  });
}

}  // namespace

void add_film_commands(CLI::App& app, Action& action) {
  add_play_command(app, action);
  add_send_command(app, action);
  add_receive_command(app, action);
  add_wall_command(app, action);
}

}  // namespace mdfs::tools
