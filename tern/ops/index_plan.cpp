// Plans of indexed access and the launches of their kernels.
#include "tern/ops/index_plan.h"

#include "tern/autograd/arithmetic.h"
#include "tern/core/recording.h"
#include "tern/ops/common.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// 0-d tensors are addressed as vectors of one element.
Shape at_least_1d(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }
Strides strides_at_least_1d(const Tensor& x) { return x.dim() == 0 ? Strides{1} : x.strides(); }

void fill_dims(const IndexPlan& plan, IndexedDims& dims) {
  dims.op = plan.op;
  dims.wrap = plan.wrap;
  dims.count = plan.count;
  for (int j = 0; j < plan.count; ++j) {
    dims.index[j] = static_cast<const int64_t*>(plan.index[j].data_ptr());
    dims.dim[j] = plan.dim[j];
    dims.size[j] = plan.size[j];
    dims.stride[j] = plan.stride[j];
  }
}

void add_dim(IndexPlan& plan, const Tensor& index, int64_t dim, int64_t size, int64_t stride,
             Strides index_strides) {
  TERN_CHECK(plan.count < kMaxIndexTensors, NotImplementedError,
             "{}: at most {} index tensors in one call: index in steps", plan.op, kMaxIndexTensors);
  const int j = plan.count++;
  plan.index[j] = index;
  plan.dim[j] = dim;
  plan.size[j] = size;
  plan.stride[j] = stride;
  plan.index_strides[j] = std::move(index_strides);
}

/// Merges the dimensions of `shape` for the result (or target), the source and
/// the index tensors.
void collapse_all(IndexGeometry& geometry, const IndexPlan& plan, const Shape& shape, const int64_t* first,
                  const int64_t* second) {
  const Strides none(shape.size(), 0);
  const int64_t* strides[2 + kMaxIndexTensors];
  strides[0] = first;
  strides[1] = second;
  for (int j = 0; j < kMaxIndexTensors; ++j)
    strides[2 + j] = j < plan.count ? plan.index_strides[j].data() : none.data();
  collapse<2 + kMaxIndexTensors>(
      geometry, shape,
      {strides[0], strides[1], strides[2], strides[3], strides[4], strides[5], strides[6], strides[7]});
}

}  // namespace

Tensor as_index(const char* op, const Tensor& x, const Tensor& index) {
  check_same_device(op, {{"x", x}, {"index", index}});
  TERN_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, DTypeError,
             "{}: Expected dtype int32/int64 for index, got {}: convert it "
             "with to(int64)",
             op, name(index.dtype()));
  return cast(index, DType::Int64);
}

IndexPlan plan_gather(const char* op, const Tensor& x, int64_t dim, const Tensor& index, bool wrap) {
  IndexPlan plan(op, wrap);
  plan.shape = at_least_1d(index.shape());
  plan.strides = strides_at_least_1d(x);
  plan.repeats = uint64_t{1} << dim;
  const size_t d = static_cast<size_t>(dim);
  const int64_t stride = std::exchange(plan.strides[d], 0);
  add_dim(plan, index, dim, at_least_1d(x.shape())[d], stride, strides_at_least_1d(index));
  return plan;
}

IndexPlan plan_select(const char* op, const Tensor& x, int64_t dim, const Tensor& index, bool wrap) {
  TERN_CHECK(index.dim() <= 1, ShapeError, "{}: Index is supposed to be a vector, got shape {}: flatten it",
             op, to_string(index.shape()));
  TERN_CHECK(x.dim() > 0 || index.numel() == 1, IndexError,
             "{}: Index to scalar can have only 1 value, got {}", op, index.numel());
  IndexPlan plan(op, wrap);
  plan.shape = at_least_1d(x.shape());
  plan.strides = strides_at_least_1d(x);
  plan.repeats = uint64_t{1} << dim;
  const size_t d = static_cast<size_t>(dim);
  Strides index_strides(plan.shape.size(), 0);
  index_strides[d] = index.dim() == 0 ? 1 : index.strides()[0];
  const int64_t stride = std::exchange(plan.strides[d], 0);
  const int64_t size = std::exchange(plan.shape[d], index.numel());
  add_dim(plan, index, dim, size, stride, std::move(index_strides));
  return plan;
}

IndexPlan plan_index(const char* op, const Tensor& x, const std::vector<Tensor>& indices) {
  TERN_CHECK(indices.size() <= x.shape().size(), IndexError,
             "{}: too many indices for tensor of dimension {}: got {}", op, x.dim(), indices.size());
  IndexPlan plan(op, /*wrap=*/true);
  Shape common;
  std::string shapes;
  size_t first = indices.size(), last = 0, used = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    shapes += (shapes.empty() ? "" : ", ") + to_string(indices[d].shape());
    first = std::min(first, d);
    last = d;
    ++used;
  }
  TERN_CHECK(used != 0, IndexError, "{}: at least one index tensor is needed", op);
  for (const Tensor& index : indices) {
    if (!index.defined() || index.shape() == common) continue;
    try {
      common = broadcast_shapes(common, index.shape(), op);
    } catch (const ShapeError&) {
      TERN_THROW(IndexError,
                 "{}: shape mismatch: indexing tensors could not be broadcast "
                 "together with shapes {}",
                 op, shapes);
    }
  }
  TERN_CHECK(common.size() + x.shape().size() <= kMaxRank, ShapeError,
             "{}: the result of indexing {} with {} has more than {} dimensions", op, to_string(x.shape()),
             shapes, kMaxRank);
  // The dimensions of the indices come where the indexed ones were, or first
  // when those are not neighbours.
  const size_t at = last - first + 1 == used ? first : 0;
  for (size_t d = 0; d <= x.shape().size(); ++d) {
    if (plan.shape.size() == at && plan.repeats == 0 && (at == 0 || d == at)) {
      for (size_t c = 0; c < common.size(); ++c) {
        plan.repeats |= uint64_t{1} << plan.shape.size();
        plan.shape.push_back(common[c]);
        plan.strides.push_back(0);
      }
    }
    if (d == x.shape().size() || (d < indices.size() && indices[d].defined())) continue;
    plan.shape.push_back(x.shape()[d]);
    plan.strides.push_back(x.strides()[d]);
  }
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    Strides strides(plan.shape.size(), 0);
    broadcast_strides(indices[d].shape(), indices[d].strides(), common, strides.data() + at);
    add_dim(plan, indices[d], static_cast<int64_t>(d), x.shape()[d], x.strides()[d], std::move(strides));
  }
  return plan;
}

namespace {

/// The plan of the parts [..., 2] of complex numbers.
IndexPlan of_parts(IndexPlan plan) {
  for (int64_t& stride : plan.strides) stride *= 2;
  plan.shape.push_back(2);
  plan.strides.push_back(1);
  for (int i = 0; i < plan.count; ++i) {
    plan.index_strides[i].push_back(0);
    plan.stride[i] *= 2;
  }
  return plan;
}

}  // namespace

Tensor get_elements(const IndexPlan& plan, const Tensor& x) {
  if (is_complex_computable(x.dtype())) return complex_view(get_elements(of_parts(plan), real_view(x)));
  Tensor out = empty_contiguous(plan.shape, checked_numel(plan.shape), x.dtype(), x.device());
  if (out.numel() == 0) return out;
  TERN_CHECK(is_computable(x.dtype()), DTypeError, "{}: dtype {} is not supported", plan.op, name(x.dtype()));
  IndexGetArgs args;
  args.dtype = x.dtype();
  args.out = out.data_ptr();
  args.in = x.data_ptr();
  fill_dims(plan, args.dims);
  collapse_all(args.geometry, plan, plan.shape, out.strides().data(), plan.strides.data());
  launch(current_stream(x.device()), kernels::index_get, args);
  return out;
}

void put_elements(const IndexPlan& plan, const Tensor& target, IndexPutMode mode, const Tensor& source,
                  Param value) {
  TERN_CHECK(!source.defined() || source.dtype() == target.dtype(), DTypeError,
             "{}: Expected self.dtype to be equal to src.dtype, got {} and "
             "{}: convert one with to(dtype)",
             plan.op, name(target.dtype()), name(source.dtype()));
  if (checked_numel(plan.shape) == 0) return;
  if (is_complex_computable(target.dtype())) {
    TERN_CHECK(mode == IndexPutMode::Set || mode == IndexPutMode::Add, DTypeError,
               "{}: not implemented for {}: only sums are", plan.op, name(target.dtype()));
    const Tensor values =
        source.defined() ? source : filled({}, target.dtype(), target.device(), value.floating);
    return put_elements(of_parts(plan), real_view(target), mode,
                        aligned_parts(values, static_cast<int64_t>(plan.shape.size())));
  }
  Strides source_strides(plan.shape.size(), 0);
  if (source.defined())
    broadcast_strides(source.shape(), source.strides(), plan.shape, source_strides.data());
  IndexPutArgs args;
  args.dtype = target.dtype();
  args.mode = mode;
  args.out = target.data_ptr();
  args.source = source.defined() ? source.data_ptr() : nullptr;
  args.value = value;
  fill_dims(plan, args.dims);
  Shape free = plan.shape, repeated = plan.shape;
  for (size_t d = 0; d < plan.shape.size(); ++d) (plan.repeats >> d & 1 ? free : repeated)[d] = 1;
  collapse_all(args.free, plan, free, plan.strides.data(), source_strides.data());
  collapse_all(args.addressed, plan, repeated, plan.strides.data(), source_strides.data());
  launch(current_stream(target.device()), kernels::index_put, args);
}

Indexed expand_masks(const char* op, const Tensor& given, const std::vector<Tensor>& indices) {
  Tensor x = given;
  std::vector<Tensor> result;
  int tensors = 0, masks = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) {
      result.push_back(indices[i]);
      continue;
    }
    if (!indices[i].device().is_cpu()) check_same_device(op, {{"x", x}, {"index", indices[i]}});
    const Tensor index = to(indices[i], x.device());
    ++tensors;
    if (index.dtype() == DType::Bool || index.dtype() == DType::UInt8) {
      ++masks;
      for (size_t d = 0; d < index.shape().size(); ++d) {
        const size_t at = result.size() + d;
        TERN_CHECK(at < x.shape().size(), IndexError, "{}: too many indices for tensor of dimension {}", op,
                   x.dim());
        TERN_CHECK(index.shape()[d] == x.shape()[at], IndexError,
                   "{}: The shape of the mask {} at index {} does not match "
                   "the shape of the indexed tensor {} at index {}",
                   op, to_string(index.shape()), d, to_string(x.shape()), at);
      }
      const bool scalar = index.dim() == 0;
      if (scalar) x = unsqueeze(x, static_cast<int64_t>(result.size()));
      for (Tensor& column : nonzero_coordinates(op, scalar ? reshape(index, {1}) : index, /*flat=*/false))
        result.push_back(std::move(column));
    } else {
      TERN_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, IndexError,
                 "{}: tensors used as indices must be int64, int32, uint8 or "
                 "bool tensors, got {}: convert it with to(int64)",
                 op, name(index.dtype()));
      result.push_back(cast(index, DType::Int64));
    }
  }
  TERN_CHECK(result.size() <= x.shape().size(), IndexError,
             "{}: too many indices for tensor of dimension {}: got {}", op, x.dim(), result.size());
  return {std::move(x), std::move(result), tensors == 1 && masks == 1};
}

Tensor nonzero_table(const char* op, const Tensor& x, bool flat, bool by_column) {
  TERN_CHECK(x.dim() <= kMaxDims || flat, NotImplementedError,
             "{}: at most {} dimensions, got {}: flatten some", op, kMaxDims, x.dim());
  int64_t count = 0;
  NonzeroArgs args;
  Tensor starts;
  if (x.numel() != 0) {
    const int64_t sections = nonzero_sections(x.numel());
    starts = empty_contiguous({sections + 1}, sections + 1, DType::Int64, x.device());
    NonzeroCountArgs count_args;
    count_args.dtype = x.dtype();
    count_args.in = x.data_ptr();
    count_args.starts = static_cast<int64_t*>(starts.data_ptr());
    collapse<1>(count_args.geometry, x.shape(), {x.strides().data()});
    launch(current_stream(x.device()), kernels::nonzero_count, count_args);
    detail::host_reads("nonzero");
    count = item(select(starts, 0, sections)).to_int();
    args.starts = count_args.starts;
    args.geometry = count_args.geometry;
  }
  const int64_t rank = flat ? 1 : x.dim();
  Tensor table = empty_contiguous(by_column ? Shape{rank, count} : Shape{count, rank}, rank * count,
                                  DType::Int64, x.device());
  if (rank * count != 0) {
    args.dtype = x.dtype();
    args.rank = static_cast<int>(rank);
    args.in = x.data_ptr();
    args.out = static_cast<int64_t*>(table.data_ptr());
    args.count = count;
    args.row_stride = by_column ? 1 : rank;
    args.column_stride = by_column ? count : 1;
    if (flat)
      args.sizes[0] = x.numel();
    else
      std::copy(x.shape().begin(), x.shape().end(), args.sizes);
    launch(current_stream(x.device()), kernels::nonzero, args);
  }
  return table;
}

std::vector<Tensor> nonzero_coordinates(const char* op, const Tensor& x, bool flat) {
  const Tensor table = nonzero_table(op, x, flat, /*by_column=*/true);
  const int64_t count = table.size(1);
  std::vector<Tensor> columns;
  for (int64_t d = 0; d < table.size(0); ++d)
    columns.push_back(Tensor::view_of(table.storage(), DType::Int64, {count}, {1}, d * count));
  return columns;
}

}  // namespace tern
