// Methods of Tensor that forward to the operators of the same name.
#include <complex>

#include "tern/autograd/arithmetic.h"
#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/core/recording.h"
#include "tern/device/registry.h"
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tern/ops/sort.h"

namespace tern {

std::string Tensor::str() const { return to_string(*this); }

Scalar Tensor::item() const { return tern::item(*this); }

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_initialized(*this);
  detail::host_reads("to_vector");
  Tensor host = compact(tern::to(tern::to(detach(), dtype_of<T>()), kCPU));
  const T* data = static_cast<const T*>(host.data_ptr());
  return std::vector<T>(data, data + host.numel());
}
template std::vector<bool> Tensor::to_vector<bool>() const;
template std::vector<uint8_t> Tensor::to_vector<uint8_t>() const;
template std::vector<int8_t> Tensor::to_vector<int8_t>() const;
template std::vector<int16_t> Tensor::to_vector<int16_t>() const;
template std::vector<int32_t> Tensor::to_vector<int32_t>() const;
template std::vector<int64_t> Tensor::to_vector<int64_t>() const;
template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<std::complex<float>> Tensor::to_vector<std::complex<float>>() const;
template std::vector<std::complex<double>> Tensor::to_vector<std::complex<double>>() const;

Tensor Tensor::to(Device device, ToOptions options) const { return tern::to(*this, device, options); }
Tensor Tensor::to(DType dtype, ToOptions options) const { return tern::to(*this, dtype, options); }
Tensor Tensor::to(Device device, DType dtype, ToOptions options) const {
  Tensor moved = tern::to(*this, device, {options.non_blocking});
  bool copied = !moved.is_same(*this);
  return tern::to(moved, dtype, {options.non_blocking, options.copy && !copied});
}
Tensor Tensor::cpu() const { return tern::to(*this, kCPU); }
Tensor Tensor::cuda(int index) const { return tern::to(*this, Device(DeviceType::CUDA, index)); }
Tensor Tensor::pin_memory() const { return tern::pin_memory(*this); }
void Tensor::record_stream(const Stream& stream) const {
  if (!device().is_cpu() || is_pinned()) backend_of(DeviceType::CUDA).record_stream(*storage(), stream);
}
Tensor Tensor::contiguous() const { return tern::contiguous(*this); }
Tensor Tensor::clone() const { return tern::clone(*this); }

Tensor Tensor::view(IntArrayRef shape) const { return tern::view(*this, shape); }
Tensor Tensor::reshape(IntArrayRef shape) const { return tern::reshape(*this, shape); }
Tensor Tensor::permute(IntArrayRef dims) const { return tern::permute(*this, dims); }
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const { return tern::transpose(*this, dim0, dim1); }
Tensor Tensor::t() const { return tern::t(*this); }
Tensor Tensor::expand(IntArrayRef shape) const { return tern::expand(*this, shape); }
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return tern::narrow(*this, dim, start, length);
}
Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) const {
  return tern::slice(*this, dim, start, end, step);
}
Tensor Tensor::select(int64_t dim, int64_t index) const { return tern::select(*this, dim, index); }
Tensor Tensor::operator[](const Tensor& index) const { return tern::index(*this, {index}); }
Tensor Tensor::squeeze() const { return tern::squeeze(*this); }
Tensor Tensor::squeeze(IntArrayRef dims) const { return tern::squeeze(*this, dims); }
Tensor Tensor::unsqueeze(int64_t dim) const { return tern::unsqueeze(*this, dim); }
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  return tern::flatten(*this, start_dim, end_dim);
}
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const {
  return tern::chunk(*this, chunks, dim);
}
std::vector<Tensor> Tensor::split(IntArrayRef split_sizes, int64_t dim) const {
  return tern::split(*this, split_sizes, dim);
}

Tensor Tensor::view_as(const Tensor& other) const { return tern::view_as(*this, other); }
Tensor Tensor::reshape_as(const Tensor& other) const { return tern::reshape_as(*this, other); }
Tensor Tensor::movedim(int64_t source, int64_t destination) const {
  return tern::movedim(*this, source, destination);
}
Tensor Tensor::mT() const { return tern::mT(*this); }
Tensor Tensor::expand_as(const Tensor& other) const { return tern::expand_as(*this, other); }
Tensor Tensor::repeat(IntArrayRef repeats) const { return tern::repeat(*this, repeats); }
Tensor Tensor::flip(IntArrayRef dims) const { return tern::flip(*this, dims); }
Tensor Tensor::unflatten(int64_t dim, IntArrayRef sizes) const { return tern::unflatten(*this, dim, sizes); }
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return tern::diagonal(*this, offset, dim1, dim2);
}
Tensor Tensor::unfold(int64_t dimension, int64_t size, int64_t step) const {
  return tern::unfold(*this, dimension, size, step);
}
std::vector<Tensor> Tensor::unbind(int64_t dim) const { return tern::unbind(*this, dim); }
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim) const {
  return tern::repeat_interleave(*this, repeats, dim);
}
Tensor Tensor::tile(IntArrayRef repeats) const { return tern::tile(*this, repeats); }
Tensor Tensor::broadcast_to(IntArrayRef shape) const { return tern::broadcast_to(*this, shape); }
Tensor Tensor::tril(int64_t diagonal) const { return tern::tril(*this, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return tern::triu(*this, diagonal); }
Tensor Tensor::roll(IntArrayRef shifts, IntArrayRef dims) const { return tern::roll(*this, shifts, dims); }

Tensor Tensor::gather(int64_t dim, const Tensor& index) const { return tern::gather(*this, dim, index); }
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const {
  return tern::scatter(*this, dim, index, src);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Scalar& value) const {
  return tern::scatter(*this, dim, index, value);
}
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  return tern::scatter_add(*this, dim, index, src);
}
Tensor Tensor::take(const Tensor& index) const { return tern::take(*this, index); }
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  return tern::index_select(*this, dim, index);
}
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const {
  return tern::index_add(*this, dim, index, source, alpha);
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return tern::index_copy(*this, dim, index, source);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Scalar& value) const {
  return tern::index_fill(*this, dim, index, value);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& value) const {
  return tern::masked_fill(*this, mask, value);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const {
  return tern::masked_fill(*this, mask, value);
}
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return tern::masked_scatter(*this, mask, source);
}
Tensor Tensor::index_put(const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) const {
  return tern::index_put(*this, indices, values, accumulate);
}
Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return tern::where(condition, *this, other);
}
Tensor Tensor::where(const Tensor& condition, const Scalar& other) const {
  return tern::where(condition, *this, other);
}
Tensor Tensor::masked_select(const Tensor& mask) const { return tern::masked_select(*this, mask); }
Tensor Tensor::nonzero() const { return tern::nonzero(*this); }
std::pair<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const {
  return tern::sort(*this, dim, descending);
}
Tensor Tensor::argsort(int64_t dim, bool descending) const { return tern::argsort(*this, dim, descending); }
std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return tern::topk(*this, k, dim, largest, sorted);
}
Tensor Tensor::cumsum(int64_t dim, std::optional<DType> dtype) const {
  return tern::cumsum(*this, dim, dtype);
}
Tensor Tensor::cumprod(int64_t dim, std::optional<DType> dtype) const {
  return tern::cumprod(*this, dim, dtype);
}

Tensor Tensor::operator-() const { return neg(); }
#define TERN_DEFINE_METHOD(name) \
  Tensor Tensor::name() const { return tern::name(*this); }
TERN_ELEMENT_FUNCTIONS(TERN_DEFINE_METHOD)
#undef TERN_DEFINE_METHOD
Tensor Tensor::pow(const Scalar& exponent) const { return tern::pow(*this, exponent); }
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return tern::clamp(*this, min, max);
}
Tensor Tensor::add(const Tensor& other, const Scalar& alpha) const { return tern::add(*this, other, alpha); }
Tensor Tensor::add(const Scalar& other, const Scalar& alpha) const { return tern::add(*this, other, alpha); }
Tensor Tensor::sub(const Tensor& other, const Scalar& alpha) const { return tern::sub(*this, other, alpha); }
Tensor Tensor::sub(const Scalar& other, const Scalar& alpha) const { return tern::sub(*this, other, alpha); }
Tensor Tensor::mul(const Tensor& other) const { return tern::mul(*this, other); }
Tensor Tensor::mul(const Scalar& other) const { return tern::mul(*this, other); }
Tensor Tensor::div(const Tensor& other) const { return tern::div(*this, other); }
Tensor Tensor::div(const Scalar& other) const { return tern::div(*this, other); }
Tensor Tensor::floor_divide(const Tensor& other) const { return tern::floor_divide(*this, other); }
Tensor Tensor::floor_divide(const Scalar& other) const { return tern::floor_divide(*this, other); }
Tensor Tensor::remainder(const Tensor& other) const { return tern::remainder(*this, other); }
Tensor Tensor::remainder(const Scalar& other) const { return tern::remainder(*this, other); }
Tensor Tensor::fmod(const Tensor& other) const { return tern::fmod(*this, other); }
Tensor Tensor::fmod(const Scalar& other) const { return tern::fmod(*this, other); }
Tensor Tensor::pow(const Tensor& exponent) const { return tern::pow(*this, exponent); }
Tensor Tensor::maximum(const Tensor& other) const { return tern::maximum(*this, other); }
Tensor Tensor::minimum(const Tensor& other) const { return tern::minimum(*this, other); }
Tensor Tensor::div(const Tensor& other, std::string_view rounding_mode) const {
  return tern::div(*this, other, rounding_mode);
}
Tensor Tensor::div(const Scalar& other, std::string_view rounding_mode) const {
  return tern::div(*this, other, rounding_mode);
}
Tensor Tensor::fmax(const Tensor& other) const { return tern::fmax(*this, other); }
Tensor Tensor::fmin(const Tensor& other) const { return tern::fmin(*this, other); }
Tensor Tensor::atan2(const Tensor& other) const { return tern::atan2(*this, other); }
Tensor Tensor::logaddexp(const Tensor& other) const { return tern::logaddexp(*this, other); }
Tensor Tensor::logaddexp2(const Tensor& other) const { return tern::logaddexp2(*this, other); }
Tensor Tensor::hypot(const Tensor& other) const { return tern::hypot(*this, other); }
Tensor Tensor::copysign(const Tensor& other) const { return tern::copysign(*this, other); }
Tensor Tensor::xlogy(const Tensor& other) const { return tern::xlogy(*this, other); }
Tensor Tensor::copysign(const Scalar& other) const { return tern::copysign(*this, other); }
Tensor Tensor::xlogy(const Scalar& other) const { return tern::xlogy(*this, other); }
Tensor Tensor::heaviside(const Tensor& values) const { return tern::heaviside(*this, values); }
Tensor Tensor::clamp_min(const Scalar& min) const { return tern::clamp_min(*this, min); }
Tensor Tensor::clamp_min(const Tensor& min) const { return tern::clamp_min(*this, min); }
Tensor Tensor::clamp_max(const Scalar& max) const { return tern::clamp_max(*this, max); }
Tensor Tensor::clamp_max(const Tensor& max) const { return tern::clamp_max(*this, max); }
Tensor Tensor::clamp_between(const Tensor& min, const Tensor& max) const {
  return tern::clamp(*this, min, max);
}
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const { return tern::lerp(*this, end, weight); }
Tensor Tensor::lerp(const Tensor& end, const Scalar& weight) const { return tern::lerp(*this, end, weight); }
Tensor Tensor::addcmul(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return tern::addcmul(*this, tensor1, tensor2, value);
}
Tensor Tensor::addcdiv(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return tern::addcdiv(*this, tensor1, tensor2, value);
}
Tensor Tensor::logit(std::optional<double> eps) const { return tern::logit(*this, eps); }
Tensor Tensor::nan_to_num(double nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return tern::nan_to_num(*this, nan, posinf, neginf);
}
Tensor Tensor::bitwise_and(const Tensor& other) const { return tern::bitwise_and(*this, other); }
Tensor Tensor::bitwise_or(const Tensor& other) const { return tern::bitwise_or(*this, other); }
Tensor Tensor::bitwise_xor(const Tensor& other) const { return tern::bitwise_xor(*this, other); }
Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return tern::isclose(*this, other, rtol, atol, equal_nan);
}

Tensor Tensor::bmm(const Tensor& other) const { return tern::bmm(*this, other); }
Tensor Tensor::mv(const Tensor& vector) const { return tern::mv(*this, vector); }
Tensor Tensor::dot(const Tensor& other) const { return tern::dot(*this, other); }
Tensor Tensor::outer(const Tensor& other) const { return tern::outer(*this, other); }
Tensor Tensor::matmul(const Tensor& other) const { return tern::matmul(*this, other); }
Tensor Tensor::mm(const Tensor& other) const { return tern::mm(*this, other); }
Tensor Tensor::softmax(int64_t dim) const { return tern::softmax(*this, dim); }
Tensor Tensor::log_softmax(int64_t dim) const { return tern::log_softmax(*this, dim); }

Tensor Tensor::eq(const Tensor& other) const { return tern::eq(*this, other); }
Tensor Tensor::eq(const Scalar& other) const { return tern::eq(*this, other); }
Tensor Tensor::ne(const Tensor& other) const { return tern::ne(*this, other); }
Tensor Tensor::ne(const Scalar& other) const { return tern::ne(*this, other); }
Tensor Tensor::lt(const Tensor& other) const { return tern::lt(*this, other); }
Tensor Tensor::lt(const Scalar& other) const { return tern::lt(*this, other); }
Tensor Tensor::le(const Tensor& other) const { return tern::le(*this, other); }
Tensor Tensor::le(const Scalar& other) const { return tern::le(*this, other); }
Tensor Tensor::gt(const Tensor& other) const { return tern::gt(*this, other); }
Tensor Tensor::gt(const Scalar& other) const { return tern::gt(*this, other); }
Tensor Tensor::ge(const Tensor& other) const { return tern::ge(*this, other); }
Tensor Tensor::ge(const Scalar& other) const { return tern::ge(*this, other); }
Tensor Tensor::logical_and(const Tensor& other) const { return tern::logical_and(*this, other); }
Tensor Tensor::logical_or(const Tensor& other) const { return tern::logical_or(*this, other); }
Tensor Tensor::logical_xor(const Tensor& other) const { return tern::logical_xor(*this, other); }
Tensor Tensor::logical_not() const { return tern::logical_not(*this); }
Tensor Tensor::isnan() const { return tern::isnan(*this); }
Tensor Tensor::isinf() const { return tern::isinf(*this); }
Tensor Tensor::isfinite() const { return tern::isfinite(*this); }
Tensor Tensor::isposinf() const { return tern::isposinf(*this); }
Tensor Tensor::isneginf() const { return tern::isneginf(*this); }
Tensor Tensor::signbit() const { return tern::signbit(*this); }
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return tern::allclose(*this, other, rtol, atol, equal_nan);
}
bool Tensor::equal(const Tensor& other) const { return tern::equal(*this, other); }

Tensor Tensor::sum() const { return tern::sum(*this); }
Tensor Tensor::sum(IntArrayRef dims, bool keepdim) const { return tern::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return tern::mean(*this); }
Tensor Tensor::mean(IntArrayRef dims, bool keepdim) const { return tern::mean(*this, dims, keepdim); }
Tensor Tensor::max() const { return tern::max(*this); }
Tensor Tensor::min() const { return tern::min(*this); }
std::pair<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const {
  return tern::max(*this, dim, keepdim);
}
std::pair<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const {
  return tern::min(*this, dim, keepdim);
}
Tensor Tensor::argmax() const { return tern::argmax(*this); }
Tensor Tensor::argmax(int64_t dim, bool keepdim) const { return tern::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin() const { return tern::argmin(*this); }
Tensor Tensor::argmin(int64_t dim, bool keepdim) const { return tern::argmin(*this, dim, keepdim); }
Tensor Tensor::all() const { return tern::all(*this); }
Tensor Tensor::any() const { return tern::any(*this); }
Tensor Tensor::logsumexp(IntArrayRef dims, bool keepdim) const {
  return tern::logsumexp(*this, dims, keepdim);
}
Tensor Tensor::prod() const { return tern::prod(*this); }
Tensor Tensor::prod(int64_t dim, bool keepdim) const { return tern::prod(*this, dim, keepdim); }
Tensor Tensor::median() const { return tern::median(*this); }
std::pair<Tensor, Tensor> Tensor::median(int64_t dim, bool keepdim) const {
  return tern::median(*this, dim, keepdim);
}
Tensor Tensor::all(IntArrayRef dims, bool keepdim) const { return tern::all(*this, dims, keepdim); }
Tensor Tensor::any(IntArrayRef dims, bool keepdim) const { return tern::any(*this, dims, keepdim); }
Tensor Tensor::norm(double p) const { return tern::norm(*this, p); }
Tensor Tensor::norm(double p, IntArrayRef dims, bool keepdim) const {
  return tern::norm(*this, p, dims, keepdim);
}
Tensor Tensor::amax(IntArrayRef dims, bool keepdim) const { return tern::amax(*this, dims, keepdim); }
Tensor Tensor::amin(IntArrayRef dims, bool keepdim) const { return tern::amin(*this, dims, keepdim); }
Tensor Tensor::count_nonzero(IntArrayRef dims) const { return tern::count_nonzero(*this, dims); }
Tensor Tensor::var(IntArrayRef dims, double correction, bool keepdim) const {
  return tern::var(*this, dims, correction, keepdim);
}
Tensor Tensor::std(IntArrayRef dims, double correction, bool keepdim) const {
  return tern::std(*this, dims, correction, keepdim);
}

Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src) {
  return tern::scatter_(*this, dim, index, src);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value) {
  return tern::scatter_(*this, dim, index, value);
}
Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) {
  return tern::scatter_add_(*this, dim, index, src);
}
Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  return tern::index_add_(*this, dim, index, source, alpha);
}
Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) {
  return tern::index_copy_(*this, dim, index, source);
}
Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Scalar& value) {
  return tern::index_fill_(*this, dim, index, value);
}
Tensor& Tensor::index_put_(const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) {
  return tern::index_put_(*this, indices, values, accumulate);
}
Tensor& Tensor::uniform_(double low, double high) { return tern::uniform_(*this, low, high); }
Tensor& Tensor::normal_(double mean, double std) { return tern::normal_(*this, mean, std); }

}  // namespace tern
