// Methods of Tensor that forward to the operators of the same name: those of order, choice and diagonals,
// those in core/more_methods.h, and new tensors like this one.
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/names.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/products.h"
#include "tern/ops/quantile.h"
#include "tern/ops/random.h"
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

Tensor MoreMethods::swapaxes(int64_t axis0, int64_t axis1) const {
  return tern::swapaxes(self(), axis0, axis1);
}
Tensor MoreMethods::swapdims(int64_t dim0, int64_t dim1) const { return tern::swapdims(self(), dim0, dim1); }
Tensor MoreMethods::moveaxis(int64_t source, int64_t destination) const {
  return tern::moveaxis(self(), source, destination);
}
Tensor MoreMethods::flipud() const { return tern::flipud(self()); }
Tensor MoreMethods::fliplr() const { return tern::fliplr(self()); }
Tensor MoreMethods::rot90(int64_t k, IntArrayRef dims) const { return tern::rot90(self(), k, dims); }
Tensor MoreMethods::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const {
  return tern::diag_embed(self(), offset, dim1, dim2);
}
Tensor MoreMethods::diagflat(int64_t offset) const { return tern::diagflat(self(), offset); }
Tensor MoreMethods::select_scatter(const Tensor& src, int64_t dim, int64_t index) const {
  return tern::select_scatter(self(), src, dim, index);
}
Tensor MoreMethods::slice_scatter(const Tensor& src, int64_t dim, std::optional<int64_t> start,
                                  std::optional<int64_t> end, int64_t step) const {
  return tern::slice_scatter(self(), src, dim, start, end, step);
}
Tensor MoreMethods::diagonal_scatter(const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) const {
  return tern::diagonal_scatter(self(), src, offset, dim1, dim2);
}

Tensor MoreMethods::argwhere() const { return tern::argwhere(self()); }
Tensor MoreMethods::take_along_dim(const Tensor& indices, std::optional<int64_t> dim) const {
  return tern::take_along_dim(self(), indices, dim);
}
Tensor MoreMethods::msort() const { return tern::msort(self()); }
std::pair<Tensor, Tensor> MoreMethods::mode(int64_t dim, bool keepdim) const {
  return tern::mode(self(), dim, keepdim);
}
std::pair<Tensor, Tensor> MoreMethods::aminmax() const { return tern::aminmax(self()); }
std::pair<Tensor, Tensor> MoreMethods::aminmax(int64_t dim, bool keepdim) const {
  return tern::aminmax(self(), dim, keepdim);
}

Tensor MoreMethods::positive() const { return tern::positive(self()); }
Tensor MoreMethods::float_power(const Tensor& exponent) const { return tern::float_power(self(), exponent); }
Tensor MoreMethods::float_power(const Scalar& exponent) const { return tern::float_power(self(), exponent); }
Tensor MoreMethods::inner(const Tensor& other) const { return tern::inner(self(), other); }
Tensor MoreMethods::vdot(const Tensor& other) const { return tern::vdot(self(), other); }
Tensor MoreMethods::cross(const Tensor& other, std::optional<int64_t> dim) const {
  return tern::cross(self(), other, dim);
}
Tensor MoreMethods::addmm(const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                          const Scalar& alpha) const {
  return tern::addmm(self(), mat1, mat2, beta, alpha);
}
Tensor MoreMethods::baddbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                            const Scalar& alpha) const {
  return tern::baddbmm(self(), batch1, batch2, beta, alpha);
}
Tensor MoreMethods::addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta,
                          const Scalar& alpha) const {
  return tern::addmv(self(), mat, vec, beta, alpha);
}
Tensor MoreMethods::addr(const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                         const Scalar& alpha) const {
  return tern::addr(self(), vec1, vec2, beta, alpha);
}
Tensor MoreMethods::cov(int64_t correction) const { return tern::cov(self(), correction); }
Tensor MoreMethods::corrcoef() const { return tern::corrcoef(self()); }

Tensor& MoreMethods::exponential_(double rate) { return tern::exponential_(self(), rate); }
Tensor& MoreMethods::bernoulli_(double p) { return tern::bernoulli_(self(), p); }
Tensor& MoreMethods::random_() { return tern::random_(self()); }
Tensor& MoreMethods::random_(int64_t to) { return tern::random_(self(), 0, to); }
Tensor& MoreMethods::random_(int64_t from, int64_t to) { return tern::random_(self(), from, to); }

}  // namespace tern
