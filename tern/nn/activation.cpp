// The constructors and the text of activation layers.
#include "tern/nn/activation.h"

#include <fmt/format.h>

#include "tern/base/check.h"
#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"

namespace tern::nn {

namespace {
/// What follows the other settings.
std::string in_place(bool inplace) { return inplace ? ", inplace=True" : ""; }
std::string only_in_place(bool inplace) { return inplace ? "inplace=True" : ""; }
std::string dim_text(const std::optional<int64_t>& dim) {
  return dim ? fmt::format("dim={}", *dim) : "dim=None";
}
}  // namespace

int64_t softmax_dim(const std::optional<int64_t>& dim, const Tensor& x) {
  return dim ? *dim : (x.dim() == 0 || x.dim() == 1 || x.dim() == 3 ? 0 : 1);
}

Hardtanh::Hardtanh(double min_val_, double max_val_, bool inplace_)
    : min_val(min_val_), max_val(max_val_), inplace(inplace_) {
  TERN_CHECK(max_val > min_val, ValueError, "Hardtanh: max_val must be greater than min_val (got {} and {})",
             max_val, min_val);
}

RReLU::RReLU(double lower_, double upper_, bool inplace_) : lower(lower_), upper(upper_), inplace(inplace_) {
  TERN_CHECK(lower <= upper, ValueError, "RReLU: lower must not be greater than upper (got {} and {})", lower,
             upper);
}

PReLU::PReLU(int64_t num_parameters, const PReLUOptions& options) : init_(options.init) {
  TERN_CHECK(num_parameters > 0, ValueError, "PReLU: num_parameters must be at least 1, got {}",
             num_parameters);
  weight = full_parameter({num_parameters}, options.init, options);
}

std::string ReLU::extra_repr() const { return only_in_place(inplace); }
std::string SiLU::extra_repr() const { return only_in_place(inplace); }
std::string ReLU6::extra_repr() const { return only_in_place(inplace); }
std::string Mish::extra_repr() const { return only_in_place(inplace); }
std::string SELU::extra_repr() const { return only_in_place(inplace); }
std::string Hardtanh::extra_repr() const {
  return "min_val=" + python_text(min_val) + ", max_val=" + python_text(max_val) + in_place(inplace);
}
std::string CELU::extra_repr() const { return "alpha=" + python_text(alpha) + in_place(inplace); }
std::string Hardshrink::extra_repr() const { return python_text(lambd); }
std::string Softshrink::extra_repr() const { return python_text(lambd); }
std::string Threshold::extra_repr() const {
  return "threshold=" + python_text(threshold) + ", value=" + python_text(value) + in_place(inplace);
}
std::string GLU::extra_repr() const { return fmt::format("dim={}", dim); }
std::string PReLU::extra_repr() const { return fmt::format("num_parameters={}", weight.numel()); }
std::string LeakyReLU::extra_repr() const {
  return "negative_slope=" + python_text(negative_slope) + in_place(inplace);
}
std::string RReLU::extra_repr() const {
  return "lower=" + python_text(lower) + ", upper=" + python_text(upper) + in_place(inplace);
}
std::string ELU::extra_repr() const { return "alpha=" + python_text(alpha) + in_place(inplace); }
std::string GELU::extra_repr() const { return "approximate='" + approximate + "'"; }
std::string Softplus::extra_repr() const {
  return fmt::format("beta={}, threshold={}", python_text(beta), python_text(threshold));
}
std::string Softmax::extra_repr() const { return dim_text(dim); }
std::string Softmin::extra_repr() const { return dim_text(dim); }
Tensor Softmax2d::forward(const Tensor& x) const {
  TERN_CHECK(x.dim() == 3 || x.dim() == 4, ShapeError,
             "Softmax2d: expected input to be 3D or 4D, got {}D instead", x.dim());
  return softmax(x, -3);
}
std::string LogSoftmax::extra_repr() const { return dim_text(dim); }

}  // namespace tern::nn
