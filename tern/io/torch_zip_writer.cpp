// Writing PyTorch's zip format: the tree first, then each storage once, straight from its memory. Entries and
// their order are those of torch.save since 2.10 (caffe2/serialize/inline_container.cc).
#include "tern/io/tensor_bytes.h"
#include "tern/io/torch_writer.h"
#include "tern/io/zip_writer.h"

namespace tern::io {

void write_torch_zip(const Value& value, ByteSink& sink, std::string_view archive_name,
                     const TorchWriteOptions& options) {
  TorchTree tree = make_torch_tree(value, options);
  std::string folder = std::string(archive_name) + "/";
  ZipWriter zip(sink);
  zip.add(folder + "data.pkl", tree.pickle);
  zip.add(folder + ".format_version", "1");
  zip.add(folder + ".storage_alignment", std::to_string(ZipWriter::kAlignment));
  zip.add(folder + "byteorder", "little");
  std::string name = folder + "data/";
  const size_t prefix = name.size();
  for (size_t key = 0; key < tree.storages.size(); ++key) {
    const WrittenStorage& part = tree.storages[key];
    name.resize(prefix);
    name += std::to_string(key);
    zip.begin(name, part.nbytes);
    visit_bytes(*part.storage, part.begin, part.nbytes,
                [&](std::span<const std::byte> bytes) { zip.write(bytes); });
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
