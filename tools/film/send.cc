// mdfs send: a movie as RTP packets with forward error correction, at a steady rate.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gst/gst.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "film.h"
#include "pipeline.h"
#include "support/interruption.h"

namespace mdfs::film {
namespace {

// Packets that wait to be sent, at most: a stored movie can be read ahead, so that a pause of the disks is not heard.
constexpr GstClockTime kQueueTime = 4 * GST_SECOND;
constexpr std::uint64_t kQueueBytes = 128 << 20;
constexpr auto kFillStep = std::chrono::milliseconds(10);
constexpr auto kMostFill = std::chrono::seconds(20);  // a sender that is slower than its movie begins then

std::string codec_part(const SendOptions& options) {
  if (options.codec == "raw") return {};
  return fmt::format("videoconvert ! video/x-raw,format=(string){{I420,GRAY8}} ! jpegenc quality={} ! ",
                     options.quality);
}

std::string description_of(const SendOptions& options) {
  return fmt::format(
      "mdfssrc name=source ! {}rtpgstpay name=pay mtu={} config-interval=1 ! "
      "mdfsfecenc name=fec redundancy={} important-redundancy={} important-every={} interval={} ! "
      "queue name=ahead max-size-time={} max-size-buffers=0 max-size-bytes={} ! udpsink name=net sync=true qos=true",
      codec_part(options), options.mtu, options.redundancy,
      options.important_redundancy ? static_cast<int>(*options.important_redundancy) : -1, options.important_every,
      options.interval_ms, kQueueTime, kQueueBytes);
}

// Waits until half of what may wait is there, or all of the movie: without that the first frames come late, because
// reading and coding begin with them.
Status fill(const Pipeline& pipeline) {
  const auto queue = pipeline.element("ahead");
  const ObjectPtr<GstPad> pad(gst_element_get_static_pad(queue.get(), "sink"));
  const auto limit = std::chrono::steady_clock::now() + kMostFill;
  guint64 time = 0;
  guint bytes = 0;
  while (time < kQueueTime / 2 && bytes < kQueueBytes / 2 && !GST_PAD_IS_EOS(pad.get()) &&
         std::chrono::steady_clock::now() < limit) {
    if (!tools::wait_until(std::chrono::steady_clock::now() + kFillStep, tools::Interruption::asked()))
      return tools::stopped_by_signal();
    g_object_get(queue.get(), "current-level-time", &time, "current-level-bytes", &bytes, nullptr);
  }
  return {};
}

// When running time 0 of a pipeline that plays was.
std::int64_t start_of(GstElement* pipeline) {
  const ObjectPtr<GstClock> clock(gst_element_get_clock(pipeline));
  if (clock == nullptr) return 0;
  const GstClockTime running = gst_clock_get_time(clock.get()) - gst_element_get_base_time(pipeline);
  return real_time_ns() - static_cast<std::int64_t>(running);
}

}  // namespace

Result<SendReport> send(const SendOptions& options) {
  const std::array<Needed, 6> needed = {{{"mdfssrc", "mdfs-gstreamer"},
                                         {"mdfsfecenc", "mdfs-gstreamer"},
                                         {"videoconvert", "gstreamer1.0-plugins-base"},
                                         {"jpegenc", "gstreamer1.0-plugins-good"},
                                         {"rtpgstpay", "gstreamer1.0-plugins-good"},
                                         {"udpsink", "gstreamer1.0-plugins-good"}}};
  MDFS_TRY(require_elements(needed));
  MDFS_TRY_ASSIGN(const auto pipeline, Pipeline::parse(description_of(options)));
  MDFS_TRY(set_movie(*pipeline, options.movie));
  g_object_set(pipeline->element("net").get(), "host", options.host.c_str(), "port", options.port, nullptr);
  MDFS_TRY(pipeline->reach(GST_STATE_PAUSED));
  MDFS_TRY(fill(*pipeline));
  MDFS_TRY(pipeline->reach(GST_STATE_PLAYING));
  SendReport report;
  report.started_ns = start_of(pipeline->get());
  MDFS_TRY_ASSIGN(const Ending ending, pipeline->run());
  if (ending == Ending::kSignal) return tools::stopped_by_signal();

  GstStructure* stats = nullptr;
  g_object_get(pipeline->element("fec").get(), "stats", &stats, nullptr);
  guint64 frames = 0, sources = 0, repairs = 0, dropped = 0;
  gst_structure_get(stats, "frames", G_TYPE_UINT64, &frames, "source-packets", G_TYPE_UINT64, &sources,
                    "repair-packets", G_TYPE_UINT64, &repairs, nullptr);
  gst_structure_free(stats);
  g_object_get(pipeline->element("source").get(), "dropped", &dropped, nullptr);
  report.frames = frames;
  report.source_packets = sources;
  report.repair_packets = repairs;
  report.dropped = dropped;
  report.cpu_s = cpu_seconds();
  return report;
}

}  // namespace mdfs::film
