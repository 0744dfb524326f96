// The elements of the plugin, for its entry point.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gst/gst.h>

GST_ELEMENT_REGISTER_DECLARE(mdfssrc)
GST_ELEMENT_REGISTER_DECLARE(mdfssink)
GST_ELEMENT_REGISTER_DECLARE(mdfsfecenc)
GST_ELEMENT_REGISTER_DECLARE(mdfsfecdec)
