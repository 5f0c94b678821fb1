// NumPy's files: .npy holds one array, .npz is a zip archive of them. load() reads both too.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tern/io/file.h"
#include "tern/io/serialize.h"
#include "tern/io/value.h"

namespace tern {

/// Reads a .npy file. Arrays in column-major order come as transposed views, big-endian numbers are turned.
/// Throws CheckpointError for a broken file and for arrays of text, dates, structures or Python objects
/// (these hold pickles, and are never read); IoError when the file cannot be read.
Tensor load_npy(const std::filesystem::path& path, const LoadOptions& options = {});

/// Reads a .npz archive: the arrays by name, without ".npy", in the order of the archive. Throws as load_npy;
/// with arrays that are no tensors among them, `load` gives those that are.
StateDict load_npz(const std::filesystem::path& path, const LoadOptions& options = {});

/// Writes a .npy file (version 1.0, row-major order), in one step as `save`. Throws DTypeError for dtypes
/// that NumPy lacks, such as bfloat16, ValueError for a name that ends in .safetensors.
void save_npy(const Tensor& tensor, const std::filesystem::path& path, const SaveOptions& options = {});

/// Writes an uncompressed .npz archive with one array for each name, in one step as `save`. Throws DTypeError
/// as save_npy does, ValueError also for a tensor's name that cannot be one in an archive.
void save_npz(const StateDict& tensors, const std::filesystem::path& path, const SaveOptions& options = {});

namespace io {

class ZipReader;

/// One array from the whole of `source`.
Tensor read_npy(const ByteSource& source, const LoadOptions& options);
/// The same for any array: one of text, dates or structures is the object that stands for it in a pickle.
Value read_npy_value(const ByteSource& source, const LoadOptions& options);
/// One array from bytes that it may keep: their data are not copied where their place allows it.
Value read_npy_value(std::vector<std::byte> bytes, const LoadOptions& options);

/// True when the archive has arrays ("a.npy") and nothing else.
bool is_npz(const ZipReader& zip);
/// The arrays by name, without ".npy", in the order of the archive.
std::vector<std::pair<std::string, Value>> read_npz(const ZipReader& zip, const LoadOptions& options);

void write_npy(const Tensor& tensor, ByteSink& sink);
void write_npz(const StateDict& tensors, ByteSink& sink);

}  // namespace io

}  // namespace tern
