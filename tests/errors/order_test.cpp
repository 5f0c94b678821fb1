// Wrong uses: distinct elements, quantiles, counting, diagonals, products along dimensions.
#include <limits>

#include "wrong_use.h"

namespace tern {
namespace {

std::vector<WrongUse> order_rows() {
  const std::type_index shape = typeid(ShapeError), dtype = typeid(DTypeError), value = typeid(ValueError),
                        index = typeid(IndexError);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"unique_of_empty_slices",
       shape,
       [] {
         unique(ones({2, 0}), {.dim = 0});
       },
       {"unique: ", "0 sized dimensions", "dimension 0", "[2, 0]"}},
      {"unique_dim",
       index,
       [] {
         unique(ones({2, 2}), {.dim = 2});
       },
       {"unique: ", "2"}},
      {"isin_of_bool", dtype, [] { isin(tensor({true}), tensor({true})); }, {"isin: ", "bool", "to(uint8)"}},
      {"bincount_rank", shape, [] { bincount(tensor(1)); }, {"bincount: only supports 1-d", "[]"}},
      {"bincount_of_floats",
       dtype,
       [] { bincount(ones({3})); },
       {"bincount: ", "integral", "float32", "to(int64)"}},
      {"bincount_negative",
       value,
       [] {
         bincount(tensor({2, -3}));
       },
       {"bincount: ", "non-negative", "-3"}},
      {"bincount_weights",
       shape,
       [] {
         bincount(tensor({2, 3}), ones({3}));
       },
       {"bincount: ", "weights", "[3]", "[2]"}},
      {"bincount_minlength", value, [] { bincount(tensor({2}), {}, -1); }, {"bincount: minlength", "-1"}},
      {"bincount_of_largest",
       value,
       [] { bincount(tensor({std::numeric_limits<int64_t>::max()})); },
       {"bincount: ", "too large"}},
      {"bincount_of_hostile_size",
       typeid(OutOfMemoryError),
       [] { bincount(tensor({int64_t{1} << 50})); },
       {}},
      {"histc_bins", value, [] { histc(ones({3}), 0); }, {"histc: bins must be > 0", "0"}},
      {"histc_bins_hostile", value, [] { histc(ones({3}), INT64_MAX); }, {"histc: bins must be > 0"}},
      {"histc_bins_large", value, [] { histc(ones({3}), int64_t{1} << 62); }, {"histc: bins", "below 2^53"}},
      {"histc_range", value, [] { histc(ones({3}), 4, 2, 1); }, {"histc: max must be larger than min"}},
      {"histc_of_nan", value, [nan] { histc(full({3}, nan), 4); }, {"histc: range of", "not finite"}},
      {"histc_of_integers", dtype, [] { histc(tensor({1}), 4); }, {"histc: ", "int64", "to(float32)"}},
      {"quantile_number", value, [] { quantile(ones({3}), 1.5); }, {"quantile: ", "[0, 1]", "1.5"}},
      {"quantile_of_nan", value, [nan] { quantile(ones({3}), nan); }, {"quantile: ", "[0, 1]"}},
      {"quantile_rank",
       shape,
       [] {
         quantile(ones({3}), ones({1, 1}));
       },
       {"quantile: q must be a scalar or 1D", "[1, 1]"}},
      {"quantile_dtypes",
       dtype,
       [] { quantile(ones({3}), full({1}, 0.5, {.dtype = float64})); },
       {"quantile: ", "same dtype", "float64", "float32"}},
      {"quantile_of_half",
       dtype,
       [] { nanquantile(ones({3}, {.dtype = float16}), 0.5); },
       {"nanquantile: ", "float32 or float64", "float16"}},
      {"quantile_word",
       value,
       [] { quantile(ones({3}), 0.5, {}, false, "between"); },
       {"quantile: interpolation", "linear, lower, higher, midpoint or nearest", "between"}},
      {"quantile_of_nothing", value, [] { quantile(ones({0}), 0.5); }, {"quantile: ", "non-empty", "[0]"}},
      {"kthvalue_k", value, [] { kthvalue(ones({3}), 4); }, {"kthvalue: ", "out of range", "k is 4", "3"}},
      {"kthvalue_of_bool", dtype, [] { kthvalue(tensor({true}), 1); }, {"kthvalue: ", "bool", "to(uint8)"}},
      {"mode_of_nothing",
       index,
       [] {
         mode(ones({2, 0}));
       },
       {"mode: ", "non-zero size", "[2, 0]"}},
      {"nanmedian_of_nothing",
       index,
       [] {
         nanmedian(ones({0, 2}), 0);
       },
       {"nanmedian: ", "[0, 2]"}},
      {"nanmean_of_integers", dtype, [] { nanmean(tensor({1})); }, {"nanmean: ", "int64", "to(float32)"}},
      {"cummax_dim", index, [] { cummax(ones({2}), 1); }, {"cummax: ", "1"}},
      {"logcumsumexp_of_integers",
       dtype,
       [] { logcumsumexp(tensor({1}), 0); },
       {"logcumsumexp: ", "int64", "to(float32)"}},
      {"diff_of_number", shape, [] { diff(tensor(1)); }, {"diff: ", "one-dimensional"}},
      {"diff_order", value, [] { diff(ones({3}), -2); }, {"diff: order", "-2"}},
      {"diff_prepend",
       shape,
       [] {
         diff(ones({3}), 1, 0, ones({2, 2}));
       },
       {"diff: ", "same number of dimensions"}},
  };
}

std::vector<WrongUse> diagonal_rows() {
  const std::type_index shape = typeid(ShapeError), dtype = typeid(DTypeError), value = typeid(ValueError),
                        index = typeid(IndexError);
  constexpr int64_t huge = int64_t{1} << 62;
  return {
      {"scatter_reduce_word",
       value,
       [] { scatter_reduce(ones({3}), 0, tensor({1}), ones({1}), "max"); },
       {"scatter_reduce: reduce argument", "sum, prod, mean, amax or amin", "max"}},
      {"scatter_reduce_mean_of_bool",
       typeid(DTypeError),
       [] {
         const Tensor yes = ones({1}, {.dtype = DType::Bool});
         scatter_reduce(yes, 0, tensor({0}), yes, "mean");
       },
       {"scatter_reduce: there is no mean of bool"}},
      {"scatter_reduce_index",
       index,
       [] { scatter_reduce(ones({3}), 0, tensor({3}), ones({1}), "amax"); },
       {"scatter_reduce: index 3 is out of bounds for dimension 0 with size 3"}},
      {"scatter_reduce_dtypes",
       dtype,
       [] { scatter_reduce(ones({3}), 0, tensor({1}), ones({1}, {.dtype = float64}), "amax"); },
       {"scatter_reduce: ", "float32", "float64"}},
      {"scatter_reduce_source",
       shape,
       [] {
         scatter_reduce(ones({3}), 0, tensor({1, 2}), ones({1}), "prod");
       },
       {"scatter_reduce: ", "[2]", "[1]"}},
      {"put_sizes",
       shape,
       [] {
         ones({3}).put_(tensor({1, 2}), ones({3}));
       },
       {"put_: ", "= 3", "= 2"}},
      {"put_index", index, [] { ones({3}).put_(tensor({-4}), ones({1})); }, {"put_: ", "-4", "with size 3"}},
      {"diag_rank",
       shape,
       [] {
         diag(ones({2, 2, 2}));
       },
       {"diag: Supports 1D or 2D tensors. Got 3D"}},
      {"diag_embed_dims",
       shape,
       [] { diag_embed(ones({2}), 0, 1, -1); },
       {"diag_embed: ", "identical 1, -1"}},
      {"diag_embed_offset", shape, [] { diag_embed(ones({2}), huge); }, {"diag_embed: ", "elements"}},
      {"diag_offset",
       shape,
       [] { diag(ones({2}), std::numeric_limits<int64_t>::min()); },
       {"diag_embed: offset", "too large"}},
      {"trace_rank", shape, [] { trace(ones({3})); }, {"trace: expected a matrix", "[3]"}},
      {"block_diag_rank",
       shape,
       [] {
         block_diag({ones({2}), ones({2, 2, 2})});
       },
       {"block_diag: ", "Input 1 has 3 dimensions"}},
      {"tril_indices_sizes", value, [] { tril_indices(-1, 2); }, {"tril_indices: ", "-1"}},
      {"triu_indices_hostile", shape, [] { triu_indices(huge, huge); }, {"triangle", "too many elements"}},
      {"tril_indices_hostile", shape, [] { tril_indices(2, INT64_MAX); }, {"tril_indices: ", "2^60"}},
      {"tril_indices_memory", typeid(OutOfMemoryError), [] { tril_indices(huge >> 16, 1); }, {}},
      {"tril_indices_dtype",
       dtype,
       [] { tril_indices(2, 2, 0, {.dtype = float32}); },
       {"tril_indices: ", "int64 or int32", "float32"}},
      {"tensordot_sizes",
       shape,
       [] {
         tensordot(ones({2, 3}), ones({4, 2}), 1);
       },
       {"tensordot: ", "size 3 in dim 1", "size 4 in dim 0"}},
      {"tensordot_lists",
       shape,
       [] {
         tensordot(ones({2, 3}), ones({3, 2}), {0}, {0, 1});
       },
       {"tensordot: both dimension lists", "[0]", "[0, 1]"}},
      {"tensordot_dims",
       shape,
       [] {
         tensordot(ones({2, 3}), ones({3, 2}), 3);
       },
       {"tensordot: ", "dims = 3"}},
      {"tensordot_result",
       shape,
       [=] {
         const Tensor x = ones({1}).expand({huge});
         tensordot(x, x, 0);
       },
       {"tensordot: too many elements"}},
      {"tensordot_dtypes",
       dtype,
       [] {
         tensordot(ones({2, 3}), ones({3, 2}, {.dtype = float64}), 1);
       },
       {"tensordot: ", "float32", "float64"}},
      {"cross_sizes",
       shape,
       [] {
         cross(ones({2, 4}), ones({2, 4}));
       },
       {"cross: no dimension of size 3", "[2, 4]"}},
      {"cross_dim",
       shape,
       [] {
         cross(ones({3, 2}), ones({3, 2}), 1);
       },
       {"cross: inputs dimension 1 must have length 3", "[3, 2]"}},
      {"cdist_columns",
       shape,
       [] {
         cdist(ones({2, 3}), ones({2, 4}));
       },
       {"cdist: ", "[2, 3]", "[2, 4]"}},
      {"cdist_order",
       value,
       [] {
         cdist(ones({2, 3}), ones({2, 3}), -1);
       },
       {"cdist: ", "-1"}},
      {"cdist_word",
       value,
       [] {
         cdist(ones({2, 3}), ones({2, 3}), 2, "fast");
       },
       {"cdist: fast is not a valid value for compute_mode"}},
      {"cdist_of_integers",
       dtype,
       [] { cdist(tensor({{1}}), tensor({{1}})); },
       {"cdist: ", "int64", "to(float32)"}},
      {"renorm_rank", shape, [] { renorm(ones({2}), 2, 0, 1); }, {"renorm: ", "2 dimensions", "1"}},
      {"renorm_order",
       value,
       [] {
         renorm(ones({2, 2}), 0, 0, 1);
       },
       {"renorm: non-positive norm", "0"}},
      {"tensor_split_sections", value, [] { tensor_split(ones({2}), 0); }, {"tensor_split: ", "0"}},
      {"tensor_split_of_number", shape, [] { tensor_split(tensor(1), 1); }, {"tensor_split: ", "0-d"}},
      {"cartesian_prod_rank",
       shape,
       [] {
         cartesian_prod({ones({2}), ones({2, 1})});
       },
       {"cartesian_prod: expects 1D vectors", "[2, 1]"}},
      {"combinations_number", value, [] { combinations(ones({3}), -1); }, {"combinations: ", "-1"}},
      {"combinations_hostile",
       shape,
       [] { combinations(ones({1000}), 500); },
       {"combinations: ", "elements"}},
      {"combinations_hostile_number",
       value,
       [] { combinations(ones({3}), INT64_MAX, true); },
       {"combinations: ", "too large"}},
      {"kron_hostile",
       shape,
       [] {
         kron(zeros({int64_t{1} << 40, 0}), zeros({int64_t{1} << 40, 0}));
       },
       {"kron: "}},
      {"inner_sizes",
       shape,
       [] {
         inner(ones({2, 3}), ones({4, 2}));
       },
       {"inner: the last dimension", "[2, 3]", "[4, 2]"}},
      {"hsplit_sections", value, [] { hsplit(ones({4}), 3); }, {"hsplit: ", "size 4", "3", "tensor_split"}},
      {"dsplit_rank",
       shape,
       [] {
         dsplit(ones({4, 2}), {1});
       },
       {"dsplit: ", "at least 3 dimensions", "[4, 2]"}},
      {"select_scatter_shape",
       shape,
       [] {
         select_scatter(ones({2, 3}), ones({3}), 1, 0);
       },
       {"select_scatter: expected src", "[3]", "[2]"}},
      {"cov_weights",
       value,
       [] {
         cov(ones({2, 2}), 1, tensor({1, -1}));
       },
       {"cov: fweights cannot be negative"}},
      {"cov_kind", dtype, [] { cov(ones({2}), 1, ones({2})); }, {"cov: ", "fweights", "integral", "float32"}},
      {"trapezoid_places",
       shape,
       [] {
         trapezoid(ones({2, 3}), ones({2}));
       },
       {"trapezoid: There must be one `x` value", "[2]", "[2, 3]"}},
      {"hann_window_dtype",
       dtype,
       [] { hann_window(3, true, {.dtype = int64}); },
       {"hann_window: expects a floating point dtype", "int64"}},
      {"fill_diagonal_rank", shape, [] { ones({3}).fill_diagonal_(1); }, {"fill_diagonal_: ", "[3]"}},
      {"lt_in_place", shape, [] { ones({1}).lt_(ones({3})); }, {"lt_: output with shape [1]", "[3]"}},
      {"fliplr_rank", shape, [] { fliplr(ones({3})); }, {"fliplr: Input must be >= 2-d", "[3]"}},
      {"rot90_dims",
       shape,
       [] {
         rot90(ones({2, 2}), 1, {1, -1});
       },
       {"rot90: ", "different", "1 and -1"}},
  };
}

TERN_WRONG_USES(OrderUses, order_rows);
TERN_WRONG_USES(DiagonalUses, diagonal_rows);

}  // namespace
}  // namespace tern
