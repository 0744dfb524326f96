// Result<T>: a value or an Error; MDFS_TRY passes an error on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/error.h"

namespace mdfs {

// The value of a function, or the reason why there is none. The accessors of the other alternative abort, so test ok()
// first. Owns the value; no thread contract.
template <typename T>
class [[nodiscard]] Result {
 public:
  using Value = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  Result(Errc code, std::string where) : Result(Error{code, std::move(where)}) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    MDFS_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    MDFS_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    MDFS_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    MDFS_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    MDFS_CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using Value = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  Result(Errc code, std::string where) : Result(Error{code, std::move(where)}) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const { MDFS_CHECK(ok()); }

  const Error& error() const& {
    MDFS_CHECK(!ok());
    return *error_;
  }
  Error&& error() && {
    MDFS_CHECK(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace mdfs

#define MDFS_CONCAT_INNER(a, b) a##b
#define MDFS_CONCAT(a, b) MDFS_CONCAT_INNER(a, b)

// MDFS_TRY(status_expression);  returns the error from the enclosing function, if there is one.
#define MDFS_TRY(expression)                                        \
  do {                                                              \
    if (auto mdfs_try_result = (expression); !mdfs_try_result.ok()) \
      return ::mdfs::Error(std::move(mdfs_try_result).error());     \
  } while (false)

// MDFS_TRY_ASSIGN(auto x, result_expression);  returns the error, else assigns the value to x.
#define MDFS_TRY_ASSIGN(target, expression) MDFS_TRY_ASSIGN_INNER(MDFS_CONCAT(mdfs_try_, __LINE__), target, expression)
#define MDFS_TRY_ASSIGN_INNER(temporary, target, expression)               \
  auto temporary = (expression);                                           \
  if (!temporary.ok()) return ::mdfs::Error(std::move(temporary).error()); \
  target = std::move(temporary).value()
