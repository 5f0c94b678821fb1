// What L-BFGS saves and loads: its memory, which PyTorch keeps as the state of the first parameter.
#include "tern/base/check.h"
#include "tern/ops/creation.h"
#include "tern/optim/lbfgs.h"

namespace tern::optim {

OptimizerState LBFGS::state_dict() const {
  OptimizerState saved = Optimizer::state_dict();
  if (!has_memory_) return saved;
  const Memory& m = memory_;
  StateMap state;
  state.set("func_evals", m.func_evals);
  state.set("n_iter", m.n_iter);
  if (m.direction.defined()) {
    const auto number = [&](double value) {
      return full({}, value, {.dtype = m.direction.dtype(), .device = m.direction.device()});
    };
    std::vector<Tensor> ro;
    for (double value : m.ro) ro.push_back(number(value));
    state.set("d", m.direction);
    state.set("t", m.step_size);
    state.set("old_dirs", m.old_dirs);
    state.set("old_stps", m.old_stps);
    state.set("ro", ro);
    state.set("H_diag", number(m.scale));
    state.set("prev_flat_grad", m.prev_flat_grad);
    state.set("prev_loss", m.prev_loss);
  }
  saved.state.emplace_back(0, std::move(state));
  return saved;
}

LBFGS::Memory LBFGS::read_memory(const StateMap& saved) const {
  const auto flat = [&](const char* name, const Tensor& tensor) {
    TERN_CHECK(tensor.dim() == 1 && tensor.numel() == numel_, ShapeError,
               "LBFGS: '{}' in the loaded state has shape {}, the parameters have {} elements in all", name,
               to_string(tensor.shape()), numel_);
    return tensor.detach().to(params_[0].device(), params_[0].dtype(), {.copy = true}).contiguous();
  };
  const auto has = [](const auto& value, const char* name) {
    TERN_CHECK(value.has_value(), ValueError, "LBFGS: the loaded state has no '{}'", name);
    return *value;
  };
  const auto list = [&](const char* name) {
    std::vector<Tensor> tensors = has(saved.tensors(name), name);
    for (Tensor& tensor : tensors) tensor = flat(name, tensor);
    return tensors;
  };
  Memory m;
  m.func_evals = has(saved.integer("func_evals"), "func_evals");
  m.n_iter = has(saved.integer("n_iter"), "n_iter");
  TERN_CHECK(m.func_evals >= 0 && m.n_iter >= 0, ValueError,
             "LBFGS: 'func_evals' and 'n_iter' of the loaded state must not be negative, got {} and {}",
             m.func_evals, m.n_iter);
  if (m.n_iter == 0) return m;
  m.direction = flat("d", has(saved.tensor("d"), "d"));
  m.step_size = has(saved.number("t"), "t");
  m.old_dirs = list("old_dirs");
  m.old_stps = list("old_stps");
  for (const Tensor& value : has(saved.tensors("ro"), "ro")) {
    TERN_CHECK(value.numel() == 1, ShapeError,
               "LBFGS: 'ro' in the loaded state must hold numbers, got shape {}", to_string(value.shape()));
    m.ro.push_back(value.item<double>());
  }
  TERN_CHECK(m.old_dirs.size() == m.old_stps.size() && m.old_dirs.size() == m.ro.size(), ValueError,
             "LBFGS: 'old_dirs', 'old_stps' and 'ro' of the loaded state differ in length: {}, {} and {}",
             m.old_dirs.size(), m.old_stps.size(), m.ro.size());
  m.scale = has(saved.number("H_diag"), "H_diag");
  m.prev_flat_grad = flat("prev_flat_grad", has(saved.tensor("prev_flat_grad"), "prev_flat_grad"));
  m.prev_loss = has(saved.number("prev_loss"), "prev_loss");
  return m;
}

void LBFGS::load_state_dict(const OptimizerState& saved) {
  OptimizerState options_only;
  options_only.param_groups = saved.param_groups;
  Memory memory;
  TERN_CHECK(saved.state.size() <= 1, ValueError,
             "LBFGS: the loaded state dict has state of {} parameters: that of another optimizer",
             saved.state.size());
  if (!saved.state.empty()) {
    memory = read_memory(saved.state[0].second);
    TERN_CHECK(!saved.param_groups.empty() && !saved.param_groups[0].params.empty() &&
                   saved.param_groups[0].params[0] == saved.state[0].first,
               ValueError, "LBFGS: the loaded state dict has state of parameter {}, which is not the first",
               saved.state[0].first);
  }
  Optimizer::load_state_dict(options_only);
  memory_ = std::move(memory);
  has_memory_ = !saved.state.empty();
}

}  // namespace tern::optim
