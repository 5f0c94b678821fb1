// Wrong uses: shapes that layers and losses refuse.
#include "wrong_use.h"

namespace tern {
namespace {

std::vector<WrongUse> network_shape_rows() {
  const std::type_index shape = typeid(ShapeError);
  return {
      {"conv2d_channels",
       shape,
       [] {
         conv2d(ones({1, 3, 8, 8}), ones({4, 2, 3, 3}));
       },
       {"conv2d: Given groups=1", "[4, 2, 3, 3]", "[1, 3, 8, 8]", "2 channels", "got 3 channels"}},
      {"conv3d_channels",
       shape,
       [] {
         conv3d(ones({1, 3, 8, 8, 8}), ones({4, 2, 3, 3, 3}));
       },
       {"conv3d: Given groups=1", "[4, 2, 3, 3, 3]", "2 channels", "got 3 channels"}},
      {"conv3d_size",
       shape,
       [] {
         conv3d(ones({1, 1, 2, 4, 4}), ones({1, 1, 3, 3, 3}));
       },
       {"conv3d: Calculated padded input size per channel: (2 x 4 x 4)", "(3 x 3 x 3)"}},
      {"max_pool3d_size",
       shape,
       [] {
         max_pool3d(ones({1, 1, 4, 4}), 2);
       },
       {"max_pool3d: Output size is too small", "no window of 2 fits in a dimension of 1"}},
      {"conv2d_rank",
       shape,
       [] {
         conv2d(ones({8, 8}), ones({4, 1, 3, 3}));
       },
       {"conv2d: Expected 3D (unbatched) or 4D (batched)", "[8, 8]"}},
      {"conv2d_kernel_too_large",
       shape,
       [] {
         conv2d(ones({1, 1, 2, 2}), ones({1, 1, 3, 3}));
       },
       {"conv2d: ", "(2 x 2)", "(3 x 3)", "greater than actual input size"}},
      {"conv2d_bias",
       shape,
       [] {
         conv2d(ones({1, 1, 4, 4}), ones({2, 1, 3, 3}), ones({3}));
       },
       {"conv2d: ", "[2, 1, 3, 3]", "2 elements", "[3]"}},
      {"conv2d_groups",
       shape,
       [] {
         conv2d(ones({1, 4, 4, 4}), ones({3, 2, 3, 3}), {}, {.groups = 2});
       },
       {"conv2d: Given groups=2", "divisible by 2", "[3, 2, 3, 3]"}},
      {"conv1d_rank",
       shape,
       [] {
         conv1d(ones({8}), ones({1, 1, 3}));
       },
       {"conv1d: Expected 2D (unbatched) or 3D (batched)", "[8]"}},
      {"conv_transpose2d_channels",
       shape,
       [] {
         conv_transpose2d(ones({1, 3, 4, 4}), ones({2, 1, 3, 3}));
       },
       {"conv_transpose2d: ", "[2, 1, 3, 3]", "[1, 3, 4, 4]", "2 channels", "got 3 channels"}},
      {"conv_transpose2d_too_small",
       shape,
       [] {
         conv_transpose2d(ones({1, 1, 1, 1}), ones({1, 1, 2, 2}), {}, {.padding = 1});
       },
       {"conv_transpose2d: ", "(1 x 1)", "(0 x 0)", "Output size is too small"}},
      {"max_pool2d_too_small",
       shape,
       [] {
         max_pool2d(ones({1, 1, 2, 2}), {.kernel_size = 3});
       },
       {"max_pool2d: Given input size: (1x2x2)", "(1x0x0)", "too small"}},
      {"avg_pool2d_rank",
       shape,
       [] {
         avg_pool2d(ones({4, 4}), {.kernel_size = 2});
       },
       {"avg_pool2d: Expected 3D or 4D", "[4, 4]"}},
      {"max_pool1d_rank",
       shape,
       [] { max_pool1d(ones({4}), {.kernel_size = 2}); },
       {"max_pool1d: Expected 2D or 3D", "[4]"}},
      {"interpolate_rank",
       shape,
       [] {
         interpolate(ones({3, 4}), {.size = {3}});
       },
       {"interpolate: Only 3D, 4D and 5D", "got 2D"}},
      {"interpolate_mode_rank",
       shape,
       [] {
         interpolate(ones({1, 1, 4}), {.size = {3}, .mode = "bilinear"});
       },
       {"interpolate: Got 3D input, but bilinear mode needs 4D input"}},
      {"interpolate_numbers",
       shape,
       [] {
         interpolate(ones({1, 1, 4, 4}), {.size = {3, 4, 5}});
       },
       {"interpolate: ", "[1, 1, 4, 4] and 3 values in size"}},
      {"interpolate_negative",
       shape,
       [] {
         interpolate(ones({1, 1, 4, 4}), {.size = {-3, 4}});
       },
       {"interpolate: Input and output sizes should be greater than 0", "output size -3 in dimension 2"}},
      {"interpolate_small_factor",
       shape,
       [] {
         interpolate(ones({1, 1, 4}), {.scale_factor = {0.1}});
       },
       {"output size 0 in dimension 2"}},
      {"interpolate_nan",
       shape,
       [] {
         interpolate(ones({1, 1, 4}), {.scale_factor = {NAN}});
       },
       {"interpolate: scale_factor nan", "more than a size can be"}},
      {"interpolate_huge",
       shape,
       [] {
         interpolate(ones({1, 1, 4, 4}), {.size = {int64_t{1} << 40, int64_t{1} << 40}});
       },
       {"interpolate: "}},
      {"interpolate_no_channels",
       shape,
       [] {
         interpolate(ones({1, 0, 4}), {.size = {3}});
       },
       {"interpolate: Non-empty data tensor expected", "[1, 0, 4]"}},
      {"unfold_small",
       shape,
       [] {
         unfold(ones({1, 1, 2, 2}), 5);
       },
       {"unfold: images of spatial size (2, 2) have no sliding blocks of kernel_size=(5, 5)"}},
      {"unfold_rank",
       shape,
       [] {
         unfold(ones({2, 2}), 1);
       },
       {"unfold: Expected 3D or 4D", "[2, 2]"}},
      {"fold_blocks",
       shape,
       [] {
         fold(ones({1, 4, 3}), 3, 2);
       },
       {"fold: ", "have 2 * 2 sliding blocks, but input [1, 4, 3] has 3"}},
      {"fold_channels",
       shape,
       [] {
         fold(ones({1, 3, 4}), 3, 2);
       },
       {"fold: Expected size of input's dimension 1 to be divisible"}},
      {"channel_shuffle_groups",
       shape,
       [] {
         channel_shuffle(ones({1, 3, 4}), 2);
       },
       {"channel_shuffle: ", "Got 3 channels and 2 groups"}},
      {"adaptive_avg_pool2d_empty",
       shape,
       [] {
         adaptive_avg_pool2d(ones({1, 1, 0, 4}), 2);
       },
       {"adaptive_avg_pool2d: ", "non-zero size", "[1, 1, 0, 4]", "dimension 2"}},
      {"batch_norm_mean",
       shape,
       [] {
         batch_norm(ones({4, 3}), ones({2}), ones({3}));
       },
       {"batch_norm: running_mean should contain 3 elements", "[2]"}},
      {"batch_norm_rank",
       shape,
       [] { batch_norm(ones({4}), {}, {}, {}, {}, true); },
       {"batch_norm: ", "[N, C, ...]", "[4]"}},
      {"layer_norm_shape",
       shape,
       [] {
         layer_norm(ones({2, 3}), {4});
       },
       {"layer_norm: Given normalized_shape=[4]", "[*, 4]", "[2, 3]"}},
      {"layer_norm_weight",
       shape,
       [] {
         layer_norm(ones({2, 3}), {3}, ones({2}));
       },
       {"layer_norm: ", "weight", "[2]", "normalized_shape = [3]"}},
      {"group_norm_channels",
       shape,
       [] {
         group_norm(ones({2, 5}), 2);
       },
       {"group_norm: ", "divisible", "[2, 5]", "num_groups=2"}},
      {"cross_entropy_batch",
       shape,
       [] {
         cross_entropy(ones({4, 3}), tensor({0, 1}));
       },
       {"cross_entropy: ", "batch_size (4)", "batch_size (2)", "input is [4, 3], target is [2]"}},
      {"cross_entropy_weight",
       shape,
       [] {
         cross_entropy(ones({2, 3}), tensor({0, 1}), {.weight = ones({2})});
       },
       {"cross_entropy: weight", "3 classes", "[2]"}},
      {"nll_loss_target",
       shape,
       [] {
         nll_loss(ones({2, 3, 5}), zeros({2, 4}, {.dtype = int64}));
       },
       {"nll_loss: Expected target size [2, 5], got [2, 4]", "input is [2, 3, 5]"}},
      {"mse_loss_broadcast",
       shape,
       [] {
         mse_loss(ones({2, 3}), ones({2, 4}));
       },
       {"mse_loss: ", "[2, 3]", "[2, 4]", "do not broadcast"}},
      {"binary_cross_entropy_sizes",
       shape,
       [] {
         binary_cross_entropy(full({2}, 0.5), ones({2, 1}));
       },
       {"binary_cross_entropy: Target size ([2, 1])", "input size ([2])", "reshape"}},
  };
}

TERN_WRONG_USES(NetworkShapes, network_shape_rows);

}  // namespace
}  // namespace tern
