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

/// By N - 1.
constexpr const char* kChannelNames[] = {"Dropout1d", "Dropout2d", "Dropout3d"};

}  // namespace

Dropout::Dropout(double p_, bool inplace_) : p(checked("Dropout", p_)), inplace(inplace_) {}
std::string Dropout::extra_repr() const { return text(p, inplace); }

template <int N>
ChannelDropout<N>::ChannelDropout(double p_, bool inplace_)
    : p(checked(kChannelNames[N - 1], p_)), inplace(inplace_) {}

template <int N>
Tensor ChannelDropout<N>::forward(const Tensor& x) const {
  constexpr auto kFunction = N == 1 ? dropout1d : N == 2 ? dropout2d : dropout3d;
  return kFunction(x, p, is_training(), std::nullopt);
}

template <int N>
std::string ChannelDropout<N>::class_name() const {
  return kChannelNames[N - 1];
}

template <int N>
std::string ChannelDropout<N>::extra_repr() const {
  return text(p, inplace);
}

template struct ChannelDropout<1>;
template struct ChannelDropout<2>;
template struct ChannelDropout<3>;

AlphaDropout::AlphaDropout(double p_, bool inplace_) : p(checked("AlphaDropout", p_)), inplace(inplace_) {}
std::string AlphaDropout::extra_repr() const { return text(p, inplace); }

FeatureAlphaDropout::FeatureAlphaDropout(double p_, bool inplace_)
    : p(checked("FeatureAlphaDropout", p_)), inplace(inplace_) {}
std::string FeatureAlphaDropout::extra_repr() const { return text(p, inplace); }

}  // namespace tern::nn
