// The GStreamer plugin "mdfs": elements for movies on a mounted MDFS volume.
// SPDX-License-Identifier: Apache-2.0
#include <gst/gst.h>
#include <mdfs/version.h>

#include "elements.h"

#define PACKAGE "mdfs"

static gboolean register_elements(GstPlugin* plugin) {
  return GST_ELEMENT_REGISTER(mdfssrc, plugin) && GST_ELEMENT_REGISTER(mdfssink, plugin) &&
         GST_ELEMENT_REGISTER(mdfsfecenc, plugin) && GST_ELEMENT_REGISTER(mdfsfecdec, plugin);
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, mdfs, "Movies on a mounted MDFS volume", register_elements,
                  MDFS_VERSION_STRING, "Apache 2.0", "mdfs", "https://mdfs.example/")
