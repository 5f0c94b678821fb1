// Writes that join what is there with what comes: scatter_reduce; and those into the flattened tensor.
#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

enum class ScatterReduce { Sum, Prod, Mean, Amax, Amin };

ScatterReduce parse_scatter_reduce(const char* op, std::string_view word) {
  constexpr std::string_view words[] = {"sum", "prod", "mean", "amax", "amin"};
  for (size_t i = 0; i < std::size(words); ++i)
    if (words[i] == word) return static_cast<ScatterReduce>(i);
  TERN_THROW(ValueError, "{}: reduce argument must be either sum, prod, mean, amax or amin, got {}", op,
             word);
}

/// What changes nothing that it is joined with.
Scalar neutral(ScatterReduce how, DType dtype) {
  if (how == ScatterReduce::Prod) return 1;
  if (how == ScatterReduce::Sum || how == ScatterReduce::Mean) return 0;
  const bool largest = how == ScatterReduce::Amax;
  return visit_dtype(dtype, [&]<class T>() -> Scalar {
    if constexpr (std::is_same_v<T, bool>)
      return !largest;
    else if constexpr (std::is_integral_v<T>)
      return int64_t{largest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max()};
    else
      return largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  });
}

/// A scatter_reduce of one shape; the source has the index's.
struct Scattered {
  const char* op;
  ScatterReduce how;
  int64_t dim;
  bool include_self;

  /// x with `part` joined; no history.
  Tensor forward(const Tensor& x, const Tensor& index, const Tensor& part) const {
    const NoGradGuard no_grad;
    const Tensor base = include_self ? x : scatter(x, dim, index, neutral(how, x.dtype()));
    constexpr IndexPutMode modes[] = {IndexPutMode::Add, IndexPutMode::Prod, IndexPutMode::Add,
                                      IndexPutMode::Max, IndexPutMode::Min};
    Tensor y = join_along(op, base, dim, index, modes[static_cast<int>(how)], part);
    if (how != ScatterReduce::Mean) return y;
    const Tensor count = counts(y, index, part);
    return is_floating_point(y.dtype()) ? div(y, count) : div(y, count, "floor");
  }

  /// How many each element of the result is made of, at least 1.
  Tensor counts(const Tensor& y, const Tensor& index, const Tensor& part) const {
    const Tensor each = filled(part.shape(), y.dtype(), y.device(), 1);
    const Tensor count =
        scatter_add(filled(y.shape(), y.dtype(), y.device(), include_self ? 1 : 0), dim, index, each);
    // Numbers of small integer dtypes wrap around, as the sums do.
    return include_self && is_floating_point(y.dtype()) ? count : masked_fill(count, eq(count, 0), 1);
  }

  Tensor at(const Tensor& values, const Tensor& index) const { return gather(values, dim, index); }

  std::array<Tensor, 2> backward(const Tensor& g, const Tensor& x, const Tensor& index, const Tensor& part,
                                 const Tensor& y) const {
    std::array<Tensor, 2> grads;
    if (how == ScatterReduce::Sum) {
      grads = {g, at(g, index)};
    } else if (how == ScatterReduce::Mean) {
      const Tensor share = div(g, counts(g, index, part));
      grads = {share, at(share, index)};
    } else if (how == ScatterReduce::Prod) {
      grads = product_gradients(g, x, index, part, y);
    } else {
      const Tensor mine = cast(eq(x, y), g.dtype()), theirs = cast(eq(part, at(y, index)), g.dtype());
      const Tensor share = div(g, scatter_add(mine, dim, index, theirs));
      // Where nothing is equal (NaN), nothing is shared.
      grads = {where(gt(mine, 0), share, 0), where(gt(theirs, 0), at(share, index), 0)};
    }
    if (!include_self) grads[0] = scatter(grads[0], dim, index, 0);
    return grads;
  }

  /// The result over the element; for zeros the product of the others.
  std::array<Tensor, 2> product_gradients(const Tensor& g, const Tensor& x, const Tensor& index,
                                          const Tensor& part, const Tensor& y) const {
    const auto with = [&](const Tensor& self, const Tensor& source) {
      return scatter_reduce(self, dim, index, source, "prod", include_self);
    };
    const Tensor filled_x = masked_fill(x, eq(x, 0), 1);
    const Tensor zero = eq(part, 0);
    const Tensor zeros =
        scatter_add(filled(x.shape(), x.dtype(), x.device(), 0), dim, index, cast(zero, x.dtype()));
    const Tensor single = logical_and(zero, eq(at(zeros, index), 1));
    const Tensor others = at(mul(g, with(x, masked_fill(part, single, 1))), index);
    const Tensor ratio = div(at(mul(g, y), index), masked_fill(part, zero, 1));
    return {div(mul(g, with(filled_x, part)), filled_x), where(single, others, ratio)};
  }
};

Tensor run_scatter_reduce(const char* op, const Tensor& x, int64_t dim, const Tensor& given,
                          const Tensor& src, std::string_view reduce, bool include_self) {
  const Scattered scattered{op, parse_scatter_reduce(op, reduce), wrap_dim(dim, x.dim(), op), include_self};
  const Tensor index = as_index(op, x, given), part = scatter_source(op, x, index, src);
  TERN_CHECK(src.dtype() == x.dtype(), DTypeError,
             "{}: Expected self.dtype to be equal to src.dtype, got {} and {}: convert one with to(dtype)",
             op, name(x.dtype()), name(src.dtype()));
  TERN_CHECK(scattered.how != ScatterReduce::Mean || x.dtype() != DType::Bool, DTypeError,
             "{}: there is no mean of bool: convert the tensors with to(dtype)", op);
  Tensor y = scattered.forward(x, index, part);
  if (tracks_grad(x, part))
    record(op, y, {x, part},
           [scattered, x_ = save(x), index_ = save(index), part_ = save(part), y_ = save_output(y)](
               GradContext& c, const Tensor& g) {
             return scattered.backward(g, c[x_], c[index_], c[part_], c[y_]);
           });
  return y;
}

}  // namespace

Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self) {
  return run_scatter_reduce("scatter_reduce", x, dim, index, src, reduce, include_self);
}

Tensor& scatter_reduce_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self) {
  check_in_place("scatter_reduce_", self);
  // Its gradient reads what stood here before.
  const Tensor before = tracks_grad(self, src) ? clone(self) : self;
  return copy_(self, run_scatter_reduce("scatter_reduce_", before, dim, index, src, reduce, include_self));
}

namespace {

/// `source` in the shape of `index`.
Tensor put_source(const char* op, const Tensor& index, const Tensor& source) {
  TERN_CHECK(
      source.numel() == index.numel(), ShapeError,
      "{}: Expected source and index to have the same number of elements, but got source.numel() = {}, "
      "index.numel() = {}",
      op, source.numel(), index.numel());
  return reshape(source, index.shape());
}

}  // namespace

Tensor put(const Tensor& x, const Tensor& given, const Tensor& source, bool accumulate) {
  const Tensor index = as_index("put", x, given);
  return reshape(index_put(reshape(x, {-1}), {index}, put_source("put", index, source), accumulate),
                 x.shape());
}

Tensor& put_(Tensor& self, const Tensor& given, const Tensor& source, bool accumulate) {
  const Tensor index = as_index("put_", self, given), values = put_source("put_", index, source);
  check_in_place("put_", self);
  if (self.is_contiguous()) {
    Tensor flat = view(self, {-1});
    index_put_(flat, {index}, values, accumulate);
    return self;
  }
  return copy_(self, put(clone(self), index, values, accumulate));
}

}  // namespace tern
