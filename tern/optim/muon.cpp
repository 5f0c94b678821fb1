// The step of Muon, made of operators: its time is that of the products.
#include "tern/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "tern/base/check.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/linalg.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern::optim {
namespace {

/// Near the orthogonal matrix that is next to x: its singular values come to about 1.
Tensor orthogonalized(const Tensor& x, const MuonOptions& o) {
  const bool is_tall = x.size(0) > x.size(1);
  const auto [a, b, c] = o.ns_coefficients;
  Tensor y = x.to(DType::BFloat16);
  if (is_tall) y = y.t();
  y = div(y, clamp_min(linalg::vector_norm(y), o.eps));
  for (int64_t i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = matmul(y, y.t());
    y = addmm(y, addmm(gram, gram, gram, b, c), y, a);
  }
  return is_tall ? y.t() : y;
}

double rate_for(const Tensor& parameter, const MuonOptions& o) {
  const double rows = static_cast<double>(parameter.size(0)),
               columns = static_cast<double>(parameter.size(1));
  const std::string kind = o.adjust_lr_fn.value_or("original");
  if (kind == "match_rms_adamw") return o.lr * 0.2 * std::sqrt(std::max(rows, columns));
  const double ratio = rows / columns;
  return o.lr * std::sqrt(kind == "original" ? std::max(1.0, ratio) : ratio);
}

}  // namespace

void MuonOptions::check(const char* optimizer) const {
  detail::check_option(lr >= 0, optimizer, "learning rate", lr);
  detail::check_option(momentum >= 0, optimizer, "momentum", momentum);
  detail::check_option(weight_decay >= 0, optimizer, "weight_decay value", weight_decay);
  detail::check_option(ns_steps >= 0 && ns_steps < 100, optimizer, "ns_steps", static_cast<double>(ns_steps),
                       "at least 0 and below 100");
  const std::string kind = adjust_lr_fn.value_or("original");
  TERN_CHECK(kind == "original" || kind == "match_rms_adamw" || kind == "spectral_unclamped", ValueError,
             "{}: Adjust learning rate function {} is not supported: original, match_rms_adamw or "
             "spectral_unclamped",
             optimizer, kind);
}

void MuonOptions::check_parameter(const char* optimizer, const Tensor& parameter) const {
  TERN_CHECK(!parameter.is_complex(), DTypeError, "{} does not support complex parameters", optimizer);
  TERN_CHECK(
      parameter.dim() == 2, ValueError,
      "{} only supports 2D parameters whereas we found a parameter with size {}: give others to another "
      "optimizer",
      optimizer, to_string(parameter.shape()));
}

Optimizer::StateLayout Muon::state_layout(size_t) const {
  return {.names = {"momentum_buffer"}, .required = {true}};
}

void Muon::step() {
  for (size_t g = 0; g < num_groups(); ++g)
    update_each(g, {0.0}, [&o = options(g)](Slot& slot, const Tensor& grad) {
      Tensor& momentum = slot.state[0];
      momentum.lerp_(grad, 1 - o.momentum);
      const Tensor direction = o.nesterov ? lerp(grad, momentum, o.momentum) : momentum;
      Tensor parameter = slot.param.detach();
      if (parameter.numel() == 0) return;
      parameter.mul_(1 - o.lr * o.weight_decay);
      parameter.add_(orthogonalized(direction, o), -rate_for(parameter, o));
    });
}

}  // namespace tern::optim
