// Reading PyTorch's zip format: first the tree, with storages of the right size, then the bytes of all
// storages in file order.
#include <algorithm>
#include <atomic>

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/core/memory.h"
#include "tern/io/format.h"
#include "tern/io/torch_file.h"
#include "tern/io/torch_host.h"
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
/// Threads take storages in groups of this work.
constexpr uint64_t kGroupWork = uint64_t{2} << 20;
constexpr uint64_t kEntryWork = 8192;

class ZipHost final : public TorchHost {
 public:
  ZipHost(std::shared_ptr<const ByteSource> source, const LoadOptions& options, int depth)
      : TorchHost(options, depth), zip_(std::move(source)) {
    find_folder();
    check_records();
  }

  Checkpoint read() {
    const ZipEntry* pickle = zip_.find(folder_ + "data.pkl");
    check_expansion(*pickle);
    std::vector<std::byte> bytes = zip_.read(*pickle, kMaxPickleBytes);
    PickleResult result = read_pickle(bytes, *this, pickle_options());
    if (!options_.skip_data) read_storages();
    return finish(std::move(result), version_);
  }

  Value persistent_load(const Value& id) override {
    TERN_CHECK(id.is_tuple() && id.length() == 5, CheckpointError,
               "a persistent id is {}, not ('storage', class, key, location, size)",
               id.is_tuple() ? fmt::format("a tuple of {} items", id.length()) : describe(id));
    StorageId storage = storage_id(id.as_tuple());
    return storage_for(storage, [&] { return add_storage(storage); });
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

  Storage add_storage(const StorageId& id) {
    const ZipEntry* entry = zip_.find(folder_ + "data/" + id.key);
    TERN_CHECK(entry, CheckpointError, "the file has no data for storage '{}' (entry '{}data/{}')",
               id.key.substr(0, 100), folder_, id.key.substr(0, 100));
    TERN_CHECK(id.nbytes <= entry->size, CheckpointError,
               "storage '{}' has {} elements of {}, but its data has only {} bytes", id.key, id.numel,
               name(id.type->dtype), entry->size);
    TERN_CHECK(!(big_endian_ && id.type->name.ends_with("UntypedStorage")), CheckpointError,
               "storage '{}' is untyped and big-endian: which bytes to swap is not known", id.key);
    check_expansion(*entry);
    Storage storage = make_storage(id);
    pending_.push_back({entry, storage, id.type->dtype});
    return storage;
  }

  /// Every storage gets its bytes, straight into its memory where that is the host's. Several threads share
  /// the work.
  void read_storages() {
    std::sort(pending_.begin(), pending_.end(), [](const Pending& a, const Pending& b) {
      return a.entry->header_offset < b.entry->header_offset;
    });
    // Groups of about the same work, counted in bytes and a share for each entry.
    std::vector<size_t> ends;
    uint64_t work = 0;
    for (size_t i = 0; i < pending_.size(); ++i) {
      work += pending_[i].entry->size + kEntryWork;
      if (work < kGroupWork && i + 1 < pending_.size()) continue;
      ends.push_back(i + 1);
      work = 0;
    }
    std::atomic<size_t> next{0};
    auto threads = std::min<int64_t>(num_threads(), static_cast<int64_t>(ends.size()));
    parallel_for(threads, 1, [&](int64_t, int64_t) {
      for (size_t group; (group = next.fetch_add(1)) < ends.size();)
        for (size_t i = group == 0 ? 0 : ends[group - 1]; i < ends[group]; ++i) read_storage(pending_[i]);
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
    finish_bytes(bytes, pending.dtype, big_endian_);
    if (!direct) copy_from_host(storage, 0, bytes.data(), nbytes);
  }

  ZipReader zip_;
  std::string folder_;
  std::string version_;
  bool big_endian_ = false;
  uint64_t expanded_ = 0;
  std::vector<Pending> pending_;
};

}  // namespace

Checkpoint read_torch_zip(std::shared_ptr<const ByteSource> source, const LoadOptions& options, int depth) {
  return ZipHost(std::move(source), options, depth).read();
}

Checkpoint read_torch_file(std::shared_ptr<const ByteSource> source, const LoadOptions& options, int depth) {
  FileFormat format = sniff_format(*source);
  switch (format) {
    case FileFormat::Zip:
      return read_torch_zip(std::move(source), options, depth);
    case FileFormat::Legacy:
      return read_torch_stream(*source, options, depth);
    case FileFormat::Pickle:
      return read_plain_pickle(*source, options, depth);
    default:
      TERN_THROW(CheckpointError, "this is no checkpoint that can be read: the file is {}", describe(format));
  }
}

}  // namespace tern::io
