// TERN_CHECK: a condition that must hold, or a typed exception with formatted text. For sources and
// internal headers (it brings in fmt); public headers include base/error.h alone.
#pragma once

#include <fmt/core.h>

#include "tern/base/error.h"

/// Throws `ErrorType` with the formatted message unless `condition` holds.
#define TERN_CHECK(condition, ErrorType, ...)                           \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::tern::detail::throw_error<ErrorType>(fmt::format(__VA_ARGS__)); \
  } while (false)

/// Throws `ErrorType` with the formatted message.
#define TERN_THROW(ErrorType, ...) ::tern::detail::throw_error<ErrorType>(fmt::format(__VA_ARGS__))

namespace tern::detail {

template <class ErrorType>
[[noreturn, gnu::noinline, gnu::cold]] void throw_error(std::string message) {
  throw ErrorType(std::move(message));
}

}  // namespace tern::detail
