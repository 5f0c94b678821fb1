// Shapes and indices, for operator_list.cpp: one line for each.
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/embedding.h"
#include "tern/ops/index.h"
#include "tern/ops/names.h"
#include "tern/ops/shape.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {
namespace {

using Joined = Tensor (*)(const std::vector<Tensor>&, int64_t);
using Widened = Tensor (*)(const Tensor&);
using WidenedAll = std::vector<Tensor> (*)(const std::vector<Tensor>&);

Operator joined(Joined f) {
  return [f](A a) { return f(a.tensors(0), a.integer(1)); };
}
/// Of a tensor or a list.
Operator widened(Widened one, WidenedAll all) {
  return [one, all](A a) { return a.is_tensor(0) ? Results(one(a.tensor(0))) : Results(all(a.tensors(0))); };
}

}  // namespace

const Table kShape = {
    {"view", [](A a) { return view(a.tensor(0), a.integers(1)); }},
    {"reshape", [](A a) { return reshape(a.tensor(0), a.integers(1)); }},
    {"view_as", two(view_as)},
    {"reshape_as", two(reshape_as)},
    {"flatten", [](A a) { return flatten(a.tensor(0), a.integer(1), a.integer(2, -1)); }},
    {"unflatten", [](A a) { return unflatten(a.tensor(0), a.integer(1), a.integers(2)); }},
    {"squeeze", [](A a) { return a.has(1) ? squeeze(a.tensor(0), a.integers(1)) : squeeze(a.tensor(0)); }},
    {"squeeze_dim", [](A a) { return squeeze(a.tensor(0), a.integer(1)); }},
    {"unsqueeze", [](A a) { return unsqueeze(a.tensor(0), a.integer(1)); }},
    {"permute", [](A a) { return permute(a.tensor(0), a.integers(1)); }},
    {"transpose", [](A a) { return transpose(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"swapaxes", [](A a) { return swapaxes(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"t", one(t)},
    {"mT", one(mT)},
    {"movedim", [](A a) { return movedim(a.tensor(0), a.integers(1), a.integers(2)); }},
    {"expand", [](A a) { return expand(a.tensor(0), a.integers(1)); }},
    {"expand_as", two(expand_as)},
    {"broadcast_to", [](A a) { return broadcast_to(a.tensor(0), a.integers(1)); }},
    {"broadcast_tensors", [](A a) { return broadcast_tensors(a.tensors(0)); }},
    {"meshgrid", [](A a) { return meshgrid(a.tensors(0), a.text(1, "ij").c_str()); }},
    {"narrow", [](A a) { return narrow(a.tensor(0), a.integer(1), a.integer(2), a.integer(3)); }},
    {"slice",
     [](A a) {
       return slice(a.tensor(0), a.integer(1), a.optional_integer(2), a.optional_integer(3), a.integer(4, 1));
     }},
    {"select", [](A a) { return select(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"unbind", [](A a) { return unbind(a.tensor(0), a.integer(1)); }},
    {"chunk", [](A a) { return chunk(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"split", [](A a) { return split(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"split_sizes", [](A a) { return split(a.tensor(0), IntArrayRef(a.integers(1)), a.integer(2)); }},
    {"diagonal", [](A a) { return diagonal(a.tensor(0), a.integer(1), a.integer(2), a.integer(3, 1)); }},
    {"unfold", [](A a) { return unfold(a.tensor(0), a.integer(1), a.integer(2), a.integer(3)); }},
    {"as_strided",
     [](A a) { return as_strided(a.tensor(0), a.integers(1), a.integers(2), a.optional_integer(3)); }},
    {"atleast_1d", widened(atleast_1d, atleast_1d)},
    {"atleast_2d", widened(atleast_2d, atleast_2d)},
    {"atleast_3d", widened(atleast_3d, atleast_3d)},
    {"hsplit",
     [](A a) {
       return a.has(1) ? hsplit(a.tensor(0), IntArrayRef(a.integers(1))) : hsplit(a.tensor(0), a.integer(2));
     }},
    {"vsplit",
     [](A a) {
       return a.has(1) ? vsplit(a.tensor(0), IntArrayRef(a.integers(1))) : vsplit(a.tensor(0), a.integer(2));
     }},
    {"dsplit",
     [](A a) {
       return a.has(1) ? dsplit(a.tensor(0), IntArrayRef(a.integers(1))) : dsplit(a.tensor(0), a.integer(2));
     }},
    {"select_scatter",
     [](A a) { return select_scatter(a.tensor(0), a.tensor(1), a.integer(2), a.integer(3)); }},
    {"slice_scatter",
     [](A a) {
       return slice_scatter(a.tensor(0), a.tensor(1), a.integer(2), a.optional_integer(3),
                            a.optional_integer(4), a.integer(5, 1));
     }},
    {"diagonal_scatter",
     [](A a) {
       return diagonal_scatter(a.tensor(0), a.tensor(1), a.integer(2), a.integer(3), a.integer(4, 1));
     }},
    {"swapdims", [](A a) { return swapdims(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"moveaxis", [](A a) { return moveaxis(a.tensor(0), a.integers(1), a.integers(2)); }},
    {"concat", joined(concat)},
    {"concatenate", joined(concatenate)},
    {"row_stack", [](A a) { return row_stack(a.tensors(0)); }},
    {"cat", joined(cat)},
    {"stack", [](A a) { return stack(a.tensors(0), a.integer(1)); }},
    {"hstack", [](A a) { return hstack(a.tensors(0)); }},
    {"vstack", [](A a) { return vstack(a.tensors(0)); }},
    {"repeat", [](A a) { return repeat(a.tensor(0), a.integers(1)); }},
    {"tile", [](A a) { return tile(a.tensor(0), a.integers(1)); }},
    {"repeat_interleave",
     [](A a) { return repeat_interleave(a.tensor(0), a.integer(1), a.optional_integer(2)); }},
    {"roll", [](A a) { return roll(a.tensor(0), a.integers(1), a.integers(2)); }},
    {"flip", [](A a) { return flip(a.tensor(0), a.integers(1)); }},
    {"to", [](A a) { return to(a.tensor(0), *a.dtype(1)); }},
    {"contiguous", one(contiguous)},
    {"clone", one(clone)},
    {"item",
     [](A a) {
       const Scalar value = item(a.tensor(0));
       return full({}, value, {.dtype = value.kind(), .device = {}});
     }},
};

const Table kIndex = {
    {"gather", [](A a) { return gather(a.tensor(0), a.integer(1), a.tensor(2)); }},
    {"scatter",
     [](A a) {
       return a.is_tensor(3) ? scatter(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3))
                             : scatter(a.tensor(0), a.integer(1), a.tensor(2), a.number(3));
     }},
    {"scatter_add", [](A a) { return scatter_add(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3)); }},
    {"take_along_dim", [](A a) { return take_along_dim(a.tensor(0), a.tensor(1), a.optional_integer(2)); }},
    {"take", two(take)},
    {"index_select", [](A a) { return index_select(a.tensor(0), a.integer(1), a.tensor(2)); }},
    {"index_add",
     [](A a) { return index_add(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3), a.number(4, 1)); }},
    {"index_copy", [](A a) { return index_copy(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3)); }},
    {"index_fill", [](A a) { return index_fill(a.tensor(0), a.integer(1), a.tensor(2), a.number(3)); }},
    {"index", [](A a) { return index(a.tensor(0), a.tensors(1)); }},
    {"index_put", [](A a) { return index_put(a.tensor(0), a.tensors(1), a.tensor(2), a.flag(3)); }},
    {"where",
     [](A a) {
       const Tensor condition = a.tensor(0);
       if (!a.has(1)) return Results(where(condition));
       if (a.is_tensor(1))
         return Results(a.is_tensor(2) ? where(condition, a.tensor(1), a.tensor(2))
                                       : where(condition, a.tensor(1), a.number(2)));
       return Results(a.is_tensor(2) ? where(condition, a.number(1), a.tensor(2))
                                     : where(condition, a.number(1), a.number(2)));
     }},
    {"masked_fill",
     [](A a) {
       return a.is_tensor(2) ? masked_fill(a.tensor(0), a.tensor(1), a.tensor(2))
                             : masked_fill(a.tensor(0), a.tensor(1), a.number(2));
     }},
    {"masked_select", two(masked_select)},
    {"masked_scatter", [](A a) { return masked_scatter(a.tensor(0), a.tensor(1), a.tensor(2)); }},
    {"nonzero", one(nonzero)},
    {"argwhere", one(argwhere)},
    {"searchsorted", [](A a) { return searchsorted(a.tensor(0), a.tensor(1), a.flag(2)); }},
    {"bucketize", [](A a) { return bucketize(a.tensor(0), a.tensor(1), a.flag(2)); }},
    {"embedding",
     [](A a) -> Results {
       if (!a.has(3) && !a.flag(5)) return embedding(a.tensor(0), a.tensor(1), a.optional_integer(2));
       // The table, which is changed, is a result too.
       const Tensor table = clone(a.tensor(1));
       const Tensor rows = embedding(a.tensor(0), table,
                                     {.padding_idx = a.optional_integer(2),
                                      .max_norm = a.optional_real(3),
                                      .norm_type = a.real(4, 2),
                                      .scale_grad_by_freq = a.flag(5)});
       return std::vector<Tensor>{rows, table.detach()};
     }},
    {"embedding_renorm_",
     [](A a) {
       Tensor table = clone(a.tensor(0));
       return embedding_renorm_(table, a.tensor(1), a.real(2), a.real(3, 2));
     }},
};

}  // namespace tern::testing
