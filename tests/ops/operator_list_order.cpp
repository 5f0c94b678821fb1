// Distinct elements, quantiles, diagonals, products along dimensions and their kin, for operator_list.cpp:
// one line for each.
#include "tern/ops/diagonal.h"
#include "tern/ops/distance.h"
#include "tern/ops/histogram.h"
#include "tern/ops/index.h"
#include "tern/ops/products.h"
#include "tern/ops/quantile.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/sort.h"
#include "tern/ops/unique.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {
namespace {

using MakeUnique = Unique (*)(const Tensor&, const UniqueOptions&);
using MakeQuantile = Tensor (*)(const Tensor&, double, std::optional<int64_t>, bool, std::string_view);
using MakeQuantiles = Tensor (*)(const Tensor&, const Tensor&, std::optional<int64_t>, bool,
                                 std::string_view);

/// (x, return_inverse, return_counts, dim).
Operator uniques(MakeUnique f) {
  return [f](A a) {
    const Unique made = f(
        a.tensor(0), {.return_inverse = a.flag(1), .return_counts = a.flag(2), .dim = a.optional_integer(3)});
    std::vector<Tensor> all{made.values};
    for (const Tensor& more : {made.inverse, made.counts})
      if (more.defined()) all.push_back(more);
    return all;
  };
}

Operator quantiles(MakeQuantile one, MakeQuantiles several) {
  return [one, several](A a) {
    const std::string word = a.text(4, "linear");
    return a.is_tensor(1) ? several(a.tensor(0), a.tensor(1), a.optional_integer(2), a.flag(3), word)
                          : one(a.tensor(0), a.real(1), a.optional_integer(2), a.flag(3), word);
  };
}

}  // namespace

const Table kOrder = {
    {"unique", uniques(unique)},
    {"unique_consecutive", uniques(unique_consecutive)},
    {"isin",
     [](A a) {
       return a.is_tensor(1) ? isin(a.tensor(0), a.tensor(1), a.flag(2), a.flag(3))
                             : isin(a.tensor(0), a.number(1), a.flag(2), a.flag(3));
     }},
    {"bincount", [](A a) { return bincount(a.tensor(0), a.tensor(1), a.integer(2)); }},
    {"histc", [](A a) { return histc(a.tensor(0), a.integer(1, 100), a.real(2), a.real(3)); }},
    {"quantile", quantiles(quantile, quantile)},
    {"nanquantile", quantiles(nanquantile, nanquantile)},
    {"nanmedian",
     [](A a) {
       return a.has(1) ? Results(nanmedian(a.tensor(0), a.integer(1), a.flag(2)))
                       : Results(nanmedian(a.tensor(0)));
     }},
    {"kthvalue", [](A a) { return kthvalue(a.tensor(0), a.integer(1), a.integer(2, -1), a.flag(3)); }},
    {"mode", [](A a) { return mode(a.tensor(0), a.integer(1, -1), a.flag(2)); }},
    {"nansum", [](A a) { return nansum(a.tensor(0), a.integers(1), a.flag(2), a.dtype(3)); }},
    {"nanmean", [](A a) { return nanmean(a.tensor(0), a.integers(1), a.flag(2), a.dtype(3)); }},
    {"cummax", [](A a) { return cummax(a.tensor(0), a.integer(1)); }},
    {"cummin", [](A a) { return cummin(a.tensor(0), a.integer(1)); }},
    {"logcumsumexp", [](A a) { return logcumsumexp(a.tensor(0), a.integer(1)); }},
    {"diff",
     [](A a) { return diff(a.tensor(0), a.integer(1, 1), a.integer(2, -1), a.tensor(3), a.tensor(4)); }},
    {"scatter_reduce",
     [](A a) {
       return scatter_reduce(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3), a.text(4), a.flag(5, true));
     }},
    {"scatter_reduce_", in_place([](Tensor& x, A a) {
       x.scatter_reduce_(a.integer(1), a.tensor(2), a.tensor(3), a.text(4), a.flag(5, true));
     })},
    {"put", [](A a) { return put(a.tensor(0), a.tensor(1), a.tensor(2), a.flag(3)); }},
    {"put_", in_place([](Tensor& x, A a) { x.put_(a.tensor(1), a.tensor(2), a.flag(3)); })},
    {"diag", [](A a) { return diag(a.tensor(0), a.integer(1)); }},
    {"diagflat", [](A a) { return diagflat(a.tensor(0), a.integer(1)); }},
    {"diag_embed",
     [](A a) { return diag_embed(a.tensor(0), a.integer(1), a.integer(2, -2), a.integer(3, -1)); }},
    {"trace", one(trace)},
    {"block_diag", [](A a) { return block_diag(a.tensors(0)); }},
    {"tril_indices",
     [](A a) { return tril_indices(a.integer(0), a.integer(1), a.integer(2), a.options(3)); }},
    {"triu_indices",
     [](A a) { return triu_indices(a.integer(0), a.integer(1), a.integer(2), a.options(3)); }},
    {"tensordot",
     [](A a) {
       return a.has(3) ? tensordot(a.tensor(0), a.tensor(1), a.integers(2), a.integers(3))
                       : tensordot(a.tensor(0), a.tensor(1), a.integer(2, 2));
     }},
    {"kron", two(kron)},
    {"cross", [](A a) { return cross(a.tensor(0), a.tensor(1), a.optional_integer(2)); }},
    {"pdist", [](A a) { return pdist(a.tensor(0), a.real(1, 2)); }},
    {"cdist",
     [](A a) {
       return cdist(a.tensor(0), a.tensor(1), a.real(2, 2), a.text(3, "use_mm_for_euclid_dist_if_necessary"));
     }},
    {"renorm", [](A a) { return renorm(a.tensor(0), a.real(1), a.integer(2), a.real(3)); }},
    {"ravel", one(ravel)},
    {"tensor_split", [](A a) { return tensor_split(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"tensor_split_at",
     [](A a) { return tensor_split(a.tensor(0), IntArrayRef(a.integers(1)), a.integer(2)); }},
    {"dstack", [](A a) { return dstack(a.tensors(0)); }},
    {"column_stack", [](A a) { return column_stack(a.tensors(0)); }},
    {"cartesian_prod", [](A a) { return cartesian_prod(a.tensors(0)); }},
    {"combinations", [](A a) { return combinations(a.tensor(0), a.integer(1, 2), a.flag(2)); }},
    {"flipud", one(flipud)},
    {"fliplr", one(fliplr)},
    {"rot90",
     [](A a) {
       return a.has(2) ? rot90(a.tensor(0), a.integer(1, 1), a.integers(2))
                       : rot90(a.tensor(0), a.integer(1, 1));
     }},
};

}  // namespace tern::testing
