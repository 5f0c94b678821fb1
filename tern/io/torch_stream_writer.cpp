// Writing PyTorch's stream format, that of torch.save before 1.6: five pickles, then the storages
// (torch/serialization.py, _legacy_save).
#include <algorithm>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/torch_writer.h"

namespace tern::io {

namespace {

constexpr std::string_view kMagicNumber("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kProtocolVersion = 1001;

}  // namespace

void write_torch_stream(const Value& value, ByteSink& sink, const TorchWriteOptions& options) {
  TorchTree tree = make_torch_tree(value, options, /*stream=*/true);
  auto plain = [&](const Value& part) { sink.write(write_pickle(part, {})); };
  plain(Value::integer(kMagicNumber));
  plain(kProtocolVersion);
  plain({{"protocol_version", kProtocolVersion},
         {"little_endian", true},
         {"type_sizes", Value{{"short", 2}, {"int", 4}, {"long", 4}}}});
  sink.write(tree.pickle);

  // In the order of their keys as texts, which PyTorch relies on.
  std::vector<std::pair<std::string, const WrittenStorage*>> storages;
  for (size_t key = 0; key < tree.storages.size(); ++key)
    storages.emplace_back(std::to_string(key), &tree.storages[key]);
  std::sort(storages.begin(), storages.end());
  std::vector<Value> keys;
  keys.reserve(storages.size());
  for (const auto& [key, part] : storages) keys.emplace_back(key);
  plain(Value::list(std::move(keys)));
  for (const auto& [key, part] : storages) {
    std::string numel;
    append_le<uint64_t>(numel,
                        part->nbytes / (storage_class(part->dtype).empty() ? 1 : itemsize(part->dtype)));
    sink.write(numel);
    visit_bytes(*part->storage, part->begin, part->nbytes,
                [&](std::span<const std::byte> bytes) { sink.write(bytes); });
  }
}

}  // namespace tern::io
