// Distinct elements by sorting: runs of equal neighbours begin where two of them differ.
#include "tern/ops/unique.h"

#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/reduce_geometry.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/sort.h"

namespace tern {
namespace {

Tensor int64_on(const Tensor& like, int64_t value) {
  return filled({1}, DType::Int64, like.device(), static_cast<double>(value));
}

/// The order of the rows of a matrix: by the last column, then stably by those before it.
Tensor order_of_rows(const Tensor& rows) {
  Tensor order = arange(rows.size(0), {.dtype = int64, .device = rows.device()});
  for (int64_t column = rows.size(1) - 1; column >= 0; --column)
    order = index_select(order, 0, argsort(index_select(select(rows, 1, column), 0, order)));
  return order;
}

/// `rows`: [n] or [n, m] with equal ones side by side; `order`: where each stood before, if they were moved.
Unique runs(const char* op, const Tensor& rows, const Tensor& order, const UniqueOptions& options) {
  const int64_t n = rows.size(0);
  Unique result;
  Tensor starts = empty({0}, {.dtype = int64, .device = rows.device()}), differs = starts;
  if (n > 0) {
    differs = ne(narrow(rows, 0, 1, n - 1), narrow(rows, 0, 0, n - 1));
    if (rows.dim() == 2) differs = any(differs, 1);
    const Tensor later = nonzero_coordinates(op, differs, /*flat=*/true)[0];
    starts = cat({int64_on(rows, 0), add(later, 1)});
  }
  result.values = index_select(rows, 0, starts);
  if (options.return_counts) result.counts = diff(starts, 1, 0, {}, int64_on(rows, n));
  if (options.return_inverse) {
    Tensor runs = n == 0 ? starts : cat({int64_on(rows, 0), cumsum(differs, 0)});
    result.inverse = order.defined() ? put_into_zeros({n}, 0, order, runs) : runs;
  }
  return result;
}

Unique distinct(const char* op, const Tensor& given, bool sorted, const UniqueOptions& options) {
  check_computable(op, given);
  const Tensor x = given.detach();
  if (!options.dim) {
    const Tensor flat = reshape(x, {-1});
    const auto [values, order] = sorted ? sort(flat) : std::pair(flat, Tensor());
    Unique result = runs(op, values, order, options);
    if (options.return_inverse) result.inverse = reshape(result.inverse, x.shape());
    return result;
  }
  const int64_t d = wrap_dim(*options.dim, x.dim(), op);
  if (x.dim() == 0) return distinct(op, x, sorted, {options.return_inverse, options.return_counts, {}});
  const Tensor slices = movedim(x, d, 0);
  const int64_t n = slices.size(0), m = n == 0 ? 0 : x.numel() / n;
  TERN_CHECK(x.numel() > 0 || n == 0, ShapeError,
             "{}: there are 0 sized dimensions besides dimension {} (shape {}), so unique cannot be applied",
             op, d, to_string(x.shape()));
  const Tensor rows = reshape(slices, {n, m});
  const Tensor order = sorted && n > 0 ? order_of_rows(rows) : Tensor();
  Unique result = runs(op, order.defined() ? index_select(rows, 0, order) : rows, order, options);
  Shape shape = slices.shape();
  shape[0] = result.values.size(0);
  result.values = contiguous(movedim(reshape(result.values, shape), 0, d));
  return result;
}

}  // namespace

Tensor unique(const Tensor& x) { return distinct("unique", x, /*sorted=*/true, {}).values; }
Unique unique(const Tensor& x, const UniqueOptions& options) {
  return distinct("unique", x, /*sorted=*/true, options);
}

Tensor unique_consecutive(const Tensor& x) {
  return distinct("unique_consecutive", x, /*sorted=*/false, {}).values;
}
Unique unique_consecutive(const Tensor& x, const UniqueOptions& options) {
  return distinct("unique_consecutive", x, /*sorted=*/false, options);
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, [[maybe_unused]] bool assume_unique,
            bool invert) {
  const char* op = "isin";
  check_same_device(op, {{"elements", elements}, {"test_elements", test_elements}});
  const DType dtype = result_type(elements, test_elements);
  TERN_CHECK(is_computable(dtype) && dtype != DType::Bool, DTypeError,
             "{}: unsupported input type {}: convert the tensors with to(uint8)", op, name(dtype));
  const Tensor x = cast(elements.detach(), dtype);
  Tensor tests = cast(reshape(test_elements.detach(), {-1}), dtype);
  if (tests.numel() == 0) return filled(x.shape(), DType::Bool, x.device(), invert ? 1 : 0);
  Tensor found;
  constexpr int64_t kFewTests = 8;
  if (tests.numel() <= kFewTests) {
    for (int64_t i = 0; i < tests.numel(); ++i) {
      const Tensor one = eq(x, select(tests, 0, i));
      found = found.defined() ? logical_or(found, one) : one;
    }
    return invert ? logical_not(found) : found;
  }
  Tensor numbers;
  if (is_floating_point(dtype)) {  // NaN gives its place to another element; nothing else is below it
    const Tensor nan = isnan(tests);
    tests = where(nan, amax(where(nan, -std::numeric_limits<double>::infinity(), tests)), tests);
    numbers = logical_not(all(nan));
  }
  const Tensor sorted = sort(tests).first;
  const Tensor place = clamp(searchsorted(sorted, x), {}, sorted.numel() - 1);
  found = eq(take(sorted, place), x);
  if (numbers.defined()) found = logical_and(found, numbers);
  return invert ? logical_not(found) : found;
}
Tensor isin(const Tensor& elements, const Scalar& test_element, [[maybe_unused]] bool assume_unique,
            bool invert) {
  return invert ? ne(elements, test_element) : eq(elements, test_element);
}

}  // namespace tern
