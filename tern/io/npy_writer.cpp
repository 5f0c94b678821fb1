// Writing .npy and .npz (numpy/lib/format.py: write_array_header_1_0, savez).
#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/npy.h"
#include "tern/io/numpy_types.h"
#include "tern/io/safetensors.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/utf8.h"
#include "tern/io/zip_writer.h"

namespace tern::io {

namespace {

/// The data begin at a multiple of this, as NumPy has it for memory maps.
constexpr size_t kAlignment = 64;

/// Everything before the data.
std::string header_of(const Tensor& tensor) {
  TERN_CHECK(tensor.defined(), ValueError, "save_npy: the tensor is undefined");
  check_initialized(tensor);
  std::string_view code = numpy_code(tensor.dtype());
  TERN_CHECK(!code.empty(), DTypeError,
             "save_npy: NumPy has no dtype {}: convert the tensor first, or write it with save or "
             "save_safetensors",
             name(tensor.dtype()));
  std::string shape;
  for (int64_t size : tensor.shape()) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
  if (tensor.dim() == 1) shape += ",";
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 itemsize(tensor.dtype()) == 1 ? '|' : '<', code, shape);
  constexpr size_t kBeforeText = 10;
  size_t unpadded = kBeforeText + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  append_le(header, static_cast<uint16_t>(text.size()));
  return header + text;
}

}  // namespace

void write_npy(const Tensor& tensor, ByteSink& sink) {
  sink.write(std::string_view(header_of(tensor)));
  visit_elements(tensor, [&](std::span<const std::byte> bytes) { sink.write(bytes); });
}

void write_npz(const StateDict& tensors, ByteSink& sink) {
  TERN_CHECK(!tensors.empty(), ValueError, "save_npz: there are no tensors to save");
  ZipWriter zip(sink);
  for (const auto& [array_name, tensor] : tensors) {
    bool usable = !array_name.empty() && array_name.size() <= 60000 && is_utf8(array_name) &&
                  array_name.find('\0') == std::string::npos;
    TERN_CHECK(usable, ValueError, "save_npz: '{}' cannot be the name of an array",
               array_name.substr(0, 100));
    std::string header;
    with_context(fmt::format("array '{}'", array_name.substr(0, 100)),
                 [&, &data = tensor] { header = header_of(data); });
    zip.begin(array_name + ".npy", header.size() + tensor.nbytes());
    zip.write(std::as_bytes(std::span(header.data(), header.size())));
    visit_elements(tensor, [&](std::span<const std::byte> bytes) { zip.write(bytes); });
    zip.end();
  }
  zip.finish();
}

}  // namespace tern::io

namespace tern {

void save_npy(const Tensor& tensor, const std::filesystem::path& path, const SaveOptions& options) {
  io::check_no_safetensors_name(path);
  io::write_atomically(path, options.sync, [&](io::ByteSink& sink) { io::write_npy(tensor, sink); });
}

void save_npz(const StateDict& tensors, const std::filesystem::path& path, const SaveOptions& options) {
  io::check_no_safetensors_name(path);
  io::write_atomically(path, options.sync, [&](io::ByteSink& sink) { io::write_npz(tensors, sink); });
}

}  // namespace tern
