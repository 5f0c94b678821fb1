// Methods of Tensor give what the functions of the same name give, which operator_table.py compares with
// PyTorch.
#include <gtest/gtest.h>

#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/names.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/products.h"
#include "tern/ops/quantile.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tern/ops/sort.h"
#include "tern/ops/unique.h"

namespace tern {
namespace {

struct MethodRow {
  const char* name;
  Tensor method, function;
};

void expect_equal(const std::vector<MethodRow>& rows) {
  for (const auto& [name, method, function] : rows) {
    SCOPED_TRACE(name);
    EXPECT_EQ(method.shape(), function.shape());
    EXPECT_EQ(method.dtype(), function.dtype());
    EXPECT_TRUE(allclose(method, function, 0, 0, /*equal_nan=*/true)) << method.str() << function.str();
  }
}

TEST(Methods, OfElements) {
  const Tensor x = randn({3, 4}), y = randn({3, 4}), p = rand({3, 4}) + 0.5;
  expect_equal({
      {"add", x.add(y, 2), add(x, y, 2)},
      {"add", x.add(3, 2), x + 6},
      {"sub", x.sub(y, 2), sub(x, y, 2)},
      {"sub", x.sub(3, 2), x - 6},
      {"mul", x.mul(y), x * y},
      {"mul", x.mul(3), x * 3},
      {"div", x.div(y), x / y},
      {"div", x.div(4), x / 4},
      {"floor_divide", x.floor_divide(p), floor_divide(x, p)},
      {"floor_divide", x.floor_divide(0.5), floor_divide(x, 0.5)},
      {"remainder", x.remainder(p), remainder(x, p)},
      {"remainder", x.remainder(0.5), remainder(x, 0.5)},
      {"fmod", x.fmod(p), fmod(x, p)},
      {"fmod", x.fmod(0.5), fmod(x, 0.5)},
      {"pow", p.pow(x), pow(p, x)},
      {"pow", x.pow(3), pow(x, 3)},
      {"maximum", x.maximum(y), maximum(x, y)},
      {"minimum", x.minimum(y), minimum(x, y)},
      {"clamp", x.clamp(0), clamp(x, 0, {})},
      {"clamp", x.clamp(p - 1, p), clamp(x, p - 1, p)},
      {"clamp_min", x.clamp_min(0), clamp(x, 0, {})},
      {"clamp_min", x.clamp_min(y), maximum(x, y)},
      {"clamp_max", x.clamp_max(0), clamp(x, {}, 0)},
      {"clamp_max", x.clamp_max(y), minimum(x, y)},
      {"div", x.div(p, "floor"), div(x, p, "floor")},
      {"div", x.div(2, "trunc"), div(x, 2, "trunc")},
      {"fmax", x.fmax(y), fmax(x, y)},
      {"fmin", x.fmin(y), fmin(x, y)},
      {"atan2", x.atan2(y), atan2(x, y)},
      {"hypot", x.hypot(y), hypot(x, y)},
      {"copysign", x.copysign(y), copysign(x, y)},
      {"copysign", x.copysign(-1), copysign(x, -1)},
      {"xlogy", x.xlogy(p), xlogy(x, p)},
      {"xlogy", x.xlogy(2), xlogy(x, 2)},
      {"logaddexp", x.logaddexp(y), logaddexp(x, y)},
      {"logaddexp2", x.logaddexp2(y), logaddexp2(x, y)},
      {"heaviside", x.heaviside(y), heaviside(x, y)},
      {"lerp", x.lerp(y, p), lerp(x, y, p)},
      {"lerp", x.lerp(y, 0.3), lerp(x, y, 0.3)},
      {"addcmul", x.addcmul(y, p, 2), addcmul(x, y, p, 2)},
      {"addcdiv", x.addcdiv(y, p, 2), addcdiv(x, y, p, 2)},
      {"logit", p.logit(0.1), logit(p, 0.1)},
      {"nan_to_num", log(x).nan_to_num(1), nan_to_num(log(x), 1)},
      {"type_as", x.type_as(p.to(DType::Float64)), x.to(DType::Float64)},
  });
  EXPECT_EQ(x.to(DType::Float16).element_size(), 2u);
  const auto argument = [&](std::string_view name) { return name == "bitwise_not" ? arange(5) : p; };
#define TERN_METHOD(name) {#name, argument(#name).name(), name(argument(#name))},
  expect_equal({TERN_ELEMENT_FUNCTIONS(TERN_METHOD)});
#undef TERN_METHOD
}

TEST(Methods, OfComparisons) {
  const Tensor x = tensor({1.f, 2.f, 3.f, NAN}), y = tensor({2.f, 2.f, INFINITY, NAN}), a = x > 1, b = x < 3;
  expect_equal({
      {"eq", x.eq(2), x == 2},
      {"ne", x.ne(y), x != y},
      {"ne", x.ne(2), x != 2},
      {"lt", x.lt(y), x < y},
      {"lt", x.lt(2), x < 2},
      {"le", x.le(y), x <= y},
      {"le", x.le(2), x <= 2},
      {"gt", y.gt(x), y > x},
      {"gt", x.gt(2), x > 2},
      {"ge", y.ge(x), y >= x},
      {"ge", x.ge(2), x >= 2},
      {"logical_and", a.logical_and(b), a & b},
      {"logical_or", a.logical_or(b), a | b},
      {"logical_xor", a.logical_xor(b), a ^ b},
      {"logical_not", a.logical_not(), ~a},
      {"isnan", y.isnan(), isnan(y)},
      {"isinf", y.isinf(), isinf(y)},
      {"isfinite", y.isfinite(), isfinite(y)},
      {"isposinf", y.isposinf(), isposinf(y)},
      {"isneginf", (-y).isneginf(), isneginf(-y)},
      {"signbit", (-y).signbit(), signbit(-y)},
  });
  EXPECT_TRUE(x.allclose(x + 1e-9, 1e-5, 1e-8, /*equal_nan=*/true));
  EXPECT_FALSE(x.allclose(x));
  EXPECT_TRUE(y.slice(0, 0, 3).equal(tensor({2.f, 2.f, INFINITY})));
  EXPECT_FALSE(y.equal(x));
}

TEST(Methods, OfShapes) {
  const Tensor x = arange(24).reshape({2, 3, 4}), flat = arange(24);
  expect_equal({
      {"view_as", flat.view_as(x), x},
      {"reshape_as", x.mT().reshape_as(flat), reshape(mT(x), {24})},
      {"movedim", x.movedim(0, 2), movedim(x, 0, 2)},
      {"mT", x.mT(), transpose(x, 1, 2)},
      {"expand_as", x[0].expand_as(x), expand(x[0], {2, 3, 4})},
      {"repeat", x.repeat({2, 1, 1}), cat({x, x})},
      {"repeat_interleave", x.repeat_interleave(2, 1), repeat_interleave(x, 2, 1)},
      {"roll", x.roll({1}, {2}), roll(x, {1}, {2})},
      {"flip", x.flip({0}), flip(x, {0})},
      {"unflatten", x.unflatten(2, {2, 2}), reshape(x, {2, 3, 2, 2})},
      {"diagonal", x.diagonal(1, 1, 2), diagonal(x, 1, 1, 2)},
      {"unfold", flat.unfold(0, 4, 2), unfold(flat, 0, 4, 2)},
      {"unbind", stack(x.unbind(1), 1), x},
      {"ravel", x.mT().ravel(), reshape(mT(x), {24})},
      {"diag", flat.diag(1), diag(flat, 1)},
      {"trace", x[0].trace(), trace(x[0])},
      {"diff", x.diff(2, 1), diff(x, 2, 1)},
      {"new_empty", x.new_empty({2}, {.dtype = int32}).mul_(0), zeros({2}, {.dtype = int32})},
      {"new_zeros", x.new_zeros({2}), zeros({2}, {.dtype = int64})},
      {"new_ones", x.new_ones({2}, {.dtype = float16}), ones({2}, {.dtype = float16})},
      {"new_full", x.new_full({2}, 7), full({2}, 7)},
  });
}

TEST(Methods, OfIndicesAndOrder) {
  const Tensor x = randn({3, 4}), source = randn({2, 4}), at = tensor({2, 0}), mask = x > 0;
  const Tensor columns = tensor({{0, 3}, {1, 1}, {2, 0}}), few = randn({3, 2});
  expect_equal({
      {"gather", x.gather(1, columns), gather(x, 1, columns)},
      {"scatter", x.scatter(1, tensor({{0, 3}, {1, 2}, {2, 0}}), few),
       scatter(x, 1, tensor({{0, 3}, {1, 2}, {2, 0}}), few)},
      {"scatter", x.scatter(1, columns, 7), scatter(x, 1, columns, 7)},
      {"scatter_add", x.scatter_add(1, columns, few), scatter_add(x, 1, columns, few)},
      {"take", x.take(at), take(x, at)},
      {"index_select", x.index_select(0, at), index_select(x, 0, at)},
      {"index_add", x.index_add(0, at, source, 2), index_add(x, 0, at, source, 2)},
      {"index_copy", x.index_copy(0, at, source), index_copy(x, 0, at, source)},
      {"index_fill", x.index_fill(0, at, 7), index_fill(x, 0, at, 7)},
      {"masked_fill", x.masked_fill(mask, 7), masked_fill(x, mask, 7)},
      {"masked_fill", x.masked_fill(mask, tensor(7.f)), masked_fill(x, mask, 7)},
      {"masked_select", x.masked_select(mask), masked_select(x, mask)},
      {"masked_scatter", x.masked_scatter(mask, -x), masked_scatter(x, mask, -x)},
      {"index_put", x.index_put({at}, source, true), index_put(x, {at}, source, true)},
      {"where", x.where(mask, -x), where(mask, x, -x)},
      {"where", x.where(mask, 7), where(mask, x, 7)},
      {"bitwise_and", at.bitwise_and(tensor({6, 3})), bitwise_and(at, tensor({6, 3}))},
      {"bitwise_or", at.bitwise_or(tensor({6, 3})), bitwise_or(at, tensor({6, 3}))},
      {"bitwise_xor", at.bitwise_xor(tensor({6, 3})), bitwise_xor(at, tensor({6, 3}))},
      {"bitwise_not", at.bitwise_not(), bitwise_not(at)},
      {"isclose", x.isclose(x.add(1), 0, 2), isclose(x, x.add(1), 0, 2)},
      {"isclose", (x / 0 * 0).isclose(x / 0 * 0, 0, 0, true), ones_like(mask)},
      {"tile", x.tile({2, 1}), tile(x, {2, 1})},
      {"broadcast_to", x.broadcast_to({2, 3, 4}), broadcast_to(x, {2, 3, 4})},
      {"tril", x.tril(-1), tril(x, -1)},
      {"triu", x.triu(1), triu(x, 1)},
      {"nonzero", mask.nonzero(), nonzero(mask)},
      {"sort", x.sort(0, true).second, sort(x, 0, true).second},
      {"argsort", x.argsort(0, true), argsort(x, 0, true)},
      {"topk", x.topk(2, 1, false).first, topk(x, 2, 1, false).first},
      {"cumsum", x.cumsum(1, DType::Float64), cumsum(x, 1, DType::Float64)},
      {"cumprod", x.cumprod(0), cumprod(x, 0)},
      {"cummax", x.cummax(0).second, cummax(x, 0).second},
      {"cummin", x.cummin(1).first, cummin(x, 1).first},
      {"logcumsumexp", x.logcumsumexp(1), logcumsumexp(x, 1)},
      {"kthvalue", x.kthvalue(2, 0, true).second, kthvalue(x, 2, 0, true).second},
      {"unique", columns.unique(), arange(4)},
      {"scatter_reduce", x.scatter_reduce(1, columns, few, "amax", false),
       scatter_reduce(x, 1, columns, few, "amax", false)},
      {"scatter_", x.clone().scatter_(1, columns, 7), scatter(x, 1, columns, 7)},
      {"scatter_", x.clone().scatter_(0, at.view({1, 2}), few), scatter(x, 0, at.view({1, 2}), few)},
      {"scatter_add_", x.clone().scatter_add_(1, columns, few), scatter_add(x, 1, columns, few)},
      {"index_add_", x.clone().index_add_(0, at, source, 2), index_add(x, 0, at, source, 2)},
      {"index_copy_", x.clone().index_copy_(0, at, source), index_copy(x, 0, at, source)},
      {"index_fill_", x.clone().index_fill_(0, at, 7), index_fill(x, 0, at, 7)},
      {"index_put_", x.clone().index_put_({at}, source, true), index_put(x, {at}, source, true)},
  });
}

TEST(Methods, OfProductsAndReductions) {
  const Tensor x = randn({2, 3, 4}), y = randn({2, 4, 3}), v = randn({4}), w = randn({4});
  expect_equal({
      {"bmm", x.bmm(y), bmm(x, y)},
      {"mv", x[0].mv(v), mv(x[0], v)},
      {"dot", v.dot(w), dot(v, w)},
      {"outer", v.outer(w), outer(v, w)},
      {"logsumexp", x.logsumexp(1, true), logsumexp(x, 1, true)},
      {"logsumexp", x.logsumexp({0, 2}), logsumexp(x, {0, 2})},
      {"prod", x.prod(), prod(x)},
      {"prod", x.prod(1, true), prod(x, 1, true)},
      {"nansum", log(x).nansum({1}, true), nansum(log(x), 1, true)},
      {"nanmean", log(x).nanmean({0}), nanmean(log(x), 0)},
      {"quantile", x.quantile(0.3, 1, true), quantile(x, 0.3, 1, true)},
      {"amax", x.amax(), amax(x)},
      {"amax", x.amax(1, true), amax(x, 1, true)},
      {"amin", x.amin({0, 2}), amin(x, {0, 2})},
      {"median", x.median(), median(x)},
      {"median", x.median(1, true).second, median(x, 1, true).second},
      {"all", (x < 1).all({0, 1}), all(x < 1, {0, 1})},
      {"all", (x < 1).all(2, true), all(x < 1, 2, true)},
      {"any", (x > 1).any({0, 1}), any(x > 1, {0, 1})},
      {"any", (x > 1).any(2, true), any(x > 1, 2, true)},
      {"count_nonzero", (x > 0).count_nonzero(), count_nonzero(x > 0)},
      {"count_nonzero", (x > 0).count_nonzero(1), count_nonzero(x > 0, 1)},
      {"norm", x.norm(1), norm(x, 1)},
      {"norm", x.norm(2, 1, true), norm(x, 2, 1, true)},
      {"norm", x.norm(2, {0, 2}), norm(x, 2, {0, 2})},
  });
}

TEST(Methods, OfMoreKinds) {
  const Tensor x = randn({3, 4}), y = randn({4, 5}), row = randn({4}), column = randn({3}),
               few = randn({3, 2});
  const Tensor batch = randn({2, 3, 4}), places = x.argsort(1);
  expect_equal({
      {"swapaxes", batch.swapaxes(0, 2), swapaxes(batch, 0, 2)},
      {"swapdims", batch.swapdims(0, 2), transpose(batch, 0, 2)},
      {"moveaxis", batch.moveaxis(0, 2), movedim(batch, 0, 2)},
      {"flipud", x.flipud(), flipud(x)},
      {"fliplr", x.fliplr(), fliplr(x)},
      {"rot90", x.rot90(3, {1, 0}), rot90(x, 3, {1, 0})},
      {"diag_embed", x.diag_embed(1, 0, 2), diag_embed(x, 1, 0, 2)},
      {"diagflat", x.diagflat(1), diagflat(x, 1)},
      {"select_scatter", x.select_scatter(row, 0, 1), select_scatter(x, row, 0, 1)},
      {"slice_scatter", x.slice_scatter(few, 1, 0, 4, 2), slice_scatter(x, few, 1, 0, 4, 2)},
      {"diagonal_scatter", x.diagonal_scatter(column, 1), diagonal_scatter(x, column, 1)},
      {"argwhere", (x > 0).argwhere(), argwhere(x > 0)},
      {"take_along_dim", x.take_along_dim(places, 1), take_along_dim(x, places, 1)},
      {"msort", x.msort(), msort(x)},
      {"mode", x.mode(0, true).second, mode(x, 0, true).second},
      {"aminmax", x.aminmax().first, aminmax(x).first},
      {"aminmax", x.aminmax(1, true).second, aminmax(x, 1, true).second},
      {"positive", x.positive(), x},
      {"float_power", x.exp().float_power(few.sum()), float_power(exp(x), few.sum())},
      {"float_power", x.float_power(2), float_power(x, 2)},
      {"inner", x.inner(row), inner(x, row)},
      {"vdot", row.vdot(row), dot(row, row)},
      {"cross", x.cross(x + 1, 0), cross(x, x + 1, 0)},
      {"addmm", row.slice(0, 0, 1).addmm(x, y, 3, 0.5), addmm(row.slice(0, 0, 1), x, y, 3, 0.5)},
      {"baddbmm", few.baddbmm(batch, batch.mT().matmul(few), 2),
       baddbmm(few, batch, batch.mT().matmul(few), 2)},
      {"addmv", column.addmv(x, row, 2, 3), addmv(column, x, row, 2, 3)},
      {"addr", x.addr(column, row, 2, 3), addr(x, column, row, 2, 3)},
      {"cov", x.cov(0), cov(x, 0)},
      {"corrcoef", x.corrcoef(), corrcoef(x)},
      {"clip", x.clip(-1, 1), clamp(x, -1, 1)},
      {"clip", x.clip(row, row + 1), clamp(x, row, row + 1)},
      {"clip_", x.clone().clip_(0), clamp(x, 0, {})},
      {"swapaxes_", x.clone().swapaxes_(0, 1), t(x)},
      {"swapdims_", x.clone().swapdims_(0, 1), t(x)},
      {"squeeze_", batch[0].clone().unsqueeze_(0).squeeze_({0, 1}), batch[0]},
      {"bernoulli_", x.clone().bernoulli_(1), ones_like(x)},
      {"random_", x.clone().random_(1), zeros_like(x)},
      {"random_", x.clone().random_(1, 2), ones_like(x)},
  });
  EXPECT_TRUE((x.clone().exponential_() > 0).all().item<bool>());
}

TEST(Methods, OfSecondNames) {
  const Tensor x = rand({3, 4}) + 0.5, y = rand({3, 4}) + 0.5;
#define TERN_ROW(second, first) \
  {#second, x.second(), x.first()}, {#second "_", x.clone().second##_(), x.first()},
  expect_equal({TERN_SECOND_NAMES_OF_ONE(TERN_ROW)});
#undef TERN_ROW
#define TERN_ROW(second, first) \
  {#second, x.second(y), x.first(y)}, {#second "_", x.clone().second##_(y), x.clone().first##_(y)},
  expect_equal({TERN_SECOND_NAMES_OF_TWO(TERN_ROW)});
#undef TERN_ROW
  expect_equal({{"multiply", x.multiply(2), x * 2},
                {"subtract", x.subtract(y, 2), x - y * 2},
                {"divide", x.divide(y, "floor"), div(x, y, "floor")},
                {"less", x.less(1), x < 1}});
}

}  // namespace
}  // namespace tern
