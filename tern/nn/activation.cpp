// The text of activation layers.
#include "tern/nn/activation.h"

#include <fmt/format.h>

#include "tern/nn/text.h"

namespace tern::nn {

std::string ReLU::extra_repr() const { return inplace ? "inplace=True" : ""; }
std::string SiLU::extra_repr() const { return inplace ? "inplace=True" : ""; }
std::string LeakyReLU::extra_repr() const {
  return "negative_slope=" + python_text(negative_slope) + (inplace ? ", inplace=True" : "");
}
std::string ELU::extra_repr() const {
  return "alpha=" + python_text(alpha) + (inplace ? ", inplace=True" : "");
}
std::string GELU::extra_repr() const { return "approximate='" + approximate + "'"; }
std::string Softplus::extra_repr() const {
  return fmt::format("beta={}, threshold={}", python_text(beta), python_text(threshold));
}
std::string Softmax::extra_repr() const { return fmt::format("dim={}", dim); }
std::string LogSoftmax::extra_repr() const { return fmt::format("dim={}", dim); }

}  // namespace tern::nn
