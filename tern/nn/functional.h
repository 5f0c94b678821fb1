// The functions of torch.nn.functional under nn: `nn::cross_entropy(net(x), y)`. They are defined in ops/.
#pragma once

#include "tern/ops/activation.h"
#include "tern/ops/attention.h"
#include "tern/ops/conv.h"
#include "tern/ops/creation.h"
#include "tern/ops/distance.h"
#include "tern/ops/embedding.h"
#include "tern/ops/linear.h"
#include "tern/ops/loss.h"
#include "tern/ops/norm.h"
#include "tern/ops/pad.h"
#include "tern/ops/pixel.h"
#include "tern/ops/pool.h"
#include "tern/ops/random.h"
#include "tern/ops/softmax.h"

namespace tern::nn {

using tern::celu;
using tern::elu;
using tern::gelu;
using tern::glu;
using tern::hardshrink;
using tern::hardsigmoid;
using tern::hardswish;
using tern::hardtanh;
using tern::leaky_relu;
using tern::log_softmax;
using tern::logsigmoid;
using tern::mish;
using tern::prelu;
using tern::relu;
using tern::relu6;
using tern::selu;
using tern::sigmoid;
using tern::silu;
using tern::softmax;
using tern::softplus;
using tern::softshrink;
using tern::softsign;
using tern::tanh;
using tern::tanhshrink;
using tern::threshold;

using tern::conv1d;
using tern::conv2d;
using tern::conv2d_relu;
using tern::conv_transpose1d;
using tern::conv_transpose2d;
using tern::embedding;
using tern::linear;
using tern::linear_gelu_linear;
using tern::linear_relu;
using tern::one_hot;
using tern::pad;
using tern::pixel_shuffle;
using tern::pixel_unshuffle;
using tern::scaled_dot_product_attention;

using tern::adaptive_avg_pool1d;
using tern::adaptive_avg_pool2d;
using tern::adaptive_max_pool1d;
using tern::adaptive_max_pool2d;
using tern::avg_pool1d;
using tern::avg_pool2d;
using tern::max_pool1d;
using tern::max_pool2d;

using tern::batch_norm;
using tern::dropout;
using tern::dropout1d;
using tern::dropout2d;
using tern::group_norm;
using tern::instance_norm;
using tern::layer_norm;
using tern::normalize;
using tern::rms_norm;

using tern::binary_cross_entropy;
using tern::binary_cross_entropy_with_logits;
using tern::cosine_similarity;
using tern::cross_entropy;
using tern::huber_loss;
using tern::kl_div;
using tern::l1_loss;
using tern::mse_loss;
using tern::nll_loss;
using tern::pairwise_distance;
using tern::smooth_l1_loss;

}  // namespace tern::nn
