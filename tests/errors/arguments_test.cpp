// Wrong uses: numbers and words out of range, dimensions and indices that are not there, undefined tensors.
#include <limits>

#include "tern/base/env.h"
#include "wrong_use.h"

namespace tern {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<WrongUse> index_rows() {
  const std::type_index index = typeid(IndexError);
  return {
      {"size_of_no_dimension",
       index,
       [] {
         ones({2, 3}).size(2);
       },
       {"size: ", "[-2, 1]", "got 2"}},
      {"sum_dim",
       index,
       [] {
         sum(ones({2, 3}), 2);
       },
       {"sum: Dimension out of range", "[-2, 1]", "got 2"}},
      {"softmax_dim", index, [] { softmax(ones({2}), -2); }, {"softmax: ", "[-1, 0]", "got -2"}},
      {"transpose_dim", index, [] { transpose(ones({2}), 0, 1); }, {"transpose: ", "[-1, 0]", "got 1"}},
      {"unsqueeze_dim", index, [] { unsqueeze(ones({2}), 3); }, {"unsqueeze: ", "[-2, 1]", "got 3"}},
      {"cumsum_dim", index, [] { cumsum(ones({2}), 1); }, {"cumsum: ", "[-1, 0]", "got 1"}},
      {"select_index",
       index,
       [] {
         ones({2, 3})[5];
       },
       {"select: index 5 out of range", "[2, 3]", "dimension 0"}},
      {"narrow_start",
       index,
       [] { narrow(ones({4}), 0, 5, 1); },
       {"narrow: start out of range", "[-4, 4]", "5"}},
      {"embedding_index",
       index,
       [] {
         embedding(tensor({0, 7}), ones({4, 2}));
       },
       {"embedding: ", "index 7", "size 4"}},
      {"gather_index", index, [] { gather(ones({3}), 0, tensor({3})); }, {"gather: ", "index 3", "size 3"}},
      {"scatter_negative_index",
       index,
       [] { scatter(ones({3}), 0, tensor({-1}), ones({1})); },
       {"scatter: ", "index -1", "size 3"}},
      {"index_select_index",
       index,
       [] { index_select(ones({3}), 0, tensor({3})); },
       {"index_select: ", "index 3", "size 3"}},
      {"index_index", index, [] { ones({3})[tensor({-4})]; }, {"index: ", "index -4", "size 3"}},
      {"take_index",
       index,
       [] {
         take(ones({2, 2}), tensor({4}));
       },
       {"take: ", "index 4", "size 4"}},
      {"index_too_many",
       index,
       [] {
         tern::index(ones({3}), {tensor({0}), tensor({0})});
       },
       {"index: too many indices", "dimension 1", "got 2"}},
      {"index_mask_size",
       index,
       [] { ones({3})[ones({4}) > 0]; },
       {"index: The shape of the mask [4]", "indexed tensor [3]"}},
      {"index_without_indices", index, [] { tern::index(ones({3}), {}); }, {"index: at least one index"}},
      {"cross_entropy_target",
       index,
       [] {
         cross_entropy(ones({2, 3}), tensor({0, 3}));
       },
       {"cross_entropy: Target 3 is out of bounds", "3 classes"}},
      {"max_of_empty_dimension",
       index,
       [] {
         max(ones({2, 0}), 1);
       },
       {"max: ", "dim 1", "non-zero size", "[2, 0]"}},
      {"argmax_of_nothing", index, [] { argmax(ones({0})); }, {"argmax: ", "reduction dim", "[0]"}},
      {"median_of_empty_dimension",
       index,
       [] {
         median(ones({2, 0}), 1);
       },
       {"median: ", "dim 1", "[2, 0]"}},
      {"state_dict_name",
       index,
       [] { nn::Linear(2, 2).state_dict().at("wieght"); },
       {"state dict: ", "'wieght'", "2 names", "'weight'"}},
  };
}

std::vector<WrongUse> value_rows() {
  const std::type_index value = typeid(ValueError);
  return {
      {"undefined_operand",
       value,
       [] { add(Tensor(), ones({2})); },
       {"an undefined tensor", "default-constructed"}},
      {"undefined_shape", value, [] { Tensor().shape(); }, {"an undefined tensor", "default-constructed"}},
      {"interpolate_mode",
       value,
       [] {
         interpolate(ones({1, 1, 4}), {.size = {3}, .mode = "cubic"});
       },
       {"interpolate: unknown mode 'cubic'", "bicubic"}},
      {"interpolate_size_and_factor",
       value,
       [] {
         interpolate(ones({1, 1, 4}), {.size = {3}, .scale_factor = {2}});
       },
       {"interpolate: only one of size or scale_factor"}},
      {"interpolate_without_size",
       value,
       [] {
         interpolate(ones({1, 1, 4}), {});
       },
       {"interpolate: either size or scale_factor"}},
      {"interpolate_align_corners",
       value,
       [] {
         interpolate(ones({1, 1, 4}), {.size = {3}, .align_corners = true});
       },
       {"interpolate: align_corners", "not with nearest"}},
      {"interpolate_antialias",
       value,
       [] {
         interpolate(ones({1, 1, 4}), {.size = {3}, .mode = "linear", .antialias = true});
       },
       {"interpolate: Anti-alias option is restricted to bilinear and bicubic", "linear"}},
      {"unfold_padding",
       value,
       [] {
         unfold(ones({1, 1, 4, 4}), 2, {.padding = -1});
       },
       {"unfold: padding should be non-negative"}},
      {"fold_output_size",
       value,
       [] {
         fold(ones({1, 4, 4}), {0, 3}, 2);
       },
       {"fold: output_size should be greater than zero, but got (0, 3)"}},
      {"channel_shuffle_groups",
       value,
       [] {
         channel_shuffle(ones({1, 4, 4}), 0);
       },
       {"channel_shuffle: ", "must be positive", "0"}},
      {"sum_dim_twice",
       value,
       [] {
         sum(ones({2, 3}), {0, -2});
       },
       {"sum: ", "dim 0 appears", "[0, -2]"}},
      {"max_of_nothing", value, [] { max(ones({0})); }, {"max: ", "[0]", "Specify the reduction dim"}},
      {"norm_of_nothing", value, [] { norm(ones({0}), kInfinity); }, {"norm: ", "inf norm", "empty", "[0]"}},
      {"item_of_many",
       value,
       [] {
         ones({2, 3}).item();
       },
       {"item: ", "6 elements", "[2, 3]", "reduce it"}},
      {"slice_step",
       value,
       [] { slice(ones({4}), 0, 0, 4, -1); },
       {"slice: step must be positive", "-1", "use flip"}},
      {"chunk_count", value, [] { chunk(ones({4}), 0); }, {"chunk: ", "greater than 0", "got: 0"}},
      {"split_size", value, [] { split(ones({4}), -2); }, {"split: ", "non-negative", "-2"}},
      {"unfold_step", value, [] { unfold(ones({4}), 0, 2, 0); }, {"unfold: step is 0 but must be > 0"}},
      {"cat_of_nothing", value, [] { cat(std::vector<Tensor>()); }, {"cat: ", "non-empty list"}},
      {"topk_count",
       value,
       [] { topk(ones({3}), 4); },
       {"topk: selected index k out of range", "k is 4", "is 3", "[3]"}},
      {"clamp_without_bounds", value, [] { clamp(ones({2}), {}, {}); }, {"clamp: ", "min", "max"}},
      {"clamp_by_undefined_tensors",
       value,
       [] { clamp(ones({2}), Tensor(), Tensor()); },
       {"clamp: ", "min", "max"}},
      {"div_rounding_in_place",
       value,
       [] { ones({2}).div_(2, "up"); },
       {"div: ", "rounding_mode", "trunc", "floor", "'up'"}},
      {"negative_powers_in_place", value, [] { arange(3).pow_(-1); }, {"pow: ", "negative", "integer"}},
      {"div_rounding",
       value,
       [] { div(ones({2}), ones({2}), "up"); },
       {"div: ", "rounding_mode", "trunc", "floor", "'up'"}},
      {"gelu_approximation",
       value,
       [] { gelu(ones({2}), "sigmoid"); },
       {"gelu: ", "none or tanh", "'sigmoid'"}},
      {"integers_to_negative_powers", value, [] { pow(arange(3), -1); }, {"pow: ", "negative", "integer"}},
      {"meshgrid_indexing",
       value,
       [] { meshgrid({arange(3)}, "zz"); },
       {"meshgrid: ", "\"xy\" or \"ij\"", "\"zz\""}},
      {"isclose_tolerance",
       value,
       [] { isclose(ones({2}), ones({2}), -1); },
       {"isclose: ", "negative", "-1"}},
      {"einsum_equation", value, [] { einsum("i$->i", {ones({2})}); }, {"einsum: ", "'i$->i'"}},
      {"einsum_operands",
       value,
       [] {
         einsum("ij,jk->ik", {ones({2, 2})});
       },
       {"einsum: 1 operands were provided", "'ij,jk->ik' has 2"}},
      {"full_number_of_threads",
       value,
       [] { set_num_threads(0); },
       {"set_num_threads: ", "1 to 1024", "got 0"}},
      {"environment",
       typeid(EnvironmentError),
       [] {
         ::setenv("TERN_A_TEST", "four", 1);
         env_int("TERN_A_TEST", 1, 8);
       },
       {"environment variable TERN_A_TEST", "integer from 1 to 8", "'four'"}},
  };
}

std::vector<WrongUse> making_rows() {
  const std::type_index value = typeid(ValueError);
  return {
      {"arange_step", value, [] { arange(0, 5, 0); }, {"arange: step must be nonzero"}},
      {"arange_direction",
       value,
       [] { arange(0, 5, -1); },
       {"arange: ", "inconsistent with step sign", "start 0", "end 5", "step -1"}},
      {"arange_infinite", value, [] { arange(kInfinity); }, {"arange: ", "finite", "inf"}},
      {"linspace_steps", value, [] { linspace(0, 1, -1); }, {"linspace: ", "non-negative", "-1"}},
      {"from_blob_null", value, [] { from_blob(nullptr, {2}, float32); }, {"from_blob: null memory", "[2]"}},
      {"from_blob_misaligned",
       value,
       [] {
         alignas(8) char memory[16];
         from_blob(memory + 1, {2}, float32);
       },
       {"from_blob: ", "aligned to the 4 bytes of float32", "copy it"}},
      {"one_hot_negative", value, [] { one_hot(tensor({-1})); }, {"one_hot: ", "non-negative", "-1"}},
      {"one_hot_too_large",
       value,
       [] { one_hot(tensor({3}), 3); },
       {"one_hot: ", "found 3", "num_classes = 3"}},
      {"randint_range",
       value,
       [] { randint(5, 5, {2}); },
       {"randint: expects low < high", "low=5", "high=5"}},
      {"randint_dtype",
       value,
       [] { randint(0, 1000, {2}, {.dtype = uint8}); },
       {"randint: [0, 1000) is out of bounds for uint8"}},
      {"randperm_negative", value, [] { randperm(-1); }, {"randperm: ", "non-negative", "-1"}},
      {"normal_deviation", value, [] { normal(0, -1, {2}); }, {"normal: expects std >= 0", "-1"}},
      {"uniform_range",
       value,
       [] {
         Tensor x = ones({2});
         uniform_(x, 2, 1);
       },
       {"uniform_: ", "low=2 > high=1"}},
      {"bernoulli_probability",
       value,
       [] { bernoulli(full({2}, 1.5)); },
       {"bernoulli: expects 0 <= p <= 1", "1.5"}},
      {"multinomial_samples",
       value,
       [] { multinomial(ones({3}), 4); },
       {"multinomial: ", "replacement", "4", "3"}},
      {"multinomial_negative",
       value,
       [] {
         multinomial(tensor({0.5, -1.0}), 1);
       },
       {"multinomial: ", "not negative"}},
      {"multinomial_zeros", value, [] { multinomial(zeros({3}), 1); }, {"multinomial: ", "above zero"}},
      {"dropout_probability",
       value,
       [] { dropout(ones({2}), 1.5); },
       {"dropout: ", "between 0 and 1", "1.5"}},
      {"dropout_not_a_number",
       value,
       [] { dropout(ones({2}), std::numeric_limits<double>::quiet_NaN()); },
       {"dropout: ", "between 0 and 1", "nan"}},
  };
}

std::vector<WrongUse> network_value_rows() {
  const std::type_index value = typeid(ValueError);
  return {
      {"conv2d_stride",
       value,
       [] {
         conv2d(ones({1, 1, 4, 4}), ones({1, 1, 3, 3}), {}, {.stride = 0});
       },
       {"conv2d: non-positive stride", "(0, 0)"}},
      {"conv2d_padding",
       value,
       [] {
         conv2d(ones({1, 1, 4, 4}), ones({1, 1, 3, 3}), {}, {.padding = -1});
       },
       {"conv2d: negative padding", "(-1, -1)"}},
      {"conv2d_dilation",
       value,
       [] {
         conv2d(ones({1, 1, 4, 4}), ones({1, 1, 3, 3}), {}, {.dilation = 0});
       },
       {"conv2d: dilation should be greater than zero", "(0, 0)"}},
      {"conv2d_groups",
       value,
       [] {
         conv2d(ones({1, 1, 4, 4}), ones({1, 1, 3, 3}), {}, {.groups = 0});
       },
       {"conv2d: non-positive groups", "got 0"}},
      {"conv2d_padding_word",
       value,
       [] {
         conv2d(ones({1, 1, 4, 4}), ones({1, 1, 3, 3}), {}, {.padding = "full"});
       },
       {"padding string 'full'", "'valid', 'same'"}},
      {"conv2d_same_with_stride",
       value,
       [] {
         conv2d(ones({1, 1, 4, 4}), ones({1, 1, 3, 3}), {}, {.stride = 2, .padding = "same"});
       },
       {"conv2d: padding='same' is not supported for strided", "(2, 2)"}},
      {"conv_transpose2d_output_padding",
       value,
       [] {
         conv_transpose2d(ones({1, 1, 4, 4}), ones({1, 1, 3, 3}), {}, {.output_padding = 1});
       },
       {"conv_transpose2d: output padding must be smaller", "(1, 1)"}},
      {"conv3d_stride",
       value,
       [] {
         conv3d(ones({1, 1, 4, 4, 4}), ones({1, 1, 3, 3, 3}), {}, {.stride = {1, 0, 1}});
       },
       {"conv3d: non-positive stride", "(1, 0, 1)"}},
      {"conv3d_same_with_stride",
       value,
       [] {
         conv3d(ones({1, 1, 4, 4, 4}), ones({1, 1, 3, 3, 3}), {}, {.stride = 2, .padding = "same"});
       },
       {"conv3d: padding='same' is not supported for strided", "(2, 2, 2)"}},
      {"conv_transpose3d_output_padding",
       value,
       [] {
         conv_transpose3d(ones({1, 1, 4, 4, 4}), ones({1, 1, 3, 3, 3}), {}, {.output_padding = 1});
       },
       {"conv_transpose3d: output padding must be smaller", "(1, 1, 1)"}},
      {"max_pool3d_padding",
       value,
       [] {
         max_pool3d(ones({1, 4, 4, 4}), {.kernel_size = 2, .padding = {0, 2, 0}});
       },
       {"max_pool3d: pad should be", "at most half", "pad=2", "kernel_size=2"}},
      {"avg_pool3d_divisor",
       value,
       [] {
         avg_pool3d(ones({1, 4, 4, 4}), {.kernel_size = 2, .divisor_override = 0});
       },
       {"avg_pool3d: divisor must be not zero"}},
      {"max_pool2d_kernel",
       value,
       [] {
         max_pool2d(ones({1, 4, 4}), {});
       },
       {"max_pool2d: kernel size should be greater than zero", "kH: 0"}},
      {"max_pool2d_padding",
       value,
       [] {
         max_pool2d(ones({1, 4, 4}), {.kernel_size = 2, .padding = 2});
       },
       {"max_pool2d: pad should be at most half", "pad=(2, 2)", "kernel_size=(2, 2)"}},
      {"avg_pool2d_divisor",
       value,
       [] {
         avg_pool2d(ones({1, 4, 4}), {.kernel_size = 2, .divisor_override = 0});
       },
       {"avg_pool2d: divisor must be not zero"}},
      {"batch_norm_one_value",
       value,
       [] {
         batch_norm(ones({1, 3}), {}, {}, {}, {}, true);
       },
       {"batch_norm: Expected more than 1 value per channel when training", "[1, 3]"}},
      {"batch_norm_no_statistics",
       value,
       [] {
         batch_norm(ones({4, 3}), {}, {});
       },
       {"batch_norm: running_mean and running_var", "evaluation"}},
      {"group_norm_groups",
       value,
       [] {
         group_norm(ones({2, 4}), 0);
       },
       {"group_norm: ", "greater than 0", "0"}},
      {"embedding_padding",
       value,
       [] {
         embedding(tensor({0}), ones({4, 2}), 4);
       },
       {"embedding: Padding_idx", "got 4", "4 rows"}},
      {"cross_entropy_smoothing",
       value,
       [] {
         cross_entropy(ones({2, 3}), tensor({0, 1}), {.label_smoothing = 1.5});
       },
       {"cross_entropy: label_smoothing must be between 0.0 and 1.0", "1.5"}},
      {"mse_loss_reduction",
       value,
       [] { mse_loss(ones({2}), ones({2}), Reduction::BatchMean); },
       {"mse_loss: batchmean", "mean or sum"}},
      {"reduction_word",
       value,
       [] { parse_reduction("average"); },
       {"'average' is not a valid value for reduction", "none, mean, sum or batchmean"}},
      {"smooth_l1_loss_beta",
       value,
       [] { smooth_l1_loss(ones({2}), ones({2}), {.beta = -1}); },
       {"smooth_l1_loss: ", "negative", "-1"}},
      {"huber_loss_delta",
       value,
       [] { huber_loss(ones({2}), ones({2}), {.delta = 0}); },
       {"huber_loss: ", "non-positive", "0"}},
      {"binary_cross_entropy_range",
       value,
       [] { binary_cross_entropy(full({2}, 1.5), ones({2})); },
       {"binary_cross_entropy: ", "between 0 and 1", "binary_cross_entropy_with_logits"}},
      {"searchsorted_of_nothing",
       typeid(ShapeError),
       [] { searchsorted(tensor(1.0), ones({2})); },
       {"searchsorted: ", "[]", "[2]"}},
  };
}

TERN_WRONG_USES(Indices, index_rows);
TERN_WRONG_USES(Values, value_rows);
TERN_WRONG_USES(Making, making_rows);
TERN_WRONG_USES(NetworkValues, network_value_rows);

}  // namespace
}  // namespace tern
