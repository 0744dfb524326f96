// Properties of mdfssrc.
// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <mdfs/ioctl.h>

#include <algorithm>

namespace mdfs::gst {

std::string complaint_about(const Settings& settings) {
  if (settings.location.empty()) return "location is not set: it is the path of an image on a mounted MDFS volume";
  if (settings.level < 0 || settings.level > MDFS_IOC_MAX_LEVELS)
    return "level is " + std::to_string(settings.level) + ": allowed are 0 to " + std::to_string(MDFS_IOC_MAX_LEVELS);
  if (settings.fps.numerator != 0 && !is_possible(settings.fps))
    return "fps is " + std::to_string(settings.fps.numerator) + "/" + std::to_string(settings.fps.denominator) +
           ": allowed are fractions above 0 up to 1000000000/1, and 0/1 for the rate of the image";
  if (settings.lookahead < 1 || settings.lookahead > kMaxLookahead)
    return "lookahead is " + std::to_string(settings.lookahead) + ": allowed are 1 to " +
           std::to_string(kMaxLookahead) + " frames";
  if (settings.coarser && !settings.reserve)
    return "coarser is true: that is of a reserved rate; reserve=true is missing";
  return {};
}

std::optional<FrameRate> chosen_rate(const Settings& settings) {
  if (settings.fps.numerator == 0) return std::nullopt;
  return settings.fps;
}

std::string window_spec(const Settings& settings) {
  const std::string window = settings.window.empty() ? "all" : settings.window;
  if (settings.level == 0) return window;
  const std::string level = "l" + std::to_string(settings.level);
  return window == "all" ? level : level + "," + window;
}

std::uint64_t frames_ahead(const Settings& settings, std::uint64_t frame_bytes) {
  const std::uint64_t most = std::max<std::uint64_t>(kMaxLookaheadBytes / std::max<std::uint64_t>(frame_bytes, 1), 1);
  return std::min<std::uint64_t>(static_cast<std::uint64_t>(settings.lookahead), most);
}

}  // namespace mdfs::gst
