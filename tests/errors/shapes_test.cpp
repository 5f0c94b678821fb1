// Wrong uses: shapes, ranks and strides.
#include "wrong_use.h"

namespace tern {
namespace {

std::vector<WrongUse> product_rows() {
  const std::type_index shape = typeid(ShapeError);
  return {
      {"matmul_inner_sizes",
       shape,
       [] {
         matmul(ones({2, 3}), ones({4, 5}));
       },
       {"matmul: inner sizes differ: a is [2, 3], b is [4, 5] (3 vs 4)"}},
      {"matmul_of_numbers",
       shape,
       [] { matmul(ones({}), ones({3})); },
       {"matmul: ", "at least 1D", "0D and 1D", "use *"}},
      {"matmul_batches",
       shape,
       [] {
         matmul(ones({2, 3, 4}), ones({3, 4, 5}));
       },
       {"matmul: batch sizes do not broadcast", "[2, 3, 4]", "[3, 4, 5]", "([2] vs [3])"}},
      {"mm_of_vectors",
       shape,
       [] {
         mm(ones({3}), ones({3, 2}));
       },
       {"mm: ", "2-D", "[3]", "matmul"}},
      {"bmm_batches",
       shape,
       [] {
         bmm(ones({2, 3, 4}), ones({3, 4, 5}));
       },
       {"bmm: batch sizes differ", "[2, 3, 4]", "[3, 4, 5]", "(2 vs 3)", "matmul broadcasts"}},
      {"mv_sizes",
       shape,
       [] {
         mv(ones({2, 3}), ones({4}));
       },
       {"mv: inner sizes differ", "[2, 3]", "[4]"}},
      {"dot_sizes", shape, [] { dot(ones({3}), ones({4})); }, {"dot: ", "[3]", "[4]", "(3 vs 4)"}},
      {"outer_of_matrix",
       shape,
       [] {
         outer(ones({2, 2}), ones({2}));
       },
       {"outer: ", "1-D", "[2, 2]"}},
      {"addmm_input",
       shape,
       [] {
         addmm(ones({7}), ones({2, 3}), ones({3, 4}));
       },
       {"addmm: ", "broadcast", "[7]", "[2, 4]"}},
      {"addmv_vector",
       shape,
       [] {
         addmv(ones({2}), ones({2, 3}), ones({3, 1}));
       },
       {"addmv: vec must be a 1-D tensor", "[3, 1]"}},
      {"chain_matmul_sizes",
       shape,
       [] {
         chain_matmul({ones({2, 3}), ones({2, 3})});
       },
       {"chain_matmul: mm: inner sizes differ", "(3 vs 2)"}},
      {"baddbmm_batches",
       shape,
       [] {
         baddbmm(ones({1}), ones({2, 3, 4}), ones({5, 4, 3}));
       },
       {"baddbmm: batch sizes differ", "[2, 3, 4]", "[5, 4, 3]", "(2 vs 5)"}},
      {"linear_sizes",
       shape,
       [] {
         linear(ones({2, 3}), ones({5, 4}));
       },
       {"linear: inner sizes differ: input is [2, 3], weight is [5, 4] (3 vs 4)"}},
      {"linear_bias",
       shape,
       [] {
         linear(ones({2, 3}), ones({5, 3}), ones({4}));
       },
       {"linear: bias must be [5]", "[5, 3]", "got [4]"}},
      {"einsum_dimensions",
       shape,
       [] {
         einsum("ij,jk->ik", {ones({2, 3}), ones({3})});
       },
       {"einsum: ", "number of subscripts (2)", "operand 1", "[3]", "'ij,jk->ik'"}},
      {"einsum_sizes",
       shape,
       [] {
         einsum("ij,jk->ik", {ones({2, 3}), ones({4, 5})});
       },
       {"einsum: ", "operand 1", "[4, 5]", "size 4", "3 before", "'ij,jk->ik'"}},
  };
}

std::vector<WrongUse> rearranging_rows() {
  const std::type_index shape = typeid(ShapeError);
  return {
      {"add_broadcast",
       shape,
       [] {
         add(ones({2, 3}), ones({4}));
       },
       {"add: shapes [2, 3] and [4] do not broadcast", "dimension 1", "(3 vs 4)", "neither is 1"}},
      {"add_in_place_would_grow",
       shape,
       [] {
         ones({3}).add_(ones({2, 3}));
       },
       {"add_: ", "[3]", "[2, 3]", "use the form that is not in place"}},
      {"change_of_expanded",
       shape,
       [] { ones({1}).expand({3}).add_(1); },
       {"add_: more than one element", "single memory location", "[3]", "clone() it first"}},
      {"copy_broadcast",
       shape,
       [] {
         ones({2, 3}).copy_(ones({2}));
       },
       {"copy_: ", "[2]", "[2, 3]", "broadcast"}},
      {"view_numel",
       shape,
       [] {
         ones({2, 3}).view({4});
       },
       {"view: ", "[4]", "invalid for input of size 6"}},
      {"view_of_transposed",
       shape,
       [] {
         ones({2, 3}).t().view({6});
       },
       {"view: ", "[6]", "[3, 2]", "stride [1, 3]", "Use .reshape(...) instead"}},
      {"reshape_numel",
       shape,
       [] {
         reshape(ones({2, 3}), {5, -1});
       },
       {"reshape: ", "[5, -1]", "size 6"}},
      {"reshape_two_free",
       shape,
       [] {
         reshape(ones({2, 3}), {-1, -1});
       },
       {"reshape: only one dimension can be inferred", "[-1, -1]"}},
      {"unflatten_sizes",
       shape,
       [] {
         unflatten(ones({2, 6}), 1, {4, 2});
       },
       {"unflatten: dim 1 of shape [2, 6]", "[4, 2]", "6"}},
      {"flatten_order",
       shape,
       [] {
         flatten(ones({2, 3, 4}), 2, 1);
       },
       {"flatten: ", "start_dim 2", "end_dim 1", "[2, 3, 4]"}},
      {"permute_length",
       shape,
       [] {
         permute(ones({2, 3}), {0});
       },
       {"permute: ", "input.dim() = 2", "len(dims) = 1"}},
      {"permute_twice",
       shape,
       [] {
         permute(ones({2, 3}), {0, 0});
       },
       {"permute: ", "dim 0 appears multiple times", "[0, 0]"}},
      {"t_of_cube",
       shape,
       [] {
         t(ones({2, 3, 4}));
       },
       {"t: ", "<= 2 dimensions", "[2, 3, 4]", "mT"}},
      {"mT_of_vector", shape, [] { mT(ones({3})); }, {"mT: ", "matrices", "[3]"}},
      {"expand_size",
       shape,
       [] {
         expand(ones({2, 3}), {2, 5});
       },
       {"expand: ", "(5)", "(3)", "dimension 1", "[2, 5]", "[2, 3]"}},
      {"expand_fewer_dimensions",
       shape,
       [] {
         expand(ones({2, 3}), {3});
       },
       {"expand: ", "(1)", "(2)", "[3]", "[2, 3]"}},
      {"cat_sizes",
       shape,
       [] {
         cat({ones({2, 3}), ones({2, 4})}, 0);
       },
       {"cat: Sizes of tensors must match except in dimension 0", "3", "4", "[2, 3] and [2, 4]"}},
      {"cat_ranks",
       shape,
       [] {
         cat({ones({2, 3}), ones({2})});
       },
       {"cat: ", "same number of dimensions", "[2, 3] and [2]"}},
      {"cat_of_numbers",
       shape,
       [] { cat({tensor(1.0)}); },
       {"cat: zero-dimensional tensor", "position 0", "use stack"}},
      {"stack_sizes",
       shape,
       [] {
         stack({ones({2}), ones({3})});
       },
       {"stack: ", "equal size", "[2] at entry 0", "[3] at entry 1"}},
      {"split_sizes",
       shape,
       [] {
         split(ones({5}), {2, 2});
       },
       {"split: ", "sum exactly to 5", "split_sizes=[2, 2]"}},
      {"narrow_length",
       shape,
       [] { narrow(ones({5}), 0, 3, 3); },
       {"narrow: ", "start (3)", "length (3)", "(5)", "[5]"}},
      {"diagonal_of_one_dimension",
       shape,
       [] {
         diagonal(ones({2, 3}), 0, 1, -1);
       },
       {"diagonal: ", "identical", "1, -1", "[2, 3]"}},
      {"unfold_size",
       shape,
       [] { unfold(ones({4}), 0, 5, 1); },
       {"unfold: ", "[0, 4]", "dimension 0", "is 5"}},
      {"as_strided_outside",
       shape,
       [] { as_strided(ones({4}), {3}, {2}); },
       {"as_strided: ", "[3]", "[2]", "4 elements"}},
      {"roll_lengths",
       shape,
       [] {
         roll(ones({4}), {1, 2}, {0});
       },
       {"roll: ", "shifts: [1, 2], dims: [0]"}},
      {"repeat_dimensions",
       shape,
       [] {
         repeat(ones({2, 3}), {2});
       },
       {"repeat: ", "repeats [2]", "shape [2, 3]"}},
      {"flip_twice",
       shape,
       [] {
         flip(ones({2, 3}), {1, -1});
       },
       {"flip: ", "dim 1", "[1, -1]"}},
      {"meshgrid_of_matrix",
       shape,
       [] {
         meshgrid({ones({2, 2})});
       },
       {"meshgrid: ", "1D", "[2, 2]"}},
      {"tril_of_vector", shape, [] { tril(ones({3})); }, {"tril: ", "at least 2 dimensions", "[3]"}},
      {"eye_negative", shape, [] { eye(-1); }, {"eye: ", "n = -1"}},
      {"negative_size",
       shape,
       [] {
         zeros({2, -3});
       },
       {"zeros: ", "can not be negative", "[2, -3]"}},
      {"too_many_dimensions",
       shape,
       [] { zeros(std::vector<int64_t>(65, 1)); },
       {"zeros: ", "at most 64 dimensions", "got 65"}},
      {"too_many_elements",
       shape,
       [] {
         empty({int64_t{1} << 40, int64_t{1} << 40});
       },
       {"empty: ", "too many elements for 64 bits", "[1099511627776, 1099511627776]"}},
      {"ragged_lists",
       shape,
       [] {
         tensor({{1, 2, 3}, {4, 5}});
       },
       {"tensor: expected sequence of length 3 at dim 1 (got 2)", "one length"}},
      {"from_blob_lengths",
       shape,
       [] {
         float memory[4];
         from_blob(memory, {2, 2}, {2}, float32);
       },
       {"from_blob: ", "shape [2, 2]", "strides [2]", "different lengths"}},
      {"from_storage_outside",
       shape,
       [] { Tensor::from_storage(ones({4}).storage(), float32, {1000}); },
       {"from_storage: ", "[1000]", "outside a storage"}},
  };
}

std::vector<WrongUse> indexing_rows() {
  const std::type_index shape = typeid(ShapeError);
  return {
      {"gather_rank",
       shape,
       [] {
         gather(ones({2, 3}), 1, tensor({0, 1}));
       },
       {"gather: ", "same number of dimensions", "index is [2], input is [2, 3]"}},
      {"gather_size",
       shape,
       [] {
         gather(ones({2, 3}), 1, zeros({5, 1}, {.dtype = int64}));
       },
       {"gather: ", "dimension 0", "[5, 1]", "[2, 3]", "apart from dimension 1"}},
      {"scatter_source",
       shape,
       [] {
         scatter(ones({2, 3}), 1, zeros({2, 2}, {.dtype = int64}), ones({2, 1}));
       },
       {"scatter: ", "index [2, 2]", "src [2, 1]"}},
      {"index_select_matrix",
       shape,
       [] {
         index_select(ones({4}), 0, zeros({2, 2}, {.dtype = int64}));
       },
       {"index_select: ", "vector", "[2, 2]", "flatten it"}},
      {"index_add_count",
       shape,
       [] {
         index_add(ones({4, 2}), 0, tensor({0, 1}), ones({3, 2}));
       },
       {"index_add: Number of indices (2)", "(3)", "dim: 0"}},
      {"index_copy_shape",
       shape,
       [] {
         index_copy(ones({4, 2}), 0, tensor({0}), ones({1, 5}));
       },
       {"index_copy: ", "self.shape = [4, 2]", "source.shape = [1, 5]"}},
      {"index_put_values",
       shape,
       [] {
         index_put(ones({4}), {tensor({0, 1})}, ones({3}));
       },
       {"index_put: ", "[3]", "[2]", "cannot be broadcast"}},
      {"where_broadcast",
       shape,
       [] { where(ones({2}) > 0, ones({3}), ones({3})); },
       {"where: ", "[2]", "[3]", "do not broadcast"}},
      {"masked_fill_mask",
       shape,
       [] {
         ones({3}).masked_fill_(ones({2, 3}) > 0, 1);
       },
       {"masked_fill_: ", "[2, 3]", "[3]", "broadcast"}},
      {"masked_fill_value",
       shape,
       [] { masked_fill(ones({3}), ones({3}) > 0, ones({2})); },
       {"masked_fill: ", "0-dimensional value", "1 dimension(s)", "use where"}},
      {"masked_scatter_source",
       shape,
       [] { masked_scatter(ones({3}), ones({3}) > 0, ones({2})); },
       {"masked_scatter: ", "2 < 3"}},
      {"searchsorted_rows",
       shape,
       [] {
         searchsorted(ones({2, 3}), ones({3, 3}));
       },
       {"searchsorted: ", "[2, 3]", "[3, 3]"}},
      {"bucketize_matrix",
       shape,
       [] {
         bucketize(ones({3}), ones({2, 2}));
       },
       {"bucketize: ", "1 dimension", "[2, 2]"}},
      {"embedding_table",
       shape,
       [] { embedding(tensor({0}), ones({4})); },
       {"embedding: 'weight' must be 2-D", "[4]"}},
  };
}

TERN_WRONG_USES(ProductShapes, product_rows);
TERN_WRONG_USES(RearrangingShapes, rearranging_rows);
TERN_WRONG_USES(IndexingShapes, indexing_rows);

}  // namespace
}  // namespace tern
