// Which storages a tree of values needs. With `compact` the tree is walked twice: first to see which parts of
// storages its tensors use, then to write it.
#include "tern/io/torch_writer.h"

#include <algorithm>

#include "tern/base/check.h"

namespace tern::io {

namespace {

/// The parts of one storage that are written, in bytes; sorted and disjoint.
struct Parts {
  std::vector<ElementRange> used;
  int64_t width = 1;         ///< of the largest elements that it is seen as
  std::vector<size_t> keys;  ///< one for each part, once it has been written
};

constexpr size_t kNoKey = SIZE_MAX;

/// The type by whose class PyTorch writes a storage: bytes, where there is no class.
DType written_type(DType dtype) { return storage_class(dtype).empty() ? DType::UInt8 : dtype; }

ElementRange in_bytes(ElementRange range, int64_t width) { return {range.begin * width, range.end * width}; }

/// Makes every range begin at an element of the largest type, and end at one unless the storage ends before.
void align(Parts& parts, int64_t nbytes) {
  for (ElementRange& range : parts.used) {
    if (range.begin == range.end) continue;  // may lie anywhere
    range.begin -= range.begin % parts.width;
    range.end = std::min(range.end + (parts.width - range.end % parts.width) % parts.width, nbytes);
  }
}

/// Joins ranges that overlap; those that only touch stay apart. Of empty ranges at most one is left, where
/// there is nothing else.
void join(std::vector<ElementRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ElementRange& a, const ElementRange& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::vector<ElementRange> joined;
  for (const ElementRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!joined.empty() && range.begin < joined.back().end)
      joined.back().end = std::max(joined.back().end, range.end);
    else
      joined.push_back(range);
  }
  if (joined.empty()) joined.push_back({0, 0});
  ranges = std::move(joined);
}

class Collector {
 public:
  explicit Collector(const TorchWriteOptions& options) : options_(options) {}

  TorchTree run(const Value& value, bool stream) {
    stream_ = stream;
    if (options_.compact) {
      write_pickle(value, [&](const Storage& storage, DType dtype, ElementRange range) {
        const auto width = static_cast<int64_t>(itemsize(dtype));
        Parts& parts = parts_[storage.get()];
        parts.used.push_back(in_bytes(range, width));
        parts.width = std::max(parts.width, width);
        return StorageReference{"", "", range};
      });
      for (auto& [storage, parts] : parts_) {
        align(parts, static_cast<int64_t>(storage->nbytes()));
        join(parts.used);
        parts.keys.assign(parts.used.size(), kNoKey);
      }
    }
    TorchTree tree;
    tree.pickle = write_pickle(
        value,
        [&](const Storage& storage, DType dtype, ElementRange range) { return refer(storage, dtype, range); },
        stream);
    tree.storages = std::move(storages_);
    return tree;
  }

 private:
  StorageReference refer(const Storage& storage, DType dtype, ElementRange range) {
    auto [found, added] = parts_.try_emplace(storage.get());
    Parts& parts = found->second;
    if (added) {
      const size_t nbytes = storage->nbytes();
      parts.used.push_back({0, static_cast<int64_t>(nbytes - nbytes % itemsize(written_type(dtype)))});
      parts.keys.push_back(kNoKey);
    }
    const auto width = static_cast<int64_t>(itemsize(dtype));
    auto part =
        std::upper_bound(parts.used.begin(), parts.used.end(), range.begin * width,
                         [](int64_t begin, const ElementRange& other) { return begin < other.begin; });
    auto index = static_cast<size_t>(part - parts.used.begin() - (part == parts.used.begin() ? 0 : 1));
    const ElementRange used = parts.used[index];
    size_t& key = parts.keys[index];
    TERN_CHECK(!stream_ || !storage_class(dtype).empty(), ValueError,
               "the legacy format is older than {}, and PyTorch does not read it from there: save in the "
               "zip format",
               name(dtype));
    if (key == kNoKey) {
      key = storages_.size();
      storages_.push_back(
          {storage, dtype, static_cast<size_t>(used.begin), static_cast<size_t>(used.end - used.begin)});
    }
    TERN_CHECK(
        written_type(storages_[key].dtype) == written_type(dtype) || storage->nbytes() == 0, ValueError,
        "Cannot save multiple tensors or storages that view the same data as different types ({} and {})",
        name(storages_[key].dtype), name(dtype));
    return {std::to_string(key),
            location(*storage),
            {used.begin / width, used.end / width},
            used.end - used.begin};
  }

  std::string location(const StorageImpl& storage) const {
    if (options_.locations) {
      auto found = options_.locations->find(&storage);
      if (found != options_.locations->end()) return found->second;
    }
    return storage.device().str();
  }

  const TorchWriteOptions& options_;
  bool stream_ = false;
  std::unordered_map<const StorageImpl*, Parts> parts_;
  std::vector<WrittenStorage> storages_;
};

}  // namespace

TorchTree make_torch_tree(const Value& value, const TorchWriteOptions& options, bool stream) {
  return Collector(options).run(value, stream);
}

}  // namespace tern::io
