// The element mdfsfecenc: adds forward error correction to RTP packets, and says when each datagram is sent.
//
// Packets are collected until a group is complete (fec_sender.h). The time stamps of its datagrams are spread evenly
// over the time of the group, so a sink that waits for them sends at a steady rate. The streaming thread calls chain()
// and handles events; other threads set properties.
// SPDX-License-Identifier: Apache-2.0
#include <gst/gst.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "element.h"
#include "elements.h"
#include "fec_packet.h"
#include "fec_sender.h"

namespace mdfs::gst {

// End packets are sent so often, over so long a time: a network that loses all of them loses everything.
constexpr unsigned kEndCopies = 40;
constexpr GstClockTime kEndTime = 400 * GST_MSECOND;

struct Encoder {
  // Guarded by the lock of the object.
  FecSettings settings;
  FecSender::Counters counters;

  // Of the streaming thread.
  std::optional<FecSender> sender;
  GstClockTime begin = GST_CLOCK_TIME_NONE;   // of the group
  GstClockTime latest = GST_CLOCK_TIME_NONE;  // of its last frame
  GstClockTime frame_time = 0;                // between the last two frames
};

}  // namespace mdfs::gst

using namespace mdfs::gst;

struct MdfsFecEnc {
  GstElement parent;
  GstPad* source;
  Encoder* encoder;  // owned
};
struct MdfsFecEncClass {
  GstElementClass parent_class;
};

G_DEFINE_TYPE(MdfsFecEnc, mdfs_fec_enc, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE(mdfsfecenc, "mdfsfecenc", GST_RANK_NONE, mdfs_fec_enc_get_type())

namespace {

enum EncoderProperty { kRedundancy = 1, kImportantRedundancy, kImportantEvery, kInterval, kEncoderStats };

MdfsFecEnc* encoder_element(gpointer object) { return static_cast<MdfsFecEnc*>(object); }

void set_encoder_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  const ObjectLock lock(object);
  FecSettings& settings = encoder_element(object)->encoder->settings;
  switch (id) {
    case kRedundancy:
      settings.redundancy = g_value_get_int(value);
      break;
    case kImportantRedundancy:
      settings.important_redundancy = g_value_get_int(value);
      break;
    case kImportantEvery:
      settings.important_every = g_value_get_int(value);
      break;
    case kInterval:
      settings.interval_ms = g_value_get_int(value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void get_encoder_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  const ObjectLock lock(object);
  const Encoder& encoder = *encoder_element(object)->encoder;
  switch (id) {
    case kRedundancy:
      g_value_set_int(value, encoder.settings.redundancy);
      break;
    case kImportantRedundancy:
      g_value_set_int(value, encoder.settings.important_redundancy);
      break;
    case kImportantEvery:
      g_value_set_int(value, encoder.settings.important_every);
      break;
    case kInterval:
      g_value_set_int(value, encoder.settings.interval_ms);
      break;
    case kEncoderStats:
      g_value_take_boxed(
          value, gst_structure_new("mdfs-fec-sent", "frames", G_TYPE_UINT64, encoder.counters.frames, "source-packets",
                                   G_TYPE_UINT64, encoder.counters.source_packets, "repair-packets", G_TYPE_UINT64,
                                   encoder.counters.repair_packets, nullptr));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

GstBuffer* datagram_at(Packet&& packet, GstClockTime time) {
  auto* const kept = new Packet(std::move(packet));
  GstBuffer* buffer = gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, kept->data(), kept->size(), 0, kept->size(),
                                                  kept, [](gpointer data) { delete static_cast<Packet*>(data); });
  GST_BUFFER_PTS(buffer) = time;
  return buffer;
}

// Sends the group, evenly until `end`.
GstFlowReturn send_group(MdfsFecEnc* self, GstClockTime end) {
  Encoder& encoder = *self->encoder;
  if (!encoder.sender || encoder.sender->is_empty()) return GST_FLOW_OK;
  std::vector<Packet> packets = encoder.sender->finish_group();
  {
    const ObjectLock lock(self);
    encoder.counters = encoder.sender->counters();
  }
  const bool has_time = GST_CLOCK_TIME_IS_VALID(encoder.begin);
  const GstClockTime length = has_time && end > encoder.begin ? end - encoder.begin : 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const GstClockTime time =
        has_time ? encoder.begin + gst_util_uint64_scale(length, i, packets.size()) : GST_CLOCK_TIME_NONE;
    const GstFlowReturn flow = gst_pad_push(self->source, datagram_at(std::move(packets[i]), time));
    if (flow != GST_FLOW_OK) return flow;
  }
  return GST_FLOW_OK;
}

// The rest of the movie, and its end.
void send_end(MdfsFecEnc* self) {
  Encoder& encoder = *self->encoder;
  if (!encoder.sender) return;
  const bool has_time = GST_CLOCK_TIME_IS_VALID(encoder.latest);
  const GstClockTime end = has_time ? encoder.latest + encoder.frame_time : GST_CLOCK_TIME_NONE;
  GstFlowReturn flow = send_group(self, end);
  for (unsigned i = 0; i < kEndCopies && flow == GST_FLOW_OK; ++i)
    flow = gst_pad_push(self->source,
                        datagram_at(encoder.sender->end(), has_time ? end + kEndTime * i / kEndCopies : end));
}

GstFlowReturn encode_packet(MdfsFecEnc* self, std::span<const std::byte> packet, GstClockTime time) {
  Encoder& encoder = *self->encoder;
  FecSender& sender = *encoder.sender;
  if (sender.begins_frame(packet)) {
    if (GST_CLOCK_TIME_IS_VALID(time) && GST_CLOCK_TIME_IS_VALID(encoder.latest) && time > encoder.latest)
      encoder.frame_time = time - encoder.latest;
    const auto interval = static_cast<GstClockTime>(encoder.settings.interval_ms) * GST_MSECOND;
    const bool is_due = !GST_CLOCK_TIME_IS_VALID(time) || !GST_CLOCK_TIME_IS_VALID(encoder.begin) ||
                        time < encoder.begin || time - encoder.begin >= interval || sender.is_full();
    if (is_due) {
      const GstFlowReturn flow = send_group(self, time);
      if (flow != GST_FLOW_OK) return flow;
      encoder.begin = time;
    }
    encoder.latest = time;
  }
  if (sender.add(packet)) return GST_FLOW_OK;
  GST_ELEMENT_ERROR(
      self, STREAM, FORMAT,
      ("a packet of %zu bytes is no RTP packet of %zu to %zu bytes", packet.size(), kMinRtpBytes, kMaxRtpBytes),
      (nullptr));
  return GST_FLOW_ERROR;
}

GstFlowReturn encoder_chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
  MdfsFecEnc* const self = encoder_element(parent);
  GstMapInfo map;
  GstFlowReturn flow = GST_FLOW_ERROR;
  if (gst_buffer_map(buffer, &map, GST_MAP_READ)) {
    try {
      flow = encode_packet(self, {reinterpret_cast<const std::byte*>(map.data), map.size}, GST_BUFFER_PTS(buffer));
    } catch (const std::exception& failure) {
      GST_ELEMENT_ERROR(self, RESOURCE, FAILED, ("packets cannot be protected: %s", failure.what()), (nullptr));
    }
    gst_buffer_unmap(buffer, &map);
  }
  gst_buffer_unref(buffer);
  return flow;
}

gboolean encoder_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  MdfsFecEnc* const self = encoder_element(parent);
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_CAPS: {
      gst_event_unref(event);
      GstCaps* caps = gst_caps_new_empty_simple("application/x-mdfs-fec");
      const gboolean done = gst_pad_push_event(self->source, gst_event_new_caps(caps));
      gst_caps_unref(caps);
      return done;
    }
    case GST_EVENT_EOS:
      try {
        send_end(self);
      } catch (const std::exception& failure) {
        GST_ELEMENT_ERROR(self, RESOURCE, FAILED, ("packets cannot be protected: %s", failure.what()), (nullptr));
      }
      return gst_pad_event_default(pad, parent, event);
    default:
      return gst_pad_event_default(pad, parent, event);
  }
}

GstStateChangeReturn change_encoder_state(GstElement* element, GstStateChange change) {
  MdfsFecEnc* const self = encoder_element(element);
  Encoder& encoder = *self->encoder;
  if (change == GST_STATE_CHANGE_READY_TO_PAUSED) {
    FecSettings settings;
    {
      const ObjectLock lock(element);
      settings = encoder.settings;
      encoder.counters = {};
    }
    if (const std::string complaint = complaint_about(settings); !complaint.empty()) {
      GST_ELEMENT_ERROR(element, LIBRARY, SETTINGS, ("%s", complaint.c_str()), (nullptr));
      return GST_STATE_CHANGE_FAILURE;
    }
    encoder.sender.emplace(settings, g_random_int());
    encoder.begin = encoder.latest = GST_CLOCK_TIME_NONE;
    encoder.frame_time = 0;
  }
  const GstStateChangeReturn done = GST_ELEMENT_CLASS(mdfs_fec_enc_parent_class)->change_state(element, change);
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY) encoder.sender.reset();
  return done;
}

void finalize_encoder(GObject* object) {
  delete encoder_element(object)->encoder;
  G_OBJECT_CLASS(mdfs_fec_enc_parent_class)->finalize(object);
}

void install_encoder_properties(GObjectClass* object) {
  const auto writable = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
  const auto readable = static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  const FecSettings usual;
  // Numbers have no limits here, since GObject leaves a value beyond them out with a warning; a change of state refuses
  // it.
  g_object_class_install_property(
      object, kRedundancy,
      g_param_spec_int("redundancy", "Redundancy", "Repair packets for 100 packets, 0 to 200", G_MININT, G_MAXINT,
                       usual.redundancy, writable));
  g_object_class_install_property(
      object, kImportantRedundancy,
      g_param_spec_int("important-redundancy", "Redundancy of important frames",
                       "Repair packets for 100 packets of important frames, 0 to 200; -1: as for other frames",
                       G_MININT, G_MAXINT, usual.important_redundancy, writable));
  g_object_class_install_property(
      object, kImportantEvery,
      g_param_spec_int("important-every", "Important frames",
                       "Each n-th frame is important, from the first on, 1 to 10000; 0: none", G_MININT, G_MAXINT,
                       usual.important_every, writable));
  g_object_class_install_property(
      object, kInterval,
      g_param_spec_int("interval", "Interval",
                       "Milliseconds of a movie that are protected together and sent at a steady rate, 1 to 10000",
                       G_MININT, G_MAXINT, usual.interval_ms, writable));
  g_object_class_install_property(
      object, kEncoderStats,
      g_param_spec_boxed("stats", "Statistics", "Frames and packets since the start", GST_TYPE_STRUCTURE, readable));
}

}  // namespace

static void mdfs_fec_enc_class_init(MdfsFecEncClass* klass) {
  GObjectClass* object = G_OBJECT_CLASS(klass);
  object->set_property = set_encoder_property;
  object->get_property = get_encoder_property;
  object->finalize = finalize_encoder;
  install_encoder_properties(object);

  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  gst_element_class_set_static_metadata(element, "MDFS FEC encoder", "Codec/Payloader/Network/RTP",
                                        "Adds packets from which a receiver computes lost RTP packets", "mdfs");
  add_pad_template(element, "sink", GST_PAD_SINK, "application/x-rtp");
  add_pad_template(element, "src", GST_PAD_SRC, "application/x-mdfs-fec");
  element->change_state = change_encoder_state;
}

static void mdfs_fec_enc_init(MdfsFecEnc* self) {
  self->encoder = new Encoder;
  self->source = add_packet_pads(self, encoder_chain, encoder_event);
}
