// The element mdfsfecdec: gets the RTP packets out of the datagrams of mdfsfecenc, also those that were lost.
//
// Recovered packets come behind later ones, without time stamps: rtpjitterbuffer follows, puts them in order, and gives
// all packets their times. The streaming thread calls chain(); other threads read and set properties.
// SPDX-License-Identifier: Apache-2.0
#include <gst/gst.h>

#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "element.h"
#include "elements.h"
#include "fec_packet.h"
#include "fec_receiver.h"

namespace mdfs::gst {

// Of what rtpgstpay sends.
constexpr const char* kPayloadCaps =
    "application/x-rtp, media=(string)application, payload=(int)96, clock-rate=(int)90000, encoding-name=(string)X-GST";

struct Decoder {
  GstCaps* caps = nullptr;  // owned; guarded by the lock of the object
  std::mutex receiving;     // guards the receiver
  FecReceiver receiver;
};

}  // namespace mdfs::gst

using namespace mdfs::gst;

struct MdfsFecDec {
  GstElement parent;
  GstPad* source;
  Decoder* decoder;  // owned
};
struct MdfsFecDecClass {
  GstElementClass parent_class;
};

G_DEFINE_TYPE(MdfsFecDec, mdfs_fec_dec, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE(mdfsfecdec, "mdfsfecdec", GST_RANK_NONE, mdfs_fec_dec_get_type())

namespace {

enum DecoderProperty { kDecoderCaps = 1, kDecoderStats };

MdfsFecDec* decoder_element(gpointer object) { return static_cast<MdfsFecDec*>(object); }

void set_decoder_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  if (id != kDecoderCaps) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    return;
  }
  const ObjectLock lock(object);
  gst_caps_replace(&decoder_element(object)->decoder->caps, static_cast<GstCaps*>(g_value_get_boxed(value)));
}

void get_decoder_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  Decoder& decoder = *decoder_element(object)->decoder;
  if (id == kDecoderCaps) {
    const ObjectLock lock(object);
    g_value_set_boxed(value, decoder.caps);
  } else if (id == kDecoderStats) {
    const std::lock_guard lock(decoder.receiving);
    const FecReceiver::Counters counters = decoder.receiver.counters();
    const std::optional<std::uint32_t> frames = decoder.receiver.frames_sent();
    g_value_take_boxed(
        value, gst_structure_new("mdfs-fec-received", "source-packets", G_TYPE_UINT64, counters.source_packets,
                                 "repair-packets", G_TYPE_UINT64, counters.repair_packets, "recovered", G_TYPE_UINT64,
                                 counters.recovered, "lost", G_TYPE_UINT64, counters.lost, "late", G_TYPE_UINT64,
                                 counters.late, "refused", G_TYPE_UINT64, counters.refused, "of-other-streams",
                                 G_TYPE_UINT64, counters.of_other_streams, "frames-sent", G_TYPE_INT64,
                                 frames ? gint64{*frames} : gint64{-1}, nullptr));
  } else {
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

GstBuffer* buffer_of(const Packet& packet) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, packet.size(), nullptr);
  gst_buffer_fill(buffer, 0, packet.data(), packet.size());
  return buffer;
}

// Hands on the packets of a datagram that arrived at the time. GST_FLOW_EOS: the sender has ended the movie.
GstFlowReturn decode_datagram(MdfsFecDec* self, std::span<const std::byte> datagram, GstClockTime time) {
  Decoder& decoder = *self->decoder;
  const bool is_source = datagram.size() > 1 && datagram[1] == static_cast<std::byte>(FecKind::kSource);
  std::vector<Packet> packets;
  bool has_ended;
  {
    const std::lock_guard lock(decoder.receiving);
    packets = decoder.receiver.take(datagram);
    has_ended = decoder.receiver.has_ended();
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    GstBuffer* buffer = buffer_of(packets[i]);
    if (is_source && i == 0) GST_BUFFER_DTS(buffer) = GST_BUFFER_PTS(buffer) = time;
    const GstFlowReturn flow = gst_pad_push(self->source, buffer);
    if (flow != GST_FLOW_OK) return flow;
  }
  if (!has_ended) return GST_FLOW_OK;
  gst_pad_push_event(self->source, gst_event_new_eos());
  return GST_FLOW_EOS;
}

GstFlowReturn decoder_chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
  MdfsFecDec* const self = decoder_element(parent);
  const GstClockTime time = GST_BUFFER_DTS_IS_VALID(buffer) ? GST_BUFFER_DTS(buffer) : GST_BUFFER_PTS(buffer);
  GstMapInfo map;
  GstFlowReturn flow = GST_FLOW_ERROR;
  if (gst_buffer_map(buffer, &map, GST_MAP_READ)) {
    try {
      flow = decode_datagram(self, {reinterpret_cast<const std::byte*>(map.data), map.size}, time);
    } catch (const std::exception& failure) {
      GST_ELEMENT_ERROR(self, RESOURCE, FAILED, ("packets cannot be recovered: %s", failure.what()), (nullptr));
    }
    gst_buffer_unmap(buffer, &map);
  }
  gst_buffer_unref(buffer);
  return flow;
}

gboolean decoder_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  MdfsFecDec* const self = decoder_element(parent);
  if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
    gst_event_unref(event);
    return TRUE;
  }
  if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
    GstEvent* caps;
    {
      const ObjectLock lock(self);
      caps = gst_event_new_caps(self->decoder->caps);
    }
    gst_pad_push_event(self->source, caps);
  }
  return gst_pad_event_default(pad, parent, event);
}

GstStateChangeReturn change_decoder_state(GstElement* element, GstStateChange change) {
  Decoder& decoder = *decoder_element(element)->decoder;
  if (change == GST_STATE_CHANGE_READY_TO_PAUSED) {
    {
      const std::lock_guard lock(decoder.receiving);
      decoder.receiver = FecReceiver();
    }
    const ObjectLock lock(element);
    if (decoder.caps == nullptr) decoder.caps = gst_caps_from_string(kPayloadCaps);
  }
  return GST_ELEMENT_CLASS(mdfs_fec_dec_parent_class)->change_state(element, change);
}

void finalize_decoder(GObject* object) {
  Decoder* const decoder = decoder_element(object)->decoder;
  gst_clear_caps(&decoder->caps);
  delete decoder;
  G_OBJECT_CLASS(mdfs_fec_dec_parent_class)->finalize(object);
}

}  // namespace

static void mdfs_fec_dec_class_init(MdfsFecDecClass* klass) {
  GObjectClass* object = G_OBJECT_CLASS(klass);
  object->set_property = set_decoder_property;
  object->get_property = get_decoder_property;
  object->finalize = finalize_decoder;
  const auto writable = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
  const auto readable = static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_property(
      object, kDecoderCaps,
      g_param_spec_boxed("caps", "Caps", "Caps of the RTP packets; by default those of rtpgstpay", GST_TYPE_CAPS,
                         writable));
  g_object_class_install_property(
      object, kDecoderStats,
      g_param_spec_boxed("stats", "Statistics", "Packets since the start", GST_TYPE_STRUCTURE, readable));

  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  gst_element_class_set_static_metadata(element, "MDFS FEC decoder", "Codec/Depayloader/Network/RTP",
                                        "Hands RTP packets on, and computes those that were lost", "mdfs");
  add_pad_template(element, "sink", GST_PAD_SINK, "ANY");
  add_pad_template(element, "src", GST_PAD_SRC, "application/x-rtp");
  element->change_state = change_decoder_state;
}

static void mdfs_fec_dec_init(MdfsFecDec* self) {
  self->decoder = new Decoder;
  self->source = add_packet_pads(self, decoder_chain, decoder_event);
}
