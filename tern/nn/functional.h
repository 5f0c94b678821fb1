// The functions of torch.nn.functional under nn: `nn::cross_entropy(net(x), y)`. They are defined in ops/.
#pragma once

#include "tern/ops/activation.h"
#include "tern/ops/conv.h"
#include "tern/ops/creation.h"
#include "tern/ops/embedding.h"
#include "tern/ops/linear.h"
#include "tern/ops/loss.h"
#include "tern/ops/norm.h"
#include "tern/ops/pool.h"
#include "tern/ops/random.h"
#include "tern/ops/softmax.h"

namespace tern::nn {

using tern::elu;
using tern::gelu;
using tern::leaky_relu;
using tern::log_softmax;
using tern::logsigmoid;
using tern::relu;
using tern::sigmoid;
using tern::silu;
using tern::softmax;
using tern::softplus;
using tern::tanh;

using tern::conv1d;
using tern::conv2d;
using tern::conv2d_relu;
using tern::conv_transpose2d;
using tern::embedding;
using tern::linear;
using tern::linear_gelu_linear;
using tern::linear_relu;
using tern::one_hot;

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
using tern::group_norm;
using tern::layer_norm;
using tern::rms_norm;

using tern::binary_cross_entropy;
using tern::binary_cross_entropy_with_logits;
using tern::cross_entropy;
using tern::huber_loss;
using tern::kl_div;
using tern::l1_loss;
using tern::mse_loss;
using tern::nll_loss;
using tern::smooth_l1_loss;

}  // namespace tern::nn
