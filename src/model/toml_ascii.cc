// TOML as its library may be given it.
// SPDX-License-Identifier: Apache-2.0
#include "model/toml_ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace mdfs::model {

namespace {

constexpr unsigned kMostParts = 16;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

class Rewriter {
 public:
  Rewriter(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Result<std::string> run() {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    unsigned dots = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        MDFS_TRY(quoted());
      } else if (c == '#') {
        comment();
      } else {
        if (!is_ascii(c)) return bad("characters that are not ASCII belong in quotes");
        if (c == '.')
          ++dots;
        else if (std::isalnum(static_cast<unsigned char>(c)) == 0 && kOfNames.find(c) == std::string::npos)
          dots = 0;
        if (dots >= kMostParts) return bad(fmt::format("a name has more than {} parts", kMostParts));
        copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  static constexpr std::string_view kOfNames = "_- \t";  // beside letters and digits

  static bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

  Error bad(const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    return {Errc::kInvalidArgument, fmt::format("{}:{}: {}", where_, line, what)};
  }

  void copy(std::size_t count) {
    const std::string_view part = text_.substr(at_, count);
    out_ += part;
    at_ += part.size();
  }

  // To the end of the line.
  void comment() {
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) out_ += is_ascii(text_[at_]) ? text_[at_] : '?';
  }

  // From the first quote to behind the last. An unclosed string ends with the line or the file, and the library reports
  // it.
  Status quoted() {
    const std::string_view three = text_.substr(at_, 3);
    const bool is_long = three == R"(""")" || three == "'''";
    const std::string_view mark = is_long ? three : text_.substr(at_, 1);
    const bool has_escapes = mark[0] == '"';
    copy(mark.size());
    while (at_ < text_.size() && text_.substr(at_, mark.size()) != mark) {
      const char c = text_[at_];
      if (!is_long && c == '\n') return {};
      if (!is_ascii(c)) {
        if (!has_escapes) return bad("characters that are not ASCII belong in double quotes, not between apostrophes");
        MDFS_TRY(escape());
      } else if (c == '\\' && has_escapes) {
        copy(1);
        if (at_ < text_.size() && !is_ascii(text_[at_]))
          return bad("behind a backslash stands a character that is not ASCII");
        copy(1);
      } else {
        copy(1);
      }
    }
    copy(mark.size());
    for (unsigned more = is_long ? 2 : 0; more > 0 && text_.substr(at_, 1) == mark.substr(0, 1); --more)
      copy(1);  // the text ends in quotes
    return {};
  }

  Status escape() {
    std::string_view rest = text_.substr(at_);
    const auto character = take_character(rest);
    if (!character) return bad("bytes that are no UTF-8");
    out_ += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(*character));
    at_ = text_.size() - rest.size();
    return {};
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> ascii_toml(std::string_view text, const std::string& where) { return Rewriter(text, where).run(); }

}  // namespace mdfs::model
