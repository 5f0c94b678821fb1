// Reading torch.distributed.checkpoint (torch/distributed/checkpoint/metadata.py, filesystem.py). `.metadata`
// is a pickle of inert objects: which tensors there are, of which chunks, and where the bytes of each lie.
// Each place holds one complete checkpoint file with the chunk as its root.
#include "tern/io/distributed_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/io/file.h"
#include "tern/io/pickle_stream.h"
#include "tern/io/tensor_bytes.h"
#include "tern/io/torch_host.h"
#include "tern/io/value_nodes.h"

namespace tern::io {

using detail::describe;

namespace {

constexpr size_t kMaxChunkChecks = 50'000'000;

/// The classes of the metadata. They stay inert objects.
bool is_metadata_class(std::string_view module, std::string_view name) {
  if (module.starts_with("torch.distributed.") || module.starts_with("pathlib")) return true;
  return (module == "builtins" || module == "__builtin__") && name == "getattr";  // how enums are pickled
}

class MetadataHost final : public TorchHost {
 public:
  explicit MetadataHost(const LoadOptions& options) : TorchHost(options, 0) {}
  Value persistent_load(const Value&) override {
    TERN_THROW(CheckpointError, "it refers to something outside (a persistent id)");
  }
  Checkpoint read(const ByteSource& source) {
    PickleOptions options = pickle_options();
    options.is_inert = is_metadata_class;
    uint64_t position = 0;
    return finish(read_pickle_at(source, position, options_.limits.pickle_bytes, *this, options, [] {}), "");
  }
};

const Value& attribute(const Value& object, std::string_view name) {
  TERN_CHECK(object.is_object(), CheckpointError, "an object with '{}' is expected, not {}", name,
             describe(object));
  const Value* value = object.as_object().attribute(name);
  TERN_CHECK(value, CheckpointError, "an object of class {} has no '{}'",
             object.as_object().class_name().substr(0, 100), name);
  return *value;
}

std::string class_of(const Value& value) {
  if (!value.is_object()) return "";
  const Value& callee = value.as_object().callee;
  return callee.kind() == ValueKind::Global ? callee.as_global().name : "";
}

Shape sizes_of(const Value& value) {
  bool right = value.kind() == ValueKind::Size || value.is_tuple() || value.is_list();
  TERN_CHECK(right, CheckpointError, "a size is {}", describe(value));
  Shape sizes;
  for (const Value& item : value.as_sequence()) {
    TERN_CHECK(item.kind() == ValueKind::Int && item.as_int() >= 0 && sizes.size() < kMaxRank,
               CheckpointError, "the size {} is wrong", value.str(200));
    sizes.push_back(item.as_int());
  }
  return sizes;
}

/// Where the bytes of one chunk or object lie.
struct Place {
  std::optional<Shape> offset;  ///< of the chunk in its tensor
  std::string file;
  uint64_t begin = 0;
  uint64_t length = 0;
};

struct Chunk {
  Shape offsets;
  Shape sizes;
};

bool overlap(const Chunk& a, const Chunk& b) {
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.offsets[d] >= b.offsets[d] + b.sizes[d] || b.offsets[d] >= a.offsets[d] + a.sizes[d]) return false;
  return true;
}

}  // namespace

class FolderReader {
 public:
  FolderReader(std::filesystem::path folder, const LoadOptions& options)
      : folder_(std::move(folder)), options_(options), names_(read_metadata()) {}

  Checkpoint read() {
    whole_.root = Value::dict();
    for (const auto& [key, description] : names_.as_dict()) {
      TERN_CHECK(key.is_str(), CheckpointError, "state_dict_metadata has the key {}", key.str(100));
      with_context(fmt::format("'{}'", key.as_str().substr(0, 100)), [&, &name = key, &what = description] {
        put(path_of(name), read_value(name.as_str(), what), names_.length());
      });
    }
    return std::move(whole_);
  }

  Value read_below(const std::vector<Value>& wanted) {
    whole_.root = Value();
    for (const auto& [key, description] : names_.as_dict()) {
      const Value path = path_of(key);
      if (!path.is_tuple() || path.length() < wanted.size()) continue;
      const std::vector<Value>& steps = path.as_tuple();
      if (!std::equal(wanted.begin(), wanted.end(), steps.begin())) continue;
      with_context(fmt::format("'{}'", key.as_str().substr(0, 100)), [&, &name = key, &what = description] {
        Value value = read_value(name.as_str(), what);
        if (steps.size() == wanted.size()) {
          whole_.root = std::move(value);
          return;
        }
        const std::vector<Value> rest(steps.begin() + static_cast<ptrdiff_t>(wanted.size()), steps.end());
        if (whole_.root.is_none()) whole_.root = rest[0].is_int() ? Value::list() : Value::dict();
        put(Value::tuple(rest), std::move(value), names_.length());
      });
    }
    return whole_.root;
  }

  std::vector<Value> read_parts(const std::vector<DistributedRequest>& requests) {
    std::vector<Value> values;
    for (const DistributedRequest& request : requests)
      with_context(fmt::format("'{}'", request.name.substr(0, 100)), [&] {
        const Value* what = names_.find(request.name);
        TERN_CHECK(what, CheckpointError, "the checkpoint does not have it");
        bool takes_piece = class_of(*what) == "TensorStorageMetadata" && request.length;
        if (takes_piece && request.shape) {
          const Shape size = sizes_of(attribute(*what, "size"));
          TERN_CHECK(size == *request.shape || request.all_of_others, CheckpointError,
                     "it has the shape {} there, expected {}", to_string(size), to_string(*request.shape));
          takes_piece = size == *request.shape;
        }
        values.push_back(takes_piece ? Value(read_piece(request, *what)) : read_value(request.name, *what));
      });
    return values;
  }

  std::vector<std::pair<std::string, std::vector<Value>>> names() {
    std::vector<std::pair<std::string, std::vector<Value>>> all;
    for (const auto& [key, description] : names_.as_dict()) {
      const Value path = path_of(key);
      TERN_CHECK(key.is_str() && path.is_tuple(), CheckpointError, "state_dict_metadata has the key {}",
                 key.str(100));
      all.emplace_back(key.as_str(), path.as_tuple());
    }
    return all;
  }

 private:
  /// state_dict_metadata
  Value read_metadata() {
    Value names;
    with_context("'.metadata'", [&] {
      whole_ = MetadataHost(options_).read(*open_file(folder_ / ".metadata"));
      metadata_ = std::move(whole_.root);
      read_places(attribute(metadata_, "storage_data"));
      names = attribute(metadata_, "state_dict_metadata");
      TERN_CHECK(names.is_dict(), CheckpointError, "state_dict_metadata is {}", describe(names));
    });
    return names;
  }

  Value path_of(const Value& name) const {
    const Value* planner = metadata_.as_object().attribute("planner_data");
    const Value* path = planner && planner->is_dict() ? planner->find(name) : nullptr;
    return path ? *path : Value::tuple({name});
  }

  Value read_value(const std::string& name, const Value& description) {
    return class_of(description) == "TensorStorageMetadata" ? Value(read_tensor(name, description))
                                                            : read_object(name);
  }

  void read_places(const Value& places) {
    TERN_CHECK(places.is_dict(), CheckpointError, "storage_data is {}", describe(places));
    TERN_CHECK(places.length() <= options_.limits.entries, CheckpointError,
               "it has {} chunks; at most {} are accepted (limits.entries)", places.length(),
               options_.limits.entries);
    for (const auto& [index, info] : places.as_dict()) {
      const Value& name = attribute(index, "fqn");
      TERN_CHECK(name.is_str(), CheckpointError, "the name of a chunk is {}", describe(name));
      Place place;
      if (const Value* offset = index.as_object().attribute("offset"); offset && !offset->is_none())
        place.offset = sizes_of(*offset);
      const Value &file = attribute(info, "relative_path"), &begin = attribute(info, "offset"),
                  &length = attribute(info, "length");
      bool right = file.is_str() && begin.kind() == ValueKind::Int && begin.as_int() >= 0 &&
                   length.kind() == ValueKind::Int && length.as_int() >= 0;
      TERN_CHECK(right, CheckpointError, "the place of '{}' is wrong", name.as_str().substr(0, 100));
      if (const Value* transforms = info.as_object().attribute("transform_descriptors"))
        TERN_CHECK(transforms->is_none() || transforms->length() == 0, CheckpointError,
                   "'{}' is stored through {}, which is not supported", name.as_str().substr(0, 100),
                   transforms->str(100));
      place.file = file.as_str();
      place.begin = static_cast<uint64_t>(begin.as_int());
      place.length = static_cast<uint64_t>(length.as_int());
      check_plain_file_name(place.file);
      places_[name.as_str()].push_back(std::move(place));
    }
  }

  Value read_at(const Place& place) {
    auto& source = files_[place.file];
    if (!source) {
      std::error_code ignored;
      TERN_CHECK(std::filesystem::is_regular_file(folder_ / place.file, ignored), CheckpointError,
                 "the file '{}' is not there", place.file);
      source = open_file(folder_ / place.file);
    }
    LoadOptions options = options_;
    options.map_location = "cpu";
    return with_context(fmt::format("'{}', byte {}", place.file, place.begin), [&] {
      Checkpoint part = read_torch_file(part_of(source, place.begin, place.length), options);
      Value root = part.root;
      whole_.absorb(std::move(part));
      return root;
    });
  }

  const std::vector<Place>& places_of(const std::string& name) const {
    auto found = places_.find(name);
    TERN_CHECK(found != places_.end(), CheckpointError, "the metadata does not say where its bytes are");
    return found->second;
  }

  Value read_object(const std::string& name) {
    const std::vector<Place>& places = places_of(name);
    TERN_CHECK(places.size() == 1, CheckpointError, "an object has {} places", places.size());
    return read_at(places[0]);
  }

  /// The places of the chunks, in their order.
  std::vector<const Place*> places_of(const std::string& name, const std::vector<Chunk>& chunks) const {
    const std::vector<Place>& places = places_of(name);
    std::map<std::vector<int64_t>, const Place*> by_offset;
    for (const Place& place : places)
      if (place.offset)
        by_offset.emplace(std::vector<int64_t>(place.offset->begin(), place.offset->end()), &place);
    std::vector<const Place*> found;
    for (const Chunk& chunk : chunks) {
      const auto at = by_offset.find(std::vector<int64_t>(chunk.offsets.begin(), chunk.offsets.end()));
      found.push_back(at != by_offset.end()                      ? at->second
                      : chunks.size() == 1 && places.size() == 1 ? &places[0]
                                                                 : nullptr);
      TERN_CHECK(found.back(), CheckpointError, "the chunk at {} has no place", to_string(chunk.offsets));
    }
    return found;
  }

  Tensor read_chunk(const Chunk& chunk, const Place& place, std::optional<DType> dtype) {
    const Value value = read_at(place);
    TERN_CHECK(value.is_tensor() || value.is_object(), CheckpointError, "a chunk is {}, not a tensor",
               describe(value));
    Tensor part = value.as_tensor();
    TERN_CHECK(part.shape() == chunk.sizes && part.dtype() == dtype.value_or(part.dtype()), CheckpointError,
               "the chunk at {} has shape {} and dtype {}; shape {} was announced", to_string(chunk.offsets),
               to_string(part.shape()), tern::name(part.dtype()), to_string(chunk.sizes));
    TERN_CHECK(part.numel() <= static_cast<int64_t>(part.storage()->nbytes() / itemsize(part.dtype())),
               CheckpointError, "the chunk at {} repeats its elements", to_string(chunk.offsets));
    return part;
  }

  Tensor read_tensor(const std::string& name, const Value& description) {
    Shape size = sizes_of(attribute(description, "size"));
    std::vector<Chunk> chunks = chunks_of(attribute(description, "chunks"), size);
    // All chunks together are the tensor, so that it needs no more memory than they have.
    std::vector<Tensor> parts;
    for (const Place* place : places_of(name, chunks))
      parts.push_back(read_chunk(chunks[parts.size()], *place,
                                 parts.empty() ? std::nullopt : std::optional(parts[0].dtype())));
    Tensor whole = parts.size() == 1 ? parts[0] : merge(size, chunks, parts);
    Device device = options_.map_location("cpu");
    if (!device.is_cpu() && !options_.skip_data)
      whole = tensor_from_bytes(element_bytes(whole), whole.dtype(), whole.shape(), device);
    return whole;
  }

  Tensor read_piece(const DistributedRequest& request, const Value& description) {
    const Shape size = sizes_of(attribute(description, "size"));
    const std::vector<Chunk> chunks = chunks_of(attribute(description, "chunks"), size);
    const std::vector<const Place*> places = places_of(request.name, chunks);
    const int64_t length = *request.length, numel = checked_numel(size);
    TERN_CHECK(request.start >= 0 && length >= 0 && request.start <= numel - length, CheckpointError,
               "it has {} elements; there are no {} from {} on", numel, length, request.start);
    Tensor piece;
    for (size_t c = 0; c < chunks.size(); ++c) {
      const auto [first, last] = range_of(size, chunks[c]);
      const bool is_wanted = first < request.start + length && last >= request.start;
      if (!is_wanted && (piece.defined() || c + 1 < chunks.size())) continue;  // one at least says the dtype
      const Tensor part =
          read_chunk(chunks[c], *places[c], piece.defined() ? std::optional(piece.dtype()) : std::nullopt);
      if (!piece.defined()) piece = empty_contiguous({length}, length, part.dtype(), kCPU);
      if (is_wanted) copy_chunk(size, chunks[c], part, request.start, piece);
    }
    return piece;
  }

  /// The first and the last element of a chunk, as they are counted in the whole.
  static std::pair<int64_t, int64_t> range_of(const Shape& size, const Chunk& chunk) {
    const Strides strides = contiguous_strides(size);
    int64_t first = 0, last = 0;
    for (size_t d = 0; d < size.size(); ++d) {
      if (chunk.sizes[d] == 0) return {0, -1};
      first += chunk.offsets[d] * strides[d];
      last += (chunk.offsets[d] + chunk.sizes[d] - 1) * strides[d];
    }
    return {first, last};
  }

  std::vector<Chunk> chunks_of(const Value& list, const Shape& size) const {
    TERN_CHECK(list.is_list() && list.length() > 0, CheckpointError, "the chunks are {}", describe(list));
    std::vector<Chunk> chunks;
    int64_t covered = 0, numel = checked_numel(size);
    for (const Value& item : list.as_list()) {
      Chunk chunk{sizes_of(attribute(item, "offsets")), sizes_of(attribute(item, "sizes"))};
      bool inside = chunk.offsets.size() == size.size() && chunk.sizes.size() == size.size();
      for (size_t d = 0; inside && d < size.size(); ++d)
        inside = chunk.sizes[d] <= size[d] && chunk.offsets[d] <= size[d] - chunk.sizes[d];
      TERN_CHECK(inside, CheckpointError, "the chunk at {} of size {} is not inside {}",
                 to_string(chunk.offsets), to_string(chunk.sizes), to_string(size));
      bool fits = !__builtin_add_overflow(covered, checked_numel(chunk.sizes), &covered) && covered <= numel;
      TERN_CHECK(fits, CheckpointError, "its chunks have more elements than the {} of {}", numel,
                 to_string(size));
      chunks.push_back(std::move(chunk));
    }
    TERN_CHECK(covered == numel, CheckpointError, "its chunks have {} of the {} elements", covered, numel);
    TERN_CHECK(chunks.size() * chunks.size() <= kMaxChunkChecks, CheckpointError, "it has {} chunks",
               chunks.size());
    for (size_t i = 0; i < chunks.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        TERN_CHECK(!overlap(chunks[i], chunks[j]), CheckpointError, "the chunks at {} and {} overlap",
                   to_string(chunks[j].offsets), to_string(chunks[i].offsets));
    return chunks;
  }

  Tensor merge(const Shape& size, const std::vector<Chunk>& chunks, const std::vector<Tensor>& parts) const {
    DType dtype = parts[0].dtype();
    if (options_.skip_data) {
      size_t nbytes = static_cast<size_t>(checked_numel(size)) * itemsize(dtype);
      return Tensor::from_storage(storage_from_blob(nullptr, nbytes, [] {}), dtype, size);
    }
    Tensor whole = empty_contiguous(size, checked_numel(size), dtype, kCPU);
    for (size_t c = 0; c < chunks.size(); ++c) copy_chunk(size, chunks[c], parts[c], 0, whole);
    return whole;
  }

  /// The elements of a chunk into `out`, dense, which has those of the whole from `start` on.
  static void copy_chunk(const Shape& size, const Chunk& chunk, const Tensor& part, int64_t start,
                         const Tensor& out) {
    const std::vector<std::byte> bytes = element_bytes(part);
    if (bytes.empty()) return;
    const Strides strides = contiguous_strides(size);
    auto* const to = static_cast<std::byte*>(out.storage()->data());
    const size_t width = itemsize(part.dtype()), rank = size.size();
    // Rows of the last dimension, with a counter over the others.
    const int64_t row = rank == 0 ? 1 : chunk.sizes[rank - 1], end = start + out.numel();
    Shape position(rank);
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(row) * width) {
      int64_t element = rank == 0 ? 0 : chunk.offsets[rank - 1];
      for (size_t d = 0; d + 1 < rank; ++d) element += (chunk.offsets[d] + position[d]) * strides[d];
      const int64_t from = std::max(element, start), until = std::min(element + row, end);
      if (from < until)
        std::memcpy(to + static_cast<size_t>(from - start) * width,
                    bytes.data() + at + static_cast<size_t>(from - element) * width,
                    static_cast<size_t>(until - from) * width);
      for (size_t d = rank; d-- > 1;) {
        if (++position[d - 1] < chunk.sizes[d - 1]) break;
        position[d - 1] = 0;
      }
    }
  }

  /// Puts a value at ('model', 'layers', 0, 'weight'): texts are keys of dicts, numbers places in lists.
  void put(const Value& path, Value value, size_t most_items) {
    TERN_CHECK(path.is_tuple() && path.length() > 0 && path.length() <= options_.limits.nesting,
               CheckpointError, "its path is {}", path.str(100));
    const std::vector<Value>& steps = path.as_tuple();
    Value place = whole_.root;
    for (size_t i = 0; i < steps.size(); ++i) {
      const Value& step = steps[i];
      bool last = i + 1 == steps.size();
      Value next = last ? std::move(value) : steps[i + 1].is_int() ? Value::list() : Value::dict();
      if (place.is_list()) {
        bool right = step.kind() == ValueKind::Int && step.as_int() >= 0 &&
                     static_cast<uint64_t>(step.as_int()) < most_items;
        TERN_CHECK(right, CheckpointError, "its path {} is wrong", path.str(100));
        std::vector<Value>& list = place.as_list();
        auto position = static_cast<size_t>(step.as_int());
        if (position >= list.size()) list.resize(position + 1);
        if (last || list[position].is_none()) list[position] = next;
        place = list[position];
      } else {
        TERN_CHECK(place.is_dict() && (step.is_str() || step.is_int()), CheckpointError,
                   "its path {} leads through {}", path.str(100), describe(place));
        if (const Value* found = place.find(step); found && !last) {
          place = *found;
        } else {
          TERN_CHECK(!found, CheckpointError, "its path {} is taken", path.str(100));
          place.as_dict().set(step, next);
          place = next;
        }
      }
    }
  }

  std::filesystem::path folder_;
  LoadOptions options_;
  Checkpoint whole_;
  Value metadata_;
  std::unordered_map<std::string, std::vector<Place>> places_;
  std::unordered_map<std::string, std::shared_ptr<const ByteSource>> files_;
  Value names_;  ///< state_dict_metadata; last: reading it fills the others
};

Checkpoint read_distributed(const std::filesystem::path& folder, const LoadOptions& options) {
  return FolderReader(folder, options).read();
}

DistributedFolder::DistributedFolder(std::filesystem::path folder, const LoadOptions& options)
    : folder_(std::move(folder)) {
  with_path("loading ", folder_, [&] { reader_ = std::make_unique<FolderReader>(folder_, options); });
}

DistributedFolder::~DistributedFolder() = default;

std::vector<std::pair<std::string, std::vector<Value>>> DistributedFolder::names() {
  return with_path("loading ", folder_, [&] { return reader_->names(); });
}

std::vector<Value> DistributedFolder::parts(const std::vector<DistributedRequest>& requests) {
  return with_path("loading ", folder_, [&] { return reader_->read_parts(requests); });
}

Value DistributedFolder::below(const std::vector<Value>& path) {
  return with_path("loading ", folder_, [&] { return reader_->read_below(path); });
}

}  // namespace tern::io
