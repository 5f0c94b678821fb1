// Momentum, made orthogonal by Newton-Schulz iterations.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;  ///< shrinks the parameters, as AdamW's
  double momentum = 0.95;
  bool nesterov = true;
  /// a, b and c of X <- a X + (b A + c A A) X with A = X X^T.
  std::array<double, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};
  double eps = 1e-7;  ///< the least norm that a matrix is divided by
  int64_t ns_steps = 5;
  /// How the size of a matrix changes the learning rate: "original" (none is that), by sqrt(max(1, rows /
  /// columns)); "match_rms_adamw", by 0.2 sqrt(max(rows, columns)), for rates that were chosen for AdamW;
  /// "spectral_unclamped", by sqrt(rows / columns).
  std::optional<std::string> adjust_lr_fn = std::nullopt;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("weight_decay", weight_decay);
    visit("momentum", momentum);
    visit("nesterov", nesterov);
    visit("ns_coefficients", ns_coefficients);
    visit("eps", eps);
    visit("ns_steps", ns_steps);
    visit("adjust_lr_fn", adjust_lr_fn);
  }
  void check(const char* optimizer) const;
  void check_parameter(const char* optimizer, const Tensor& parameter) const;
};

/// Muon, as torch.optim.Muon (Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024): for
/// the matrices of hidden layers; all other parameters, embeddings and the last layer among them, go to
/// another optimizer. The iterations are computed in bfloat16. Throws ValueError for options out of range,
/// and for parameters that are no matrices.
class Muon final : public GroupedOptimizer<MuonOptions> {
 public:
  explicit Muon(std::vector<Tensor> params, const MuonOptions& options = {})
      : GroupedOptimizer("Muon", std::move(params), options) {}
  explicit Muon(std::vector<ParamGroup<MuonOptions>> groups) : GroupedOptimizer("Muon", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
