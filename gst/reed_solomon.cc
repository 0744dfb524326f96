// The code, by ISA-L.
// SPDX-License-Identifier: Apache-2.0
#include "reed_solomon.h"

#include <isa-l.h>

#include <cstdlib>

namespace mdfs::gst {
namespace {

using Symbols = std::vector<std::vector<std::byte>>;

constexpr std::size_t kTableBytes = 32;  // of ISA-L, for each element of a matrix

// ISA-L reads its inputs, and takes them as pointers to bytes that are not constant.
unsigned char* for_isal(const std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes));
}

unsigned char coefficient(std::size_t repair, std::size_t source) {
  return gf_inv(static_cast<unsigned char>(repair ^ source));
}

// The products of a matrix of `rows` rows with the inputs.
Symbols multiply(std::vector<unsigned char>& matrix, std::size_t rows, std::vector<unsigned char*>& inputs,
                 std::size_t bytes) {
  Symbols products(rows, std::vector<std::byte>(bytes));
  if (rows == 0 || bytes == 0) return products;
  std::vector<unsigned char*> outputs;
  for (auto& product : products) outputs.push_back(for_isal(product.data()));
  std::vector<unsigned char> tables(kTableBytes * inputs.size() * rows);
  const auto columns = static_cast<int>(inputs.size());
  ec_init_tables(columns, static_cast<int>(rows), matrix.data(), tables.data());
  ec_encode_data(static_cast<int>(bytes), columns, static_cast<int>(rows), tables.data(), inputs.data(),
                 outputs.data());
  return products;
}

}  // namespace

Symbols repair_symbols(std::span<const std::byte* const> sources, std::size_t repairs, std::size_t bytes) {
  std::vector<unsigned char*> inputs;
  for (const std::byte* source : sources) inputs.push_back(for_isal(source));
  std::vector<unsigned char> matrix;
  for (std::size_t i = 0; i < repairs; ++i)
    for (std::size_t j = 0; j < sources.size(); ++j) matrix.push_back(coefficient(sources.size() + i, j));
  return multiply(matrix, repairs, inputs, bytes);
}

// With K for the columns of known sources in the rows of the given repair symbols, and M for those of missing ones:
// repairs = K known + M missing, so missing = M^-1 K known + M^-1 repairs, since - is + here.
Symbols missing_sources(std::span<const std::byte* const> sources, std::span<const RepairSymbol> repairs,
                        std::size_t bytes) {
  std::vector<std::size_t> known, missing;
  for (std::size_t j = 0; j < sources.size(); ++j) (sources[j] == nullptr ? missing : known).push_back(j);
  const std::size_t rows = missing.size();
  if (rows == 0) return {};
  std::vector<unsigned char> square, inverse(rows * rows);
  for (const RepairSymbol& repair : repairs)
    for (const std::size_t j : missing) square.push_back(coefficient(repair.index, j));
  // Each square part of a Cauchy matrix has an inverse.
  if (repairs.size() != rows || gf_invert_matrix(square.data(), inverse.data(), static_cast<int>(rows)) != 0)
    std::abort();
  std::vector<unsigned char> matrix;
  for (std::size_t row = 0; row < rows; ++row) {
    for (const std::size_t j : known) {
      unsigned char sum = 0;
      for (std::size_t i = 0; i < rows; ++i) sum ^= gf_mul(inverse[row * rows + i], coefficient(repairs[i].index, j));
      matrix.push_back(sum);
    }
    for (std::size_t i = 0; i < rows; ++i) matrix.push_back(inverse[row * rows + i]);
  }
  std::vector<unsigned char*> inputs;
  for (const std::size_t j : known) inputs.push_back(for_isal(sources[j]));
  for (const RepairSymbol& repair : repairs) inputs.push_back(for_isal(repair.bytes));
  return multiply(matrix, rows, inputs, bytes);
}

}  // namespace mdfs::gst
