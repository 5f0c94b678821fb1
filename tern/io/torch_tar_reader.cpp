// Reading PyTorch's tar format (0.1, up to February 2017): the members sys_info, storages, tensors and
// pickle. The tree refers to tensors by a number in decimal text. As torch/serialization.py, legacy_load.
#include <charconv>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/bulk_read.h"
#include "tern/io/byte_order.h"
#include "tern/io/load_budget.h"
#include "tern/io/pickle_stream.h"
#include "tern/io/tar_reader.h"
#include "tern/io/tensor_kinds.h"
#include "tern/io/torch_file.h"
#include "tern/io/torch_host.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;

namespace {

constexpr int64_t kTarVersion = 1000;

class TarHost final : public TorchHost {
 public:
  TarHost(std::shared_ptr<const ByteSource> source, const LoadOptions& options, int depth)
      : TorchHost(options, depth), budget_(options.limits, source->size()) {
    std::vector<TarMember> members = read_tar_members(*source, options.limits.entries);
    for (auto [name, place] : {std::pair{"sys_info", &info_},
                               {"storages", &storages_},
                               {"tensors", &tensors_},
                               {"pickle", &tree_}}) {
      for (const TarMember& member : members)
        if (member.name == name) *place = part_of(source, member.offset, member.size);
      TERN_CHECK(*place, CheckpointError, "the tar archive is no PyTorch checkpoint: it has no member '{}'",
                 name);
    }
  }

  Checkpoint read() {
    with_context("sys_info", [&] { read_info(); });
    with_context("storages", [&] { read_storages(); });
    with_context("tensors", [&] { read_tensors(); });
    uint64_t position = 0;
    // The same objects stand for every attempt.
    PickleResult tree =
        read_pickle_at(*tree_, position, options_.limits.pickle_bytes, *this, pickle_options(), [] {});
    return finish(std::move(tree), std::to_string(kTarVersion));
  }

  /// The number of a tensor or storage as text; for a class whose source was saved: (class, file, source).
  Value persistent_load(const Value& id) override {
    if (id.is_tuple() && id.length() == 3) {
      TERN_CHECK(id.as_tuple()[0].kind() == ValueKind::Global, CheckpointError,
                 "a persistent id begins with {}, not a class", describe(id.as_tuple()[0]));
      return id.as_tuple()[0];
    }
    TERN_CHECK(id.is_str(), CheckpointError, "a persistent id is {}, not a number as text", describe(id));
    const std::string& text = id.as_str();
    int64_t key = 0;
    auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), key);
    bool number = error == std::errc() && stop == text.data() + text.size();
    auto found = number ? objects_.find(key) : objects_.end();
    TERN_CHECK(found != objects_.end(), CheckpointError, "the file has no tensor or storage '{}'",
               text.substr(0, 100));
    return found->second;
  }

 private:
  Value small_pickle(const ByteSource& member, uint64_t& position, bool names_allowed) {
    PickleOptions options = pickle_options();
    options.names_allowed = names_allowed;
    return read_pickle_at(member, position, kSmallPickle, *this, options, [] {}).root;
  }

  void read_info() {
    uint64_t position = 0;
    Value info = small_pickle(*info_, position, /*names_allowed=*/false);
    TERN_CHECK(info.is_dict(), CheckpointError, "the system information is {}, not a dict", describe(info));
    const Value* version = info.find("protocol_version");
    TERN_CHECK(!version || *version == Value(kTarVersion), CheckpointError, "Invalid protocol version: {}",
               version->str(50));
    const Value* little = info.find("little_endian");
    TERN_CHECK(!little || !(*little == Value(false)), CheckpointError,
               "the file was written on a big-endian machine, which is not supported");
  }

  /// How many storages or tensors follow, each of at least `least` bytes.
  int64_t read_count(const ByteSource& member, uint64_t& position, uint64_t least) {
    Value count = small_pickle(member, position, /*names_allowed=*/false);
    bool right = count.kind() == ValueKind::Int && count.as_int() >= 0 &&
                 static_cast<uint64_t>(count.as_int()) <= (member.size() - position) / least;
    TERN_CHECK(right, CheckpointError, "{} of them are announced in {} bytes", count.str(50), member.size());
    return count.as_int();
  }

  /// A tuple of a key and two more things.
  std::vector<Value> read_id(const ByteSource& member, uint64_t& position) {
    Value id = small_pickle(member, position, /*names_allowed=*/true);
    TERN_CHECK(id.is_tuple() && id.length() == 3 && id.as_tuple()[0].kind() == ValueKind::Int,
               CheckpointError, "what begins with its key is {}", id.str(100));
    return id.as_tuple();
  }

  template <class T>
  T read_number(const ByteSource& member, uint64_t& position) {
    std::byte bytes[sizeof(T)];
    member.read_at(position, bytes);
    position += sizeof(T);
    return load_le<T>(bytes);
  }

  void add(int64_t key, Value object) {
    TERN_CHECK(objects_.emplace(key, std::move(object)).second, CheckpointError, "the key {} is there twice",
               key);
  }

  const Value& storage_of(const Value& key) {
    auto found = key.kind() == ValueKind::Int ? objects_.find(key.as_int()) : objects_.end();
    TERN_CHECK(found != objects_.end() && found->second.kind() == ValueKind::RawStorage, CheckpointError,
               "there is no storage {}", key.str(50));
    return found->second;
  }

  /// (key, location, class), the number of elements, the bytes; at the end (key, of which, first, count) for
  /// each storage that is a part of another.
  void read_storages() {
    uint64_t position = 0;
    for (int64_t left = read_count(*storages_, position, 10); left > 0; --left) {
      std::vector<Value> id = read_id(*storages_, position);
      auto numel = read_number<int64_t>(*storages_, position);
      StorageId storage_id = this->storage_id({"storage", id[2], id[0].str(), id[1], numel});
      TERN_CHECK(storage_id.nbytes <= storages_->size() - position, CheckpointError,
                 "storage {} has {} elements of {}, but only {} bytes follow (incomplete file?)", id[0].str(),
                 numel, name(storage_id.type->dtype), storages_->size() - position);
      budget_.take_tensor(storage_id.nbytes);
      Value storage = storage_for(storage_id, [&] { return make_storage(storage_id); });
      if (!options_.skip_data) fill(*storage.as_storage().storage, storage_id.type->dtype, position);
      position += storage_id.nbytes;
      add(id[0].as_int(), storage);
    }
    Value views =
        read_pickle_at(*storages_, position, options_.limits.pickle_bytes, *this, plain_options(), [] {
        }).root;
    TERN_CHECK(views.is_list() || views.is_tuple(), CheckpointError, "the list of views is {}",
               describe(views));
    for (const Value& view : views.as_sequence()) {
      TERN_CHECK(view.is_tuple() && view.length() == 4 && view.as_tuple()[0].kind() == ValueKind::Int,
                 CheckpointError, "a view of a storage is {}", view.str(100));
      const std::vector<Value>& items = view.as_tuple();
      add(items[0].as_int(), storage_part(storage_of(items[1]), items[2], items[3]));
    }
  }

  PickleOptions plain_options() const {
    PickleOptions options = pickle_options();
    options.names_allowed = false;
    return options;
  }

  void fill(StorageImpl& storage, DType dtype, uint64_t position) {
    const ReadJob job{position, storage.nbytes(), &storage, dtype};
    fill_storages(*storages_, {&job, 1}, [](size_t) { return std::string("a storage"); });
  }

  /// (key, storage, class), the number of dimensions in 8 bytes of which 4 count, sizes, strides, offset.
  void read_tensors() {
    uint64_t position = 0;
    for (int64_t left = read_count(*tensors_, position, 10); left > 0; --left) {
      std::vector<Value> id = read_id(*tensors_, position);
      const Value& storage = storage_of(id[1]);
      auto rank = read_number<int32_t>(*tensors_, position);
      read_number<int32_t>(*tensors_, position);
      TERN_CHECK(rank >= 0 && rank <= static_cast<int32_t>(kMaxRank), CheckpointError,
                 "tensor {} has {} dimensions", id[0].str(), rank);
      std::vector<Value> sizes, strides;
      for (int32_t d = 0; d < rank; ++d) sizes.emplace_back(read_number<int64_t>(*tensors_, position));
      for (int32_t d = 0; d < rank; ++d) strides.emplace_back(read_number<int64_t>(*tensors_, position));
      auto offset = read_number<int64_t>(*tensors_, position);
      // Tensors of that time have at least one dimension; without one they are empty.
      if (rank == 0) {
        sizes.emplace_back(0);
        strides.emplace_back(1);
      }
      with_context(fmt::format("tensor {}", id[0].str()), [&] {
        add(id[0].as_int(), strided_tensor(storage, offset, Value::tuple(sizes), Value::tuple(strides)));
      });
    }
  }

  std::shared_ptr<const ByteSource> info_, storages_, tensors_, tree_;
  LoadBudget budget_;
  std::unordered_map<int64_t, Value> objects_;
};

}  // namespace

Checkpoint read_torch_tar(std::shared_ptr<const ByteSource> source, const LoadOptions& options, int depth) {
  return TarHost(std::move(source), options, depth).read();
}

}  // namespace tern::io
