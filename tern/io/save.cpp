// save: the choice of the format. Each format has its own files; safetensors.cpp has its own save.
#include "tern/io/save.h"

#include "tern/base/check.h"
#include "tern/io/file.h"
#include "tern/io/safetensors.h"
#include "tern/io/torch_writer.h"

namespace tern {

namespace {

void write(const Value& value, io::ByteSink& sink, const SaveOptions& options,
           const std::string& archive_name) {
  const io::TorchWriteOptions written{.compact = options.compact};
  if (options.format == SaveFormat::Legacy)
    io::write_torch_stream(value, sink, written);
  else
    io::write_torch_zip(value, sink, archive_name, written);
}

}  // namespace

void save(const Value& value, const std::filesystem::path& path, const SaveOptions& options) {
  io::check_no_safetensors_name(path);
  io::write_atomically(path, options.sync,
                       [&](io::ByteSink& sink) { write(value, sink, options, io::archive_name_for(path)); });
}

std::vector<std::byte> save_to_buffer(const Value& value, const SaveOptions& options) {
  io::MemorySink sink;
  write(value, sink, options, "archive");
  return std::move(sink.bytes());
}

}  // namespace tern
