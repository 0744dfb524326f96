// Claims about DPX and Cineon files that end too early.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/film_end.h"

#include <gtest/gtest.h>

namespace mdfs::imagefile {
namespace {

using Check = Status (*)(ByteSource&, const std::string&);

Status film_checked(Check check, const std::string& file) {
  MemoryBytes bytes(as_bytes(file));
  return check(bytes, "a.film");
}

void put_number(std::string& file, std::size_t at, std::uint64_t value, std::size_t length, bool big_endian) {
  for (std::size_t i = 0; i < length; ++i)
    file[big_endian ? at + length - 1 - i : at + i] = static_cast<char>(value >> (8 * i) & 0xff);
}

struct Film {
  unsigned descriptor, bits, packing;
  std::size_t row_bytes;
  bool big_endian = true;
  unsigned encoding = 0, elements = 1;
  std::uint64_t width = 83, rows = 7;
};

std::string dpx_of(const Film& film) {
  std::string file(2048, '\0');
  file.replace(0, 4, film.big_endian ? "SDPX" : "XPDS");
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t length) {
    put_number(file, at, value, length, film.big_endian);
  };
  put(4, 2048, 4);
  put(770, film.elements, 2);
  put(772, film.width, 4);
  put(776, film.rows, 4);
  for (std::size_t i = 0, at = 780; i < film.elements && i < 8; ++i, at += 72) {
    put(at + 20, film.descriptor, 1);
    put(at + 23, film.bits, 1);
    put(at + 24, film.packing, 2);
    put(at + 26, film.encoding, 2);
    put(at + 28, i == 0 ? 0 : file.size(), 4);
    put(at + 32, 0xffffffff, 4);
    if (film.rows < 1000) file += std::string(film.row_bytes * film.rows, 'x');
  }
  return file;
}

void expect_film_needs_all(Check check, const std::string& file) {
  const Status whole = film_checked(check, file);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  EXPECT_TRUE(film_checked(check, file + "more").ok());
  for (std::size_t size = 0; size < file.size(); ++size) {
    const Status cut = film_checked(check, file.substr(0, size));
    ASSERT_FALSE(cut.ok()) << size << " of " << file.size();
    ASSERT_EQ(cut.error().code, Errc::kBadData);
    ASSERT_TRUE(cut.error().where.starts_with("a.film: the file is truncated")) << cut.error().where;
  }
}

TEST(FilmEndTest, EveryTruncationOfADpxFileOfAnyDepthAndPackingIsRefused) {
  for (const Film film :
       {Film{50, 10, 1, 332}, Film{50, 10, 2, 332}, Film{50, 10, 0, 312}, Film{6, 10, 0, 104}, Film{6, 10, 1, 112},
        Film{50, 12, 0, 376}, Film{50, 12, 1, 498}, Film{51, 12, 0, 500}, Film{50, 8, 0, 249}, Film{51, 8, 1, 332},
        Film{6, 16, 0, 166}, Film{50, 32, 0, 996}, Film{6, 1, 0, 12}, Film{100, 10, 1, 224}, Film{156, 8, 0, 664}}) {
    SCOPED_TRACE(testing::Message() << film.descriptor << " of " << film.bits << " bits, packing " << film.packing);
    expect_film_needs_all(check_dpx, dpx_of(film));
    Film other = film;
    other.big_endian = false;
    other.elements = 2;
    expect_film_needs_all(check_dpx, dpx_of(other));
  }
}

TEST(FilmEndTest, AHeaderOfTheLargestNumbersIsRefusedWithoutOverflow) {
  Film film{156, 64, 0, 0};
  film.width = film.rows = 0xffffffff;
  EXPECT_EQ(film_checked(check_dpx, dpx_of(film)).error().code, Errc::kBadData);
}

TEST(FilmEndTest, ADpxFileWhoseHeaderDoesNotTellItsSizeIsRefused) {
  Film film{50, 10, 1, 332};
  film.encoding = 1;
  EXPECT_EQ(film_checked(check_dpx, dpx_of(film)).error().code, Errc::kNotSupported);
  film.encoding = 0;
  for (const unsigned elements : {0u, 9u, 65535u}) {
    film.elements = elements;
    EXPECT_EQ(film_checked(check_dpx, dpx_of(film)).error().code, Errc::kBadData) << elements;
  }
}

TEST(FilmEndTest, AFilmThatIsStoredByColumnsIsRefused) {
  for (unsigned orientation = 0; orientation < 9; ++orientation) {
    const bool turned = orientation >= 4 && orientation <= 7;
    for (const bool big_endian : {false, true}) {
      Film film{50, 16, 0, 498};
      film.big_endian = big_endian;
      std::string file = dpx_of(film);
      put_number(file, 768, orientation, 2, big_endian);
      const Status checked = film_checked(check_dpx, file);
      ASSERT_EQ(checked.ok(), !turned) << orientation;
      if (turned) {
        EXPECT_EQ(checked.error().code, Errc::kNotSupported);
      }
    }
  }
}

std::string cineon_of(bool big_endian) {
  std::string file(2048 + 7 * 332, '\0');
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t length) {
    put_number(file, at, value, length, big_endian);
  };
  put(0, 0x802a5fd7, 4);
  put(4, 2048, 4);
  file[193] = 3;
  file[198] = 10;
  put(200, 83, 4);
  put(204, 7, 4);
  file[681] = 5;
  return file;
}

TEST(FilmEndTest, EveryTruncationOfACineonFileIsRefused) {
  for (const bool big_endian : {false, true}) {
    EXPECT_TRUE(is_cineon(as_bytes(cineon_of(big_endian))));
    expect_film_needs_all(check_cineon, cineon_of(big_endian));
  }
  std::string other = cineon_of(true);
  for (char orientation = 0; orientation < 9; ++orientation) {
    other[192] = orientation;
    EXPECT_EQ(film_checked(check_cineon, other).ok(), orientation < 4 || orientation > 7);
  }
  other[681] = 0;
  EXPECT_EQ(film_checked(check_cineon, other).error().code, Errc::kNotSupported);
}

}  // namespace
}  // namespace mdfs::imagefile
