// mdfs receive: the movie of mdfs send is stored, or shown.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gst/gst.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "arrivals.h"
#include "film.h"
#include "pipeline.h"

namespace mdfs::film {
namespace {

constexpr int kSocketBytes = 8 << 20;  // that the kernel keeps, if it may
constexpr std::string_view kFileSuffix = ".mkv";

bool is_file(const ReceiveOptions& options) { return options.to.ends_with(kFileSuffix); }

Status require(const ReceiveOptions& options) {
  std::vector<Needed> needed = {{"mdfsfecdec", "mdfs-gstreamer"},
                                {"udpsrc", "gstreamer1.0-plugins-good"},
                                {"rtpjitterbuffer", "gstreamer1.0-plugins-good"},
                                {"rtpgstdepay", "gstreamer1.0-plugins-good"}};
  if (is_file(options)) {
    needed.push_back({"matroskamux", "gstreamer1.0-plugins-good"});
  } else {
    needed.push_back({"decodebin", "gstreamer1.0-plugins-base"});
    needed.push_back({"videorate", "gstreamer1.0-plugins-base"});
    needed.push_back({"jpegdec", "gstreamer1.0-plugins-good"});
  }
  return require_elements(needed);
}

// What comes behind the frames as they were sent. A sender names the format of its frames: any other than these could
// bring any decoder that is installed into play.
Result<std::string> rest_of(const ReceiveOptions& options) {
  constexpr std::string_view kDecoded = "decodebin ! videorate name=rate skip-to-first=true ! videoconvert ! ";
  if (is_file(options)) return std::string("matroskamux ! filesink name=store");
  if (!options.to.empty())
    return fmt::format("{}video/x-raw,format=(string){{GRAY8,RGB,RGBA,GRAY16_LE,RGBA64_LE}} ! mdfssink name=store",
                       kDecoded);
  MDFS_TRY_ASSIGN(const std::string sink, sink_of(options.sink));
  return fmt::format("{}{}", kDecoded, sink);
}

// Time stamps of stored frames keep the distances that the sender gave them. A viewer follows the clock of the sender.
std::string description_of(const ReceiveOptions& options, const std::string& rest) {
  return fmt::format(
      "udpsrc name=net buffer-size={} timeout={} ! mdfsfecdec name=fec ! rtpjitterbuffer latency={} mode={} ! "
      "rtpgstdepay name=frames ! capsfilter caps=\"image/jpeg; video/x-raw\" ! {}",
      kSocketBytes, options.timeout_s * GST_SECOND, options.latency_ms, options.to.empty() ? "slave" : "synced", rest);
}

struct Watched {
  Arrivals arrivals;
  int numerator = 0, denominator = 1;
};

GstPadProbeReturn watch(GstPad*, GstPadProbeInfo* info, gpointer data) {
  auto& watched = *static_cast<Watched*>(data);
  if ((info->type & GST_PAD_PROBE_TYPE_BUFFER) != 0) {
    GstBuffer* const buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    if (GST_BUFFER_PTS_IS_VALID(buffer))
      watched.arrivals.note(static_cast<std::int64_t>(GST_BUFFER_PTS(buffer)), watched.numerator, watched.denominator,
                            g_get_monotonic_time() * 1000, real_time_ns());
    return GST_PAD_PROBE_OK;
  }
  GstEvent* const event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps* caps = nullptr;
  gst_event_parse_caps(event, &caps);
  if (!gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate", &watched.numerator,
                                  &watched.denominator))
    watched.numerator = 0;
  return GST_PAD_PROBE_OK;
}

struct Received {
  guint64 source_packets = 0, repair_packets = 0, recovered = 0, lost = 0;
  gint64 frames_sent = -1;
};

Received received_by(const Pipeline& pipeline) {
  Received all;
  GstStructure* stats = nullptr;
  g_object_get(pipeline.element("fec").get(), "stats", &stats, nullptr);
  gst_structure_get(stats, "source-packets", G_TYPE_UINT64, &all.source_packets, "repair-packets", G_TYPE_UINT64,
                    &all.repair_packets, "recovered", G_TYPE_UINT64, &all.recovered, "lost", G_TYPE_UINT64, &all.lost,
                    "frames-sent", G_TYPE_INT64, &all.frames_sent, nullptr);
  gst_structure_free(stats);
  return all;
}

ReceiveReport report_of(const Pipeline& pipeline, const Arrivals& arrivals) {
  const Received received = received_by(pipeline);
  ReceiveReport report;
  report.frames = arrivals.frames();
  report.lost = arrivals.gaps();
  if (received.frames_sent >= 0) {
    report.sent = static_cast<std::uint64_t>(received.frames_sent);
    report.lost = *report.sent - std::min(*report.sent, report.frames);
  }
  if (const auto rate = pipeline.element("rate"); rate != nullptr) {
    guint64 repeated = 0;
    g_object_get(rate.get(), "duplicate", &repeated, nullptr);
    report.repeated = repeated;
  }
  report.source_packets = received.source_packets;
  report.repair_packets = received.repair_packets;
  report.recovered_packets = received.recovered;
  report.lost_packets = received.lost;
  report.delay_p50_ms = arrivals.delay_ms(0.5);
  report.delay_p99_ms = arrivals.delay_ms(0.99);
  report.delay_max_ms = arrivals.delay_ms(1);
  report.cpu_s = cpu_seconds();
  return report;
}

}  // namespace

Result<ReceiveReport> receive(const ReceiveOptions& options, const std::function<void(int port)>& listening) {
  MDFS_TRY(require(options));
  if (is_file(options) && ::access(options.to.c_str(), F_OK) == 0) return Error{Errc::kExists, options.to};
  MDFS_TRY_ASSIGN(const std::string rest, rest_of(options));
  Watched watched{Arrivals(static_cast<std::int64_t>(options.latency_ms) * 1'000'000)};
  if (!options.times.empty()) MDFS_TRY(watched.arrivals.write_to(options.times));
  MDFS_TRY_ASSIGN(auto pipeline, Pipeline::parse(description_of(options, rest)));
  const auto net = pipeline->element("net");
  g_object_set(net.get(), "address", options.address.c_str(), "port", options.port, nullptr);
  if (const auto store = pipeline->element("store"); store != nullptr) {
    g_object_set(store.get(), "location", options.to.c_str(), nullptr);
    if (!is_file(options)) g_object_set(store.get(), "codec", options.codec.c_str(), nullptr);
  }
  const auto frames = pipeline->element("frames");
  const ObjectPtr<GstPad> pad(gst_element_get_static_pad(frames.get(), "src"));
  gst_pad_add_probe(pad.get(),
                    static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                    watch, &watched, nullptr);
  MDFS_TRY(pipeline->reach(GST_STATE_PAUSED));
  MDFS_TRY(check_sink(*pipeline));
  int port = 0;
  g_object_get(net.get(), "port", &port, nullptr);
  listening(port);

  // Before the first datagram a receiver waits for ever.
  const auto begun = [&] { return received_by(*pipeline).source_packets > 0; };
  MDFS_TRY_ASSIGN(const Ending ending, pipeline->run(begun));
  ReceiveReport report = report_of(*pipeline, watched.arrivals);
  report.timed_out = ending == Ending::kTimedOut;
  pipeline.reset();  // its threads use what is watched
  MDFS_TRY(watched.arrivals.finish());
  return report;
}

}  // namespace mdfs::film
