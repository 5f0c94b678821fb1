// Dropout as a layer.
#include "tern/nn/dropout.h"

#include "tern/base/check.h"
#include "tern/nn/text.h"

namespace tern::nn {
namespace {

double checked(const char* layer, double p) {
  TERN_CHECK(p >= 0 && p <= 1, ValueError, "{}: dropout probability has to be between 0 and 1, but got {}",
             layer, p);
  return p;
}

std::string text(double p, bool inplace) {
  return "p=" + python_text(p) + ", inplace=" + python_text(inplace);
}

}  // namespace

Dropout::Dropout(double p_, bool inplace_) : p(checked("Dropout", p_)), inplace(inplace_) {}
Dropout1d::Dropout1d(double p_, bool inplace_) : p(checked("Dropout1d", p_)), inplace(inplace_) {}
Dropout2d::Dropout2d(double p_, bool inplace_) : p(checked("Dropout2d", p_)), inplace(inplace_) {}

std::string Dropout::extra_repr() const { return text(p, inplace); }
std::string Dropout1d::extra_repr() const { return text(p, inplace); }
std::string Dropout2d::extra_repr() const { return text(p, inplace); }

}  // namespace tern::nn
