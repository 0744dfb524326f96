// SPDX-License-Identifier: Apache-2.0
#include "views/type_names.h"

#include <algorithm>
#include <array>

namespace mdfs::views {
namespace {

using geometry::ElementType;

constexpr std::array kTypes = {
    TypeNames{ElementType::kU8, "uint8", "uint8", "MET_UCHAR", "1", "Byte", "uint8"},
    TypeNames{ElementType::kU16, "uint16", "uint16", "MET_USHORT", "12", "UInt16", "uint16"},
    TypeNames{ElementType::kU32, "uint32", "uint32", "MET_UINT", "13", "UInt32", "uint32"},
    TypeNames{ElementType::kU64, "uint64", "uint64", "MET_ULONG_LONG", "15", "", ""},
    TypeNames{ElementType::kI8, "int8", "int8", "MET_CHAR", "", "Int8", "int8"},
    TypeNames{ElementType::kI16, "int16", "int16", "MET_SHORT", "2", "Int16", "int16"},
    TypeNames{ElementType::kI32, "int32", "int32", "MET_INT", "3", "Int32", "int32"},
    TypeNames{ElementType::kI64, "int64", "int64", "MET_LONG_LONG", "14", "", ""},
    TypeNames{ElementType::kF16, "float16", "", "", "", "", ""},
    TypeNames{ElementType::kF32, "float32", "float", "MET_FLOAT", "4", "Float32", "float"},
    TypeNames{ElementType::kF64, "float64", "double", "MET_DOUBLE", "5", "Float64", "double"},
};

}  // namespace

const TypeNames& names_of(ElementType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeNames& row) { return row.type == type; });
}

}  // namespace mdfs::views
