// Gradients that are not numbers.
#include "tern/autograd/anomaly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/node.h"
#include "tern/base/check.h"
#include "tern/device/launch.h"

namespace tern::autograd {

namespace detail {

constinit thread_local bool checks_nan = false;

void check_nan(const Node& node, const std::vector<Tensor>& grads) {
  for (size_t i = 0; i < grads.size(); ++i) {
    const Tensor& grad = grads[i];
    const bool complex = grad.defined() && is_complex_computable(grad.dtype());
    if (!grad.defined() || !(is_floating_point(grad.dtype()) || complex)) continue;
    const std::vector<double> values = host_values(complex ? real_view(grad) : grad);
    const auto nans = std::count_if(values.begin(), values.end(), [](double x) { return std::isnan(x); });
    TERN_CHECK(
        nans == 0, AutogradError,
        "backward of {0}{1}: {2} of {3} numbers of the gradient of input {4} ({5} of shape {6}) are NaN: "
        "no operator after {0} gave any",
        node.name(), node.module_path ? " of the module " + *node.module_path : "", nans, values.size(), i,
        name(grad.dtype()), to_string(grad.shape()));
  }
}

}  // namespace detail

// Nodes note down their modules while somebody follows launches.
DetectAnomalyGuard::DetectAnomalyGuard(bool check_nan)
    : before_(std::exchange(detail::checks_nan, check_nan)) {
  ++tern::detail::launch_followers;
}
DetectAnomalyGuard::~DetectAnomalyGuard() {
  --tern::detail::launch_followers;
  detail::checks_nan = before_;
}

}  // namespace tern::autograd
