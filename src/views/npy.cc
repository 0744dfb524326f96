// Writing and reading .npy headers.
// SPDX-License-Identifier: Apache-2.0
#include "views/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::views {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kMaxAxes = 32;

Error bad(std::string where) { return {Errc::kInvalidArgument, "NPY header: " + std::move(where)}; }

// Reads the Python dictionary of a header: keys in quotes, values a string, a boolean or a tuple of numbers.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : text_(text) {}

  Status read() {
    MDFS_TRY(expect('{'));
    while (!accept('}')) {
      MDFS_TRY_ASSIGN(const std::string key, quoted());
      MDFS_TRY(expect(':'));
      if (key == "descr") {
        MDFS_TRY_ASSIGN(descr_, quoted());
      } else if (key == "fortran_order") {
        MDFS_TRY_ASSIGN(fortran_, boolean());
      } else if (key == "shape") {
        MDFS_TRY_ASSIGN(shape_, tuple());
      } else {
        return bad("unknown key '" + key + "'");
      }
      if (!accept(',')) {
        MDFS_TRY(expect('}'));
        break;
      }
    }
    skip_space();
    if (!text_.empty()) return bad("text follows the dictionary");
    if (!descr_ || !fortran_ || !shape_) return bad("descr, fortran_order or shape is missing");
    return {};
  }

  const std::string& descr() const { return *descr_; }
  bool fortran() const { return *fortran_; }
  const std::vector<std::uint64_t>& shape() const { return *shape_; }

 private:
  void skip_space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  Status expect(char c) {
    if (accept(c)) return {};
    return bad(fmt::format("'{}' is missing", c));
  }
  Result<std::string> quoted() {
    skip_space();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return bad("a quoted string is missing");
    const char quote = text_[0];
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) return bad("a string does not end");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  Result<bool> boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    return bad("fortran_order is neither True nor False");
  }
  Result<std::vector<std::uint64_t>> tuple() {
    std::vector<std::uint64_t> numbers;
    MDFS_TRY(expect('('));
    while (!accept(')')) {
      skip_space();
      std::uint64_t number = 0;
      const auto [end, failure] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (failure != std::errc{} || numbers.size() == kMaxAxes) return bad("the shape must be a tuple of lengths");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      numbers.push_back(number);
      if (!accept(',')) {
        MDFS_TRY(expect(')'));
        break;
      }
    }
    return numbers;
  }

  std::string_view text_;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::uint64_t>> shape_;
};

Result<geometry::ElementType> type_of(std::string_view descr) {
  constexpr auto kLast = static_cast<unsigned>(geometry::ElementType::kF64);
  for (unsigned number = 1; number <= kLast; ++number) {
    const auto type = static_cast<geometry::ElementType>(number);
    const std::string_view ours = geometry::numpy_descr(type);
    // One-byte types have no byte order; "=" is this machine's, which is little endian.
    const bool order_ok =
        descr.size() == 3 &&
        (descr[0] == ours[0] || descr[0] == '=' ||
         (geometry::element_bytes(type) == 1 && std::string_view("<>|").find(descr[0]) != std::string_view::npos));
    if (order_ok && descr.substr(1) == ours.substr(1)) return type;
  }
  return bad(fmt::format("element type '{}' is not one of little-endian u1..u8, i1..i8, f2..f8", descr));
}

}  // namespace

ByteVector npy_header(geometry::ElementType type, const std::vector<std::uint64_t>& shape, std::size_t header_bytes) {
  std::string tuple;
  for (const std::uint64_t length : shape) tuple += fmt::format("{}, ", length);
  if (shape.size() > 1) tuple.resize(tuple.size() - 2);   // (3, 4)
  if (shape.size() == 1) tuple.resize(tuple.size() - 1);  // (3,)
  const std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", geometry::numpy_descr(type), tuple);
  constexpr std::size_t kPreamble = 10;
  MDFS_CHECK(header_bytes % 64 == 0 && header_bytes <= kMaxNpyHeaderBytes);
  MDFS_CHECK(kPreamble + dict.size() + 1 <= header_bytes);

  std::string text(kMagic);
  text += std::string_view("\x01\x00", 2);
  text.append(2, '\0');
  text += dict;
  text.resize(header_bytes - 1, ' ');
  text += '\n';
  ByteVector bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  store_le<std::uint16_t>(bytes, 8, static_cast<std::uint16_t>(header_bytes - kPreamble));
  return bytes;
}

std::uint64_t NpyHeader::data_bytes() const {
  std::uint64_t bytes = geometry::element_bytes(type);
  for (const std::uint64_t length : shape) bytes *= length;
  return bytes;
}

Result<NpyHeader> parse_npy_header(ConstBytes bytes) {
  if (bytes.size() < 10) return bad("truncated");
  if (as_text(bytes.first(kMagic.size())) != kMagic) return bad("this is not an NPY file");
  const auto major = std::to_integer<unsigned>(bytes[6]);
  if (major < 1 || major > 3) return bad(fmt::format("version {} is not 1, 2 or 3", major));
  const std::size_t preamble = major == 1 ? 10 : 12;
  if (bytes.size() < preamble) return bad("truncated");
  const std::size_t length = major == 1 ? load_le<std::uint16_t>(bytes, 8) : load_le<std::uint32_t>(bytes, 8);
  if (length > kMaxNpyHeaderBytes - preamble) return bad(fmt::format("{} bytes are too many", length));
  if (length > bytes.size() - preamble) return bad("truncated");

  DictReader dict(as_text(bytes.subspan(preamble, length)));
  MDFS_TRY(dict.read());
  NpyHeader header;
  MDFS_TRY_ASSIGN(header.type, type_of(dict.descr()));
  header.shape = dict.shape();
  header.header_bytes = preamble + length;
  if (dict.fortran() && header.shape.size() > 1) return bad("the array is in Fortran order; MDFS stores C order");
  std::optional<std::uint64_t> total = geometry::element_bytes(header.type);
  for (const std::uint64_t axis : header.shape) {
    total = checked_mul(*total, axis);
    if (!total) return Error{Errc::kOverflow, "NPY header: the shape is too large"};
  }
  return header;
}

}  // namespace mdfs::views
