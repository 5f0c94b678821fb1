// Splitting and joining tensors, with their gradients; and values whose structure is known at run time.
#include "tern/parallel/scatter_gather.h"

#include "tern/autograd/record.h"
#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/ops/copy.h"
#include "tern/ops/shape.h"
#include "tern/parallel/gradient_pieces.h"

namespace tern::parallel {
namespace {

/// The cut of scatter(): its gradient is that of x.
class ScatterPieces final : public GradientPieces {
 public:
  using GradientPieces::GradientPieces;

 private:
  void finish(const Tensor& whole, Tensor* results) override { results[0] = whole; }
};

/// A new tensor with the parts one after the other along `dim`.
Tensor join(const std::vector<Tensor>& parts, Device target, size_t d) {
  Shape shape = parts[0].shape();
  shape[d] = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    TERN_CHECK(
        part.dim() == parts[0].dim(), ShapeError,
        "gather: outputs must have the same number of dimensions: {} from replica 0, {} from replica {}",
        to_string(parts[0].shape()), to_string(part.shape()), i);
    TERN_CHECK(part.dtype() == parts[0].dtype(), DTypeError,
               "gather: outputs must have one dtype: {} from replica 0, {} from replica {}",
               name(parts[0].dtype()), name(part.dtype()), i);
    for (size_t k = 0; k < shape.size(); ++k)
      TERN_CHECK(
          k == d || part.shape()[k] == shape[k], ShapeError,
          "gather: sizes of outputs must match except in dimension {}: {} from replica 0, {} from replica "
          "{}",
          d, to_string(parts[0].shape()), to_string(part.shape()), i);
    shape[d] += part.shape()[d];
  }
  const int64_t numel = checked_numel(shape);
  Tensor y = empty_contiguous(std::move(shape), numel, parts[0].dtype(), target);
  int64_t start = 0;
  for (const Tensor& part : parts) {
    copy_into(Tensor::view_of(y.storage(), y.dtype(), part.shape(), y.strides(), start * y.strides()[d]),
              part);
    start += part.shape()[d];
  }
  return y;
}

Tensor gather_scalars(const std::vector<Tensor>& parts, Device target, const Warn& warn) {
  if (warn) warn(kScalarGatherWarning);
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) rows.push_back(unsqueeze(part, 0));
  return gather(rows, target);
}

}  // namespace

std::vector<int64_t> chunk_sizes(int64_t size, size_t devices) {
  TERN_CHECK(size >= 0 && devices > 0, ValueError, "chunk_sizes: {} elements for {} devices", size, devices);
  if (size == 0) return std::vector<int64_t>(devices, 0);
  const auto count = static_cast<int64_t>(devices);
  const int64_t piece = size / count + (size % count != 0);
  std::vector<int64_t> sizes;
  for (int64_t start = 0; start < size; start += piece) sizes.push_back(std::min(piece, size - start));
  return sizes;
}

std::vector<Tensor> scatter(const Tensor& x, const std::vector<Device>& devices, int64_t dim) {
  TERN_CHECK(!devices.empty(), ValueError, "scatter: expected at least one device");
  if (!x.defined()) return std::vector<Tensor>(devices.size());
  TERN_CHECK(x.dim() > 0, ShapeError,
             "scatter: chunk expects at least a 1-dimensional tensor: a 0-d tensor can not be split over {} "
             "devices: pass a number, which every replica gets, or a tensor of the batch's size",
             devices.size());
  const int64_t d = wrap_dim(dim, x.dim(), "scatter");
  const std::vector<int64_t> sizes = chunk_sizes(x.size(d), devices.size());
  std::vector<Tensor> parts;
  const bool tracked = tracks_grad(x);
  std::vector<Piece> pieces;
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Device device = resolve_device(devices[i]);
    const Tensor part = (tracked ? x.detach() : x).narrow(d, start, sizes[i]);
    // A part with a history of its own is not a view: a change in place of it must not reach x unseen.
    parts.push_back(tracked && part.device() == device ? part.clone()
                                                       : part.to(device, {.non_blocking = true}));
    if (tracked) pieces.push_back({start, sizes[i], part.shape()});
    start += sizes[i];
  }
  if (tracked)
    std::make_shared<ScatterPieces>(x.shape(), d, x.dtype(), x.device(), std::move(pieces))
        ->record("scatter", parts, {gradient_edge(x)});
  return parts;
}

Tensor gather(const std::vector<Tensor>& parts, Device target_given, int64_t dim, const Warn& warn) {
  TERN_CHECK(!parts.empty(), ValueError, "gather: expected a non-empty list of tensors");
  for (size_t i = 0; i < parts.size(); ++i)
    TERN_CHECK(parts[i].defined() == parts[0].defined(), ValueError,
               "gather: the output of replica {} is {}, that of replica 0 is {}", i,
               parts[i].defined() ? "defined" : "undefined", parts[0].defined() ? "defined" : "undefined");
  if (!parts[0].defined()) return {};
  const Device target = resolve_device(target_given);
  bool all_scalars = true;
  for (const Tensor& part : parts) all_scalars = all_scalars && part.dim() == 0;
  if (all_scalars) return gather_scalars(parts, target, warn);
  TERN_CHECK(parts[0].dim() > 0, ShapeError,
             "gather: outputs must have the same number of dimensions: that of replica 0 is a scalar");
  const int64_t d = wrap_dim(dim, parts[0].dim(), "gather");
  Tensor y = join(parts, target, static_cast<size_t>(d));
  if (!tracks_grad(parts)) return y;
  std::vector<std::pair<int64_t, Device>> origins;
  for (const Tensor& part : parts) origins.emplace_back(part.size(d), part.device());
  record("gather", y, parts, [d, origins = std::move(origins)](GradContext& c, const Tensor& g) {
    std::vector<Tensor> grads(origins.size());
    int64_t start = 0;
    for (size_t i = 0; i < origins.size(); ++i) {
      const auto& [length, device] = origins[i];
      if (c.needs(i)) grads[i] = narrow(g, d, start, length).to(device);
      start += length;
    }
    return grads;
  });
  return y;
}

namespace detail {

void throw_different_parts(const Tensor& a, size_t a_parts, const Tensor& b, size_t b_parts, int64_t dim) {
  TERN_THROW(
      ShapeError,
      "scatter: the inputs are split into different numbers of parts along dimension {}: one of shape {} "
      "into {}, one of shape {} into {}: give all of them the size of the batch there, and expand() what "
      "is the same for every sample",
      dim, to_string(a.shape()), a_parts, to_string(b.shape()), b_parts);
}

void throw_unlike_outputs(const char* what, size_t first, size_t other, size_t replica) {
  TERN_THROW(ValueError,
             "gather: All {} must have the same number of elements: {} from replica 0, {} from replica {}",
             what, first, other, replica);
}

void throw_unlike_keys(const std::string& key, size_t replica) {
  TERN_THROW(ValueError, "gather: All dicts must have the same keys: '{}' is missing from replica {}", key,
             replica);
}

void for_each_nested_tensor(const Nested& value, const std::function<void(const Tensor&)>& f) {
  if (value.is_tensor()) for_each_tensor(value.as_tensor(), f);
  if (value.is_list())
    for (const Nested& element : value.as_list()) for_each_nested_tensor(element, f);
  if (value.is_dict())
    for (const auto& [key, element] : value.as_dict()) for_each_nested_tensor(element, f);
}

std::vector<Nested> scatter_nested(const Nested& value, const std::vector<Device>& devices, int64_t dim) {
  const size_t n = devices.size();
  if (value.is_tensor()) {
    std::vector<Nested> result;
    for (Tensor& part : scatter(value.as_tensor(), devices, dim)) result.emplace_back(std::move(part));
    return result;
  }
  std::vector<Nested> result;
  if (value.is_list()) {
    const auto columns = scatter(value.as_list(), devices, dim);
    for (size_t r = 0; r < n; ++r) result.push_back(Nested::list(columns[r]));
  } else if (value.is_dict()) {
    const auto columns = scatter(value.as_dict(), devices, dim);
    for (size_t r = 0; r < n; ++r) result.push_back(Nested::dict(columns[r]));
  } else {
    result.assign(n, value);
  }
  return result;
}

Nested gather_nested(const std::vector<Nested>& parts, Device target, int64_t dim, const Warn& warn) {
  TERN_CHECK(!parts.empty(), ValueError, "gather: expected a non-empty list of outputs");
  const Nested& first = parts[0];
  for (size_t r = 1; r < parts.size(); ++r)
    TERN_CHECK(
        std::string_view(parts[r].kind()) == first.kind(), ValueError,
        "gather: the outputs of all replicas must have one structure: a {} from replica 0, a {} from replica "
        "{}",
        first.kind(), parts[r].kind(), r);
  if (first.is_none()) return {};
  if (first.is_tensor()) {
    std::vector<Tensor> tensors;
    for (const Nested& part : parts) tensors.push_back(part.as_tensor());
    return gather(tensors, target, dim, warn);
  }
  if (first.is_list()) {
    std::vector<Nested::List> lists;
    for (const Nested& part : parts) lists.push_back(part.as_list());
    return Nested::list(gather(lists, target, dim, warn));
  }
  if (first.is_dict()) {
    Nested::Dict joined;
    for (const auto& [key, ignored] : first.as_dict()) {
      std::vector<Nested> column;
      for (size_t r = 0; r < parts.size(); ++r) {
        if (parts[r].size() != first.size()) throw_unlike_outputs("dicts", first.size(), parts[r].size(), r);
        const Nested::Dict& entries = parts[r].as_dict();
        const auto found =
            std::find_if(entries.begin(), entries.end(),
                         [&, &wanted = key](const auto& entry) { return entry.first == wanted; });
        if (found == entries.end()) throw_unlike_keys(key, r);
        column.push_back(found->second);
      }
      joined.emplace_back(key, gather(column, target, dim, warn));
    }
    return Nested::dict(std::move(joined));
  }
  TERN_THROW(
      TypeError,
      "gather: outputs of kind {} can not be joined: return a tensor of one element for each sample instead",
      first.kind());
}

}  // namespace detail
}  // namespace tern::parallel
