// Tensor: a small handle to shape, strides, dtype and a shared storage. This room holds what a tensor is;
// what can be done with it is in ops/ and autograd/. Methods marked (ops) or (autograd) are declared here
// because users expect them on the tensor, and are defined in those rooms.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/base/intrusive_ptr.h"
#include "tern/core/dtype.h"
#include "tern/core/element_functions.h"
#include "tern/core/more_methods.h"
#include "tern/core/scalar.h"
#include "tern/core/second_names.h"
#include "tern/core/shape.h"
#include "tern/core/storage.h"

namespace tern {

class Tensor;
struct Stream;

/// What autograd keeps for a tensor: base of autograd's own struct (autograd/meta.h).
struct AutogradMeta {
  bool requires_grad = false;
  bool is_view = false;  ///< a change in place of its base may have made it require a gradient since
  virtual ~AutogradMeta() = default;
};

/// The shared body of a tensor. Handles to one body are the same tensor; views have bodies of their own.
struct TensorImpl final : RefCounted {
  TensorImpl(Storage storage_, DType dtype_, Shape shape_, Strides strides_, int64_t offset_);
  ~TensorImpl();
  void refresh() noexcept;  ///< recomputes numel and contiguity after a change of shape

  Storage storage;
  int64_t offset = 0;  ///< in elements
  int64_t numel = 0;
  Shape shape;
  Strides strides;  ///< in elements
  DType dtype = DType::Float32;
  bool contiguous = true;
  std::unique_ptr<AutogradMeta> autograd;
};

/// `{.dtype = float64, .device = "cuda:1"}`: how a tensor is to be made.
struct TensorOptions {
  std::optional<DType> dtype = {};
  std::optional<Device> device = {};
  bool requires_grad = false;
};

/// How `to` moves: `copy` makes a new tensor even when nothing changes.
struct ToOptions {
  bool non_blocking = false;
  bool copy = false;
};

/// An n-dimensional array. Copying a Tensor shares it; `clone()` copies the numbers. A default-constructed
/// Tensor is undefined: every use but `defined()` throws ValueError.
class Tensor : public MoreMethods {
 public:
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  /// Names another tensor, as assignment does in Python.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// Assignment to what has no name, as in `x[0] = y`, writes into the view, as in Python: copy_() and
  /// fill_().
  void operator=(const Tensor& source) && { copy_(source); }
  void operator=(const Scalar& value) && { fill_(value); }
  /// A view of a storage. Throws ShapeError when the layout reaches outside it.
  static Tensor from_storage(Storage storage, DType dtype, IntArrayRef shape, IntArrayRef strides,
                             int64_t offset = 0);
  /// The same for a row-major layout from the start of the storage.
  static Tensor from_storage(Storage storage, DType dtype, IntArrayRef shape);
  /// from_storage without checks and without promise: for operators that have just computed the layout.
  static Tensor view_of(const Storage& storage, DType dtype, Shape shape, Strides strides, int64_t offset) {
    return Tensor(IntrusivePtr<TensorImpl>(
        new TensorImpl(storage, dtype, std::move(shape), std::move(strides), offset)));
  }

  bool defined() const noexcept { return static_cast<bool>(impl_); }
  TensorImpl& impl() const {
    if (!impl_) [[unlikely]]
      throw_undefined();
    return *impl_;
  }
  const IntrusivePtr<TensorImpl>& impl_ptr() const noexcept { return impl_; }
  /// True when both handles are the same tensor (`is` in Python).
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }

  int64_t dim() const { return static_cast<int64_t>(impl().shape.size()); }
  const Shape& shape() const { return impl().shape; }
  const Shape& sizes() const { return impl().shape; }
  const Shape& size() const { return impl().shape; }
  const Strides& strides() const { return impl().strides; }
  /// Size of one dimension, counted from the end when negative. Throws IndexError.
  int64_t size(int64_t dim) const { return impl().shape[place_of(dim, "size")]; }
  int64_t stride(int64_t dim) const { return impl().strides[place_of(dim, "stride")]; }
  int64_t numel() const { return impl().numel; }
  /// In bytes.
  size_t element_size() const { return itemsize(dtype()); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(dtype()); }
  DType dtype() const { return impl().dtype; }
  Device device() const { return impl().storage->device(); }
  bool is_contiguous() const { return impl().contiguous; }
  bool is_floating_point() const { return tern::is_floating_point(dtype()); }
  bool is_complex() const { return tern::is_complex(dtype()); }
  const Storage& storage() const { return impl().storage; }
  /// In elements.
  int64_t storage_offset() const { return impl().offset; }
  /// Number of in-place changes of the storage so far.
  uint32_t version() const { return impl().storage->version(); }

  /// Address of the first element; on a GPU an address of the device.
  void* data_ptr() const {
    TensorImpl& i = impl();
    return static_cast<char*>(i.storage->data()) + static_cast<size_t>(i.offset) * itemsize(i.dtype);
  }
  /// The first element of a tensor on the CPU. Throws DTypeError for another type, DeviceError off the CPU.
  template <class T>
  T* data() const {
    check_data_access(dtype_of<std::remove_const_t<T>>());
    return static_cast<T*>(data_ptr());
  }
  /// A tensor with the same numbers and no history; shares the storage.
  Tensor detach() const;
  /// The text that PyTorch prints. Blocks until the values are there. (ops)
  std::string str() const;

  // ---- gradients (autograd)
  // ------------------------------------------------------------------------------------
  bool requires_grad() const {
    if (!impl_ || !impl_->autograd) return false;
    return impl_->autograd->is_view ? view_requires_grad() : impl_->autograd->requires_grad;
  }
  /// Throws DTypeError unless floating point, AutogradError when switched off for a tensor that was computed.
  const Tensor& requires_grad_(bool requires_grad = true) const;
  bool is_leaf() const;
  /// The gradient that backward() left here; undefined when there is none.
  Tensor grad() const;
  void set_grad(const Tensor& grad) const;
  /// Keeps the gradient of a tensor that is not a leaf.
  void retain_grad() const;
  /// Computes gradients of this tensor with respect to the leaves and adds them to their `grad()`.
  /// `gradient` may be left out for one element. Throws AutogradError.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  /// Calls `hook` with each gradient of this tensor; what it returns (when defined) takes the gradient's
  /// place. Returns a number for remove_hook.
  int64_t register_hook(std::function<Tensor(const Tensor&)> hook) const;
  /// The same with a hook that only looks and returns nothing.
  template <class Hook>
  requires std::is_void_v<std::invoke_result_t<Hook&, const Tensor&>> int64_t register_hook(Hook hook)
  const {
    return register_hook([look = std::move(hook)](const Tensor& gradient) mutable {
      look(gradient);
      return Tensor();
    });
  }
  /// Calls `hook` with this leaf whenever a backward() has put its whole gradient into `grad()`. Returns a
  /// number for remove_hook. Throws AutogradError for a tensor that is no leaf or requires no gradient.
  int64_t register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const;
  void remove_hook(int64_t hook) const;
  /// Name of the operator that computed this tensor, "" for leaves.
  std::string grad_fn_name() const;
  Tensor& detach_();

  // ---- conversions and copies (ops)
  // ----------------------------------------------------------------------------
  /// The only element. Blocks the host. Throws ValueError unless numel() is 1.
  Scalar item() const;
  /// The same as a T; ValueError where that would overflow.
  template <class T>
  T item() const {
    return item().to<T>();
  }
  /// All elements in row-major order, converted. Blocks the host.
  template <class T>
  std::vector<T> to_vector() const;
  Tensor to(Device device, ToOptions options = {}) const;
  Tensor to(DType dtype, ToOptions options = {}) const;
  Tensor to(Device device, DType dtype, ToOptions options = {}) const;
  Tensor to(const char* device) const { return to(Device(device)); }
  /// To the device and the dtype of another tensor.
  Tensor to(const Tensor& other, ToOptions options = {}) const {
    return to(other.device(), other.dtype(), options);
  }
  Tensor type_as(const Tensor& other) const { return to(other); }
  /// To the GPU of this number, as in PyTorch.
  Tensor to(int gpu) const { return to(Device(gpu)); }
  Tensor cpu() const;
  Tensor cuda(int index = -1) const;
  /// A copy in host memory that GPUs copy from and to without staging and without blocking; the tensor itself
  /// when it is pinned already, and on machines without a GPU. Throws DeviceError for a tensor on a GPU.
  Tensor pin_memory() const;
  bool is_pinned() const { return impl().storage->is_pinned(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  /// Keeps the memory from being reused, once the tensor is gone, before the work given to `stream` until
  /// then is done. Needed for a tensor that another stream uses than the one it was made on.
  void record_stream(const Stream& stream) const;
  Tensor contiguous() const;
  Tensor clone() const;
  /// New tensors with this one's dtype and device unless options say otherwise.
  Tensor new_empty(IntArrayRef shape, const TensorOptions& options = {}) const;
  Tensor new_zeros(IntArrayRef shape, const TensorOptions& options = {}) const;
  Tensor new_ones(IntArrayRef shape, const TensorOptions& options = {}) const;
  Tensor new_full(IntArrayRef shape, const Scalar& value, const TensorOptions& options = {}) const;

  // ---- views and shapes (ops)
  // ----------------------------------------------------------------------------------
  Tensor view(IntArrayRef shape) const;
  Tensor view_as(const Tensor& other) const;
  Tensor reshape(IntArrayRef shape) const;
  Tensor reshape_as(const Tensor& other) const;
  Tensor permute(IntArrayRef dims) const;
  Tensor movedim(int64_t source, int64_t destination) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor t() const;
  Tensor mT() const;
  Tensor expand(IntArrayRef shape) const;
  Tensor expand_as(const Tensor& other) const;
  Tensor repeat(IntArrayRef repeats) const;
  Tensor tile(IntArrayRef repeats) const;
  Tensor broadcast_to(IntArrayRef shape) const;
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = {}) const;
  Tensor roll(IntArrayRef shifts, IntArrayRef dims = {}) const;
  Tensor flip(IntArrayRef dims) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  /// Python's `x[start:end:step]` along `dim`; step must be positive.
  Tensor slice(int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
               int64_t step = 1) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor operator[](int64_t index) const { return select(0, index); }
  /// `x[mask]` and `x[indices]` along dimension 0.
  Tensor operator[](const Tensor& index) const;
  Tensor squeeze() const;
  Tensor squeeze(Dimension auto dim) const { return squeeze_dim(static_cast<int64_t>(dim)); }
  Tensor squeeze(IntArrayRef dims) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor unflatten(int64_t dim, IntArrayRef sizes) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  Tensor unfold(int64_t dimension, int64_t size, int64_t step) const;
  std::vector<Tensor> unbind(int64_t dim = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  std::vector<Tensor> split(Dimension auto split_size, int64_t dim = 0) const {
    return split_evenly(static_cast<int64_t>(split_size), dim);
  }
  std::vector<Tensor> split(IntArrayRef split_sizes, int64_t dim = 0) const;
  Tensor ravel() const;
  Tensor diag(int64_t diagonal = 0) const;
  Tensor trace() const;
  Tensor diff(int64_t n = 1, int64_t dim = -1) const;

  // ---- elements by index, mask or order (ops)
  // ----------------------------------------------------------------------------------
  Tensor gather(int64_t dim, const Tensor& index) const;
  Tensor scatter(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor scatter(int64_t dim, const Tensor& index, const Scalar& value) const;
  Tensor scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor take(const Tensor& index) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1) const;
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor index_fill(int64_t dim, const Tensor& index, const Scalar& value) const;
  Tensor masked_fill(const Tensor& mask, const Scalar& value) const;
  Tensor masked_fill(const Tensor& mask, const Tensor& value) const;
  Tensor masked_scatter(const Tensor& mask, const Tensor& source) const;
  Tensor index_put(const std::vector<Tensor>& indices, const Tensor& values, bool accumulate = false) const;
  /// This where `condition` is true, `other` elsewhere.
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor where(const Tensor& condition, const Scalar& other) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor nonzero() const;
  std::pair<Tensor, Tensor> sort(int64_t dim = -1, bool descending = false) const;
  Tensor argsort(int64_t dim = -1, bool descending = false) const;
  std::pair<Tensor, Tensor> topk(int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true) const;
  Tensor cumsum(int64_t dim, std::optional<DType> dtype = {}) const;
  Tensor cumprod(int64_t dim, std::optional<DType> dtype = {}) const;
  std::pair<Tensor, Tensor> cummax(int64_t dim) const;
  std::pair<Tensor, Tensor> cummin(int64_t dim) const;
  Tensor logcumsumexp(int64_t dim) const;
  std::pair<Tensor, Tensor> kthvalue(int64_t k, int64_t dim = -1, bool keepdim = false) const;
  Tensor scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                        bool include_self = true) const;
  Tensor unique() const;

  // ---- arithmetic (ops)
  // ----------------------------------------------------------------------------------------
  Tensor operator-() const;
  Tensor add(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor add(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor sub(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor sub(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor mul(const Tensor& other) const;
  Tensor mul(const Scalar& other) const;
  Tensor div(const Tensor& other) const;
  Tensor div(const Scalar& other) const;
  Tensor div(const Tensor& other, std::string_view rounding_mode) const;
  Tensor div(const Scalar& other, std::string_view rounding_mode) const;
  Tensor floor_divide(const Tensor& other) const;
  Tensor floor_divide(const Scalar& other) const;
  Tensor remainder(const Tensor& other) const;
  Tensor remainder(const Scalar& other) const;
  Tensor fmod(const Tensor& other) const;
  Tensor fmod(const Scalar& other) const;
  Tensor bitwise_and(const Tensor& other) const;
  Tensor bitwise_or(const Tensor& other) const;
  Tensor bitwise_xor(const Tensor& other) const;
  Tensor isclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  Tensor pow(const Tensor& exponent) const;
  Tensor pow(const Scalar& exponent) const;
  Tensor maximum(const Tensor& other) const;
  Tensor minimum(const Tensor& other) const;
  Tensor fmax(const Tensor& other) const;
  Tensor fmin(const Tensor& other) const;
  Tensor atan2(const Tensor& other) const;
  Tensor logaddexp(const Tensor& other) const;
  Tensor logaddexp2(const Tensor& other) const;
  Tensor clamp(std::optional<Scalar> min, std::optional<Scalar> max = {}) const;
  /// Bounds for each element; an undefined one bounds nothing.
  Tensor clamp(const std::same_as<Tensor> auto& min, const std::same_as<Tensor> auto& max) const {
    return clamp_between(min, max);
  }
  Tensor clamp_min(const Scalar& min) const;
  Tensor clamp_min(const Tensor& min) const;
  Tensor clamp_max(const Scalar& max) const;
  Tensor clamp_max(const Tensor& max) const;
  Tensor hypot(const Tensor& other) const;
  Tensor copysign(const Tensor& other) const;
  Tensor copysign(const Scalar& other) const;
  Tensor xlogy(const Tensor& other) const;
  Tensor xlogy(const Scalar& other) const;
  Tensor heaviside(const Tensor& values) const;
  Tensor lerp(const Tensor& end, const Tensor& weight) const;
  Tensor lerp(const Tensor& end, const Scalar& weight) const;
  Tensor addcmul(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1) const;
  Tensor addcdiv(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1) const;
  Tensor logit(std::optional<double> eps = {}) const;
  Tensor nan_to_num(double nan = 0, std::optional<double> posinf = {},
                    std::optional<double> neginf = {}) const;
#define TERN_DECLARE_METHODS(name) \
  Tensor name() const;             \
  Tensor& name##_();
  TERN_ELEMENT_FUNCTIONS(TERN_DECLARE_METHODS)
#undef TERN_DECLARE_METHODS
  Tensor matmul(const Tensor& other) const;
  Tensor mm(const Tensor& other) const;
  Tensor bmm(const Tensor& other) const;
  Tensor mv(const Tensor& vector) const;
  Tensor dot(const Tensor& other) const;
  Tensor outer(const Tensor& other) const;

  // ---- comparisons (ops): tensors of bool, but for the last two
  // ----------------------------------------------------------------------------------------
  Tensor eq(const Tensor& other) const;
  Tensor eq(const Scalar& other) const;
  Tensor ne(const Tensor& other) const;
  Tensor ne(const Scalar& other) const;
  Tensor lt(const Tensor& other) const;
  Tensor lt(const Scalar& other) const;
  Tensor le(const Tensor& other) const;
  Tensor le(const Scalar& other) const;
  Tensor gt(const Tensor& other) const;
  Tensor gt(const Scalar& other) const;
  Tensor ge(const Tensor& other) const;
  Tensor ge(const Scalar& other) const;
  Tensor logical_and(const Tensor& other) const;
  Tensor logical_or(const Tensor& other) const;
  Tensor logical_xor(const Tensor& other) const;
  Tensor logical_not() const;
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  Tensor isposinf() const;
  Tensor isneginf() const;
  Tensor signbit() const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  bool equal(const Tensor& other) const;

  // ---- reductions (ops)
  // ----------------------------------------------------------------------------------------
  Tensor softmax(int64_t dim) const;
  Tensor log_softmax(int64_t dim) const;
  Tensor logsumexp(IntArrayRef dims, bool keepdim = false) const;
  Tensor logsumexp(Dimension auto dim, bool keepdim = false) const {
    return logsumexp(IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
  }
  Tensor sum() const;
  Tensor sum(IntArrayRef dims, bool keepdim = false) const;
  Tensor sum(Dimension auto dim, bool keepdim = false) const {
    return sum(IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
  }
  Tensor mean() const;
  Tensor mean(IntArrayRef dims, bool keepdim = false) const;
  Tensor mean(Dimension auto dim, bool keepdim = false) const {
    return mean(IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
  }
  Tensor nansum(IntArrayRef dims = {}, bool keepdim = false) const;
  Tensor nanmean(IntArrayRef dims = {}, bool keepdim = false) const;
  Tensor quantile(double q, std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor prod() const;
  Tensor prod(int64_t dim, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  std::pair<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const;
  std::pair<Tensor, Tensor> min(int64_t dim, bool keepdim = false) const;
  Tensor argmax() const;
  Tensor argmax(int64_t dim, bool keepdim = false) const;
  Tensor argmin() const;
  Tensor argmin(int64_t dim, bool keepdim = false) const;
  Tensor amax(IntArrayRef dims = {}, bool keepdim = false) const;
  Tensor amax(Dimension auto dim, bool keepdim = false) const {
    return amax(IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
  }
  Tensor amin(IntArrayRef dims = {}, bool keepdim = false) const;
  Tensor amin(Dimension auto dim, bool keepdim = false) const {
    return amin(IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
  }
  Tensor median() const;
  std::pair<Tensor, Tensor> median(int64_t dim, bool keepdim = false) const;
  Tensor all() const;
  Tensor all(IntArrayRef dims, bool keepdim = false) const;
  Tensor all(Dimension auto dim, bool keepdim = false) const {
    return all(IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
  }
  Tensor any() const;
  Tensor any(IntArrayRef dims, bool keepdim = false) const;
  Tensor any(Dimension auto dim, bool keepdim = false) const {
    return any(IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
  }
  Tensor count_nonzero(IntArrayRef dims = {}) const;
  Tensor count_nonzero(Dimension auto dim) const {
    return count_nonzero(IntArrayRef{static_cast<int64_t>(dim)});
  }
  Tensor norm(double p = 2) const;
  Tensor norm(double p, IntArrayRef dims, bool keepdim = false) const;
  Tensor norm(double p, Dimension auto dim, bool keepdim = false) const {
    return norm(p, IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
  }
  Tensor var(IntArrayRef dims = {}, double correction = 1, bool keepdim = false) const;
  Tensor var(Dimension auto dim, double correction = 1, bool keepdim = false) const {
    return var(IntArrayRef{static_cast<int64_t>(dim)}, correction, keepdim);
  }
  Tensor var(std::same_as<bool> auto unbiased) const { return var(IntArrayRef(), unbiased ? 1 : 0); }
  Tensor std(IntArrayRef dims = {}, double correction = 1, bool keepdim = false) const;
  Tensor std(Dimension auto dim, double correction = 1, bool keepdim = false) const {
    return std(IntArrayRef{static_cast<int64_t>(dim)}, correction, keepdim);
  }
  Tensor std(std::same_as<bool> auto unbiased) const { return std(IntArrayRef(), unbiased ? 1 : 0); }

  // ---- in place (ops): each changes the storage, counts a version, and returns *this
  // ----------------------------
  Tensor& copy_(const Tensor& source);
  Tensor& fill_(const Scalar& value);
  Tensor& zero_();
  Tensor& add_(const Tensor& other, const Scalar& alpha = 1);
  Tensor& add_(const Scalar& other);
  Tensor& sub_(const Tensor& other, const Scalar& alpha = 1);
  Tensor& sub_(const Scalar& other);
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(const Scalar& other);
  Tensor& div_(const Tensor& other);
  Tensor& div_(const Scalar& other);
  Tensor& div_(const Tensor& other, std::string_view rounding_mode);
  Tensor& div_(const Scalar& other, std::string_view rounding_mode);
  Tensor& clamp_(std::optional<Scalar> min, std::optional<Scalar> max = {});
  Tensor& clamp_min_(const Scalar& min);
  Tensor& clamp_min_(const Tensor& min);
  Tensor& clamp_max_(const Scalar& max);
  Tensor& clamp_max_(const Tensor& max);
  Tensor& floor_divide_(const Tensor& other);
  Tensor& floor_divide_(const Scalar& other);
  Tensor& remainder_(const Tensor& other);
  Tensor& remainder_(const Scalar& other);
  Tensor& fmod_(const Tensor& other);
  Tensor& fmod_(const Scalar& other);
  Tensor& pow_(const Tensor& exponent);
  Tensor& pow_(const Scalar& exponent);
  Tensor& atan2_(const Tensor& other);
  Tensor& hypot_(const Tensor& other);
  Tensor& copysign_(const Tensor& other);
  Tensor& copysign_(const Scalar& other);
  Tensor& xlogy_(const Tensor& other);
  Tensor& xlogy_(const Scalar& other);
  Tensor& heaviside_(const Tensor& values);
  Tensor& lerp_(const Tensor& end, const Tensor& weight);
  Tensor& lerp_(const Tensor& end, const Scalar& weight);
  Tensor& addcmul_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1);
  Tensor& addcdiv_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1);
  Tensor& logit_(std::optional<double> eps = {});
  Tensor& nan_to_num_(double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {});
  Tensor& bitwise_and_(const Tensor& other);
  Tensor& bitwise_or_(const Tensor& other);
  Tensor& bitwise_xor_(const Tensor& other);
  Tensor& masked_fill_(const Tensor& mask, const Scalar& value);
  Tensor& scatter_(int64_t dim, const Tensor& index, const Tensor& src);
  Tensor& scatter_(int64_t dim, const Tensor& index, const Scalar& value);
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& src);
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1);
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source);
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Scalar& value);
  Tensor& index_put_(const std::vector<Tensor>& indices, const Tensor& values, bool accumulate = false);
  Tensor& put_(const Tensor& index, const Tensor& source, bool accumulate = false);
  Tensor& scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                          bool include_self = true);
  Tensor& uniform_(double low = 0, double high = 1);
  Tensor& normal_(double mean = 0, double std = 1);
  Tensor& operator+=(const Tensor& other) { return add_(other); }
  Tensor& operator-=(const Tensor& other) { return sub_(other); }
  Tensor& operator*=(const Tensor& other) { return mul_(other); }
  Tensor& operator/=(const Tensor& other) { return div_(other); }
  Tensor& operator+=(const Scalar& other) { return add_(other); }
  Tensor& operator-=(const Scalar& other) { return sub_(other); }
  Tensor& operator*=(const Scalar& other) { return mul_(other); }
  Tensor& operator/=(const Scalar& other) { return div_(other); }
  Tensor& operator%=(const Tensor& other) { return remainder_(other); }
  Tensor& operator%=(const Scalar& other) { return remainder_(other); }
  Tensor& operator&=(const Tensor& other) { return bitwise_and_(other); }
  Tensor& operator|=(const Tensor& other) { return bitwise_or_(other); }
  Tensor& operator^=(const Tensor& other) { return bitwise_xor_(other); }

  // ---- second names (core/second_names.h)
  // ----------------------------------------------------------------------------------
  Tensor clip(std::optional<Scalar> min, std::optional<Scalar> max = {}) const { return clamp(min, max); }
  Tensor clip(const std::same_as<Tensor> auto& min, const std::same_as<Tensor> auto& max) const {
    return clamp(min, max);
  }
  Tensor& clip_(std::optional<Scalar> min, std::optional<Scalar> max = {}) { return clamp_(min, max); }
#define TERN_SECOND_NAME(second, first)                                       \
  Tensor second(const auto&... operands) const { return first(operands...); } \
  Tensor& second##_(const auto&... operands) { return first##_(operands...); }
  TERN_SECOND_NAMES_OF_ONE(TERN_SECOND_NAME)
  TERN_SECOND_NAMES_OF_TWO(TERN_SECOND_NAME)
#undef TERN_SECOND_NAME

 private:
  [[noreturn]] static void throw_undefined();
  void check_data_access(DType dtype) const;
  bool view_requires_grad() const;
  [[noreturn]] static void throw_no_dimensions(int64_t dim, const char* op);
  size_t place_of(int64_t dim, const char* op) const {
    if (impl().shape.empty()) [[unlikely]]
      throw_no_dimensions(dim, op);
    return static_cast<size_t>(wrap_dim(dim, this->dim(), op));
  }
  Tensor squeeze_dim(int64_t dim) const;
  Tensor clamp_between(const Tensor& min, const Tensor& max) const;
  std::vector<Tensor> split_evenly(int64_t split_size, int64_t dim) const;

  IntrusivePtr<TensorImpl> impl_;
};

inline const Tensor& MoreMethods::self() const { return static_cast<const Tensor&>(*this); }
inline Tensor& MoreMethods::self() { return static_cast<Tensor&>(*this); }

using TensorList = std::vector<Tensor>;

namespace detail {
[[noreturn]] void throw_uninitialized(const Tensor& tensor);
}
/// Throws ValueError for a parameter or buffer of a lazy layer that has not seen its first input.
inline void check_initialized(const Tensor& tensor) {
  if (tensor.storage()->is_uninitialized()) [[unlikely]]
    detail::throw_uninitialized(tensor);
}

/// Row-major, uninitialised, on the CPU or another device; no gradient. The one way in which operators make
/// results. `nbytes` is rounded up by the allocator, never by the tensor.
Tensor empty_contiguous(Shape shape, int64_t numel, DType dtype, Device device);

}  // namespace tern
