// Dropout as a layer.
#include "tern/nn/dropout.h"

#include "tern/base/check.h"
#include "tern/nn/text.h"

namespace tern::nn {

Dropout::Dropout(double p_, bool inplace_) : p(p_), inplace(inplace_) {
  TERN_CHECK(p >= 0 && p <= 1, ValueError,
             "Dropout: dropout probability has to be between 0 and 1, but got {}", p);
}

std::string Dropout::extra_repr() const {
  return "p=" + python_text(p) + ", inplace=" + python_text(inplace);
}

}  // namespace tern::nn
