// Indexed reads and writes with their gradients. Masks and sorted sequences are
// in index_mask.cpp, joins in index_reduce.cpp, the launches in index_plan.cpp.
#include "tern/ops/index.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// Which elements of a tensor are meant. Every operator here is a read or a
/// write of such elements.
struct Access {
  enum Kind {
    kGather,  ///< an index for every element, along `dim`
    kSelect,  ///< a vector of indices along `dim`
    kIndex,   ///< several tensors by NumPy's rules
  };
  Kind kind;
  int64_t dim;
  bool wrap;  ///< negative indices count from the end
  std::vector<Tensor> indices;
  bool distinct = false;  ///< no element is named twice: they may be written in any order
};

/// An Access whose tensors are kept for backward.
class SavedAccess {
 public:
  explicit SavedAccess(const Access& a) : frame_{a.kind, a.dim, a.wrap, {}, a.distinct} {
    for (const Tensor& index : a.indices) indices_.push_back(save(index));
  }
  Access unpack(const GradContext& c) const {
    Access access = frame_;
    for (const Saved& index : indices_) access.indices.push_back(c[index]);
    return access;
  }

 private:
  Access frame_;
  std::vector<Saved> indices_;
};

IndexPlan plan_of(const char* op, const Tensor& x, const Access& a) {
  IndexPlan plan = a.kind == Access::kGather   ? plan_gather(op, x, a.dim, a.indices[0], a.wrap)
                   : a.kind == Access::kSelect ? plan_select(op, x, a.dim, a.indices[0], a.wrap)
                                               : plan_index(op, x, a.indices);
  if (a.distinct) plan.repeats = 0;
  return plan;
}

Tensor read(const char* op, const Tensor& x, const Access& access);

/// Zeros of `shape` with src added to the elements: the gradient of a read.
Tensor sum_into_zeros(const Shape& shape, const Access& access, const Tensor& src) {
  Tensor y = filled(shape, src.dtype(), src.device(), 0);
  put_elements(plan_of("index_backward", y, access), y, IndexPutMode::Add, src);
  if (tracks_grad(src))
    record("index_backward", y, {src}, [access_ = SavedAccess(access)](GradContext& c, const Tensor& g) {
      return read("index_backward", g, access_.unpack(c));
    });
  return y;
}

Tensor read(const char* op, const Tensor& x, const Access& access) {
  Tensor y = get_elements(plan_of(op, x, access), x);
  if (access.kind != Access::kIndex && (access.kind == Access::kGather ? access.indices[0] : x).dim() == 0)
    y = Tensor::view_of(y.storage(), y.dtype(), {}, {},
                        0);  // 0-d tensors were addressed as vectors
  if (tracks_grad(x))
    record(op, y, {x}, [shape = x.shape(), access_ = SavedAccess(access)](GradContext& c, const Tensor& g) {
      return sum_into_zeros(shape, access_.unpack(c), g);
    });
  return y;
}

Tensor put(const char* op, const Tensor& x, const Access& access, IndexPutMode mode, const Tensor& source,
           Param value);

/// The backward of a write, in place or not: overwritten elements have no
/// gradient, the source gets theirs.
auto put_backward(const char* op, const Access& access, IndexPutMode mode, const Tensor& source) {
  const bool has_source = source.defined();
  return [op, access_ = SavedAccess(access), mode, shape = has_source ? source.shape() : Shape(),
          dtype = has_source ? source.dtype() : DType::Float32](GradContext& c, const Tensor& g) {
    std::array<Tensor, 2> grads;
    const Access a = access_.unpack(c);
    if (c.needs(0))
      grads[0] = mode == IndexPutMode::Add ? g : put(op, g, a, IndexPutMode::Set, {}, param_of(0.0));
    if (c.needs(1)) grads[1] = reduce_to(read(op, g, a), shape, dtype);
    return grads;
  };
}

/// A copy of x with `source` (or, when undefined, `value`) written or added to
/// the elements.
Tensor put(const char* op, const Tensor& x, const Access& access, IndexPutMode mode, const Tensor& source,
           Param value) {
  Tensor y = compact_copy(x);
  put_elements(plan_of(op, y, access), y, mode, source, value);
  if (tracks_grad(x, source)) record(op, y, {x, source}, put_backward(op, access, mode, source));
  return y;
}

Tensor& put_in_place(const char* op, Tensor& self, const Access& access, IndexPutMode mode,
                     const Tensor& source, Param value) {
  check_in_place(op, self);
  const auto apart = [&](const Tensor& x) {  // what is read while the target is written
    return x.defined() && x.storage() == self.storage() ? compact_copy(x) : x;
  };
  Access safe = access;
  for (Tensor& index : safe.indices) index = apart(index);
  put_elements(plan_of(op, self, safe), self, mode, apart(source), value);
  record_in_place(op, self, {self, source}, put_backward(op, safe, mode, source));
  return self;
}

// ---- checks
// ----------------------------------------------------------------------------------------------------------

Access gather_access(const char* op, const Tensor& x, int64_t dim, const Tensor& given, bool wrap = false) {
  const Tensor index = as_index(op, x, given);
  dim = wrap_dim(dim, x.dim(), op);
  if (index.numel() == 0) return {Access::kGather, dim, wrap, {index}};  // may have any shape
  TERN_CHECK(std::max<int64_t>(x.dim(), 1) == std::max<int64_t>(index.dim(), 1), ShapeError,
             "{}: Index tensor must have the same number of dimensions as "
             "input tensor: index is {}, input is {}",
             op, to_string(index.shape()), to_string(x.shape()));
  for (int64_t d = 0; d < x.dim() && d < index.dim(); ++d)
    TERN_CHECK(d == dim || index.size(d) <= x.size(d), ShapeError,
               "{}: Size does not match at dimension {}: expected index {} to "
               "be no larger than input {} apart from dimension {}",
               op, d, to_string(index.shape()), to_string(x.shape()), dim);
  return {Access::kGather, dim, wrap, {index}};
}

Access select_access(const char* op, const Tensor& x, int64_t dim, const Tensor& index, bool wrap = false) {
  return {Access::kSelect, wrap_dim(dim, x.dim(), op), wrap, {as_index(op, x, index)}};
}

void check_select_source(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                         const Tensor& source) {
  check_same_device(op, {{"x", x}, {"index", index}, {"source", source}});
  dim = wrap_dim(dim, x.dim(), op);
  const int64_t slices = source.dim() == 0 ? 1 : dim < source.dim() ? source.size(dim) : -1;
  TERN_CHECK(index.numel() == slices, ShapeError,
             "{}: Number of indices ({}) should be equal to source.size(dim): "
             "({}), for dim: {}",
             op, index.numel(), slices, dim);
  bool matches = source.dim() == x.dim() || (source.dim() == 0 && x.dim() == 1);
  for (int64_t d = 0; matches && d < source.dim(); ++d) matches = d == dim || source.size(d) == x.size(d);
  TERN_CHECK(matches, ShapeError,
             "{}: source tensor shape must match self tensor shape, excluding "
             "the specified dimension. Got self.shape = {} "
             "source.shape = {}",
             op, to_string(x.shape()), to_string(source.shape()));
}

/// What index_copy writes: to a 0-d tensor also the element of a source of shape [1].
Tensor copy_source(const Tensor& x, const Tensor& source) {
  return x.dim() == 0 && source.dim() == 1 && source.numel() == 1 ? reshape(source, {}) : source;
}

/// The values of index_put: a number on the CPU may go anywhere.
Tensor put_values(const Tensor& x, const Tensor& values) {
  return values.dim() == 0 && values.device().is_cpu() ? to(values, x.device()) : values;
}

Access access_of(const Indexed& indexed) {
  return {Access::kIndex, 0, true, indexed.indices, indexed.distinct};
}

/// The indices of index_put, whose values must broadcast to what they address.
Indexed put_indices(const char* op, const Tensor& x, const std::vector<Tensor>& indices,
                    const Tensor& values) {
  check_same_device(op, {{"x", x}, {"values", values}});
  TERN_CHECK(x.dtype() == values.dtype(), DTypeError,
             "{}: Index put requires the source and destination dtypes match, "
             "got {} for the destination and {} for the source: convert one with to(dtype)",
             op, name(x.dtype()), name(values.dtype()));
  Indexed indexed = expand_masks(op, x, indices);
  const Shape target = plan_index(op, indexed.x, indexed.indices).shape;
  bool fits = values.shape().size() <= target.size();
  const size_t offset = target.size() - (fits ? values.shape().size() : target.size());
  for (size_t d = 0; fits && d < values.shape().size(); ++d)
    fits = values.shape()[d] == 1 || values.shape()[d] == target[offset + d];
  TERN_CHECK(fits, ShapeError,
             "{}: shape mismatch: value tensor of shape {} cannot be broadcast "
             "to indexing result of shape {}",
             op, to_string(values.shape()), to_string(target));
  return indexed;
}

Tensor scaled(const Tensor& source, const Scalar& alpha) {
  return alpha.to_double() == 1 ? source : mul(source, alpha);
}

}  // namespace

Tensor scatter_source(const char* op, const Tensor& x, const Tensor& index, const Tensor& src) {
  check_same_device(op, {{"x", x}, {"src", src}});
  if (index.numel() == 0) return reshape(narrow(reshape(src, {-1}), 0, 0, 0), index.shape());
  bool fits = std::max<int64_t>(src.dim(), 1) == std::max<int64_t>(index.dim(), 1);
  for (int64_t d = 0; fits && d < index.dim() && d < src.dim(); ++d) fits = index.size(d) <= src.size(d);
  TERN_CHECK(fits, ShapeError, "{}: Expected index {} to be no larger size than src {}", op,
             to_string(index.shape()), to_string(src.shape()));
  Tensor part = src;
  for (int64_t d = 0; d < index.dim() && d < src.dim(); ++d)
    if (index.size(d) != src.size(d)) part = narrow(part, d, 0, index.size(d));
  return part;
}

Tensor join_along(const char* op, const Tensor& x, int64_t dim, const Tensor& index, IndexPutMode mode,
                  const Tensor& part) {
  const Access access = gather_access(op, x, dim, index);
  Tensor y = compact_copy(x);
  put_elements(plan_of(op, y, access), y, mode, part);
  return y;
}

Tensor put_into_zeros(const Shape& shape, int64_t dim, const Tensor& index, const Tensor& src) {
  return sum_into_zeros(shape, {Access::kGather, dim, /*wrap=*/false, {index}, /*distinct=*/true}, src);
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  return read("gather", x, gather_access("gather", x, dim, index));
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  const Access access = gather_access("scatter", x, dim, index);
  return put("scatter", x, access, IndexPutMode::Set, scatter_source("scatter", x, index, src), {});
}
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value) {
  return put("scatter", x, gather_access("scatter", x, dim, index), IndexPutMode::Set, {},
             detail::written_number("scatter", value, x.dtype()));
}
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_widest(scatter_add, x, dim, index, src);
  const Access access = gather_access("scatter_add", x, dim, index);
  return put("scatter_add", x, access, IndexPutMode::Add, scatter_source("scatter_add", x, index, src), {});
}
Tensor& scatter_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Access access = gather_access("scatter_", self, dim, index);
  return put_in_place("scatter_", self, access, IndexPutMode::Set,
                      scatter_source("scatter_", self, index, src), {});
}
Tensor& scatter_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return put_in_place("scatter_", self, gather_access("scatter_", self, dim, index), IndexPutMode::Set, {},
                      detail::written_number("scatter_", value, self.dtype()));
}
Tensor& scatter_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Access access = gather_access("scatter_add_", self, dim, index);
  return put_in_place("scatter_add_", self, access, IndexPutMode::Add,
                      scatter_source("scatter_add_", self, index, src), {});
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  const char* op = "take_along_dim";
  if (!dim) return take_along_dim(reshape(x, {-1}), reshape(indices, {-1}), 0);
  const int64_t d = wrap_dim(*dim, x.dim(), op);
  TERN_CHECK(x.dim() == indices.dim(), ShapeError,
             "{}: input and indices should have the same number of dimensions, "
             "but got {} dimensions for input, and {} dimensions for "
             "indices",
             op, x.dim(), indices.dim());
  Shape x_shape = x.shape(), index_shape = indices.shape();
  if (x.dim() != 0) x_shape[static_cast<size_t>(d)] = index_shape[static_cast<size_t>(d)] = 1;
  Shape common = broadcast_shapes(x_shape, index_shape, op);
  x_shape = index_shape = common;
  if (x.dim() != 0) {
    x_shape[static_cast<size_t>(d)] = x.size(d);
    index_shape[static_cast<size_t>(d)] = indices.size(d);
  }
  const Tensor wide = expand(x, x_shape);
  return read(op, wide, gather_access(op, wide, d, expand(indices, index_shape), /*wrap=*/true));
}

Tensor take(const Tensor& x, const Tensor& index) {
  Access access{Access::kIndex, 0, true, {as_index("take", x, index)}};
  return read("take", reshape(x, {-1}), access);
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  return read("index_select", x, select_access("index_select", x, dim, index));
}
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha) {
  check_select_source("index_add", x, dim, index, source);
  return put("index_add", x, select_access("index_add", x, dim, index), IndexPutMode::Add,
             scaled(source, alpha), {});
}
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& given) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_widest(index_copy, x, dim, index, given);
  const Tensor source = copy_source(x, given);
  check_select_source("index_copy", x, dim, index, source);
  return put("index_copy", x, select_access("index_copy", x, dim, index), IndexPutMode::Set, source, {});
}
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value) {
  return put("index_fill", x, select_access("index_fill", x, dim, index, /*wrap=*/true), IndexPutMode::Set,
             {}, detail::written_number("index_fill", value, x.dtype()));
}
Tensor& index_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const Scalar& alpha) {
  check_select_source("index_add_", self, dim, index, source);
  const Access access = select_access("index_add_", self, dim, index);
  return put_in_place("index_add_", self, access, IndexPutMode::Add, scaled(source, alpha), {});
}
Tensor& index_copy_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& given) {
  const Tensor source = copy_source(self, given);
  check_select_source("index_copy_", self, dim, index, source);
  return put_in_place("index_copy_", self, select_access("index_copy_", self, dim, index), IndexPutMode::Set,
                      source, {});
}
Tensor& index_fill_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const Access access = select_access("index_fill_", self, dim, index, /*wrap=*/true);
  return put_in_place("index_fill_", self, access, IndexPutMode::Set, {},
                      detail::written_number("index_fill_", value, self.dtype()));
}

Tensor index(const Tensor& x, const std::vector<Tensor>& indices) {
  const Indexed indexed = expand_masks("index", x, indices);
  return read("index", indexed.x, access_of(indexed));
}
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& given, bool accumulate) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_widest(index_put, x, indices, given, accumulate);
  const Tensor values = put_values(x, given);
  const Indexed indexed = put_indices("index_put", x, indices, values);
  const IndexPutMode mode = accumulate ? IndexPutMode::Add : IndexPutMode::Set;
  const Tensor y = put("index_put", indexed.x, access_of(indexed), mode, values, {});
  return y.dim() == x.dim() ? y : reshape(y, x.shape());
}
Tensor& index_put_(Tensor& self, const std::vector<Tensor>& indices, const Tensor& given, bool accumulate) {
  const Tensor values = put_values(self, given);
  Indexed indexed = put_indices("index_put_", self, indices, values);
  put_in_place("index_put_", indexed.x, access_of(indexed),
               accumulate ? IndexPutMode::Add : IndexPutMode::Set, values, {});
  return self;
}

}  // namespace tern
