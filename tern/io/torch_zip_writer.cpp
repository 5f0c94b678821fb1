// Writing PyTorch's zip format: the tree first, then each storage once, straight from its memory.
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/io/pickle_writer.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/torch_file.h"
#include "tern/io/zip_writer.h"

namespace tern::io {

void write_torch_zip(const Value& value, ByteSink& sink, std::string_view archive_name) {
  struct Held {
    Storage storage;
    DType dtype;
  };
  std::vector<Held> storages;
  std::unordered_map<const StorageImpl*, size_t> keys;
  auto refer = [&](const Storage& storage, DType dtype) {
    auto [found, added] = keys.try_emplace(storage.get(), storages.size());
    if (added) storages.push_back({storage, dtype});
    TERN_CHECK(
        storages[found->second].dtype == dtype, ValueError,
        "Cannot save multiple tensors or storages that view the same data as different types ({} and {})",
        name(storages[found->second].dtype), name(dtype));
    return StorageReference{std::to_string(found->second), storage->device().str()};
  };
  std::string pickle = write_pickle(value, refer);

  std::string folder = std::string(archive_name) + "/";
  ZipWriter zip(sink);
  zip.add(folder + "data.pkl", pickle);
  zip.add(folder + "byteorder", "little");
  for (size_t key = 0; key < storages.size(); ++key) {
    const StorageImpl& storage = *storages[key].storage;
    size_t width = itemsize(storages[key].dtype);
    size_t nbytes = storage.nbytes() / width * width;
    zip.begin(folder + "data/" + std::to_string(key), nbytes);
    visit_bytes(storage, 0, nbytes, [&](std::span<const std::byte> bytes) { zip.write(bytes); });
    zip.end();
  }
  zip.add(folder + "version", "3\n");
  zip.finish();
}

std::string archive_name_for(const std::filesystem::path& path) {
  std::string name = path.string();
  size_t separator = name.find_last_of("/\\");
  if (separator != std::string::npos) name.erase(0, separator + 1);
  size_t dot = name.find_last_of('.');
  if (dot != std::string::npos) name.erase(dot);
  bool ascii = name.find_first_not_of(
                   " !\"#$%&'()*+,-./"
                   "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~") ==
               std::string::npos;
  return name.empty() || !ascii ? "archive" : name;
}

}  // namespace tern::io
