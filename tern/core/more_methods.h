// The second part of Tensor's methods, after those in core/tensor.h: parts that are replaced, products and
// statistics, complex numbers, comparisons and scans in place, shapes that change in place. They forward to
// operators of the same name and are defined in ops/.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "tern/core/scalar.h"
#include "tern/core/shape.h"

namespace tern {

class Tensor;

/// A part of Tensor, which alone derives from it.
class MoreMethods {
 public:
  // ---- shapes and parts
  // ----------------------------------------------------------------------------------
  Tensor swapaxes(int64_t axis0, int64_t axis1) const;
  Tensor swapdims(int64_t dim0, int64_t dim1) const;
  Tensor moveaxis(int64_t source, int64_t destination) const;
  Tensor flipud() const;
  Tensor fliplr() const;
  Tensor rot90(int64_t k = 1, IntArrayRef dims = {0, 1}) const;
  Tensor diag_embed(int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) const;
  Tensor diagflat(int64_t offset = 0) const;
  Tensor select_scatter(const Tensor& src, int64_t dim, int64_t index) const;
  Tensor slice_scatter(const Tensor& src, int64_t dim = 0, std::optional<int64_t> start = {},
                       std::optional<int64_t> end = {}, int64_t step = 1) const;
  Tensor diagonal_scatter(const Tensor& src, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;

  // ---- order
  // ----------------------------------------------------------------------------------
  Tensor argwhere() const;
  Tensor take_along_dim(const Tensor& indices, std::optional<int64_t> dim = {}) const;
  Tensor msort() const;
  std::pair<Tensor, Tensor> mode(int64_t dim = -1, bool keepdim = false) const;
  std::pair<Tensor, Tensor> aminmax() const;
  std::pair<Tensor, Tensor> aminmax(int64_t dim, bool keepdim = false) const;

  // ---- arithmetic, products, statistics
  // ----------------------------------------------------------------------------------
  Tensor positive() const;
  Tensor float_power(const Tensor& exponent) const;
  Tensor float_power(const Scalar& exponent) const;
  Tensor inner(const Tensor& other) const;
  Tensor vdot(const Tensor& other) const;
  Tensor cross(const Tensor& other, std::optional<int64_t> dim = {}) const;
  Tensor addmm(const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1, const Scalar& alpha = 1) const;
  Tensor baddbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
                 const Scalar& alpha = 1) const;
  Tensor addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1) const;
  Tensor addr(const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1, const Scalar& alpha = 1) const;
  Tensor cov(int64_t correction = 1) const;
  Tensor corrcoef() const;

  // ---- complex numbers
  // ----------------------------------------------------------------------------------

  /// Views of the parts; real() of a real tensor is itself, imag() of one throws DTypeError.
  Tensor real() const;
  Tensor imag() const;
  /// A real tensor itself; else a copy with the signs of the imaginary parts changed.
  Tensor conj() const;
  Tensor angle() const;
  /// The conjugate of the last two dimensions exchanged.
  Tensor mH() const;
  Tensor adjoint() const;

  // ---- in place: each changes the storage, counts a version, and returns *this
  // ----------------------------------------------------------------------------------

  /// Comparisons and logic write 0 and 1 in the tensor's own dtype. Their gradient is 0.
  Tensor& eq_(const Tensor& other);
  Tensor& eq_(const Scalar& other);
  Tensor& ne_(const Tensor& other);
  Tensor& ne_(const Scalar& other);
  Tensor& lt_(const Tensor& other);
  Tensor& lt_(const Scalar& other);
  Tensor& le_(const Tensor& other);
  Tensor& le_(const Scalar& other);
  Tensor& gt_(const Tensor& other);
  Tensor& gt_(const Scalar& other);
  Tensor& ge_(const Tensor& other);
  Tensor& ge_(const Scalar& other);
  Tensor& logical_and_(const Tensor& other);
  Tensor& logical_or_(const Tensor& other);
  Tensor& logical_xor_(const Tensor& other);
  Tensor& logical_not_();
  Tensor& tril_(int64_t diagonal = 0);
  Tensor& triu_(int64_t diagonal = 0);
  /// Fills the main diagonal of a matrix, or of more dimensions of one size. With `wrap` that of a matrix
  /// with more rows than columns begins anew after each square and a row.
  Tensor& fill_diagonal_(const Scalar& value, bool wrap = false);
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source);
  Tensor& cumsum_(int64_t dim);
  Tensor& cumprod_(int64_t dim);
  Tensor& addmm_(const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1, const Scalar& alpha = 1);
  Tensor& baddbmm_(const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
                   const Scalar& alpha = 1);
  Tensor& addmv_(const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1);
  Tensor& addr_(const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1, const Scalar& alpha = 1);
  Tensor& renorm_(double p, int64_t dim, double maxnorm);
  Tensor& exponential_(double rate = 1);
  Tensor& bernoulli_(double p = 0.5);
  Tensor& random_();
  Tensor& random_(int64_t to);
  Tensor& random_(int64_t from, int64_t to);

  // ---- the shape in place
  // ----------------------------------------------------------------------------------

  /// The layout of the view of the same name, for the same elements; views taken before stay as they are.
  /// Counts a version, as what was saved for backward had another shape. Throws AutogradError for a leaf that
  /// requires a gradient, inside a NoGradGuard too.
  Tensor& squeeze_();
  Tensor& squeeze_(Dimension auto dim) { return squeeze_dim_(static_cast<int64_t>(dim)); }
  Tensor& squeeze_(IntArrayRef dims);
  Tensor& unsqueeze_(int64_t dim);
  Tensor& transpose_(int64_t dim0, int64_t dim1);
  Tensor& swapaxes_(int64_t axis0, int64_t axis1) { return transpose_(axis0, axis1); }
  Tensor& swapdims_(int64_t dim0, int64_t dim1) { return transpose_(dim0, dim1); }
  Tensor& t_();

 protected:
  MoreMethods() = default;

 private:
  const Tensor& self() const;
  Tensor& self();
  Tensor& squeeze_dim_(int64_t dim);
};

}  // namespace tern
