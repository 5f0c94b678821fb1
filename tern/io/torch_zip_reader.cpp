// Reading PyTorch's zip format: first the tree, with storages of the right size, then the bytes of all
// storages in file order.
#include <algorithm>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/bulk_read.h"
#include "tern/io/load_budget.h"
#include "tern/io/mapped_file.h"
#include "tern/io/npy.h"
#include "tern/io/pickle_writer.h"
#include "tern/io/torch_file.h"
#include "tern/io/torch_host.h"
#include "tern/io/torch_script.h"
#include "tern/io/value_nodes.h"
#include "tern/io/zip_reader.h"

namespace tern::io {

using detail::describe;

namespace {

constexpr uint64_t kMaxRecordBytes = 1 << 16;
/// Of model.json: as a tree it takes many times its bytes.
constexpr uint64_t kMaxModelBytes = uint64_t{8} << 20;
constexpr std::string_view kDataFolder = "data/";

class ZipHost final : public TorchHost, private ScriptStorages {
 public:
  ZipHost(std::shared_ptr<const ByteSource> source, const LoadOptions& options, int depth)
      : TorchHost(options, depth),
        zip_(std::move(source), options.limits.entries),
        budget_(options.limits, zip_.source().size()) {
    // NumPy writes an archive without arrays too; nobody else's checkpoint has no entries.
    TERN_CHECK(!zip_.entries().empty() || zip_.source().name().ends_with(".npz'"), CheckpointError,
               "the zip archive is empty");
    npz_ = is_npz(zip_);
    if (npz_) return;
    find_folder();
    check_records();
  }

  Checkpoint read() {
    if (npz_) return read_arrays();
    PickleResult result;
    Value constants;
    if (program_ && !zip_.find(folder_ + "data.pkl")) {
      result.root = read_script_model(text_of(folder_ + "model.json"), *this);
    } else {
      result = read_tree("data.pkl", "data/");
      if (zip_.find(folder_ + "constants.pkl") && program_) {
        PickleResult more = read_tree("constants.pkl", "constants/");
        constants = std::move(more.root);
        result.globals.insert(result.globals.end(), more.globals.begin(), more.globals.end());
        result.global_bytes.insert(result.global_bytes.end(), more.global_bytes.begin(),
                                   more.global_bytes.end());
      }
    }
    if (!options_.skip_data) read_storages();
    add_script_constants(result.root, constants);
    return finish(std::move(result), version_);
  }

  Value persistent_load(const Value& id) override {
    // TorchScript's first versions had a view of a storage too, which was always None.
    bool script_view = program_ && id.is_tuple() && id.length() == 6 && id.as_tuple()[5].is_none();
    TERN_CHECK(id.is_tuple() && (id.length() == 5 || script_view), CheckpointError,
               "a persistent id is {}, not ('storage', class, key, location, size)",
               id.is_tuple() ? fmt::format("a tuple of {} items", id.length()) : describe(id));
    StorageId storage = storage_id(id.as_tuple());
    TERN_CHECK(!(big_endian_ && storage.type->name.ends_with("UntypedStorage")), CheckpointError,
               "storage '{}' is untyped and big-endian: which bytes to swap is not known", storage.key);
    std::string entry = folder_ + records_ + storage.key;
    if (records_ != kDataFolder) storage.key = records_ + storage.key;
    return storage_for(storage, [&] { return add_storage(storage, entry); });
  }

  Value script_storage(const std::string& record, DType dtype, const std::string& location) override {
    const ZipEntry* entry = zip_.find(folder_ + record);
    TERN_CHECK(entry, CheckpointError, "the file has no entry '{}'", record.substr(0, 100));
    auto numel = static_cast<int64_t>(entry->size / itemsize(dtype));
    StorageId id =
        storage_id({"storage", find_global("torch", storage_class(dtype)), record, location, numel});
    return storage_for(id, [&] { return add_storage(id, folder_ + record); });
  }

 private:
  /// A storage that awaits its bytes. There may be very many.
  struct Pending {
    Storage storage;
    uint32_t entry;  ///< position among the archive's
    DType dtype;
  };

  /// One of the archive's pickles, whose storages are the entries `records` + key.
  PickleResult read_tree(std::string_view name, std::string_view records) {
    const ZipEntry* pickle = zip_.find(folder_ + std::string(name));
    take_unpacked(*pickle);
    std::vector<std::byte> bytes =
        zip_.read(*pickle, options_.limits.pickle_bytes, /*verify_crc=*/true, "limits.pickle_bytes");
    records_ = records;
    expect_storages(zip_.entries().size());
    pending_.reserve(zip_.entries().size());
    PickleOptions options = pickle_options();
    if (program_) options.is_inert = is_script_class;
    return read_pickle(bytes, *this, options);
  }

  /// The archive's folder is that of the first entry; re-zipped files may have others before it, or none.
  void find_folder() {
    const std::string_view first = zip_.entries().front().name;
    size_t slash = first.find('/');
    folder_ = slash == std::string_view::npos ? "" : first.substr(0, slash + 1);
    if (zip_.find(folder_ + "data.pkl") || zip_.find(folder_ + "model.json")) return;
    std::vector<const ZipEntry*> candidates;
    for (const ZipEntry& entry : zip_.entries()) {
      slash = entry.name.find('/');
      if (slash == std::string_view::npos ? entry.name == "data.pkl"
                                          : entry.name.substr(slash) == "/data.pkl")
        candidates.push_back(&entry);
    }
    if (candidates.size() != 1) fail_without_pickle();
    slash = candidates[0]->name.find('/');
    folder_ = slash == std::string_view::npos ? "" : candidates[0]->name.substr(0, slash + 1);
  }

  [[noreturn]] void fail_without_pickle() const {
    std::string inside, names;
    for (const ZipEntry& entry : zip_.entries()) {
      if (entry.name.ends_with(".pth") || entry.name.ends_with(".pt")) inside = entry.name;
      if (names.size() < 200)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name.substr(0, 60));
    }
    TERN_CHECK(!zip_.find("MAR-INF/MANIFEST.json"), CheckpointError,
               "this is a TorchServe archive (.mar): unpack it and load the model file in it{}",
               inside.empty() ? "" : fmt::format(", '{}'", inside.substr(0, 100)));
    TERN_CHECK(!(zip_.find("model.weights.h5") || (zip_.find("config.json") && zip_.find("metadata.json"))),
               CheckpointError, "this is a Keras model (.keras), which is not read");
    TERN_CHECK(!is_exported_program(), CheckpointError,
               "this is a program exported by torch.export (.pt2), whose weights are not read: load it in "
               "Python with torch.export.load and save its weights with torch.save(program.state_dict, ...)");
    TERN_CHECK(inside.empty(), CheckpointError,
               "the zip archive is no PyTorch checkpoint, but holds one: unpack it and load '{}'",
               inside.substr(0, 100));
    TERN_THROW(CheckpointError,
               "the zip archive is no PyTorch checkpoint: it has no data.pkl (its entries are {})", names);
  }

  /// An archive of torch.export.save: with a record of its format, older ones with the program at the top.
  bool is_exported_program() const {
    const std::vector<ZipEntry>& entries = zip_.entries();
    return std::any_of(entries.begin(), entries.end(), [](const ZipEntry& entry) {
      const std::string_view inside = std::string_view(entry.name).substr(entry.name.find('/') + 1);
      return inside == "archive_format" || inside == "serialized_exported_program.json";
    });
  }

  std::string text_of(const std::string& name) {
    const ZipEntry* entry = zip_.find(name);
    TERN_CHECK(entry, CheckpointError, "the archive has no entry '{}'", name);
    take_unpacked(*entry);
    std::vector<std::byte> bytes = zip_.read(*entry, kMaxModelBytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::string record(const std::string& name) {
    const ZipEntry* entry = zip_.find(folder_ + name);
    if (!entry) return "";
    std::vector<std::byte> bytes = zip_.read(*entry, kMaxRecordBytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  void check_records() {
    program_ = zip_.find(folder_ + "constants.pkl") || zip_.find(folder_ + "model.json");
    for (const ZipEntry& entry : zip_.entries())
      program_ = program_ || entry.name.starts_with(folder_ + "code/");
    std::string version_record = zip_.find(folder_ + ".data/version") ? ".data/version" : "version";
    if (zip_.find(folder_ + version_record)) {
      version_ = record(version_record);
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

  void take_unpacked(const ZipEntry& entry) {
    if (!entry.stored()) budget_.take_unpacked(entry.name, entry.size);
  }

  Checkpoint read_arrays() {
    Checkpoint checkpoint;
    checkpoint.root = Value::dict();
    for (const auto& [name, array] : read_npz(zip_, options_)) checkpoint.root.as_dict().set(name, array);
    return checkpoint;
  }

  Storage add_storage(const StorageId& id, const std::string& entry_name) {
    const ZipEntry* entry = zip_.find(entry_name);
    TERN_CHECK(entry, CheckpointError, "the file has no data for storage '{}' (entry '{}')",
               id.key.substr(0, 100), entry_name.substr(0, 200));
    TERN_CHECK(id.nbytes <= entry->size, CheckpointError,
               "storage '{}' has {} elements of {}, but its data has only {} bytes", id.key, id.numel,
               name(id.type->dtype), entry->size);
    take_unpacked(*entry);
    budget_.take_tensor(id.nbytes);
    if (Storage mapped = map_storage(id, *entry)) return mapped;
    Storage storage = make_storage(id);
    auto position = static_cast<uint32_t>(entry - zip_.entries().data());
    pending_.push_back({storage, position, id.type->dtype});
    return storage;
  }

  /// With the option mmap, the storage as a part of the file; null where it must be copied.
  Storage map_storage(const StorageId& id, const ZipEntry& entry) {
    if (!options_.mmap || options_.skip_data || id.nbytes == 0 || !device_for(id.location).is_cpu())
      return {};
    if (!mapping_) mapping_ = map_for_tensors(zip_.source());
    const bool as_stored = entry.stored() && (!big_endian_ || itemsize(id.type->dtype) == 1);
    // Bytes may be numbers of any type, as those of untyped storages are.
    const size_t alignment = itemsize(id.type->dtype) == 1 ? 16 : 1;
    Storage mapped;
    if (as_stored)
      mapped = mapped_storage(mapping_, zip_.data_offset(entry), id.nbytes, id.type->dtype, alignment);
    if (!mapped && options_.report) ++options_.report->copied;
    if (!mapped) return {};
    if (options_.verify_mapped) zip_.check_crc(entry);
    if (options_.report) options_.report->note(options_.map_location, id.location, kCPU, id.nbytes);
    return mapped;
  }

  const ZipEntry& entry_of(const Pending& pending) const { return zip_.entries()[pending.entry]; }

  /// Every storage gets its bytes.
  void read_storages() {
    std::sort(pending_.begin(), pending_.end(), [&](const Pending& a, const Pending& b) {
      return entry_of(a).header_offset < entry_of(b).header_offset;
    });
    // In groups, since there may be very many.
    constexpr size_t kGroup = 8192;
    for (size_t begin = 0; begin < pending_.size(); begin += kGroup)
      read_group(std::span(pending_).subspan(begin, std::min(kGroup, pending_.size() - begin)));
  }

  void read_group(std::span<const Pending> group) {
    std::vector<const ZipEntry*> entries;
    for (const Pending& pending : group) entries.push_back(&entry_of(pending));
    const std::vector<uint64_t> offsets = zip_.data_offsets(entries);
    std::vector<ReadJob> jobs;
    std::vector<size_t> job_entries;
    for (size_t i = 0; i < group.size(); ++i) {
      const Pending& pending = group[i];
      const ZipEntry& entry = entry_of(pending);
      if (!entry.stored()) {
        unpack_storage(pending);
        continue;
      }
      std::optional<uint32_t> crc;
      if (options_.verify && entry.crc != 0) crc = entry.crc;
      jobs.push_back({offsets[i], entry.size, pending.storage.get(), pending.dtype, big_endian_, crc});
      job_entries.push_back(i);
    }
    fill_storages(zip_.source(), jobs, [&](size_t job) {
      return fmt::format("entry '{}'", entry_of(group[job_entries[job]]).name.substr(0, 200));
    });
  }

  void unpack_storage(const Pending& pending) {
    StorageImpl& storage = *pending.storage;
    std::vector<std::byte> unpacked(entry_of(pending).size);
    zip_.read(entry_of(pending), unpacked, options_.verify);
    std::span<std::byte> bytes = std::span(unpacked).first(storage.nbytes());
    to_memory_form(bytes, pending.dtype, big_endian_);
    copy_from_host(storage, 0, bytes.data(), bytes.size());
  }

  ZipReader zip_;
  std::shared_ptr<MappedFile> mapping_;
  std::string folder_;
  std::string version_;
  bool big_endian_ = false;
  bool program_ = false;  ///< TorchScript
  bool npz_ = false;
  LoadBudget budget_;
  std::string records_ = std::string(kDataFolder);
  std::vector<Pending> pending_;
};

}  // namespace

Checkpoint read_torch_zip(std::shared_ptr<const ByteSource> source, const LoadOptions& options, int depth) {
  return ZipHost(std::move(source), options, depth).read();
}

}  // namespace tern::io
