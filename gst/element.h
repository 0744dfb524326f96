// What the elements of the plugin share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gst/gst.h>

#include <string>

namespace mdfs::gst {

// Holds the lock of an object of GStreamer.
class ObjectLock {
 public:
  explicit ObjectLock(gpointer object) : object_(GST_OBJECT(object)) { GST_OBJECT_LOCK(object_); }
  ~ObjectLock() { GST_OBJECT_UNLOCK(object_); }
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;

 private:
  GstObject* const object_;
};

// The text of a property; empty if it is null.
std::string string_of(const GValue* value);
// Adds the template of a pad for these caps.
void add_pad_template(GstElementClass* element, const char* name, GstPadDirection direction, const char* caps);
// The same for raw video in the formats of pixels.h.
void add_video_pad(GstElementClass* element, const char* name, GstPadDirection direction);

// Adds the pads "sink" and "src" of an element that is pushed packets, by the templates of its class. Returns the
// latter, which the element owns.
GstPad* add_packet_pads(gpointer element, GstPadChainFunction chain, GstPadEventFunction event);

}  // namespace mdfs::gst
