// Reading PyTorch's stream format (before 1.6): the pickles of a magic number, a version, system information,
// the tree and the list of storage keys; then for each key its size and bytes. Also plain pickles, which hold
// one such file for each storage.
#include <algorithm>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/bulk_read.h"
#include "tern/io/byte_order.h"
#include "tern/io/load_budget.h"
#include "tern/io/pickle_stream.h"
#include "tern/io/torch_file.h"
#include "tern/io/torch_host.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;

namespace {

constexpr std::string_view kMagic = "119547037146038801333356";
constexpr int64_t kStreamVersion = 1001;

class StreamHost final : public TorchHost {
 public:
  StreamHost(const ByteSource& source, const LoadOptions& options, int depth)
      : TorchHost(options, depth), source_(source) {}

  Checkpoint read() {
    read_header();
    auto begin_again = [&] {
      forget_storages();
      pending_.clear();
      announced_ = 0;
    };
    PickleResult tree = read_pickle_at(source_, position_, options_.limits.pickle_bytes, *this,
                                       pickle_options(), begin_again);
    Value keys = plain_pickle(options_.limits.pickle_bytes).root;
    read_storages(keys);
    return finish(std::move(tree), std::to_string(kStreamVersion));
  }

  Value persistent_load(const Value& id) override {
    TERN_CHECK(id.is_tuple() && id.length() > 0, CheckpointError, "a persistent id is {}, not a tuple",
               describe(id));
    const std::vector<Value>& items = id.as_tuple();
    // A class with its source text, which is neither run nor kept.
    if (items[0].is_str() && items[0].as_str() == "module" && items.size() == 4) return items[1];
    TERN_CHECK(items.size() == 6, CheckpointError,
               "a persistent id has {} items, not ('storage', class, key, location, size, view)",
               items.size());
    StorageId storage = storage_id(items);
    Value root = storage_for(storage, [&] { return add_storage(storage); });
    return items[5].is_none() ? root : view_of(root, items[5]);
  }

 private:
  struct Pending {
    Storage storage;
    DType dtype;
    int64_t numel;
  };

  /// One of the pickles that hold numbers and texts only.
  PickleResult plain_pickle(uint64_t most) {
    PickleOptions options = pickle_options();
    options.names_allowed = false;
    return read_pickle_at(source_, position_, most, *this, options, [] {});
  }

  void read_header() {
    Value magic = plain_pickle(kSmallPickle).root;
    TERN_CHECK(magic.is_int() && magic.str() == kMagic, CheckpointError,
               "Invalid magic number; corrupt file?");
    Value version = plain_pickle(kSmallPickle).root;
    TERN_CHECK(version == Value(kStreamVersion), CheckpointError, "Invalid protocol version: {}",
               version.str(50));
    Value system = plain_pickle(kSmallPickle).root;
    TERN_CHECK(system.is_dict(), CheckpointError, "the system information is {}, not a dict",
               describe(system));
    const Value* little = system.find("little_endian");
    TERN_CHECK(!little || !(*little == Value(false)), CheckpointError,
               "the file was written on a big-endian machine, which is not supported");
  }

  Storage add_storage(const StorageId& id) {
    // All storages lie in the file behind each other, so that they cannot need more than it has.
    TERN_CHECK(id.nbytes <= source_.size() - announced_, CheckpointError,
               "storage '{}' has {} elements of {}, more than the file of {} bytes can hold",
               id.key.substr(0, 100), id.numel, name(id.type->dtype), source_.size());
    announced_ += id.nbytes;
    LoadBudget(options_.limits, source_.size()).take_tensor(announced_);
    Storage storage = make_storage(id);
    pending_.emplace(id.key, Pending{storage, id.type->dtype, id.numel});
    return storage;
  }

  /// (key of the view, first element, number of elements): a part of a storage, in files of 2017.
  static Value view_of(const Value& root, const Value& view) {
    TERN_CHECK(view.is_tuple() && view.length() == 3, CheckpointError, "the view of a storage is {}",
               describe(view));
    return storage_part(root, view.as_tuple()[1], view.as_tuple()[2]);
  }

  void read_storages(const Value& keys) {
    TERN_CHECK(keys.is_list(), CheckpointError, "the list of storage keys is {}", describe(keys));
    for (const Value& key : keys.as_list()) {
      TERN_CHECK(key.is_str(), CheckpointError, "a storage key is {}, not a str", describe(key));
      auto found = pending_.find(key.as_str());
      TERN_CHECK(found != pending_.end(), CheckpointError,
                 "storage '{}' is listed twice, or nothing refers to it", key.as_str().substr(0, 100));
      read_storage(key.as_str(), found->second);
      pending_.erase(found);
    }
    TERN_CHECK(pending_.empty(), CheckpointError, "the file has no data for storage '{}'",
               pending_.begin()->first.substr(0, 100));
    fill_storages(source_, jobs_, [](size_t job) { return fmt::format("storage number {}", job); });
  }

  void read_storage(const std::string& key, const Pending& pending) {
    std::byte size_bytes[8];
    source_.read_at(position_, size_bytes);
    position_ += sizeof(size_bytes);
    auto numel = load_le<int64_t>(size_bytes);
    TERN_CHECK(numel == pending.numel, CheckpointError,
               "storage '{}' has {} elements in the pickle and {} in the data", key.substr(0, 100),
               pending.numel, numel);
    StorageImpl& storage = *pending.storage;
    TERN_CHECK(storage.nbytes() <= source_.size() - position_, CheckpointError,
               "storage '{}' has {} bytes, but the file ends after {} of them", key.substr(0, 100),
               storage.nbytes(), source_.size() - position_);
    if (!options_.skip_data) jobs_.push_back({position_, storage.nbytes(), &storage, pending.dtype});
    position_ += storage.nbytes();
  }

  const ByteSource& source_;
  uint64_t position_ = 0;
  uint64_t announced_ = 0;
  std::unordered_map<std::string, Pending> pending_;
  std::vector<ReadJob> jobs_;
};

/// A pickle without a container.
class LooseHost final : public TorchHost {
 public:
  using TorchHost::TorchHost;
  Value persistent_load(const Value&) override {
    TERN_THROW(CheckpointError, "a plain pickle refers to something outside (a persistent id)");
  }
  Checkpoint read(const ByteSource& source) {
    uint64_t position = 0;
    PickleResult result = read_pickle_at(source, position, options_.limits.pickle_bytes, *this,
                                         pickle_options(), [&] { forget_storages(); });
    TERN_CHECK(position == source.size(), CheckpointError,
               "the file begins as a pickle of {} bytes, but goes on to {}: it is no plain pickle, and no "
               "format that is known",
               position, source.size());
    return finish(std::move(result), "");
  }
};

}  // namespace

Checkpoint read_torch_stream(const ByteSource& source, const LoadOptions& options, int depth) {
  return StreamHost(source, options, depth).read();
}

Checkpoint read_plain_pickle(const ByteSource& source, const LoadOptions& options, int depth) {
  return LooseHost(options, depth).read(source);
}

}  // namespace tern::io
