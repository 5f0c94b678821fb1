// Writing torch.distributed.checkpoint (torch/distributed/checkpoint/metadata.py, filesystem.py): tensors as
// boxes in whole files of their own, one after the other in a file of each process.
#include "tern/io/distributed_writer.h"

#include <algorithm>
#include <charconv>

#include "tern/base/check.h"
#include "tern/io/file.h"
#include "tern/io/pickle_writer.h"
#include "tern/io/serialize.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/torch_writer.h"
#include "tern/io/value_nodes.h"

namespace tern::io {
namespace {

constexpr std::string_view kMetadata = "torch.distributed.checkpoint.metadata";
constexpr std::string_view kFileSystem = "torch.distributed.checkpoint.filesystem";

/// A box in a tensor, and where its elements are in the piece of this process.
struct Box {
  Shape offsets, sizes;
  int64_t first = 0;
};

int64_t product(const Shape& shape, size_t from) {
  int64_t numel = 1;
  for (size_t d = from; d < shape.size(); ++d) numel *= shape[d];
  return numel;
}

/// The elements start..start+length in row-major order as boxes: of two dimensions a part of a row, whole
/// rows, a part of a row.
void cut_into_boxes(const Shape& shape, size_t dim, int64_t start, int64_t length, Box box,
                    std::vector<Box>& boxes) {
  if (length == 0) return;
  if (dim == shape.size()) return boxes.push_back(std::move(box));
  const int64_t inner = product(shape, dim + 1);
  const auto part_of_row = [&](int64_t begin, int64_t count, int64_t first) {
    Box within = box;
    within.offsets[dim] = begin / inner;
    within.sizes[dim] = 1;
    within.first = box.first + first;
    cut_into_boxes(shape, dim + 1, begin % inner, count, std::move(within), boxes);
  };
  int64_t done = 0;
  if (start % inner != 0) {
    done = std::min(inner - start % inner, length);
    part_of_row(start, done, 0);
  }
  if (const int64_t rows = (length - done) / inner; rows > 0) {
    Box whole = box;
    whole.offsets[dim] = (start + done) / inner;
    whole.sizes[dim] = rows;
    for (size_t d = dim + 1; d < shape.size(); ++d) whole.sizes[d] = shape[d];
    whole.first = box.first + done;
    boxes.push_back(std::move(whole));
    done += rows * inner;
  }
  if (done < length) part_of_row(start + done, length - done, done);
}

/// The elements of a piece that are in a box, as a tensor.
Tensor tensor_of(const Tensor& piece, const Box& box) {
  const Tensor dense = piece.is_contiguous()
                           ? piece
                           : tensor_from_bytes(element_bytes(piece), piece.dtype(), piece.shape(), kCPU);
  return Tensor::view_of(dense.storage(), dense.dtype(), box.sizes, contiguous_strides(box.sizes),
                         dense.storage_offset() + box.first);
}

Value object(std::string_view module, std::string_view name, Value state) {
  ValueObject made;
  made.callee = GlobalName{std::string(module), std::string(name)};
  made.made = ValueObject::Made::New;
  made.args = Value::tuple();
  made.state = std::move(state);
  made.has_state = true;
  return made;
}

Value enumerator(std::string_view module, std::string_view name, int64_t value) {
  ValueObject made;
  made.callee = GlobalName{std::string(module), std::string(name)};
  made.args = Value::tuple({value});
  return made;
}

class CountingSink final : public ByteSink {
 public:
  explicit CountingSink(ByteSink& sink) : sink_(sink) {}
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override {
    sink_.write(bytes);
    count_ += static_cast<int64_t>(bytes.size());
  }
  int64_t count() const noexcept { return count_; }

 private:
  ByteSink& sink_;
  int64_t count_ = 0;
};

/// "__3_7.distcp": the seventh checkpoint in the folder, rank 3.
std::string file_name(int rank, int64_t generation) {
  return fmt::format("__{}_{}.distcp", rank, generation);
}

std::optional<int64_t> generation_of(const std::string& name) {
  constexpr std::string_view kSuffix = ".distcp";
  const size_t at = name.rfind('_');
  if (!name.starts_with("__") || !name.ends_with(kSuffix) || at < 2) return std::nullopt;
  int64_t generation = 0;
  const char* end = name.data() + name.size() - kSuffix.size();
  const auto [stop, error] = std::from_chars(name.data() + at + 1, end, generation);
  return error == std::errc() && stop == end ? std::optional(generation) : std::nullopt;
}

std::vector<std::pair<std::filesystem::path, int64_t>> data_files(const std::filesystem::path& folder) {
  std::vector<std::pair<std::filesystem::path, int64_t>> files;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder, ignored))
    if (const auto generation = generation_of(file.path().filename().string()))
      files.emplace_back(file.path(), *generation);
  return files;
}

/// Lists with tensors or dicts in them are opened, as PyTorch does.
bool is_opened(const Value& list) {
  if (!list.is_list()) return false;
  const std::vector<Value>& items = list.as_list();
  return std::any_of(items.begin(), items.end(),
                     [](const Value& item) { return item.is_tensor() || item.is_dict() || is_opened(item); });
}

void flatten(const Value& value, std::vector<Value>& path, std::vector<DistributedEntry>& entries) {
  const auto below = [&](Value step, const Value& item) {
    path.push_back(std::move(step));
    flatten(item, path, entries);
    path.pop_back();
  };
  if (value.is_dict() && value.length() > 0) {
    for (const auto& [key, item] : value.as_dict()) {
      TERN_CHECK(key.is_str() || key.is_int(), ValueError,
                 "a distributed checkpoint has texts and ints as keys, not {}", key.str(100));
      below(key.is_str() ? key : Value(std::to_string(key.as_int())), item);
    }
  } else if (is_opened(value)) {
    int64_t i = 0;
    for (const Value& item : value.as_list()) below(i++, item);
  } else {
    entries.push_back({path, value});
  }
}

class FolderWriter {
 public:
  FolderWriter(std::filesystem::path folder, const std::vector<DistributedEntry>& entries, int rank, int size,
               bool sync)
      : folder_(std::move(folder)), entries_(entries), rank_(rank), size_(size), sync_(sync) {}

  /// Where this process' parts lie: a list of (number of the entry, offsets, sizes, file, offset, length).
  Value write_data(int64_t generation) {
    std::filesystem::create_directories(folder_);
    std::vector<std::pair<size_t, std::optional<Box>>> items;
    for (size_t i = 0; i < entries_.size(); ++i)
      for (std::optional<Box>& box : parts_of(i)) items.emplace_back(i, std::move(box));
    Value places = Value::list();
    if (items.empty()) return places;
    const std::string file = file_name(rank_, generation);
    write_atomically(folder_ / file, sync_, [&](ByteSink& out) {
      CountingSink sink(out);
      for (const auto& [i, box] : items) {
        const int64_t begin = sink.count();
        const DistributedEntry& entry = entries_[i];
        write_item(box ? Value(tensor_of(entry.value.as_tensor(), *box)) : entry.value, sink);
        places.as_list().push_back(
            Value::tuple({static_cast<int64_t>(i), box ? Value(box->offsets) : Value(),
                          box ? Value(box->sizes) : Value(), file, begin, sink.count() - begin}));
      }
    });
    return places;
  }

  void write_metadata(const std::vector<Value>& places) const {
    Value names = Value::dict(), planner = Value::dict(), storage = Value::dict();
    std::vector<std::vector<Value>> chunks(entries_.size());
    std::vector<int64_t> numels(entries_.size(), 0);
    for (const Value& of_process : places)
      for (const Value& place : of_process.as_list()) {
        const auto i = static_cast<size_t>(place[0].as_int());
        const Value &offsets = place[1], &sizes = place[2];
        const bool is_tensor = !offsets.is_none();
        const int64_t number = static_cast<int64_t>(chunks[i].size());
        storage.as_dict().set(
            object(kMetadata, "MetadataIndex",
                   Value{{"fqn", entries_[i].name()},
                         {"offset", offsets},
                         {"index", is_tensor ? Value(number) : Value()}}),
            object(kFileSystem, "_StorageInfo",
                   Value{{"relative_path", place[3]}, {"offset", place[4]}, {"length", place[5]}}));
        if (!is_tensor) continue;
        chunks[i].push_back(
            object(kMetadata, "ChunkStorageMetadata", Value{{"offsets", offsets}, {"sizes", sizes}}));
        int64_t numel = 1;
        for (const Value& extent : sizes.as_sequence()) numel *= extent.as_int();
        numels[i] += numel;
      }
    for (size_t i = 0; i < entries_.size(); ++i) {
      const DistributedEntry& entry = entries_[i];
      const std::string name = entry.name();
      planner.as_dict().set(name, Value::tuple(entry.path));
      if (!entry.value.is_tensor()) {
        names.as_dict().set(name, object(kMetadata, "BytesStorageMetadata", Value::dict()));
        continue;
      }
      const Tensor tensor = entry.value.as_tensor();
      const Shape shape = entry.piece ? entry.piece->whole : tensor.shape();
      TERN_CHECK(numels[i] == checked_numel(shape), CheckpointError,
                 "'{}': the processes have {} of the {} elements", name, numels[i], checked_numel(shape));
      const Value properties = Value::tuple({tensor.dtype(), Value::layout("torch.strided"), false,
                                             enumerator(kMetadata, "_MEM_FORMAT_ENCODING", 0), false});
      names.as_dict().set(name,
                          object(kMetadata, "TensorStorageMetadata",
                                 Value{{"properties", object(kMetadata, "TensorProperties", properties)},
                                       {"size", Value(shape)},
                                       {"chunks", Value::list(std::move(chunks[i]))}}));
    }
    const Value metadata = object(kMetadata, "Metadata",
                                  Value{{"state_dict_metadata", names},
                                        {"planner_data", planner},
                                        {"storage_data", storage},
                                        {"storage_meta", Value()},
                                        {"version", "1.0.0"}});
    const std::string pickle = write_pickle(metadata, {});
    write_atomically(folder_ / ".metadata", sync_,
                     [&](ByteSink& sink) { sink.write(std::string_view(pickle)); });
  }

 private:
  /// The boxes of a tensor that this process writes; nothing for another value.
  std::vector<std::optional<Box>> parts_of(size_t i) const {
    const DistributedEntry& entry = entries_[i];
    std::vector<std::optional<Box>> parts;
    if (!entry.value.is_tensor()) {
      if (rank_ == 0) parts.emplace_back();
      return parts;
    }
    const Tensor tensor = entry.value.as_tensor();
    const Shape& shape = entry.piece ? entry.piece->whole : tensor.shape();
    Box start{Shape(shape.size(), 0), Shape(shape.size(), 1)};
    if (!entry.piece || checked_numel(shape) == 0) {
      start.sizes = shape;
      if (static_cast<int>(i % static_cast<size_t>(size_)) == rank_) parts.emplace_back(std::move(start));
      return parts;
    }
    std::vector<Box> boxes;
    cut_into_boxes(shape, 0, entry.piece->start, tensor.numel(), std::move(start), boxes);
    parts.assign(std::make_move_iterator(boxes.begin()), std::make_move_iterator(boxes.end()));
    return parts;
  }

  /// As torch.save does, with tensors of GPUs in host memory.
  void write_item(const Value& value, ByteSink& sink) const {
    std::unordered_map<const StorageImpl*, std::string> locations;
    if (value.is_tensor()) locations[value.as_tensor().storage().get()] = "cpu";
    write_torch_zip(value, sink, "archive", {.compact = true, .locations = &locations});
  }

  std::filesystem::path folder_;
  const std::vector<DistributedEntry>& entries_;
  int rank_, size_;
  bool sync_;
};

}  // namespace

std::string DistributedEntry::name() const {
  std::string name;
  for (const Value& step : path)
    name += (name.empty() ? "" : ".") + (step.is_str() ? step.as_str() : std::to_string(step.as_int()));
  return name;
}

std::vector<DistributedEntry> distributed_entries(const Value& tree,
                                                  const std::map<std::string, DistributedPiece>& pieces) {
  TERN_CHECK(tree.is_dict(), ValueError, "a distributed checkpoint is a dict, not {}",
             detail::describe(tree));
  std::vector<DistributedEntry> entries;
  std::vector<Value> path;
  if (tree.length() > 0) flatten(tree, path, entries);
  for (DistributedEntry& entry : entries)
    if (const auto piece = pieces.find(entry.name()); piece != pieces.end()) entry.piece = piece->second;
  return entries;
}

void write_distributed(const std::filesystem::path& folder, const std::vector<DistributedEntry>& entries,
                       int rank, int size, const ExchangeTexts& exchange, bool sync) {
  with_path("saving ", folder, [&] {
    int64_t generation = 0;
    for (const auto& [file, number] : data_files(folder)) generation = std::max(generation, number + 1);
    generation = std::stoll(exchange(std::to_string(generation))[0]);
    FolderWriter writer(folder, entries, rank, size, sync);
    const std::string mine = write_pickle(writer.write_data(generation), {});
    std::vector<Value> places;
    for (const std::string& text : exchange(mine))
      places.push_back(load_from_buffer(std::as_bytes(std::span(text.data(), text.size()))));
    if (rank == 0) writer.write_metadata(places);
    exchange("");
    std::error_code ignored;
    if (rank == 0)
      for (const auto& [file, number] : data_files(folder))
        if (number < generation) std::filesystem::remove(file, ignored);
  });
}

}  // namespace tern::io
