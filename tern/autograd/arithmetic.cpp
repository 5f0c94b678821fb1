// Sums and copies of gradients on the common kernels.
#include "tern/autograd/arithmetic.h"

#include <array>

#include "tern/autograd/record.h"
#include "tern/core/memory.h"
#include "tern/device/stream.h"
#include "tern/kernels/list.h"

namespace tern {
namespace {

/// One of the two parts of complex numbers.
Tensor half_view(const Tensor& x, int64_t part) {
  const Tensor parts = real_view(x);
  return Tensor::view_of(parts.storage(), parts.dtype(), x.shape(),
                         Strides(parts.strides().begin(), parts.strides().end() - 1),
                         parts.storage_offset() + part);
}

void add_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (is_complex(out.dtype())) return add_into(real_view(out), real_view(a), real_view(b));
  BinaryArgs args;
  args.op = BinaryOp::Add;
  args.dtype = out.dtype();
  args.out = out.data_ptr();
  args.a = a.data_ptr();
  args.b = b.data_ptr();
  args.params[0] = {1.0, 1};
  args.params[1] = {};
  collapse<3>(args.geometry, out.shape(), {out.strides().data(), a.strides().data(), b.strides().data()});
  launch(current_stream(out.device()), kernels::binary, args);
}

}  // namespace

Tensor real_view(const Tensor& x) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  for (int64_t& stride : strides) stride *= 2;
  shape.push_back(2);
  strides.push_back(1);
  return Tensor::view_of(x.storage(), real_dtype(x.dtype()), std::move(shape), std::move(strides),
                         2 * x.storage_offset());
}

Tensor complex_view(const Tensor& parts) {
  Shape shape(parts.shape().begin(), parts.shape().end() - 1);
  Strides strides(parts.strides().begin(), parts.strides().end() - 1);
  for (int64_t& stride : strides) stride /= 2;
  return Tensor::view_of(parts.storage(), complex_dtype(parts.dtype()), std::move(shape), std::move(strides),
                         parts.storage_offset() / 2);
}

void fill_elements(const Tensor& out, double value) {
  if (is_complex_computable(out.dtype())) [[unlikely]] {
    if (value == 0) return fill_elements(real_view(out), 0);
    fill_elements(half_view(out, 0), value);
    return fill_elements(half_view(out, 1), 0);
  }
  FillArgs args;
  args.dtype = out.dtype();
  args.value = {value, Scalar(value).to_int()};
  args.out = out.data_ptr();
  collapse<1>(args.geometry, out.shape(), {out.strides().data()});
  launch(current_stream(out.device()), kernels::fill, args);
}

Tensor filled(const Shape& shape, DType dtype, Device device, double value) {
  Tensor y = empty_contiguous(shape, checked_numel(shape), dtype, device);
  fill_elements(y, value);
  return y;
}

namespace {

/// x[i], without history.
Tensor part_of(const Tensor& x, int64_t i) {
  return Tensor::view_of(x.storage(), x.dtype(), Shape(x.shape().begin() + 1, x.shape().end()),
                         Strides(x.strides().begin() + 1, x.strides().end()),
                         x.storage_offset() + i * x.strides()[0]);
}

/// Dimensions that are left where neighbours that both tensors walk alike are merged.
size_t merged_dims(const Tensor& a, const Tensor& b) {
  size_t left = 0, before = 0;
  for (size_t d = 0; d < a.shape().size(); ++d) {
    const int64_t size = a.shape()[d];
    if (size == 1) continue;
    const bool merges = left > 0 && a.strides()[before] == a.strides()[d] * size &&
                        b.strides()[before] == b.strides()[d] * size;
    left += merges ? 0 : 1;
    before = d;
  }
  return left;
}

/// copy_elements() between complex numbers and others.
void copy_parts(const Tensor& out, const Tensor& x) {
  if (!is_complex(out.dtype())) return copy_elements(out, half_view(x, 0));
  if (is_complex(x.dtype())) return copy_elements(real_view(out), real_view(x));
  copy_elements(half_view(out, 0), x);
  fill_elements(half_view(out, 1), 0);
}

}  // namespace

void copy_elements(const Tensor& out, const Tensor& x) {
  if (out.dtype() != x.dtype() && (is_complex(out.dtype()) || is_complex(x.dtype()))) [[unlikely]]
    return copy_parts(out, x);
  if (out.shape().size() > kMaxDims && merged_dims(out, x) > kMaxDims) [[unlikely]] {
    for (int64_t i = 0; i < out.shape()[0]; ++i) copy_elements(part_of(out, i), part_of(x, i));
    return;
  }
  CopyArgs args;
  args.out_dtype = out.dtype();
  args.in_dtype = x.dtype();
  args.out = out.data_ptr();
  args.in = x.data_ptr();
  collapse<2>(args.geometry, out.shape(), {out.strides().data(), x.strides().data()});
  launch(current_stream(out.device()), kernels::copy, args);
}

Tensor compact_copy(const Tensor& x) {
  Tensor y = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  copy_elements(y, x);
  return y;
}

Tensor compact(const Tensor& x) { return x.is_contiguous() ? x : compact_copy(x); }

Tensor copy_gradient(const Tensor& x) {
  Tensor y = compact_copy(x);
  if (tracks_grad(x)) record("clone", y, {x}, [](GradContext&, const Tensor& g) { return g; });
  return y;
}

Tensor convert_gradient(const Tensor& x, DType dtype) {
  Tensor y = empty_contiguous(x.shape(), x.numel(), dtype, x.device());
  copy_elements(y, x);
  if (tracks_grad(x))
    record("to", y, {x},
           [held = x.dtype()](GradContext&, const Tensor& g) { return convert_gradient(g, held); });
  return y;
}

std::vector<double> host_values(const Tensor& x) {
  Tensor dense = compact(x.detach());
  if (dense.dtype() != DType::Float64) dense = convert_gradient(dense, DType::Float64);
  std::vector<double> values(static_cast<size_t>(dense.numel()));
  if (!values.empty())
    copy_to_host(values.data(), *dense.storage(),
                 static_cast<size_t>(dense.storage_offset()) * sizeof(double), dense.nbytes());
  return values;
}

Tensor add_gradients(const Tensor& a, const Tensor& b) {
  Tensor y = empty_contiguous(a.shape(), a.numel(), a.dtype(), a.device());
  add_into(y, a, b);
  if (tracks_grad(a, b))
    record("add", y, {a, b}, [](GradContext&, const Tensor& g) { return std::array<Tensor, 2>{g, g}; });
  return y;
}

void accumulate_into(const Tensor& out, const Tensor& x) {
  add_into(out, out, x);
  out.storage()->bump_version();
}

}  // namespace tern
