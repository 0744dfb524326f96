// What a volume may hold after a power cut.
// SPDX-License-Identifier: Apache-2.0
#include "oracle.h"

#include <sys/stat.h>

#include <algorithm>

namespace mdfs::crash {
namespace {

constexpr std::size_t kBlockBytes = 4096;

// A block of a file that ends before it is zeros.
std::string block_of(const std::string& text, std::size_t block) {
  std::string part = block * kBlockBytes < text.size() ? text.substr(block * kBlockBytes, kBlockBytes) : "";
  part.resize(kBlockBytes);
  return part;
}

bool same_name(const test::Seen& a, const test::Seen& b) {
  const bool file = S_ISREG(a.mode);
  return a.ino == b.ino && a.mode == b.mode && a.links == b.links && a.uid == b.uid && a.gid == b.gid &&
         a.xattrs == b.xattrs && (file || a.text == b.text);
}

}  // namespace

void History::add(const Operation& operation, volume::Ino target, bool succeeded, test::Tree after) {
  Effect effect = succeeded ? operation.effect() : Effect::kNames;
  const bool replaces = effect == Effect::kReplace && states_.back().contains(operation.arguments[1]);
  if (effect == Effect::kReplace && !replaces) effect = Effect::kNames;
  operations_.push_back({operation, target, effect});
  states_.push_back(std::move(after));
}

const std::string* History::data_after(volume::Ino ino, std::size_t state) const {
  for (const auto& [path, seen] : states_[state])
    if (seen.ino == ino) return &seen.text;
  return nullptr;
}

std::string History::explain(const test::Tree& found, std::size_t returned, std::size_t started) const {
  std::size_t durable = 0;
  for (std::size_t i = 1; i <= returned; ++i) {
    const Effect effect = operations_[i - 1].effect;
    if (effect == Effect::kFsync || effect == Effect::kSync) durable = i;
  }
  std::string why;
  for (std::size_t state = durable; state <= started; ++state) {
    const std::string names = explain_names(found, state);
    const std::string data = names.empty() ? explain_data(found, state, returned, started) : "";
    if (names.empty() && data.empty()) return "";
    if (!why.empty()) why += "; ";
    why += "not as after operation " + std::to_string(state) + ": " + (names.empty() ? data : names);
  }
  return why;
}

std::string History::explain_names(const test::Tree& found, std::size_t state) const {
  const test::Tree& expected = states_[state];
  for (const auto& [path, seen] : expected) {
    const auto here = found.find(path);
    if (here == found.end()) return path + " is missing";
    if (!same_name(seen, here->second)) return path + " is something else";
  }
  for (const auto& [path, seen] : found)
    if (!expected.contains(path)) return path + " is there";
  return "";
}

std::string History::explain_data(const test::Tree& found, std::size_t state, std::size_t returned,
                                  std::size_t started) const {
  for (const auto& [path, seen] : found) {
    if (!S_ISREG(seen.mode)) continue;
    std::size_t oldest = 0;
    for (std::size_t i = 1; i <= started; ++i) {
      const Done& done = operations_[i - 1];
      const Effect effect = done.effect;
      const bool promised =
          i <= returned && (effect == Effect::kSync || (effect == Effect::kFsync && done.target == seen.ino));
      const bool renamed = i <= state && effect == Effect::kReplace && done.target == seen.ino;
      if (promised || renamed) oldest = i;
    }
    if (!data_fit(seen, oldest, started))
      return path + " has data that it had at no time since operation " + std::to_string(oldest);
  }
  return "";
}

bool History::data_fit(const test::Seen& found, std::size_t first, std::size_t last) const {
  for (std::size_t from = first; from <= last; ++from) {
    std::vector<const std::string*> versions;
    for (std::size_t to = from; to <= last; ++to) {
      const std::string* text = data_after(found.ino, to);
      if (text == nullptr) break;
      const bool changed = !versions.empty() && *text != *versions.back();
      if (changed && operations_[to - 1].effect != Effect::kWrite) break;
      versions.push_back(text);
      if (found.text == *text) return true;
      if (is_mixture(found.text, versions)) return true;
    }
  }
  return false;
}

bool History::is_mixture(const std::string& text, const std::vector<const std::string*>& versions) const {
  const bool size_fits =
      std::any_of(versions.begin(), versions.end(), [&](const std::string* v) { return v->size() == text.size(); });
  if (!size_fits) return false;
  for (std::size_t block = 0; block * kBlockBytes < text.size(); ++block) {
    const std::string found = block_of(text, block);
    const bool fits = std::any_of(versions.begin(), versions.end(), [&](const std::string* v) {
      std::string expected = block_of(*v, block);
      const std::size_t inside = std::min(kBlockBytes, text.size() - block * kBlockBytes);
      return found.compare(0, inside, expected, 0, inside) == 0;
    });
    if (!fits) return false;
  }
  return true;
}

}  // namespace mdfs::crash
