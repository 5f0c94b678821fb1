// Methods of Tensor that forward to the operators of the same name: those of order, choice and diagonals, and
// new tensors like this one.
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/index.h"
#include "tern/ops/quantile.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/sort.h"
#include "tern/ops/unique.h"

namespace tern {

Tensor Tensor::new_empty(IntArrayRef shape, const TensorOptions& options) const {
  return tern::empty(shape, detail::like(*this, options));
}
Tensor Tensor::new_zeros(IntArrayRef shape, const TensorOptions& options) const {
  return tern::zeros(shape, detail::like(*this, options));
}
Tensor Tensor::new_ones(IntArrayRef shape, const TensorOptions& options) const {
  return tern::ones(shape, detail::like(*this, options));
}
Tensor Tensor::new_full(IntArrayRef shape, const Scalar& value, const TensorOptions& options) const {
  return tern::full(shape, value, detail::like(*this, options));
}

Tensor Tensor::ravel() const { return tern::ravel(*this); }
Tensor Tensor::diag(int64_t diagonal) const { return tern::diag(*this, diagonal); }
Tensor Tensor::trace() const { return tern::trace(*this); }
Tensor Tensor::diff(int64_t n, int64_t dim) const { return tern::diff(*this, n, dim); }

std::pair<Tensor, Tensor> Tensor::cummax(int64_t dim) const { return tern::cummax(*this, dim); }
std::pair<Tensor, Tensor> Tensor::cummin(int64_t dim) const { return tern::cummin(*this, dim); }
Tensor Tensor::logcumsumexp(int64_t dim) const { return tern::logcumsumexp(*this, dim); }
std::pair<Tensor, Tensor> Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  return tern::kthvalue(*this, k, dim, keepdim);
}
Tensor Tensor::unique() const { return tern::unique(*this); }

Tensor Tensor::nansum(IntArrayRef dims, bool keepdim) const { return tern::nansum(*this, dims, keepdim); }
Tensor Tensor::nanmean(IntArrayRef dims, bool keepdim) const { return tern::nanmean(*this, dims, keepdim); }
Tensor Tensor::quantile(double q, std::optional<int64_t> dim, bool keepdim) const {
  return tern::quantile(*this, q, dim, keepdim);
}

Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                              bool include_self) const {
  return tern::scatter_reduce(*this, dim, index, src, reduce, include_self);
}
Tensor& Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                                bool include_self) {
  return tern::scatter_reduce_(*this, dim, index, src, reduce, include_self);
}
Tensor& Tensor::put_(const Tensor& index, const Tensor& source, bool accumulate) {
  return tern::put_(*this, index, source, accumulate);
}

}  // namespace tern
