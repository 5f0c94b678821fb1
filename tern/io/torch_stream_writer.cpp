// Writing PyTorch's stream format, that of torch.save before 1.6: five pickles, then the storages
// (torch/serialization.py, _legacy_save).
#include <algorithm>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/io/byte_order.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/torch_writer.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

namespace {

constexpr std::string_view kMagicNumber("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kProtocolVersion = 1001;

/// What reads the numbers of tensors when it is made: here they come after the pickle.
constexpr std::string_view kReadsNumbers[] = {"torch._C.Generator", "torch._utils._rebuild_nested_tensor"};

void check_readable(const Value& root) {
  std::unordered_set<const void*> seen;
  std::vector<Value> left = {root};
  while (!left.empty()) {
    const Value value = std::move(left.back());
    left.pop_back();
    if (value.kind() == ValueKind::Global)
      TERN_CHECK(std::ranges::find(kReadsNumbers, value.as_global().full()) == std::end(kReadsNumbers),
                 ValueError,
                 "PyTorch does not read {} from the legacy format, where numbers come last: save in the zip "
                 "format",
                 value.as_global().full());
    detail::ValueNode* node = value.node<detail::SequenceNode>();
    if (!node) node = value.node<detail::DictNode>();
    if (!node) node = value.node<detail::ObjectNode>();
    if (node && seen.insert(node).second)
      detail::each_child(*node, [&](const Value& child) { left.push_back(child); });
  }
}

}  // namespace

void write_torch_stream(const Value& value, ByteSink& sink, const TorchWriteOptions& options) {
  check_readable(value);
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
