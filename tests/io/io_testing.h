// What the tests of io share: temporary folders, tensors from numbers, errors by their text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "tern/base/error.h"
#include "tern/core/memory.h"
#include "tern/io/serialize.h"
#include "tern/io/tensor_bytes.h"
#include "tests/support/temporary_folder.h"

namespace tern {

template <class T>
Tensor tensor_of(const std::vector<T>& values, IntArrayRef shape) {
  return io::tensor_from_bytes(std::as_bytes(std::span<const T>(values)), dtype_of<T>(), shape);
}
inline Tensor floats(const std::vector<float>& values) {
  return tensor_of(values, {static_cast<int64_t>(values.size())});
}

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  std::vector<std::byte> bytes = io::element_bytes(tensor);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The message of the error of this type that `body` throws; fails the test when there is none.
template <class ErrorType, class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const ErrorType& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error was thrown: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace tern
