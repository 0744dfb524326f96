// The interface of mdfs_film.so, which plays, sends and receives movies with GStreamer, to the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace mdfs::film {

// Whether the disks keep time for a movie.
struct ReserveOptions {
  bool reserve = false;  // else it does not begin
  bool coarser = false;  // with `reserve`: frames that are short of time come from a coarser level
};

struct MovieOptions {
  std::string path;
  std::string window;  // empty: the whole image
  unsigned level = 0;
  std::string fps;  // empty: of the image
  ReserveOptions time;
};

struct PlayOptions {
  MovieOptions movie;
  std::string sink;  // a part of a pipeline that ends it; empty: a window on the screen
};

inline constexpr unsigned kMaxQuality = 100;
inline constexpr unsigned kMinMtu = 256, kMaxMtu = 65'000;
inline constexpr unsigned kMaxLatencyMs = 60'000;

struct SendOptions {
  MovieOptions movie;
  std::string host;
  int port = 0;
  std::string codec = "jpeg";  // or "raw"
  unsigned quality = 85;       // of JPEG
  unsigned mtu = 1400;         // bytes of an RTP packet
  unsigned redundancy = 20;    // percent, as in gst/fec_sender.h
  std::optional<unsigned> important_redundancy;
  unsigned important_every = 0;
  unsigned interval_ms = 500;
};
struct SendReport {
  std::uint64_t frames = 0;   // sent
  std::uint64_t dropped = 0;  // that would have come too late
  std::uint64_t source_packets = 0, repair_packets = 0;
  std::int64_t started_ns = 0;  // of CLOCK_REALTIME: when frame 0 was due
  double cpu_s = 0;
};

struct ReceiveOptions {
  std::string address;
  int port = 0;                // 0: any
  std::string to;              // an image on a mounted volume, or a file *.mkv; empty: shown
  std::string codec = "zstd";  // of the image
  std::string sink;            // as PlayOptions
  unsigned latency_ms = 1000;
  unsigned timeout_s = 10;
  std::string times;  // a file of the times of frames; empty: none
};
struct ReceiveReport {
  bool timed_out = false;             // the end of the sender was not heard
  std::uint64_t frames = 0;           // that arrived whole
  std::optional<std::uint64_t> sent;  // by the sender; nothing if its end was not heard
  std::uint64_t lost = 0;             // of those sent, else between the first and the last one
  std::uint64_t repeated = 0;         // frames in the place of lost ones
  std::uint64_t source_packets = 0, repair_packets = 0, recovered_packets = 0, lost_packets = 0;
  // Milliseconds after the earliest frame, by their time stamps: half, and 99 of 100 frames came so late, and the last.
  std::optional<double> delay_p50_ms, delay_p99_ms, delay_max_ms;
  double cpu_s = 0;
};

struct WallOptions {
  std::string layout;  // a TOML file, see wall_layout.h
  std::string path;
  std::string panel;  // of this process; empty: the controller
};

// The symbol mdfs_film_module. Each function returns when the movie ends, or after a signal.
struct Module {
  const char* version;  // of MDFS
  Status (*play)(const PlayOptions& options);
  Result<SendReport> (*send)(const SendOptions& options);
  // `listening` is called once, with the port.
  Result<ReceiveReport> (*receive)(const ReceiveOptions& options, const std::function<void(int port)>& listening);
  Status (*wall)(const WallOptions& options);
};

}  // namespace mdfs::film
