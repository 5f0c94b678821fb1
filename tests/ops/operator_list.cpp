// The operators that operator_table.py knows, for operator_tool.cpp and bench/operator_peer.cpp: one line of
// a table below stands for each.
#include <string>
#include <string_view>

#include "tern/core/memory.h"
#include "tern/ops/activation.h"
#include "tern/ops/attention.h"
#include "tern/ops/autocast.h"
#include "tern/ops/compare.h"
#include "tern/ops/conv.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/distance.h"
#include "tern/ops/embedding.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/loss.h"
#include "tern/ops/matmul.h"
#include "tern/ops/norm.h"
#include "tern/ops/pad.h"
#include "tern/ops/pixel.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/pool.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tern/ops/sort.h"
#include "tests/ops/operator_arguments.h"
#include "tests/ops/operator_methods.h"
#include "tests/ops/operator_recurrent.h"

namespace tern::testing {
namespace {

using A = const Arguments&;
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using BinaryNumber = Tensor (*)(const Tensor&, const Scalar&);

/// f(x).
Operator one(Unary f) {
  return [f](A a) { return f(a.tensor(0)); };
}
/// f(a, b) of two tensors.
Operator two(Binary f) {
  return [f](A a) { return f(a.tensor(0), a.tensor(1)); };
}
/// f(a, b), where b may be a number.
Operator two(Binary f, BinaryNumber g) {
  return [f, g](A a) { return a.is_tensor(1) ? f(a.tensor(0), a.tensor(1)) : g(a.tensor(0), a.number(1)); };
}
/// A method that changes a copy of x in place; of a strided x, a strided view.
template <class Change>
Operator in_place(Change change) {
  return [change](A a) {
    const Tensor source = a.tensor(0);
    Tensor x = source.is_contiguous() || source.dim() < 2 ? clone(source)
                                                          : transpose(clone(transpose(source, 0, -1)), 0, -1);
    change(x, a);
    return x;
  };
}

Tensor truth(bool value) { return full({}, value); }
Size2 size2(A a, size_t i, int64_t otherwise) {
  const std::vector<int64_t> sizes = a.integers(i);
  if (sizes.empty()) return otherwise;
  return sizes.size() == 1 ? Size2(sizes[0]) : Size2(sizes[0], sizes.at(1));
}
std::optional<Size2> optional_size2(A a, size_t i) {
  return a.has(i) ? std::optional(size2(a, i, 0)) : std::nullopt;
}
ConvPadding padding(A a, size_t i, bool is_text) {
  return is_text ? ConvPadding(a.text(i)) : ConvPadding(size2(a, i, 0));
}
Reduction reduction(A a, size_t i) { return parse_reduction(a.text(i, "mean")); }

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
    {"clamp", [](A a) { return clamp(a.tensor(0), a.optional_number(1), a.optional_number(2)); }},
    {"relu", one(relu)},
    {"sigmoid", one(sigmoid)},
    {"tanh", one(tanh)},
    {"silu", one(silu)},
    {"gelu", [](A a) { return gelu(a.tensor(0), a.text(1, "none")); }},
    {"softplus", [](A a) { return softplus(a.tensor(0), a.real(1, 1), a.real(2, 20)); }},
    {"logsigmoid", one(logsigmoid)},
    {"elu", [](A a) { return elu(a.tensor(0), a.real(1, 1)); }},
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
    {"bitwise_and", two(bitwise_and)},
    {"bitwise_or", two(bitwise_or)},
    {"bitwise_xor", two(bitwise_xor)},
    {"bitwise_not", one(bitwise_not)},
    {"isnan", one(isnan)},
    {"isinf", one(isinf)},
    {"isfinite", one(isfinite)},
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
    {"clamp_", in_place([](Tensor& x, A a) { x.clamp_(a.optional_number(1), a.optional_number(2)); })},
    {"relu_", in_place([](Tensor& x, A) { x.relu_(); })},
    {"exp_", in_place([](Tensor& x, A) { x.exp_(); })},
    {"sqrt_", in_place([](Tensor& x, A) { x.sqrt_(); })},
    {"neg_", in_place([](Tensor& x, A) { x.neg_(); })},
    {"sigmoid_", in_place([](Tensor& x, A) { x.sigmoid_(); })},
    {"tanh_", in_place([](Tensor& x, A) { x.tanh_(); })},
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
};

const Table kReduce = {
    {"sum",
     [](A a) {
       return a.has(1) ? sum(a.tensor(0), a.integers(1), a.flag(2), a.dtype(3))
                       : sum(a.tensor(0), a.dtype(3));
     }},
    {"mean",
     [](A a) {
       return a.has(1) ? mean(a.tensor(0), a.integers(1), a.flag(2), a.dtype(3))
                       : mean(a.tensor(0), a.dtype(3));
     }},
    {"prod",
     [](A a) {
       return a.has(1) ? prod(a.tensor(0), a.integer(1), a.flag(2), a.dtype(3))
                       : prod(a.tensor(0), a.dtype(3));
     }},
    {"max",
     [](A a) {
       return a.has(1) ? Results(max(a.tensor(0), a.integer(1), a.flag(2))) : Results(max(a.tensor(0)));
     }},
    {"min",
     [](A a) {
       return a.has(1) ? Results(min(a.tensor(0), a.integer(1), a.flag(2))) : Results(min(a.tensor(0)));
     }},
    {"amax", [](A a) { return amax(a.tensor(0), a.integers(1), a.flag(2)); }},
    {"amin", [](A a) { return amin(a.tensor(0), a.integers(1), a.flag(2)); }},
    {"aminmax",
     [](A a) { return a.has(1) ? aminmax(a.tensor(0), a.integer(1), a.flag(2)) : aminmax(a.tensor(0)); }},
    {"argmax",
     [](A a) { return a.has(1) ? argmax(a.tensor(0), a.integer(1), a.flag(2)) : argmax(a.tensor(0)); }},
    {"argmin",
     [](A a) { return a.has(1) ? argmin(a.tensor(0), a.integer(1), a.flag(2)) : argmin(a.tensor(0)); }},
    {"any", [](A a) { return a.has(1) ? any(a.tensor(0), a.integers(1), a.flag(2)) : any(a.tensor(0)); }},
    {"all", [](A a) { return a.has(1) ? all(a.tensor(0), a.integers(1), a.flag(2)) : all(a.tensor(0)); }},
    {"count_nonzero", [](A a) { return count_nonzero(a.tensor(0), a.integers(1)); }},
    {"var", [](A a) { return var(a.tensor(0), a.integers(1), a.real(2, 1), a.flag(3)); }},
    {"std", [](A a) { return std(a.tensor(0), a.integers(1), a.real(2, 1), a.flag(3)); }},
    {"var_mean", [](A a) { return var_mean(a.tensor(0), a.integers(1), a.real(2, 1), a.flag(3)); }},
    {"std_mean", [](A a) { return std_mean(a.tensor(0), a.integers(1), a.real(2, 1), a.flag(3)); }},
    {"norm",
     [](A a) {
       return a.has(2) ? norm(a.tensor(0), a.real(1, 2), a.integers(2), a.flag(3), a.dtype(4))
                       : norm(a.tensor(0), a.real(1, 2));
     }},
    {"cumsum", [](A a) { return cumsum(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"cumprod", [](A a) { return cumprod(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"softmax", [](A a) { return softmax(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"log_softmax", [](A a) { return log_softmax(a.tensor(0), a.integer(1), a.dtype(2)); }},
    {"logsumexp", [](A a) { return logsumexp(a.tensor(0), a.integers(1), a.flag(2)); }},
    {"sort", [](A a) { return sort(a.tensor(0), a.integer(1, -1), a.flag(2)); }},
    {"argsort", [](A a) { return argsort(a.tensor(0), a.integer(1, -1), a.flag(2)); }},
    {"topk",
     [](A a) { return topk(a.tensor(0), a.integer(1), a.integer(2, -1), a.flag(3, true), a.flag(4, true)); }},
    {"median",
     [](A a) {
       return a.has(1) ? Results(median(a.tensor(0), a.integer(1), a.flag(2))) : Results(median(a.tensor(0)));
     }},
};

const Table kShape = {
    {"view", [](A a) { return view(a.tensor(0), a.integers(1)); }},
    {"reshape", [](A a) { return reshape(a.tensor(0), a.integers(1)); }},
    {"view_as", two(view_as)},
    {"reshape_as", two(reshape_as)},
    {"flatten", [](A a) { return flatten(a.tensor(0), a.integer(1), a.integer(2, -1)); }},
    {"unflatten", [](A a) { return unflatten(a.tensor(0), a.integer(1), a.integers(2)); }},
    {"squeeze", [](A a) { return a.has(1) ? squeeze(a.tensor(0), a.integers(1)) : squeeze(a.tensor(0)); }},
    {"squeeze_dim", [](A a) { return squeeze(a.tensor(0), a.integer(1)); }},
    {"unsqueeze", [](A a) { return unsqueeze(a.tensor(0), a.integer(1)); }},
    {"permute", [](A a) { return permute(a.tensor(0), a.integers(1)); }},
    {"transpose", [](A a) { return transpose(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"swapaxes", [](A a) { return swapaxes(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"t", one(t)},
    {"mT", one(mT)},
    {"movedim", [](A a) { return movedim(a.tensor(0), a.integers(1), a.integers(2)); }},
    {"expand", [](A a) { return expand(a.tensor(0), a.integers(1)); }},
    {"expand_as", two(expand_as)},
    {"broadcast_to", [](A a) { return broadcast_to(a.tensor(0), a.integers(1)); }},
    {"broadcast_tensors", [](A a) { return broadcast_tensors(a.tensors(0)); }},
    {"meshgrid", [](A a) { return meshgrid(a.tensors(0), a.text(1, "ij").c_str()); }},
    {"narrow", [](A a) { return narrow(a.tensor(0), a.integer(1), a.integer(2), a.integer(3)); }},
    {"slice",
     [](A a) {
       return slice(a.tensor(0), a.integer(1), a.optional_integer(2), a.optional_integer(3), a.integer(4, 1));
     }},
    {"select", [](A a) { return select(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"unbind", [](A a) { return unbind(a.tensor(0), a.integer(1)); }},
    {"chunk", [](A a) { return chunk(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"split", [](A a) { return split(a.tensor(0), a.integer(1), a.integer(2)); }},
    {"split_sizes", [](A a) { return split(a.tensor(0), IntArrayRef(a.integers(1)), a.integer(2)); }},
    {"diagonal", [](A a) { return diagonal(a.tensor(0), a.integer(1), a.integer(2), a.integer(3, 1)); }},
    {"unfold", [](A a) { return unfold(a.tensor(0), a.integer(1), a.integer(2), a.integer(3)); }},
    {"as_strided",
     [](A a) { return as_strided(a.tensor(0), a.integers(1), a.integers(2), a.optional_integer(3)); }},
    {"cat", [](A a) { return cat(a.tensors(0), a.integer(1)); }},
    {"stack", [](A a) { return stack(a.tensors(0), a.integer(1)); }},
    {"hstack", [](A a) { return hstack(a.tensors(0)); }},
    {"vstack", [](A a) { return vstack(a.tensors(0)); }},
    {"repeat", [](A a) { return repeat(a.tensor(0), a.integers(1)); }},
    {"tile", [](A a) { return tile(a.tensor(0), a.integers(1)); }},
    {"repeat_interleave",
     [](A a) { return repeat_interleave(a.tensor(0), a.integer(1), a.optional_integer(2)); }},
    {"roll", [](A a) { return roll(a.tensor(0), a.integers(1), a.integers(2)); }},
    {"flip", [](A a) { return flip(a.tensor(0), a.integers(1)); }},
    {"to", [](A a) { return to(a.tensor(0), *a.dtype(1)); }},
    {"contiguous", one(contiguous)},
    {"clone", one(clone)},
    {"item",
     [](A a) {
       const Scalar value = item(a.tensor(0));
       return full({}, value, {.dtype = value.kind(), .device = {}});
     }},
};

const Table kIndex = {
    {"gather", [](A a) { return gather(a.tensor(0), a.integer(1), a.tensor(2)); }},
    {"scatter",
     [](A a) {
       return a.is_tensor(3) ? scatter(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3))
                             : scatter(a.tensor(0), a.integer(1), a.tensor(2), a.number(3));
     }},
    {"scatter_add", [](A a) { return scatter_add(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3)); }},
    {"take_along_dim", [](A a) { return take_along_dim(a.tensor(0), a.tensor(1), a.optional_integer(2)); }},
    {"take", two(take)},
    {"index_select", [](A a) { return index_select(a.tensor(0), a.integer(1), a.tensor(2)); }},
    {"index_add",
     [](A a) { return index_add(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3), a.number(4, 1)); }},
    {"index_copy", [](A a) { return index_copy(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3)); }},
    {"index_fill", [](A a) { return index_fill(a.tensor(0), a.integer(1), a.tensor(2), a.number(3)); }},
    {"index", [](A a) { return index(a.tensor(0), a.tensors(1)); }},
    {"index_put", [](A a) { return index_put(a.tensor(0), a.tensors(1), a.tensor(2), a.flag(3)); }},
    {"where",
     [](A a) {
       const Tensor condition = a.tensor(0);
       if (!a.has(1)) return Results(where(condition));
       if (a.is_tensor(1))
         return Results(a.is_tensor(2) ? where(condition, a.tensor(1), a.tensor(2))
                                       : where(condition, a.tensor(1), a.number(2)));
       return Results(a.is_tensor(2) ? where(condition, a.number(1), a.tensor(2))
                                     : where(condition, a.number(1), a.number(2)));
     }},
    {"masked_fill",
     [](A a) {
       return a.is_tensor(2) ? masked_fill(a.tensor(0), a.tensor(1), a.tensor(2))
                             : masked_fill(a.tensor(0), a.tensor(1), a.number(2));
     }},
    {"masked_select", two(masked_select)},
    {"masked_scatter", [](A a) { return masked_scatter(a.tensor(0), a.tensor(1), a.tensor(2)); }},
    {"nonzero", one(nonzero)},
    {"argwhere", one(argwhere)},
    {"searchsorted", [](A a) { return searchsorted(a.tensor(0), a.tensor(1), a.flag(2)); }},
    {"bucketize", [](A a) { return bucketize(a.tensor(0), a.tensor(1), a.flag(2)); }},
    {"embedding", [](A a) { return embedding(a.tensor(0), a.tensor(1), a.optional_integer(2)); }},
};

const Table kNetwork = {
    {"matmul", two(matmul)},
    {"mm", two(mm)},
    {"bmm", two(bmm)},
    {"mv", two(mv)},
    {"dot", two(dot)},
    {"outer", two(outer)},
    {"addmm",
     [](A a) { return addmm(a.tensor(0), a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); }},
    {"baddbmm",
     [](A a) { return baddbmm(a.tensor(0), a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); }},
    {"linear", [](A a) { return linear(a.tensor(0), a.tensor(1), a.tensor(2)); }},
    {"linear_gelu_linear",
     [](A a) { return linear_gelu_linear(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), a.tensor(4)); }},
    {"linear_relu", [](A a) { return linear_relu(a.tensor(0), a.tensor(1), a.tensor(2)); }},
    {"scaled_dot_product_attention",
     [](A a) {
       return scaled_dot_product_attention(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), a.real(4),
                                           a.flag(5), a.optional_real(6), a.flag(7));
     }},
    {"einsum", [](A a) { return einsum(a.text(0), a.tensors(1)); }},
    {"conv2d",
     [](A a) {
       return conv2d(a.tensor(0), a.tensor(1), a.tensor(2),
                     {size2(a, 3, 1), padding(a, 4, a.flag(7)), size2(a, 5, 1), a.integer(6, 1)});
     }},
    {"conv2d_relu",
     [](A a) {
       return conv2d_relu(a.tensor(0), a.tensor(1), a.tensor(2),
                          {size2(a, 3, 1), padding(a, 4, a.flag(7)), size2(a, 5, 1), a.integer(6, 1)});
     }},
    {"conv1d",
     [](A a) {
       return conv1d(a.tensor(0), a.tensor(1), a.tensor(2),
                     {a.integer(3, 1), padding(a, 4, a.flag(7)), a.integer(5, 1), a.integer(6, 1)});
     }},
    {"conv_transpose2d",
     [](A a) {
       return conv_transpose2d(
           a.tensor(0), a.tensor(1), a.tensor(2),
           {size2(a, 3, 1), size2(a, 4, 0), size2(a, 5, 0), a.integer(6, 1), size2(a, 7, 1)});
     }},
    {"conv_transpose1d",
     [](A a) {
       return conv_transpose1d(
           a.tensor(0), a.tensor(1), a.tensor(2),
           {a.integer(3, 1), a.integer(4), a.integer(5), a.integer(6, 1), a.integer(7, 1)});
     }},
    {"pad", [](A a) { return pad(a.tensor(0), a.integers(1), a.text(2, "constant"), a.number(3, 0)); }},
    {"pixel_shuffle", [](A a) { return pixel_shuffle(a.tensor(0), a.integer(1)); }},
    {"pixel_unshuffle", [](A a) { return pixel_unshuffle(a.tensor(0), a.integer(1)); }},
    {"max_pool2d",
     [](A a) {
       return max_pool2d(a.tensor(0),
                         {size2(a, 1, 0), optional_size2(a, 2), size2(a, 3, 0), size2(a, 4, 1), a.flag(5)});
     }},
    {"max_pool2d_with_indices",
     [](A a) {
       return max_pool2d_with_indices(
           a.tensor(0), {size2(a, 1, 0), optional_size2(a, 2), size2(a, 3, 0), size2(a, 4, 1), a.flag(5)});
     }},
    {"avg_pool2d",
     [](A a) {
       return avg_pool2d(a.tensor(0), {size2(a, 1, 0), optional_size2(a, 2), size2(a, 3, 0), a.flag(4),
                                       a.flag(5, true), a.optional_integer(6)});
     }},
    {"adaptive_avg_pool2d", [](A a) { return adaptive_avg_pool2d(a.tensor(0), size2(a, 1, 1)); }},
    {"adaptive_max_pool2d", [](A a) { return adaptive_max_pool2d(a.tensor(0), size2(a, 1, 1)); }},
    {"adaptive_max_pool2d_with_indices",
     [](A a) { return adaptive_max_pool2d_with_indices(a.tensor(0), size2(a, 1, 1)); }},
    {"max_pool1d",
     [](A a) {
       return max_pool1d(a.tensor(0),
                         {a.integer(1), a.optional_integer(2), a.integer(3), a.integer(4, 1), a.flag(5)});
     }},
    {"avg_pool1d",
     [](A a) {
       return avg_pool1d(a.tensor(0),
                         {a.integer(1), a.optional_integer(2), a.integer(3), a.flag(4), a.flag(5, true)});
     }},
    {"adaptive_avg_pool1d", [](A a) { return adaptive_avg_pool1d(a.tensor(0), a.integer(1)); }},
    {"adaptive_max_pool1d", [](A a) { return adaptive_max_pool1d(a.tensor(0), a.integer(1)); }},
    {"batch_norm",
     [](A a) {
       // The running statistics, which are changed, are results too.
       Tensor mean = a.has(1) ? clone(a.tensor(1)) : Tensor(), var = a.has(2) ? clone(a.tensor(2)) : Tensor();
       std::vector<Tensor> all = {batch_norm(a.tensor(0), mean, var, a.tensor(3), a.tensor(4), a.flag(5),
                                             a.real(6, 0.1), a.real(7, 1e-5))};
       if (mean.defined()) all.push_back(mean);
       if (var.defined()) all.push_back(var);
       return all;
     }},
    {"instance_norm",
     [](A a) {
       Tensor mean = a.has(1) ? clone(a.tensor(1)) : Tensor(), var = a.has(2) ? clone(a.tensor(2)) : Tensor();
       std::vector<Tensor> all = {instance_norm(a.tensor(0), mean, var, a.tensor(3), a.tensor(4),
                                                a.flag(5, true), a.real(6, 0.1), a.real(7, 1e-5))};
       if (mean.defined()) all.push_back(mean);
       if (var.defined()) all.push_back(var);
       return all;
     }},
    {"normalize",
     [](A a) { return normalize(a.tensor(0), a.real(1, 2), a.integer(2, 1), a.real(3, 1e-12)); }},
    {"cosine_similarity",
     [](A a) { return cosine_similarity(a.tensor(0), a.tensor(1), a.integer(2, 1), a.real(3, 1e-8)); }},
    {"pairwise_distance",
     [](A a) {
       return pairwise_distance(a.tensor(0), a.tensor(1), a.real(2, 2), a.real(3, 1e-6), a.flag(4));
     }},
    {"layer_norm",
     [](A a) { return layer_norm(a.tensor(0), a.integers(1), a.tensor(2), a.tensor(3), a.real(4, 1e-5)); }},
    {"group_norm",
     [](A a) { return group_norm(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3), a.real(4, 1e-5)); }},
    {"rms_norm", [](A a) { return rms_norm(a.tensor(0), a.integers(1), a.tensor(2), a.optional_real(3)); }},
    {"recurrent_layer", run_recurrent_layer},
    {"lstm_cell", run_lstm_cell},
    {"gru_cell", recurrent_cell(gru_cell)},
    {"rnn_tanh_cell", recurrent_cell(rnn_tanh_cell)},
    {"rnn_relu_cell", recurrent_cell(rnn_relu_cell)},
    {"cross_entropy",
     [](A a) {
       return cross_entropy(a.tensor(0), a.tensor(1),
                            {a.tensor(2), a.integer(3, -100), reduction(a, 4), a.real(5)});
     }},
    {"nll_loss",
     [](A a) {
       return nll_loss(a.tensor(0), a.tensor(1), {a.tensor(2), a.integer(3, -100), reduction(a, 4)});
     }},
    {"mse_loss", [](A a) { return mse_loss(a.tensor(0), a.tensor(1), reduction(a, 2)); }},
    {"l1_loss", [](A a) { return l1_loss(a.tensor(0), a.tensor(1), reduction(a, 2)); }},
    {"smooth_l1_loss",
     [](A a) { return smooth_l1_loss(a.tensor(0), a.tensor(1), reduction(a, 2), a.real(3, 1)); }},
    {"huber_loss", [](A a) { return huber_loss(a.tensor(0), a.tensor(1), reduction(a, 2), a.real(3, 1)); }},
    {"binary_cross_entropy",
     [](A a) { return binary_cross_entropy(a.tensor(0), a.tensor(1), a.tensor(2), reduction(a, 3)); }},
    {"binary_cross_entropy_with_logits",
     [](A a) {
       return binary_cross_entropy_with_logits(a.tensor(0), a.tensor(1),
                                               {a.tensor(2), a.tensor(3), reduction(a, 4)});
     }},
    {"kl_div",
     [](A a) {
       return kl_div(a.tensor(0), a.tensor(1), {reduction(a, 2), a.flag(3)});
     }},
};

const Table kCreation = {
    {"empty", [](A a) { return empty(a.integers(0), a.options(1)); }},
    {"zeros", [](A a) { return zeros(a.integers(0), a.options(1)); }},
    {"ones", [](A a) { return ones(a.integers(0), a.options(1)); }},
    {"full", [](A a) { return full(a.integers(0), a.number(1), a.options(2)); }},
    {"empty_like", [](A a) { return empty_like(a.tensor(0), a.options(1)); }},
    {"zeros_like", [](A a) { return zeros_like(a.tensor(0), a.options(1)); }},
    {"ones_like", [](A a) { return ones_like(a.tensor(0), a.options(1)); }},
    {"full_like", [](A a) { return full_like(a.tensor(0), a.number(1), a.options(2)); }},
    {"tensor", [](A a) { return tensor(a.tensor(0).to_vector<double>(), a.options(1)); }},
    {"from_blob",
     [](A a) {
       const Tensor x = contiguous(a.tensor(0).cpu());
       return clone(from_blob(x.data_ptr(), x.shape(), x.dtype(), [x] {}));
     }},
    {"arange", [](A a) { return arange(a.number(0), a.number(1), a.number(2, 1), a.options(3)); }},
    {"linspace", [](A a) { return linspace(a.number(0), a.number(1), a.integer(2), a.options(3)); }},
    {"logspace",
     [](A a) { return logspace(a.number(0), a.number(1), a.integer(2), a.real(3, 10), a.options(4)); }},
    {"eye",
     [](A a) {
       return a.has(1) ? eye(a.integer(0), a.integer(1), a.options(2)) : eye(a.integer(0), a.options(2));
     }},
    {"tril", [](A a) { return tril(a.tensor(0), a.integer(1)); }},
    {"triu", [](A a) { return triu(a.tensor(0), a.integer(1)); }},
    {"one_hot", [](A a) { return one_hot(a.tensor(0), a.integer(1, -1)); }},
    {"rand", [](A a) { return rand(a.integers(0), a.options(1)); }},
    {"randn", [](A a) { return randn(a.integers(0), a.options(1)); }},
    {"randint", [](A a) { return randint(a.integer(0), a.integer(1), a.integers(2), a.options(3)); }},
    {"randperm", [](A a) { return randperm(a.integer(0), a.options(1)); }},
    {"normal", [](A a) { return normal(a.real(0), a.real(1, 1), a.integers(2), a.options(3)); }},
    {"rand_like", [](A a) { return rand_like(a.tensor(0), a.options(1)); }},
    {"randn_like", [](A a) { return randn_like(a.tensor(0), a.options(1)); }},
    {"randint_like", [](A a) { return randint_like(a.tensor(0), a.integer(1), a.integer(2), a.options(3)); }},
    {"bernoulli", [](A a) { return bernoulli(a.tensor(0)); }},
    {"multinomial", [](A a) { return multinomial(a.tensor(0), a.integer(1), a.flag(2)); }},
    {"dropout", [](A a) { return dropout(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
    {"dropout1d", [](A a) { return dropout1d(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
    {"dropout2d", [](A a) { return dropout2d(a.tensor(0), a.real(1, 0.5), a.flag(2, true)); }},
};

}  // namespace

const Operator& find_operator(const std::string& name) {
  for (const Table* table :
       {&kPointwise, &kCompare, &kInPlace, &kReduce, &kShape, &kIndex, &kNetwork, &kCreation, &kMethods})
    if (auto row = table->find(name); row != table->end()) return row->second;
  throw IndexError("there is no row for '" + name + "'");
}

}  // namespace tern::testing
