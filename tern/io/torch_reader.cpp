// Reading PyTorch's zip format: first the tree, with storages of the right size, then the bytes of all
// storages in file order.
#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/core/memory.h"
#include "tern/io/byte_order.h"
#include "tern/io/pickle_reader.h"
#include "tern/io/torch_file.h"
#include "tern/io/value_nodes.h"
#include "tern/io/zip_reader.h"

namespace tern::io {

using detail::describe;

namespace {

constexpr uint64_t kMaxPickleBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxRecordBytes = 1 << 16;
/// What compressed entries may grow to in all: so many times the file, and a fixed part.
constexpr uint64_t kMaxExpansion = 4;
constexpr uint64_t kFreeExpansion = uint64_t{64} << 20;

class ZipHost final : public PickleHost {
 public:
  ZipHost(std::shared_ptr<const ByteSource> source, const LoadOptions& options)
      : zip_(std::move(source)), options_(options) {
    find_folder();
    check_records();
  }

  Checkpoint read() {
    const ZipEntry* pickle = zip_.find(folder_ + "data.pkl");
    check_expansion(*pickle);
    std::vector<std::byte> bytes = zip_.read(*pickle, kMaxPickleBytes);
    PickleOptions pickle_options;
    pickle_options.weights_only = options_.weights_only;
    PickleResult result = read_pickle(bytes, *this, pickle_options);
    read_storages();
    for (auto& check : checks_) check();
    return {std::move(result.root), version_, result.protocol, std::move(result.globals)};
  }

  Value persistent_load(const Value& id) override {
    TERN_CHECK(id.is_tuple() && id.length() == 5, CheckpointError,
               "a persistent id is {}, not ('storage', class, key, location, size)",
               id.is_tuple() ? fmt::format("a tuple of {} items", id.length()) : describe(id));
    const std::vector<Value>& items = id.as_tuple();
    bool is_storage = (items[0].is_str() && items[0].as_str() == "storage") ||
                      (items[0].kind() == ValueKind::Bytes && items[0].as_bytes() == "storage");
    TERN_CHECK(is_storage, CheckpointError, "a persistent id is of the unknown kind {}", items[0].str(50));
    const GlobalRow* row = row_of(items[1]);
    TERN_CHECK(row && row->typed, CheckpointError, "the class of a storage is {}", describe(items[1]));
    TERN_CHECK(items[2].is_str(), CheckpointError, "the key of a storage is {}, not a str",
               describe(items[2]));
    TERN_CHECK(items[3].is_str(), CheckpointError, "the location of a storage is {}, not a str",
               describe(items[3]));
    TERN_CHECK(items[4].kind() == ValueKind::Int && items[4].as_int() >= 0, CheckpointError,
               "the size of a storage is {}", items[4].str(50));
    const std::string& key = items[2].as_str();
    auto found = storages_.find(key);
    if (found != storages_.end()) {
      const StorageValue& known = found->second.as_storage();
      bool same = row == found_rows_.at(key) && items[4].as_int() <= known.numel;
      TERN_CHECK(same, CheckpointError,
                 "storage '{}' is referred to twice, as {} elements of {} and as {} of {}", key, known.numel,
                 name(known.dtype), items[4].as_int(), name(row->dtype));
      return found->second;
    }
    Value storage = add_storage(key, *row, items[4].as_int(), items[3].as_str());
    storages_.emplace(key, storage);
    found_rows_.emplace(key, row);
    return storage;
  }

  void check_later(std::function<void()> check) override { checks_.push_back(std::move(check)); }
  Device device_for(const std::string& location) override { return options_.map_location(location); }
  Value load_nested(const std::string&) override {
    TERN_THROW(CheckpointError,
               "a checkpoint inside a checkpoint (torch.storage._load_from_bytes) is not read");
  }

 private:
  struct Pending {
    const ZipEntry* entry;
    Storage storage;
    DType dtype;
  };

  /// The archive's folder is that of the first entry; re-zipped files may have others before it, or none.
  void find_folder() {
    const std::string& first = zip_.entries().front().name;
    size_t slash = first.find('/');
    folder_ = slash == std::string::npos ? "" : first.substr(0, slash + 1);
    if (zip_.find(folder_ + "data.pkl")) return;
    std::vector<const ZipEntry*> candidates;
    for (const ZipEntry& entry : zip_.entries()) {
      slash = entry.name.find('/');
      if (slash == std::string::npos ? entry.name == "data.pkl"
                                     : std::string_view(entry.name).substr(slash) == "/data.pkl")
        candidates.push_back(&entry);
    }
    if (candidates.size() != 1) fail_without_pickle();
    slash = candidates[0]->name.find('/');
    folder_ = slash == std::string::npos ? "" : candidates[0]->name.substr(0, slash + 1);
  }

  [[noreturn]] void fail_without_pickle() const {
    std::string inside, names;
    for (const ZipEntry& entry : zip_.entries()) {
      std::string_view entry_name = entry.name;
      if (entry_name.ends_with(".pth") || entry_name.ends_with(".pt")) inside = entry.name;
      if (names.size() < 200) names += (names.empty() ? "" : ", ") + entry.name.substr(0, 60);
    }
    TERN_CHECK(inside.empty(), CheckpointError,
               "the zip archive is no PyTorch checkpoint, but holds one: unpack it and load '{}'",
               inside.substr(0, 100));
    TERN_THROW(CheckpointError,
               "the zip archive is no PyTorch checkpoint: it has no data.pkl (its entries are {})", names);
  }

  std::string record(const std::string& name) {
    const ZipEntry* entry = zip_.find(folder_ + name);
    if (!entry) return "";
    std::vector<std::byte> bytes = zip_.read(*entry, kMaxRecordBytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  void check_records() {
    bool program = zip_.find(folder_ + "constants.pkl") != nullptr;
    for (const ZipEntry& entry : zip_.entries())
      program = program || entry.name.starts_with(folder_ + "code/");
    TERN_CHECK(!program, CheckpointError,
               "this is a TorchScript program (torch.jit.save), which is not read yet");
    if (zip_.find(folder_ + "version")) {
      version_ = record("version");
      while (!version_.empty() && (version_.back() == '\n' || version_.back() == '\r')) version_.pop_back();
      int number = 0;
      bool right = !version_.empty() && version_.size() <= 4 &&
                   version_.find_first_not_of("0123456789") == std::string::npos &&
                   (number = std::stoi(version_)) >= 1;
      TERN_CHECK(right, CheckpointError, "the archive's version '{}' is no number from 1 on",
                 version_.substr(0, 20));
      TERN_CHECK(number <= 10, CheckpointError,
                 "Attempted to read a PyTorch file with version {}, but the maximum supported version for "
                 "reading is 10.",
                 number);
    }
    if (zip_.find(folder_ + "byteorder")) {
      std::string order = record("byteorder");
      TERN_CHECK(order == "little" || order == "big", CheckpointError, "Unknown endianness type: '{}'",
                 order.substr(0, 20));
      big_endian_ = order == "big";
    }
  }

  void check_expansion(const ZipEntry& entry) {
    if (entry.stored()) return;
    expanded_ += entry.size;
    uint64_t limit = kFreeExpansion + kMaxExpansion * zip_.source().size();
    TERN_CHECK(entry.size <= limit && expanded_ <= limit, CheckpointError,
               "entry '{}' unpacks to {} bytes; a file of {} bytes may unpack to {}", entry.name, entry.size,
               zip_.source().size(), limit);
  }

  Value add_storage(const std::string& key, const GlobalRow& row, int64_t numel,
                    const std::string& location) {
    uint64_t nbytes = 0;
    bool fits = !__builtin_mul_overflow(static_cast<uint64_t>(numel), itemsize(row.dtype), &nbytes);
    const ZipEntry* entry = zip_.find(folder_ + "data/" + key);
    TERN_CHECK(entry, CheckpointError, "the file has no data for storage '{}' (entry '{}data/{}')",
               key.substr(0, 100), folder_, key.substr(0, 100));
    TERN_CHECK(fits && nbytes <= entry->size, CheckpointError,
               "storage '{}' has {} elements of {}, but its data has only {} bytes", key, numel,
               name(row.dtype), entry->size);
    check_expansion(*entry);
    Device device = device_for(location);
    Storage storage = allocate_storage(nbytes, device);
    pending_.push_back({entry, storage, row.dtype});
    TERN_CHECK(!(big_endian_ && row.name.ends_with("UntypedStorage")), CheckpointError,
               "storage '{}' is untyped and big-endian: which bytes to swap is not known", key);
    return StorageValue{storage, row.dtype, numel};
  }

  /// Every storage gets its bytes, straight into its memory where that is the host's. Several threads share
  /// the work.
  void read_storages() {
    std::sort(pending_.begin(), pending_.end(), [](const Pending& a, const Pending& b) {
      return a.entry->header_offset < b.entry->header_offset;
    });
    std::atomic<size_t> next{0};
    constexpr size_t kTogether = 16;
    parallel_for(std::min<int64_t>(num_threads(), static_cast<int64_t>(pending_.size())), 1,
                 [&](int64_t, int64_t) {
                   for (size_t first; (first = next.fetch_add(kTogether)) < pending_.size();)
                     for (size_t i = first; i < std::min(first + kTogether, pending_.size()); ++i)
                       read_storage(pending_[i]);
                 });
  }

  void read_storage(const Pending& pending) {
    StorageImpl& storage = *pending.storage;
    size_t nbytes = storage.nbytes();
    if (nbytes == 0) return;
    bool direct = storage.device().is_cpu() && pending.entry->size == nbytes;
    std::vector<std::byte> staging(direct ? 0 : pending.entry->size);
    std::span<std::byte> bytes =
        direct ? std::span(static_cast<std::byte*>(storage.data()), nbytes) : std::span(staging);
    zip_.read(*pending.entry, bytes, options_.verify);
    bytes = bytes.first(nbytes);
    if (big_endian_) {
      bool complex = pending.dtype == DType::Complex64 || pending.dtype == DType::Complex128;
      swap_bytes(bytes.data(), nbytes, itemsize(pending.dtype) / (complex ? 2 : 1));
    }
    if (pending.dtype == DType::Bool)
      for (std::byte& byte : bytes) byte = byte == std::byte{0} ? byte : std::byte{1};
    if (!direct) copy_from_host(storage, 0, bytes.data(), nbytes);
  }

  ZipReader zip_;
  const LoadOptions& options_;
  std::string folder_;
  std::string version_;
  bool big_endian_ = false;
  uint64_t expanded_ = 0;
  std::unordered_map<std::string, Value> storages_;
  std::unordered_map<std::string, const GlobalRow*> found_rows_;
  std::vector<Pending> pending_;
  std::vector<std::function<void()>> checks_;
};

}  // namespace

Checkpoint read_torch_zip(std::shared_ptr<const ByteSource> source, const LoadOptions& options) {
  return ZipHost(std::move(source), options).read();
}

}  // namespace tern::io
