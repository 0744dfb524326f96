// The header of NPY files (numpy.lib.format): magic, version, length, a Python dictionary as text.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "imagefile/header.h"

namespace mdfs::imagefile {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;

// Walks the dictionary's text; every method says whether it found what it looks for and then stands behind it.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    skip_space();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> take_string() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<std::uint64_t> take_number() {
    skip_space();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    take_word("L");  // written by Python 2
    return value;
  }
  bool at_end() {
    skip_space();
    return rest_.empty();
  }
  bool next_is(char wanted) {
    skip_space();
    return !rest_.empty() && rest_[0] == wanted;
  }

 private:
  void skip_space() {
    const std::size_t begin = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(begin == std::string_view::npos ? rest_.size() : begin);
  }
  std::string_view rest_;
};

struct Fields {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::vector<std::uint64_t> shape;  // empty: not there yet
};

Result<std::vector<std::uint64_t>> parse_shape(Scanner& scanner, const std::string& name) {
  if (!scanner.take('(')) return Error{Errc::kBadData, name + ": NPY field 'shape' must be a tuple"};
  std::vector<std::uint64_t> lengths;
  while (!scanner.take(')')) {
    const auto length = scanner.take_number();
    if (!length) return Error{Errc::kBadData, name + ": NPY field 'shape' must hold numbers from 0 to 2^64 - 1"};
    lengths.push_back(*length);
    if (lengths.size() > kMaxDimensions)
      return Error{Errc::kNotSupported,
                   fmt::format("{}: NPY field 'shape' has more than {} dimensions", name, kMaxDimensions)};
    if (!scanner.take(',') && !scanner.next_is(')'))
      return Error{Errc::kBadData, name + ": NPY field 'shape' is not closed"};
  }
  if (lengths.empty()) return Error{Errc::kNotSupported, name + ": NPY holds a single number, not an image"};
  return lengths;
}

Status parse_field(Scanner& scanner, std::string_view key, Fields& fields, const std::string& name) {
  if (key == "descr" && !fields.descr) {
    if (scanner.next_is('['))
      return {Errc::kNotSupported, name + ": NPY field 'descr' is a structured type; it must be a plain number type"};
    const auto text = scanner.take_string();
    if (!text) return {Errc::kBadData, name + ": NPY field 'descr' must be a string"};
    fields.descr = std::string(*text);
  } else if (key == "fortran_order" && !fields.fortran_order) {
    const bool yes = scanner.take_word("True");
    if (!yes && !scanner.take_word("False"))
      return {Errc::kBadData, name + ": NPY field 'fortran_order' must be True or False"};
    fields.fortran_order = yes;
  } else if (key == "shape" && fields.shape.empty()) {
    MDFS_TRY_ASSIGN(fields.shape, parse_shape(scanner, name));
  } else {
    return {Errc::kBadData, fmt::format("{}: NPY field '{}' is unknown or given twice", name, key.substr(0, 40))};
  }
  return {};
}

Result<Fields> parse_dictionary(std::string_view text, const std::string& name) {
  Scanner scanner(text);
  Fields fields;
  if (!scanner.take('{')) return Error{Errc::kBadData, name + ": NPY header must be a dictionary"};
  while (!scanner.take('}')) {
    const auto key = scanner.take_string();
    if (!key || !scanner.take(':')) return Error{Errc::kBadData, name + ": NPY header must hold 'field': value pairs"};
    MDFS_TRY(parse_field(scanner, *key, fields, name));
    if (!scanner.take(',') && !scanner.next_is('}')) return Error{Errc::kBadData, name + ": NPY header is not closed"};
  }
  if (!scanner.at_end()) return Error{Errc::kBadData, name + ": NPY header continues after its dictionary"};
  for (const auto& [there, key] :
       {std::pair{fields.descr.has_value(), "descr"}, std::pair{fields.fortran_order.has_value(), "fortran_order"},
        std::pair{!fields.shape.empty(), "shape"}})
    if (!there) return Error{Errc::kBadData, fmt::format("{}: NPY field '{}' is missing", name, key)};
  return fields;
}

// "<u2" -> (u16, little endian).
Status parse_descr(std::string_view descr, const std::string& name, PackedHeader& header) {
  using geometry::ElementType;
  const auto refused = [&] {
    return Status(Errc::kNotSupported,
                  fmt::format("{}: NPY type '{}': must be an integer, float or bool of at most 8 bytes", name,
                              descr.substr(0, 40)));
  };
  if (descr.size() != 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) return refused();
  struct Row {
    std::string_view text;
    ElementType type;
  };
  static constexpr std::array kTypes = {
      Row{"u1", ElementType::kU8},  Row{"u2", ElementType::kU16}, Row{"u4", ElementType::kU32},
      Row{"u8", ElementType::kU64}, Row{"i1", ElementType::kI8},  Row{"i2", ElementType::kI16},
      Row{"i4", ElementType::kI32}, Row{"i8", ElementType::kI64}, Row{"f2", ElementType::kF16},
      Row{"f4", ElementType::kF32}, Row{"f8", ElementType::kF64}, Row{"b1", ElementType::kU8},
  };
  for (const Row& row : kTypes) {
    if (descr.substr(1) != row.text) continue;
    header.array.type = row.type;
    header.big_endian = descr[0] == '>' && geometry::element_bytes(row.type) > 1;
    return {};
  }
  return refused();
}

}  // namespace

bool is_npy(ConstBytes start) { return as_text(start).starts_with(kMagic); }

Result<PackedHeader> parse_npy(ConstBytes start, const std::string& name) {
  const std::string cut_short = name + ": the file is truncated within the NPY header";
  if (!is_npy(start)) return Error{Errc::kBadData, name + ": not an NPY file"};
  if (start.size() < kMagic.size() + 2) return Error{Errc::kBadData, cut_short};
  const unsigned version = load_le<std::uint8_t>(start, kMagic.size());
  if (version < 1 || version > 3)
    return Error{Errc::kNotSupported, fmt::format("{}: NPY version {} must be 1 to 3", name, version)};
  const std::size_t length_at = kMagic.size() + 2, length_bytes = version == 1 ? 2 : 4;
  if (start.size() < length_at + length_bytes) return Error{Errc::kBadData, cut_short};
  const std::uint64_t length =
      version == 1 ? load_le<std::uint16_t>(start, length_at) : load_le<std::uint32_t>(start, length_at);
  const std::size_t text_at = length_at + length_bytes;
  if (length > kMaxHeaderBytes - text_at)
    return Error{Errc::kTooBig, fmt::format("{}: NPY header of {} bytes: must be at most {}", name, length,
                                            kMaxHeaderBytes - text_at)};
  if (!inside(text_at, length, start.size())) return Error{Errc::kBadData, cut_short};
  MDFS_TRY_ASSIGN(const Fields fields, parse_dictionary(as_text(start.subspan(text_at, length)), name));

  PackedHeader header;
  header.array.lengths = fields.shape;
  header.data_offset = text_at + length;
  MDFS_TRY(parse_descr(*fields.descr, name, header));
  const auto longer_than_one = std::count_if(fields.shape.begin(), fields.shape.end(), [](auto n) { return n > 1; });
  if (*fields.fortran_order && longer_than_one > 1)
    return Error{Errc::kNotSupported,
                 name + ": NPY array in Fortran order; save it with numpy.save(..., numpy.ascontiguousarray(array))"};
  return header;
}

std::string npy_header(const ArrayInfo& array) {
  std::string shape;
  for (const std::uint64_t length : array.lengths) shape += fmt::format("{}, ", length);
  shape.resize(shape.size() - (array.lengths.size() > 1 ? 2 : 1));
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 geometry::numpy_descr(array.type), shape);
  const std::size_t before = kMagic.size() + 4;
  const std::size_t total = align_up(before + text.size() + 1, kAlignment);
  text.append(total - before - text.size() - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace mdfs::imagefile
