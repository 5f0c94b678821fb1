// save: values to files in PyTorch's formats, and safetensors. Reading them is in serialize.h, saving while
// training goes on in train/async_saver.h, whole modules in train/module_file.h.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "tern/io/value.h"

namespace tern {

enum class SaveFormat : uint8_t {
  Zip,     ///< of PyTorch 1.6 and later, torch.save's default
  Legacy,  ///< the stream of pickles before it, which every PyTorch since 0.2 opens
};

struct SaveOptions {
  /// Return only when the file is on the disk.
  bool sync = true;
  SaveFormat format = SaveFormat::Zip;
  /// Of each storage write only what the tensors see of it: a view of ten elements of a large tensor is ten
  /// elements in the file. Tensors that overlap still share memory after loading; those that lie apart in one
  /// storage do not. Strides stay: what lies between the elements of a tensor is written with it.
  bool compact = false;
};

/// Writes a tensor, number, text, list, tuple, dict, StateDict or any tree of them as a file which
/// `torch.load(path, weights_only=True)` opens. Tensors that share memory still share it after loading; those
/// on a GPU are written with their device. The file appears in one step: on failure (IoError) the old one is
/// untouched. Throws ValueError for what cannot be written, and for a name that ends in .safetensors.
void save(const Value& value, const std::filesystem::path& path, const SaveOptions& options = {});
/// `save({x, y}, path)`: a list of things of one type, even of one thing. Of several types:
/// `save(Value::list({x, 3}), path)`.
template <std::convertible_to<Value> T>
void save(std::initializer_list<T> list, const std::filesystem::path& path, const SaveOptions& options = {}) {
  save(Value::list(std::vector<Value>(list.begin(), list.end())), path, options);
}

/// The same into memory.
std::vector<std::byte> save_to_buffer(const Value& value, const SaveOptions& options = {});
template <std::convertible_to<Value> T>
std::vector<std::byte> save_to_buffer(std::initializer_list<T> list, const SaveOptions& options = {}) {
  return save_to_buffer(Value::list(std::vector<Value>(list.begin(), list.end())), options);
}

/// Writes a safetensors file, in one step as `save`. Values in row-major order; tensors that share memory are
/// written each. Throws DTypeError for dtypes that the format lacks (complex128).
void save_safetensors(const StateDict& tensors, const std::filesystem::path& path,
                      const std::map<std::string, std::string>& metadata = {{"format", "pt"}},
                      const SaveOptions& options = {});
std::vector<std::byte> save_safetensors_to_buffer(const StateDict& tensors,
                                                  const std::map<std::string, std::string>& metadata = {
                                                      {"format", "pt"}});

}  // namespace tern
