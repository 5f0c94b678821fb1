// What PyTorch's containers share when their pickles are read.
#include "tern/io/torch_host.h"

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/torch_file.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;

namespace {
constexpr int kMaxNesting = 4;
}

Value TorchHost::load_nested(const std::string& bytes) {
  TERN_CHECK(depth_ < kMaxNesting, CheckpointError, "checkpoints are nested deeper than {}", kMaxNesting);
  auto source = view_memory(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return with_context("a checkpoint inside the checkpoint", [&] {
    Checkpoint inner = read_torch_file(source, options_, depth_ + 1);
    for (StoredStorage& stored : inner.storages) nested_.storages.push_back(std::move(stored));
    for (size_t i = 0; i < inner.globals.size(); ++i) {
      nested_.globals.push_back(std::move(inner.globals[i]));
      nested_.global_bytes.push_back(inner.global_bytes[i]);
    }
    nested_.calls_results = nested_.calls_results || inner.calls_results;
    return std::move(inner.root);
  });
}

Storage TorchHost::make_storage(const StorageId& id) {
  Device device = device_for(id.location);
  if (options_.report) options_.report->note(options_.map_location, id.location, device, id.nbytes);
  return options_.skip_data ? storage_from_blob(nullptr, id.nbytes, [] {})
                            : allocate_storage(id.nbytes, device);
}

Checkpoint TorchHost::finish(PickleResult&& result, std::string version) {
  if (!options_.skip_data) run_checks();
  Checkpoint checkpoint;
  checkpoint.root = std::move(result.root);
  checkpoint.version = std::move(version);
  checkpoint.pickle_protocol = result.protocol;
  checkpoint.globals = std::move(result.globals);
  checkpoint.global_bytes = std::move(result.global_bytes);
  checkpoint.calls_results = result.calls_results || nested_.calls_results;
  for (size_t i = 0; i < nested_.globals.size(); ++i) {
    checkpoint.globals.push_back(std::move(nested_.globals[i]));
    checkpoint.global_bytes.push_back(nested_.global_bytes[i]);
  }
  checkpoint.storages.reserve(storages_.size() + nested_.storages.size());
  for (Known& known : storages_)
    checkpoint.storages.push_back({known.storage, std::move(known.key), known.type->name, *known.location});
  for (StoredStorage& stored : nested_.storages) checkpoint.storages.push_back(std::move(stored));
  return checkpoint;
}

PickleOptions TorchHost::pickle_options() const {
  PickleOptions options;
  options.weights_only = options_.weights_only;
  options.max_depth = options_.limits.nesting;
  options.memory_base = options_.limits.value_bytes;
  return options;
}

StorageId TorchHost::storage_id(const std::vector<Value>& items) const {
  TERN_CHECK(items.size() >= 5, CheckpointError,
             "a persistent id is a tuple of {} items, not ('storage', class, key, location, size)",
             items.size());
  bool is_storage = (items[0].is_str() && items[0].as_str() == "storage") ||
                    (items[0].kind() == ValueKind::Bytes && items[0].as_bytes() == "storage");
  TERN_CHECK(is_storage, CheckpointError, "a persistent id is of the unknown kind {}", items[0].str(50));
  const GlobalRow* row = row_of(items[1]);
  TERN_CHECK(row && row->typed, CheckpointError, "the class of a storage is {}", describe(items[1]));
  TERN_CHECK(items[2].is_str(), CheckpointError, "the key of a storage is {}, not a str", describe(items[2]));
  TERN_CHECK(items[3].is_str(), CheckpointError, "the location of a storage is {}, not a str",
             describe(items[3]));
  TERN_CHECK(items[4].kind() == ValueKind::Int && items[4].as_int() >= 0, CheckpointError,
             "the size of a storage is {}", items[4].str(50));
  StorageId id{row, items[2].as_str(), items[3].as_str(), items[4].as_int(), 0};
  bool overflow = __builtin_mul_overflow(static_cast<size_t>(id.numel), itemsize(row->dtype), &id.nbytes);
  TERN_CHECK(!overflow, CheckpointError, "storage '{}' has {} elements of {}, more than there can be",
             id.key.substr(0, 100), id.numel, name(row->dtype));
  return id;
}

Value TorchHost::storage_for(const StorageId& id, const std::function<Storage()>& make) {
  const size_t hash = std::hash<std::string>()(id.key);
  size_t found = storage_index_.find(hash, [&](size_t i) { return storages_[i].key == id.key; });
  if (found == HashIndex::kNone) {
    Storage storage = make();  // before it is known: what this throws leaves nothing behind
    found = storages_.size();
    storage_index_.insert(hash, found);
    storages_.push_back(
        {id.key, id.type, &*locations_.insert(id.location).first, std::move(storage), id.numel});
  }
  const Known& known = storages_[found];
  // PyTorch writes bytes, and numbers of the types that have no storage class, as one class or another of one
  // byte per element; an empty storage is of every class. Other bytes than 0 and 1 are no bools.
  const DType dtype = id.type->dtype;
  const size_t width = itemsize(dtype), known_bytes = known.storage->nbytes();
  const bool same_bytes = id.type == known.type || known_bytes == 0 ||
                          (width == 1 && itemsize(known.type->dtype) == 1 && dtype != DType::Bool);
  TERN_CHECK(same_bytes && id.nbytes <= known_bytes, CheckpointError,
             "storage '{}' is referred to twice, as {} elements of {} and as {} of {}", id.key, known.numel,
             name(known.type->dtype), id.numel, name(dtype));
  return StorageValue{known.storage, dtype, static_cast<int64_t>(known_bytes / width)};
}

Value TorchHost::storage_part(const Value& root, const Value& first, const Value& count) {
  StorageValue part = root.as_storage();
  bool inside = first.kind() == ValueKind::Int && count.kind() == ValueKind::Int && first.as_int() >= 0 &&
                count.as_int() >= 0 && first.as_int() <= part.numel &&
                count.as_int() <= part.numel - first.as_int();
  TERN_CHECK(inside, CheckpointError,
             "the view of {} elements from {} on is not inside a storage of {} elements", count.str(50),
             first.str(50), part.numel);
  part.offset += first.as_int();
  part.numel = count.as_int();
  return part;
}

void TorchHost::run_checks() {
  for (auto& check : checks_) check();
  checks_.clear();
}

}  // namespace tern::io
