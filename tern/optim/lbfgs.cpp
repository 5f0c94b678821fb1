// The step of L-BFGS, after torch/optim/lbfgs.py. Its line search and state are in lbfgs_search.cpp and
// lbfgs_state.cpp.
#include "tern/optim/lbfgs.h"

#include <algorithm>
#include <cmath>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/creation.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern::optim {
namespace {

double largest(const Tensor& x) { return max(abs(x)).item<double>(); }
double inner(const Tensor& a, const Tensor& b) { return dot(a, b).item<double>(); }

}  // namespace

void LBFGSOptions::check(const char* optimizer) const {
  detail::check_option(lr >= 0, optimizer, "learning rate", lr);
  TERN_CHECK(max_iter >= 1, ValueError, "{}: max_iter must be at least 1, got {}", optimizer, max_iter);
  TERN_CHECK(most_evaluations() >= 1, ValueError, "{}: max_eval must be at least 1, got {}", optimizer,
             most_evaluations());
  TERN_CHECK(history_size >= 1, ValueError, "{}: history_size must be at least 1, got {}", optimizer,
             history_size);
  TERN_CHECK(!line_search_fn || *line_search_fn == "strong_wolfe", ValueError,
             "{}: line_search_fn: only 'strong_wolfe' is supported, or none, got '{}'", optimizer,
             line_search_fn.value_or(""));
}

LBFGS::LBFGS(std::vector<Tensor> params, const LBFGSOptions& options)
    : GroupedOptimizer("LBFGS", std::move(params), options), params_(Optimizer::params(0)) {
  for (const Tensor& param : params_) {
    TERN_CHECK(!param.is_complex(), DTypeError,
               "LBFGS: complex parameters are not supported: keep their view_as_real() as the parameter");
    TERN_CHECK(
        param.dtype() == params_[0].dtype() && param.device() == params_[0].device(), ValueError,
        "LBFGS: all parameters must be of one dtype on one device: the first is {} on {}, another {} on "
        "{}",
        tern::name(params_[0].dtype()), params_[0].device().str(), tern::name(param.dtype()),
        param.device().str());
    numel_ += param.numel();
  }
}

void LBFGS::step() {
  TERN_THROW(ValueError,
             "LBFGS: step() needs a closure that computes the loss anew and returns it: step(closure)");
}

double LBFGS::signed_loss(const Tensor& loss) const {
  TERN_CHECK(loss.defined() && loss.numel() == 1, ValueError,
             "LBFGS: the closure must return the loss, a tensor with one element, got {}",
             loss.defined() ? to_string(loss.shape()) : "an undefined tensor");
  const double value = loss.item<double>();
  return options().maximize ? -value : value;
}

Tensor LBFGS::flat_gradient() const {
  std::vector<Tensor> pieces;
  for (const Tensor& param : params_) {
    const Tensor grad = param.grad();
    pieces.push_back(grad.defined()
                         ? flatten(grad.detach())
                         : zeros({param.numel()}, {.dtype = param.dtype(), .device = param.device()}));
  }
  const Tensor flat = cat(pieces);
  return options().maximize ? neg(flat) : flat;
}

void LBFGS::add_to_params(double step_size, const Tensor& direction) {
  int64_t offset = 0;
  for (const Tensor& param : params_) {
    param.detach().add_(narrow(direction, 0, offset, param.numel()).view(param.shape()), step_size);
    offset += param.numel();
  }
}

void LBFGS::update_direction(const Tensor& flat_grad) {
  Memory& m = memory_;
  if (m.n_iter == 1) {
    m.direction = neg(flat_grad);
    m.old_dirs.clear();
    m.old_stps.clear();
    m.ro.clear();
    m.scale = 1;
    return;
  }
  const Tensor change = flat_grad - m.prev_flat_grad, taken = m.direction * m.step_size;
  if (const double curvature = inner(change, taken); curvature > 1e-10) {
    if (static_cast<int64_t>(m.old_dirs.size()) >= options().history_size) {
      m.old_dirs.erase(m.old_dirs.begin());
      m.old_stps.erase(m.old_stps.begin());
      m.ro.erase(m.ro.begin());
    }
    m.old_dirs.push_back(change);
    m.old_stps.push_back(taken);
    m.ro.push_back(1.0 / curvature);
    m.scale = curvature / inner(change, change);
  }
  // The inverse Hessian times the gradient, in two loops over the memory.
  const size_t count = m.old_dirs.size();
  std::vector<double> al(count);
  Tensor q = neg(flat_grad);
  for (size_t i = count; i-- > 0;) {
    al[i] = inner(m.old_stps[i], q) * m.ro[i];
    q.add_(m.old_dirs[i], -al[i]);
  }
  q.mul_(m.scale);
  for (size_t i = 0; i < count; ++i) {
    const double be = inner(m.old_dirs[i], q) * m.ro[i];
    q.add_(m.old_stps[i], al[i] - be);
  }
  m.direction = q;
}

Tensor LBFGS::step(const Closure& closure) {
  check_closure(name(), closure);
  const NoGradGuard no_grad;
  const LBFGSOptions o = options();
  o.check(name());
  Memory& m = memory_;
  const auto evaluate = [&] {
    const EnableGradGuard enable_grad;
    return closure();
  };

  const Tensor first_loss = evaluate();
  Evaluation now{signed_loss(first_loss), flat_gradient()};
  int64_t evaluations = 1;
  ++m.func_evals;
  has_memory_ = true;
  if (numel_ == 0 || largest(now.grad) <= o.tolerance_grad) return first_loss;

  for (int64_t iteration = 1; iteration <= o.max_iter; ++iteration) {
    ++m.n_iter;
    update_direction(now.grad);
    m.prev_flat_grad = now.grad.clone();
    m.prev_loss = now.loss;

    m.step_size = m.n_iter == 1 ? std::min(1.0, 1.0 / sum(abs(now.grad)).item<double>()) * o.lr : o.lr;
    const double slope = inner(now.grad, m.direction);
    if (slope > -o.tolerance_change) break;

    int64_t more = 0;
    bool optimal = false;
    if (o.line_search_fn) {
      std::vector<Tensor> start;
      for (const Tensor& param : params_) start.push_back(param.detach().clone());
      const auto at = [&](double step_size) {
        add_to_params(step_size, m.direction);
        const double loss = signed_loss(evaluate());
        Tensor grad = flat_gradient();
        for (size_t i = 0; i < params_.size(); ++i) params_[i].detach().copy_(start[i]);
        return Evaluation{loss, grad};
      };
      Found found = strong_wolfe(at, m.step_size, now, slope, o.most_evaluations() - evaluations);
      now = std::move(found.at);
      m.step_size = found.step_size;
      more = found.evaluations;
      add_to_params(m.step_size, m.direction);
      optimal = largest(now.grad) <= o.tolerance_grad;
    } else {
      add_to_params(m.step_size, m.direction);
      if (iteration != o.max_iter) {
        now.loss = signed_loss(evaluate());
        now.grad = flat_gradient();
        optimal = largest(now.grad) <= o.tolerance_grad;
        more = 1;
      }
    }
    evaluations += more;
    m.func_evals += more;
    if (evaluations >= o.most_evaluations() || optimal) break;
    if (largest(m.direction) * std::fabs(m.step_size) <= o.tolerance_change) break;
    if (std::fabs(now.loss - m.prev_loss) < o.tolerance_change) break;
  }
  return first_loss;
}

}  // namespace tern::optim
