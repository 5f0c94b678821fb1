// Gradients of elementary functions and of operators of two and three operands against finite differences, as
// in gradcheck_test.cpp, which has those of arithmetic and exponentials.
#include "tern/ops/special.h"
#include "tests/ops/gradient_rows.h"

namespace tern::gradient_rows {
namespace {

std::vector<GradientRow> function_rows() {
  return {
      {"clamp_of_elements",
       {kMatrix, {{4}, -1, -0.3}, {{3, 1}, 0.2, 1}},
       [](const Tensors& x) { return clamp(x[0], x[1], x[2]); }},
      {"number_remainder", {{{3}, 0.6, 0.9}}, [](const Tensors& x) { return Scalar(2) % x[0]; }},
      {"fmax", {kMatrix, kVector}, [](const Tensors& x) { return fmax(x[0], x[1]); }},
      {"fmin", {kMatrix, kVector}, [](const Tensors& x) { return fmin(x[0], x[1]); }},
      {"logaddexp", {kMatrix, kVector}, [](const Tensors& x) { return logaddexp(x[0], x[1]); }},
      {"logaddexp2", {kMatrix, kVector}, [](const Tensors& x) { return logaddexp2(x[0], x[1]); }},
      {"xlogy", {kMatrix, {{4}, 0.5, 2}}, [](const Tensors& x) { return xlogy(x[0], x[1]); }},
      {"xlogy_number", {kMatrix}, [](const Tensors& x) { return xlogy(x[0], 1.7); }},
      {"number_xlogy", {kPositive}, [](const Tensors& x) { return xlogy(1.7, x[0]); }},
      {"hypot", {kPositive, kVector}, [](const Tensors& x) { return hypot(x[0], x[1]); }},
      {"copysign", {kPositive, kVector}, [](const Tensors& x) { return copysign(x[0], x[1]); }},
      {"lerp", {kMatrix, kVector, {{3, 1}}}, [](const Tensors& x) { return lerp(x[0], x[1], x[2]); }},
      {"lerp_number", {kMatrix, kVector}, [](const Tensors& x) { return lerp(x[0], x[1], 0.7); }},
      {"addcmul",
       {kMatrix, kVector, {{3, 1}}},
       [](const Tensors& x) { return addcmul(x[0], x[1], x[2], 2); }},
      {"addcdiv",
       {kMatrix, kVector, {{3, 1}, 0.5, 2}},
       [](const Tensors& x) { return addcdiv(x[0], x[1], x[2], 2); }},
      {"asin", {kMatrix}, [](const Tensors& x) { return asin(mul(x[0], 0.6)); }},
      {"acos", {kMatrix}, [](const Tensors& x) { return acos(mul(x[0], 0.6)); }},
      {"atan", {kMatrix}, [](const Tensors& x) { return atan(x[0]); }},
      {"sinh", {kMatrix}, [](const Tensors& x) { return sinh(x[0]); }},
      {"cosh", {kMatrix}, [](const Tensors& x) { return cosh(x[0]); }},
      {"asinh", {kMatrix}, [](const Tensors& x) { return asinh(x[0]); }},
      {"acosh", {kPositive}, [](const Tensors& x) { return acosh(add(x[0], 1)); }},
      {"atanh", {kMatrix}, [](const Tensors& x) { return atanh(mul(x[0], 0.6)); }},
      {"erfc", {kMatrix}, [](const Tensors& x) { return erfc(x[0]); }},
      {"lgamma", {kPositive}, [](const Tensors& x) { return lgamma(x[0]); }},
      {"lgamma_of_negative", {{{3, 4}, -0.9, -0.1}}, [](const Tensors& x) { return lgamma(x[0]); }},
      {"digamma", {kPositive}, [](const Tensors& x) { return digamma(x[0]); }},
      {"polygamma", {kPositive}, [](const Tensors& x) { return polygamma(2, x[0]); }},
      {"erfinv", {{{3, 4}, -0.9, 0.9}}, [](const Tensors& x) { return erfinv(x[0]); }},
      {"mvlgamma", {{{3, 4}, 2, 5}}, [](const Tensors& x) { return mvlgamma(x[0], 3); }},
      {"gammainc_of_place",
       {{{3, 4}, 0.2, 9}},
       [](const Tensors& x) { return special::gammainc(full({4}, 3.2, {.dtype = DType::Float64}), x[0]); }},
      {"number_zeta", {kPositive}, [](const Tensors& x) { return special::zeta(2.5, x[0]); }},
      {"ndtr", {kMatrix}, [](const Tensors& x) { return special::ndtr(x[0]); }},
      {"entr", {kPositive}, [](const Tensors& x) { return special::entr(x[0]); }},
      {"exp2", {kMatrix}, [](const Tensors& x) { return exp2(x[0]); }},
      {"sinc", {kPositive}, [](const Tensors& x) { return sinc(x[0]); }},
      {"frac", {kFractions}, [](const Tensors& x) { return frac(x[0]); }},
      {"logit", {{{3, 4}, 0.1, 0.9}}, [](const Tensors& x) { return logit(x[0]); }},
      {"logit_eps", {{{3, 4}, 0.1, 0.9}}, [](const Tensors& x) { return logit(x[0], 0.303); }},
      {"nan_to_num", {kMatrix}, [](const Tensors& x) { return nan_to_num(x[0]); }},
  };
}

INSTANTIATE_TEST_SUITE_P(Functions, Gradcheck, ::testing::ValuesIn(function_rows()), row_name);

}  // namespace
}  // namespace tern::gradient_rows
