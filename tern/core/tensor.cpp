// The tensor's body and its checks.
#include "tern/core/tensor.h"

#include <algorithm>

#include "tern/base/check.h"
#include "tern/core/allocation_limit.h"
#include "tern/core/memory.h"

namespace tern {

TensorImpl::TensorImpl(Storage storage_, DType dtype_, Shape shape_, Strides strides_, int64_t offset_)
    : storage(std::move(storage_)),
      offset(offset_),
      shape(std::move(shape_)),
      strides(std::move(strides_)),
      dtype(dtype_) {
  refresh();
}

TensorImpl::~TensorImpl() = default;

void TensorImpl::refresh() noexcept {
  numel = 1;
  for (int64_t size : shape) numel *= size;
  contiguous = tern::is_contiguous(shape, strides);
}

Tensor Tensor::from_storage(Storage storage, DType dtype, IntArrayRef shape, IntArrayRef strides,
                            int64_t offset) {
  TERN_CHECK(storage, ValueError, "from_storage: there is no storage");
  int64_t numel = checked_numel(shape);
  TERN_CHECK(shape.size() == strides.size(), ShapeError,
             "from_storage: shape {} and strides {} have different lengths", to_string(shape),
             to_string(strides));
  int64_t last = offset;
  bool fits = offset >= 0;
  const int64_t available = static_cast<int64_t>(storage->nbytes() / itemsize(dtype));
  // PyTorch lets an empty tensor begin anywhere; here its address stays inside.
  if (numel == 0) offset = std::min(offset, available);
  for (size_t i = 0; i < shape.size(); ++i) {
    TERN_CHECK(strides[i] >= 0, ShapeError, "from_storage: strides can not be negative: {}",
               to_string(strides));
    int64_t reach = 0;
    if (numel != 0)
      fits = fits && !__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) &&
             !__builtin_add_overflow(last, reach, &last);
  }
  fits = fits && (numel == 0 || last < available);
  TERN_CHECK(
      fits, ShapeError,
      "from_storage: shape {} with strides {} and offset {} reaches outside a storage of {} elements of {}",
      to_string(shape), to_string(strides), offset, available, name(dtype));
  return view_of(storage, dtype, shape.to_shape(), strides.to_shape(), offset);
}

Tensor Tensor::from_storage(Storage storage, DType dtype, IntArrayRef shape) {
  Strides strides = contiguous_strides(shape);
  return from_storage(std::move(storage), dtype, shape, strides, 0);
}

Tensor Tensor::detach() const {
  TensorImpl& i = impl();
  return view_of(i.storage, i.dtype, i.shape, i.strides, i.offset);
}

void Tensor::throw_no_dimensions(int64_t dim, const char* op) {
  TERN_THROW(IndexError, "{}: Dimension specified as {} but tensor has no dimensions", op, dim);
}

void Tensor::throw_undefined() {
  TERN_THROW(
      ValueError,
      "an undefined tensor was used: it was default-constructed or moved from, and holds no numbers: assign "
      "one to it first, or ask defined()");
}

void detail::throw_uninitialized(const Tensor& tensor) {
  TERN_THROW(
      ValueError,
      "Attempted to use an uninitialized parameter: a lazy layer takes its sizes from its first input, "
      "and this one (of shape {} so far) has not seen any: call the module with one batch first, or "
      "load a state dict",
      to_string(tensor.shape()));
}

void Tensor::check_data_access(DType wanted) const {
  check_initialized(*this);
  TERN_CHECK(dtype() == wanted, DTypeError, "data<{}>(): the tensor's dtype is {}: convert it with to(dtype)",
             name(wanted), name(dtype()));
  TERN_CHECK(device().is_cpu(), DeviceError,
             "data<{}>(): the tensor is on {}: bring it to the host with cpu()", name(wanted),
             device().str());
}

Tensor empty_contiguous(Shape shape, int64_t numel, DType dtype, Device device) {
  size_t nbytes = 0;
  TERN_CHECK(!__builtin_mul_overflow(static_cast<size_t>(numel), itemsize(dtype), &nbytes) &&
                 nbytes < (size_t{1} << 62),
             TooLargeError, "a tensor of shape {} and dtype {} needs more bytes than there can be",
             to_string(shape), name(dtype));
  if (detail::allocation_limit) [[unlikely]]
    detail::allocation_limit->take(nbytes, shape, dtype);
  Strides strides = contiguous_strides(shape);
  return Tensor::view_of(allocate_storage(nbytes, device), dtype, std::move(shape), std::move(strides), 0);
}

}  // namespace tern
