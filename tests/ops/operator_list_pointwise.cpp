// Elementwise operators, comparisons and methods that change a tensor, for operator_list.cpp: one line for
// each.
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/index.h"
#include "tern/ops/names.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {

const Table kPointwise = {
    {"add",
     [](A a) {
       return a.is_tensor(1) ? add(a.tensor(0), a.tensor(1), a.number(2, 1))
                             : add(a.tensor(0), a.number(1), a.number(2, 1));
     }},
    {"sub",
     [](A a) {
       return a.is_tensor(1) ? sub(a.tensor(0), a.tensor(1), a.number(2, 1))
                             : sub(a.tensor(0), a.number(1), a.number(2, 1));
     }},
    {"rsub", [](A a) { return rsub(a.tensor(0), a.number(1)); }},
    {"mul", two(mul, mul)},
    {"div", two(div, div)},
    {"div_rounded",
     [](A a) {
       return a.is_tensor(1) ? div(a.tensor(0), a.tensor(1), a.text(2))
                             : div(a.tensor(0), a.number(1), a.text(2));
     }},
    {"number_div", [](A a) { return a.number(0) / a.tensor(1); }},
    {"floor_divide", two(floor_divide, floor_divide)},
    {"remainder", two(remainder, remainder)},
    {"fmod", two(fmod, fmod)},
    {"pow", two(pow, pow)},
    {"number_pow", [](A a) { return pow(a.number(0), a.tensor(1)); }},
    {"atan2", two(atan2)},
    {"maximum", two(maximum)},
    {"minimum", two(minimum)},
    {"number_remainder", [](A a) { return remainder(a.number(0), a.tensor(1)); }},
    {"fmax", two(fmax)},
    {"fmin", two(fmin)},
    {"logaddexp", two(logaddexp)},
    {"logaddexp2", two(logaddexp2)},
    {"xlogy", two(xlogy, xlogy)},
    {"number_xlogy", [](A a) { return xlogy(a.number(0), a.tensor(1)); }},
    {"hypot", two(hypot)},
    {"copysign", two(copysign, copysign)},
    {"heaviside", two(heaviside)},
    {"lerp",
     [](A a) {
       return a.is_tensor(2) ? lerp(a.tensor(0), a.tensor(1), a.tensor(2))
                             : lerp(a.tensor(0), a.tensor(1), a.number(2));
     }},
    {"addcmul", [](A a) { return addcmul(a.tensor(0), a.tensor(1), a.tensor(2), a.number(3, 1)); }},
    {"addcdiv", [](A a) { return addcdiv(a.tensor(0), a.tensor(1), a.tensor(2), a.number(3, 1)); }},
    {"neg", one(neg)},
    {"abs", one(abs)},
    {"sign", one(sign)},
    {"square", one(square)},
    {"floor", one(floor)},
    {"ceil", one(ceil)},
    {"round", one(round)},
    {"trunc", one(trunc)},
    {"exp", one(exp)},
    {"expm1", one(expm1)},
    {"log", one(log)},
    {"log1p", one(log1p)},
    {"log2", one(log2)},
    {"log10", one(log10)},
    {"sqrt", one(sqrt)},
    {"rsqrt", one(rsqrt)},
    {"reciprocal", one(reciprocal)},
    {"sin", one(sin)},
    {"cos", one(cos)},
    {"tan", one(tan)},
    {"erf", one(erf)},
    {"erfc", one(erfc)},
    {"exp2", one(exp2)},
    {"asin", one(asin)},
    {"acos", one(acos)},
    {"atan", one(atan)},
    {"sinh", one(sinh)},
    {"cosh", one(cosh)},
    {"asinh", one(asinh)},
    {"acosh", one(acosh)},
    {"atanh", one(atanh)},
    {"sinc", one(sinc)},
    {"frac", one(frac)},
    {"deg2rad", one(deg2rad)},
    {"rad2deg", one(rad2deg)},
    {"logit", [](A a) { return logit(a.tensor(0), a.optional_real(1)); }},
    {"nan_to_num",
     [](A a) { return nan_to_num(a.tensor(0), a.real(1, 0), a.optional_real(2), a.optional_real(3)); }},
    {"clamp",
     [](A a) {
       return a.is_tensor(1) || a.is_tensor(2)
                  ? clamp(a.tensor(0), a.tensor(1), a.tensor(2))
                  : clamp(a.tensor(0), a.optional_number(1), a.optional_number(2));
     }},
    {"clamp_min", two(clamp_min, clamp_min)},
    {"clamp_max", two(clamp_max, clamp_max)},
    {"relu", one(relu)},
    {"sigmoid", one(sigmoid)},
    {"tanh", one(tanh)},
    {"silu", one(silu)},
    {"gelu", [](A a) { return gelu(a.tensor(0), a.text(1, "none")); }},
    {"softplus", [](A a) { return softplus(a.tensor(0), a.real(1, 1), a.real(2, 20)); }},
    {"logsigmoid", one(logsigmoid)},
    {"elu", [](A a) { return elu(a.tensor(0), a.real(1, 1)); }},
    {"rrelu", [](A a) { return rrelu(a.tensor(0), a.real(1, 1.0 / 8), a.real(2, 1.0 / 3), a.flag(3)); }},
    {"leaky_relu", [](A a) { return leaky_relu(a.tensor(0), a.real(1, 0.01)); }},
    {"celu", [](A a) { return celu(a.tensor(0), a.real(1, 1)); }},
    {"selu", one(selu)},
    {"prelu", [](A a) { return prelu(a.tensor(0), a.tensor(1)); }},
    {"mish", one(mish)},
    {"softsign", one(softsign)},
    {"hardsigmoid", one(hardsigmoid)},
    {"hardswish", one(hardswish)},
    {"hardtanh", [](A a) { return hardtanh(a.tensor(0), a.real(1, -1), a.real(2, 1)); }},
    {"relu6", one(relu6)},
    {"hardshrink", [](A a) { return hardshrink(a.tensor(0), a.real(1, 0.5)); }},
    {"softshrink", [](A a) { return softshrink(a.tensor(0), a.real(1, 0.5)); }},
    {"tanhshrink", one(tanhshrink)},
    {"threshold", [](A a) { return threshold(a.tensor(0), a.real(1), a.real(2)); }},
    {"glu", [](A a) { return glu(a.tensor(0), a.integer(1, -1)); }},
    {"float_power", two(float_power, float_power)},
    {"number_float_power", [](A a) { return float_power(a.number(0), a.tensor(1)); }},
    {"positive", one(positive)},
    {"clip",
     [](A a) {
       return a.is_tensor(1) || a.is_tensor(2)
                  ? clip(a.tensor(0), a.tensor(1), a.tensor(2))
                  : clip(a.tensor(0), a.optional_number(1), a.optional_number(2));
     }},
#define TERN_SECOND_NAME(second, first) {#second, one(second)},
    TERN_SECOND_NAMES_OF_ONE(TERN_SECOND_NAME)
#undef TERN_SECOND_NAME
#define TERN_SECOND_NAME(second, first) {#second, [](A a) { return second(a.tensor(0), a.tensor(1)); }},
        TERN_SECOND_NAMES_OF_TWO(TERN_SECOND_NAME)
#undef TERN_SECOND_NAME
};

const Table kCompare = {
    {"eq", two(eq, eq)},
    {"ne", two(ne, ne)},
    {"lt", two(lt, lt)},
    {"le", two(le, le)},
    {"gt", two(gt, gt)},
    {"ge", two(ge, ge)},
    {"logical_and", two(logical_and)},
    {"logical_or", two(logical_or)},
    {"logical_xor", two(logical_xor)},
    {"logical_not", one(logical_not)},
    {"bitwise_and", two(bitwise_and, bitwise_and)},
    {"bitwise_or", two(bitwise_or, bitwise_or)},
    {"bitwise_xor", two(bitwise_xor, bitwise_xor)},
    {"bitwise_not", one(bitwise_not)},
    {"isnan", one(isnan)},
    {"isinf", one(isinf)},
    {"isfinite", one(isfinite)},
    {"isposinf", one(isposinf)},
    {"isneginf", one(isneginf)},
    {"signbit", one(signbit)},
    {"isclose",
     [](A a) { return isclose(a.tensor(0), a.tensor(1), a.real(2, 1e-5), a.real(3, 1e-8), a.flag(4)); }},
    {"allclose",
     [](A a) {
       return truth(allclose(a.tensor(0), a.tensor(1), a.real(2, 1e-5), a.real(3, 1e-8), a.flag(4)));
     }},
    {"equal", [](A a) { return truth(equal(a.tensor(0), a.tensor(1))); }},
};

const Table kInPlace = {
    {"copy_", in_place([](Tensor& x, A a) { x.copy_(a.tensor(1)); })},
    {"fill_", in_place([](Tensor& x, A a) { x.fill_(a.number(1)); })},
    {"zero_", in_place([](Tensor& x, A) { x.zero_(); })},
    {"add_", in_place([](Tensor& x, A a) {
       a.is_tensor(1) ? x.add_(a.tensor(1), a.number(2, 1)) : x.add_(a.number(1));
     })},
    {"sub_", in_place([](Tensor& x, A a) {
       a.is_tensor(1) ? x.sub_(a.tensor(1), a.number(2, 1)) : x.sub_(a.number(1));
     })},
    {"mul_", in_place([](Tensor& x, A a) { a.is_tensor(1) ? x.mul_(a.tensor(1)) : x.mul_(a.number(1)); })},
    {"div_", in_place([](Tensor& x, A a) { a.is_tensor(1) ? x.div_(a.tensor(1)) : x.div_(a.number(1)); })},
    {"div_rounded_", in_place([](Tensor& x, A a) {
       a.is_tensor(1) ? x.div_(a.tensor(1), a.text(2)) : x.div_(a.number(1), a.text(2));
     })},
    {"floor_divide_", changed(&Tensor::floor_divide_, &Tensor::floor_divide_)},
    {"remainder_", changed(&Tensor::remainder_, &Tensor::remainder_)},
    {"fmod_", changed(&Tensor::fmod_, &Tensor::fmod_)},
    {"pow_", changed(&Tensor::pow_, &Tensor::pow_)},
    {"copysign_", changed(&Tensor::copysign_, &Tensor::copysign_)},
    {"xlogy_", changed(&Tensor::xlogy_, &Tensor::xlogy_)},
    {"clamp_min_", changed(&Tensor::clamp_min_, &Tensor::clamp_min_)},
    {"clamp_max_", changed(&Tensor::clamp_max_, &Tensor::clamp_max_)},
    {"atan2_", changed(&Tensor::atan2_)},
    {"hypot_", changed(&Tensor::hypot_)},
    {"heaviside_", changed(&Tensor::heaviside_)},
    {"bitwise_and_", in_place([](Tensor& x, A a) { x &= a.tensor(1); })},
    {"bitwise_or_", in_place([](Tensor& x, A a) { x |= a.tensor(1); })},
    {"bitwise_xor_", in_place([](Tensor& x, A a) { x ^= a.tensor(1); })},
    {"logical_and_", in_place([](Tensor& x, A a) { x.logical_and_(a.tensor(1)); })},
    {"logical_or_", in_place([](Tensor& x, A a) { x.logical_or_(a.tensor(1)); })},
    {"logical_xor_", in_place([](Tensor& x, A a) { x.logical_xor_(a.tensor(1)); })},
    {"logical_not_", in_place([](Tensor& x, A) { x.logical_not_(); })},
    {"tril_", in_place([](Tensor& x, A a) { x.tril_(a.integer(1)); })},
    {"triu_", in_place([](Tensor& x, A a) { x.triu_(a.integer(1)); })},
    {"cumsum_", in_place([](Tensor& x, A a) { x.cumsum_(a.integer(1)); })},
    {"cumprod_", in_place([](Tensor& x, A a) { x.cumprod_(a.integer(1)); })},
    {"renorm_", in_place([](Tensor& x, A a) { x.renorm_(a.real(1), a.integer(2), a.real(3)); })},
    {"fill_diagonal_", in_place([](Tensor& x, A a) { x.fill_diagonal_(a.number(1), a.flag(2)); })},
    {"masked_scatter_", in_place([](Tensor& x, A a) { x.masked_scatter_(a.tensor(1), a.tensor(2)); })},
    {"addmm_",
     in_place([](Tensor& x, A a) { x.addmm_(a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); })},
    {"baddbmm_",
     in_place([](Tensor& x, A a) { x.baddbmm_(a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); })},
    {"addmv_",
     in_place([](Tensor& x, A a) { x.addmv_(a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); })},
    {"addr_",
     in_place([](Tensor& x, A a) { x.addr_(a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); })},
    {"squeeze_", in_place([](Tensor& x, A a) { a.has(1) ? x.squeeze_(a.integer(1)) : x.squeeze_(); })},
    {"unsqueeze_", in_place([](Tensor& x, A a) { x.unsqueeze_(a.integer(1)); })},
    {"transpose_", in_place([](Tensor& x, A a) { x.transpose_(a.integer(1), a.integer(2)); })},
    {"t_", in_place([](Tensor& x, A) { x.t_(); })},
    {"lerp_", in_place([](Tensor& x, A a) {
       a.is_tensor(2) ? x.lerp_(a.tensor(1), a.tensor(2)) : x.lerp_(a.tensor(1), a.number(2));
     })},
    {"addcmul_", in_place([](Tensor& x, A a) { x.addcmul_(a.tensor(1), a.tensor(2), a.number(3, 1)); })},
    {"addcdiv_", in_place([](Tensor& x, A a) { x.addcdiv_(a.tensor(1), a.tensor(2), a.number(3, 1)); })},
    {"logit_", in_place([](Tensor& x, A a) { x.logit_(a.optional_real(1)); })},
    {"nan_to_num_",
     in_place([](Tensor& x, A a) { x.nan_to_num_(a.real(1, 0), a.optional_real(2), a.optional_real(3)); })},
    {"clamp_", in_place([](Tensor& x, A a) { x.clamp_(a.optional_number(1), a.optional_number(2)); })},
    {"masked_fill_", in_place([](Tensor& x, A a) { x.masked_fill_(a.tensor(1), a.number(2)); })},
    {"scatter_", in_place([](Tensor& x, A a) {
       a.is_tensor(3) ? scatter_(x, a.integer(1), a.tensor(2), a.tensor(3))
                      : scatter_(x, a.integer(1), a.tensor(2), a.number(3));
     })},
    {"scatter_add_",
     in_place([](Tensor& x, A a) { scatter_add_(x, a.integer(1), a.tensor(2), a.tensor(3)); })},
    {"index_add_",
     in_place([](Tensor& x, A a) { index_add_(x, a.integer(1), a.tensor(2), a.tensor(3), a.number(4, 1)); })},
    {"index_copy_", in_place([](Tensor& x, A a) { index_copy_(x, a.integer(1), a.tensor(2), a.tensor(3)); })},
    {"index_fill_", in_place([](Tensor& x, A a) { index_fill_(x, a.integer(1), a.tensor(2), a.number(3)); })},
    {"index_put_", in_place([](Tensor& x, A a) { index_put_(x, a.tensors(1), a.tensor(2), a.flag(3)); })},
    {"uniform_", in_place([](Tensor& x, A a) { x.uniform_(a.real(1), a.real(2, 1)); })},
    {"normal_", in_place([](Tensor& x, A a) { x.normal_(a.real(1), a.real(2, 1)); })},
    {"exponential_", in_place([](Tensor& x, A a) { exponential_(x, a.real(1, 1)); })},
    {"bernoulli_", in_place([](Tensor& x, A a) { bernoulli_(x, a.real(1, 0.5)); })},
    {"random_",
     in_place([](Tensor& x, A a) { a.has(1) ? random_(x, a.integer(1), a.integer(2)) : random_(x); })},
// Comparisons, and the functions of one number.
#define TERN_COMPARED_IN_PLACE(name) \
  {#name "_",                        \
   in_place([](Tensor& x, A a) { a.is_tensor(1) ? x.name##_(a.tensor(1)) : x.name##_(a.number(1)); })},
    TERN_COMPARED_IN_PLACE(eq) TERN_COMPARED_IN_PLACE(ne) TERN_COMPARED_IN_PLACE(lt)
        TERN_COMPARED_IN_PLACE(le) TERN_COMPARED_IN_PLACE(gt) TERN_COMPARED_IN_PLACE(ge)
#undef TERN_COMPARED_IN_PLACE
#define TERN_METHOD_IN_PLACE(name) {#name "_", changed(&Tensor::name##_)},
            TERN_ELEMENT_FUNCTIONS(TERN_METHOD_IN_PLACE)
#undef TERN_METHOD_IN_PLACE
};

}  // namespace tern::testing
