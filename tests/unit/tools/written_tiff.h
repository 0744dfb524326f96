// A writer of TIFF files of every plain layout, from canonical samples: the counterpart of the reader.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tiff_number.h"

namespace mdfs::imagefile {

// The strings encode one chunk.
inline std::string pack_bits(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t run = 1;
    while (run < 128 && at + run < text.size() && text[at + run] == text[at]) ++run;
    if (run > 1) {
      out += static_cast<char>(257 - run);
      out += text[at];
      at += run;
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && end - at < 128 && (end + 1 == text.size() || text[end] != text[end + 1])) ++end;
    out += static_cast<char>(end - at - 1);
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

inline std::string lzw(const std::string& text) {
  constexpr unsigned kClear = 256, kEnd = 257, kFirst = 258, kLast = 4094;
  std::string out;
  unsigned buffer = 0, bits = 0, width = 9;
  const auto put = [&](unsigned code) {
    buffer = buffer << width | code;
    for (bits += width; bits >= 8; bits -= 8) out += static_cast<char>(buffer >> (bits - 8));
  };
  std::map<std::pair<unsigned, unsigned char>, unsigned> table;
  put(kClear);
  unsigned next = kFirst, code = static_cast<unsigned char>(text[0]);
  for (std::size_t i = 1; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (const auto found = table.find({code, byte}); found != table.end()) {
      code = found->second;
      continue;
    }
    put(code);
    table[{code, byte}] = next++;
    code = byte;
    if (next == kLast) {
      put(kClear);
      table.clear();
      next = kFirst;
      width = 9;
    } else if (next == 1u << width) {
      ++width;
    }
  }
  put(code);
  if (++next == 1u << width && width < 12) ++width;
  put(kEnd);
  if (bits > 0) out += static_cast<char>(buffer << (8 - bits));
  return out;
}

inline std::string compressed(const std::string& text, unsigned compression) {
  constexpr unsigned kLzw = 5, kDeflate = 8, kOldDeflate = 32946, kPackBits = 32773, kLzma = 34925, kZstd = 50000;
  std::string out(text.size() * 2 + 65536, '\0');
  if (compression == kPackBits) return pack_bits(text);
  if (compression == kLzw) return lzw(text);
  if (compression == kDeflate || compression == kOldDeflate) {
    uLongf size = out.size();
    MDFS_CHECK(::compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                          text.size()) == Z_OK);
    out.resize(size);
  } else if (compression == kZstd) {
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
    ZSTD_freeCCtx(context);
  } else if (compression == kLzma) {
    std::size_t size = 0;
    MDFS_CHECK(::lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, nullptr,
                                         reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                                         reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size()) == LZMA_OK);
    out.resize(size);
  } else {
    return text;
  }
  return out;
}

struct WrittenTiff {
  unsigned element = 1, format = 1;  // bytes of a sample; 1 unsigned, 2 signed, 3 float
  unsigned width = 4, height = 6, samples = 1, pages = 1;
  unsigned across = 0, down = 6;  // of a tile; across 0: strips of `down` rows
  unsigned compression = 1, predictor = 1;
  bool separate = false, big = false, big_endian = false;
  bool padded = false;  // the lowest strip has as many rows as the others
  bool white_is_zero = false;
  unsigned bits = 0;        // of a sample in the file; 0: all of its element
  unsigned fill_order = 1;  // 2: each byte of the samples has its lowest bit first
  std::optional<unsigned> photometric = {};
  std::vector<unsigned> colours = {};  // of a palette: all red ones, all green ones, all blue ones
  int extra_rows = 0;                  // of each strip or tile, against the rules

  struct Piece {
    std::size_t at, length;
  };
  std::vector<Piece> pieces = {};  // of the file that was written last

  std::size_t page_bytes() const { return std::size_t{width} * height * samples * element; }

  // Of samples as canonical bytes, page after page.
  std::string bytes(const std::string& canonical) {
    pieces.clear();
    std::string out = big_endian ? "MM" : "II";
    out += num(big ? 43 : 42, 2);
    if (big) out += num(8, 2) + num(0, 2);
    std::size_t link = out.size();
    out += num(0, word());
    for (unsigned page = 0; page < pages; ++page) {
      const std::size_t first = pieces.size();
      put_page(out, canonical.substr(page * page_bytes(), page_bytes()));
      const std::string arrays = arrays_of(first);
      const std::size_t at = out.size();
      out += arrays;
      out.replace(link, word(), num(out.size(), word()));
      const std::string fields = fields_of(at, pieces.size() - first);
      out += num(fields.size() / (4 + 2 * word()), big ? 8 : 2) + fields;
      link = out.size();
      out += num(0, word());
    }
    return out;
  }

 private:
  std::size_t word() const { return big ? 8 : 4; }
  std::string num(std::uint64_t value, std::size_t width_bytes) const {
    return tiff_number(value, width_bytes, big_endian);
  }

  void put_page(std::string& out, const std::string& page) {
    const unsigned chunk_width = across == 0 ? width : across;
    for (unsigned plane = 0; plane < (separate ? samples : 1); ++plane)
      for (unsigned y = 0; y < height; y += down)
        for (unsigned x = 0; x < width; x += chunk_width) {
          const unsigned right = across > 0 || padded ? down : std::min(down, height - y);
          const unsigned rows = right + static_cast<unsigned>(extra_rows);
          std::string chunk;
          for (unsigned row = y; row < y + rows; ++row) chunk += row_of(page, plane, row, x, chunk_width);
          const std::string encoded = compressed(chunk, compression);
          pieces.push_back({out.size(), encoded.size()});
          out += encoded;
        }
  }

  // Of a chunk, with predictor and byte order; beyond the page 'p'.
  std::string row_of(const std::string& page, unsigned plane, unsigned y, unsigned x, unsigned columns) const {
    const unsigned each = separate ? 1 : samples;
    std::vector<std::uint64_t> values;
    for (unsigned i = x; i < x + columns; ++i)
      for (unsigned s = separate ? plane : 0; s < (separate ? plane + 1 : samples); ++s) {
        std::uint64_t value = 0x7070707070707070;
        const std::size_t at = ((std::size_t{y} * width + i) * samples + s) * element;
        if (y < height && i < width)
          for (unsigned byte = element; byte-- > 0;) value = value << 8 | static_cast<unsigned char>(page[at + byte]);
        values.push_back(value);
      }
    if (predictor == 2)
      for (std::size_t i = values.size(); i-- > each;) values[i] -= values[i - each];
    if (predictor != 3) return packed(values);
    std::string row;
    for (unsigned byte = element; byte-- > 0;)
      for (const std::uint64_t value : values) row += static_cast<char>(value >> 8 * byte);
    for (std::size_t i = row.size(); i-- > each;) row[i] = static_cast<char>(row[i] - row[i - each]);
    return row;
  }

  unsigned sample_bits() const { return bits == 0 ? element * 8 : bits; }

  // Whole elements in the order of the file, others with the highest bit first.
  std::string packed(const std::vector<std::uint64_t>& values) const {
    std::string row;
    if (sample_bits() == element * 8) {
      for (const std::uint64_t value : values) row += num(value, element);
    } else {
      row.assign((values.size() * bits + 7) / 8, '\0');
      for (std::size_t i = 0; i < values.size() * bits; ++i)
        row[i / 8] = static_cast<char>(row[i / 8] | (values[i / bits] >> (bits - 1 - i % bits) & 1) << (7 - i % 8));
    }
    if (fill_order == 2) std::transform(row.begin(), row.end(), row.begin(), lowest_bit_first);
    return row;
  }
  static char lowest_bit_first(char byte) {
    unsigned reversed = 0;
    for (unsigned bit = 0; bit < 8; ++bit) reversed |= (static_cast<unsigned>(byte) >> bit & 1) << (7 - bit);
    return static_cast<char>(reversed);
  }

  // Offsets, byte counts, bits, formats, colours; two arrays of words, three of 16 bits.
  std::string arrays_of(std::size_t first) const {
    std::string text;
    for (std::size_t i = first; i < pieces.size(); ++i) text += num(pieces[i].at, word());
    for (std::size_t i = first; i < pieces.size(); ++i) text += num(pieces[i].length, word());
    for (unsigned i = 0; i < samples; ++i) text += num(sample_bits(), 2);
    for (unsigned i = 0; i < samples; ++i) text += num(format, 2);
    for (const unsigned colour : colours) text += num(colour, 2);
    return text;
  }

  std::string field(unsigned tag, unsigned type, std::uint64_t count, std::uint64_t value, std::size_t size) const {
    std::string text = num(tag, 2) + num(type, 2) + num(count, word()) + num(value, size);
    text.append(word() - size, '\0');
    return text;
  }
  std::string one(unsigned tag, std::uint64_t value) const { return field(tag, 4, 1, value, 4); }

  std::string fields_of(std::size_t arrays, std::size_t chunks) const {
    constexpr unsigned kShort = 3, kLong = 4, kLong8 = 16;
    const unsigned wide = big ? kLong8 : kLong;
    const std::size_t at_bits = arrays + 2 * chunks * word();
    const Piece& piece = pieces[pieces.size() - chunks];
    const auto shorts = [&](unsigned tag, std::size_t at, unsigned value) {
      if (samples * 2 > word()) return field(tag, kShort, samples, at, word());
      std::string values;
      for (unsigned i = 0; i < samples; ++i) values += num(value, 2);
      values.resize(word());
      return num(tag, 2) + num(kShort, 2) + num(samples, word()) + values;
    };
    std::string text = one(256, width) + one(257, height) + shorts(258, at_bits, sample_bits()) +
                       one(259, compression) +
                       one(262, photometric.value_or(white_is_zero  ? 0
                                                     : samples >= 3 ? 2
                                                                    : 1));
    if (fill_order != 1) text += one(266, fill_order);
    const std::string offsets = field(across > 0 ? 324 : 273, wide, chunks, chunks == 1 ? piece.at : arrays, word());
    const std::string counts =
        field(across > 0 ? 325 : 279, wide, chunks, chunks == 1 ? piece.length : arrays + chunks * word(), word());
    if (across == 0) text += offsets;
    text += one(277, samples);
    if (across == 0) text += one(278, down) + counts;
    text += one(284, separate ? 2 : 1) + one(317, predictor);
    if (!colours.empty()) text += field(320, kShort, colours.size(), at_bits + samples * 4, word());
    if (across > 0) text += one(322, across) + one(323, down) + offsets + counts;
    return text + shorts(339, at_bits + samples * 2, format);
  }
};

}  // namespace mdfs::imagefile
