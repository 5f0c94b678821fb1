// What is said around errors that datasets, streams and collate functions throw. Not public.
#pragma once

#include <exception>
#include <utility>

#include "tern/base/check.h"

namespace tern::data::detail {

/// Runs `body`. What it throws gets `context()` and a colon before its message: a tern::Error keeps its type,
/// another exception is nested in a DataError.
template <class Context, class Body>
decltype(auto) with_data_context(const Context& context, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    error.add_context(context());
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(DataError(fmt::format("{}: {}", context(), error.what())));
  } catch (...) {
    std::throw_with_nested(DataError(fmt::format("{}: an exception that is no std::exception", context())));
  }
}

}  // namespace tern::data::detail
