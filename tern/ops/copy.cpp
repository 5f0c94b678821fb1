// Copies and conversions, within a device and between devices.
#include "tern/ops/copy.h"

#include <complex>
#include <cstring>

#include "tern/autograd/arithmetic.h"
#include "tern/core/memory.h"
#include "tern/core/recording.h"
#include "tern/device/copy.h"
#include "tern/device/registry.h"
#include "tern/kernels/real_types.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// A contiguous copy of x on another device.
Tensor transfer(const Tensor& x, Device device, bool non_blocking) {
  Tensor source = compact(x);
  Tensor y = empty_contiguous(x.shape(), x.numel(), x.dtype(), device);
  if (x.numel() == 0) return y;  // the offset of an empty view may lie outside its storage
  copy_bytes(*y.storage(), 0, *source.storage(),
             static_cast<size_t>(source.storage_offset()) * itemsize(x.dtype()), x.nbytes(), non_blocking);
  return y;
}

bool converts(DType from, DType to) {
  const auto has_numbers = [](DType d) { return is_computable(d) || is_complex_computable(d); };
  return from == to || (has_numbers(from) && has_numbers(to));
}

}  // namespace

Tensor to(const Tensor& x, DType dtype, ToOptions options) {
  if (x.dtype() == dtype && !options.copy) return x;
  TERN_CHECK(
      converts(x.dtype(), dtype), DTypeError,
      "to: no conversion from {} to {}: no operator computes on one of them: save such tensors as they "
      "are, or convert between the dtypes from bool to float64, complex64 and complex128",
      name(x.dtype()), name(dtype));
  if (is_complex(x.dtype()) && is_bool(dtype)) return ne(x, 0);
  Tensor y = empty_contiguous(x.shape(), x.numel(), dtype, x.device());
  copy_elements(y, x);
  if ((is_floating_point(dtype) || is_complex(dtype)) && tracks_grad(x))
    record("to_copy", y, {x}, [from = x.dtype()](GradContext&, const Tensor& g) { return to(g, from); });
  return y;
}

Tensor to(const Tensor& x, Device device, ToOptions options) {
  const Device target = with_context("to", [&] { return resolve_device(device); });
  if (x.device() == target) return options.copy ? clone(x) : x;
  Tensor y = transfer(x, target, options.non_blocking);
  if (tracks_grad(x))
    record("to_copy", y, {x}, [from = x.device()](GradContext&, const Tensor& g) { return to(g, from); });
  return y;
}

Tensor detail::pinned_copy(const Tensor& x) {
  const Tensor source = compact(x.detach());
  const Storage pinned = backend_of(DeviceType::CUDA).allocate_pinned(x.nbytes());
  if (x.numel() != 0)
    copy_bytes(*pinned, 0, *source.storage(),
               static_cast<size_t>(source.storage_offset()) * itemsize(x.dtype()), x.nbytes(),
               /*non_blocking=*/true);
  return Tensor::from_storage(pinned, x.dtype(), x.shape());
}

Tensor pin_memory(const Tensor& x) {
  TERN_CHECK(x.device().is_cpu(), DeviceError,
             "pin_memory: cannot pin a tensor on {}: only tensors on the cpu can be pinned",
             x.device().str());
  if (x.is_pinned() || find_memory(DeviceType::CUDA) == nullptr) return x;
  Tensor y = detail::pinned_copy(x);
  if (tracks_grad(x)) record("pin_memory", y, {x}, [](GradContext&, const Tensor& g) { return g; });
  return y;
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x); }

Tensor clone(const Tensor& x) {
  Tensor y = compact_copy(x);
  if (tracks_grad(x)) record("clone", y, {x}, [](GradContext&, const Tensor& g) { return g; });
  return y;
}

Tensor& copy_(Tensor& self, const Tensor& source) {
  check_in_place("copy_", self);
  Shape shape = broadcast_shapes(self.shape(), source.shape(), "copy_");
  TERN_CHECK(shape == self.shape(), ShapeError,
             "copy_: a source of shape {} does not broadcast to the destination's shape {}",
             to_string(source.shape()), to_string(self.shape()));
  TERN_CHECK(
      converts(source.dtype(), self.dtype()), DTypeError,
      "copy_: no conversion from {} to {}: no operator computes on one of them: use tensors of one dtype",
      name(source.dtype()), name(self.dtype()));
  Tensor local = source.device() == self.device() ? source.detach()
                                                  : transfer(source, self.device(), /*non_blocking=*/false);
  Strides strides(shape.size());
  broadcast_strides(local.shape(), local.strides(), shape, strides.data());
  Tensor spread = Tensor::view_of(local.storage(), local.dtype(), shape, strides, local.storage_offset());
  if (local.storage() == self.storage() &&
      !(spread.strides() == self.strides() && spread.storage_offset() == self.storage_offset()))
    spread = compact_copy(spread);  // the two may overlap
  copy_elements(self, spread);
  const Tensor origin = is_floating_point(self.dtype()) || is_complex(self.dtype())
                            ? source
                            : Tensor();  // integers carry no gradient
  record_in_place("copy_", self, {self, origin},
                  [shape_ = source.shape(), dtype = source.dtype(), device = source.device()](
                      GradContext& c, const Tensor& g) {
                    return std::array<Tensor, 2>{
                        c.needs(0) ? filled(g.shape(), g.dtype(), g.device(), 0) : Tensor(),
                        c.needs(1) ? to(reduce_to(g, shape_, dtype), device) : Tensor()};
                  });
  return self;
}

Scalar item(const Tensor& x) {
  check_initialized(x);
  TERN_CHECK(x.numel() == 1, ValueError,
             "item: a Tensor with {} elements cannot be converted to Scalar: the shape is {}; reduce it or "
             "select one",
             x.numel(), to_string(x.shape()));
  const bool complex = is_complex_computable(x.dtype());
  TERN_CHECK(is_computable(x.dtype()) || complex, DTypeError,
             "item: no Scalar holds a number of dtype {}: read its bytes with copy_to_host()",
             name(x.dtype()));
  detail::host_reads("item");
  alignas(8) std::byte bytes[16];
  copy_to_host(bytes, *x.storage(), static_cast<size_t>(x.storage_offset()) * itemsize(x.dtype()),
               itemsize(x.dtype()));
  if (complex)
    return visit_real(real_dtype(x.dtype()), [&]<class T>() {
      T parts[2];
      std::memcpy(parts, bytes, sizeof parts);
      return Scalar(std::complex<double>(static_cast<double>(parts[0]), static_cast<double>(parts[1])));
    });
  return visit_dtype(x.dtype(), [&]<class T>() {
    T value;
    std::memcpy(static_cast<void*>(&value), bytes, sizeof(T));
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return Scalar(static_cast<float>(value));
    else
      return Scalar(value);
  });
}

}  // namespace tern
