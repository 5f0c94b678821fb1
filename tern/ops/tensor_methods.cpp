// Methods of Tensor that forward to the operators of the same name.
#include "tern/autograd/arithmetic.h"
#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/core/recording.h"
#include "tern/device/registry.h"
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"

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

Tensor Tensor::operator-() const { return neg(*this); }
Tensor Tensor::abs() const { return tern::abs(*this); }
Tensor Tensor::exp() const { return tern::exp(*this); }
Tensor Tensor::log() const { return tern::log(*this); }
Tensor Tensor::sqrt() const { return tern::sqrt(*this); }
Tensor Tensor::square() const { return tern::square(*this); }
Tensor Tensor::pow(const Scalar& exponent) const { return tern::pow(*this, exponent); }
Tensor Tensor::sigmoid() const { return tern::sigmoid(*this); }
Tensor Tensor::tanh() const { return tern::tanh(*this); }
Tensor Tensor::relu() const { return tern::relu(*this); }
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return tern::clamp(*this, min, max);
}
Tensor Tensor::eq(const Tensor& other) const { return tern::eq(*this, other); }
Tensor Tensor::matmul(const Tensor& other) const { return tern::matmul(*this, other); }
Tensor Tensor::mm(const Tensor& other) const { return tern::mm(*this, other); }
Tensor Tensor::softmax(int64_t dim) const { return tern::softmax(*this, dim); }
Tensor Tensor::log_softmax(int64_t dim) const { return tern::log_softmax(*this, dim); }

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
Tensor Tensor::norm() const { return tern::norm(*this); }
Tensor Tensor::var(IntArrayRef dims, double correction, bool keepdim) const {
  return tern::var(*this, dims, correction, keepdim);
}
Tensor Tensor::std(IntArrayRef dims, double correction, bool keepdim) const {
  return tern::std(*this, dims, correction, keepdim);
}

Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source) {
  return tern::index_add_(*this, dim, index, source);
}
Tensor& Tensor::uniform_(double low, double high) { return tern::uniform_(*this, low, high); }
Tensor& Tensor::normal_(double mean, double std) { return tern::normal_(*this, mean, std); }

}  // namespace tern
