// Random tensors and changes in place. Choices (permutations, multinomial) and dropout are in
// random_choice.cpp.
#include "tern/ops/random.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/random_torch.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

using MaybeGenerator = std::optional<Generator>;

/// What a kernel is told, and what the caller asked for.
struct Draw {
  RandomArgs args{};
  detail::TorchDraw asked;
};

/// Draws into a contiguous tensor.
void draw_counted(const Tensor& out, RandomArgs args, Generator source) {
  if (out.numel() == 0) return;
  args.dtype = out.dtype();
  args.out = out.data_ptr();
  args.numel = out.numel();
  int64_t per_counter = numbers_per_counter(args.distribution, args.dtype);
  Generator::State state =
      source.reserve(static_cast<uint64_t>((args.numel + per_counter - 1) / per_counter));
  args.seed = state.seed;
  args.position = state.position;
  launch(current_stream(out.device()), kernels::random, args);
}

/// Draws into any tensor.
void draw_into(const Tensor& x, const Draw& draw, const MaybeGenerator& generator) {
  const Generator source = generator ? *generator : default_generator();
  if (detail::draws_as_torch(source, x.device())) {
    detail::draw_as_torch(x, draw.asked, source);
  } else if (x.is_contiguous()) {
    draw_counted(x, draw.args, source);
  } else {
    Tensor dense = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
    draw_counted(dense, draw.args, source);
    copy_elements(x, dense);
  }
}

Tensor drawn(const char* op, IntArrayRef shape, DType dtype, const TensorOptions& options, const Draw& draw,
             const MaybeGenerator& generator) {
  Tensor x = detail::make(op, shape, dtype, options.device);
  draw_into(x, draw, generator);
  return detail::finish(std::move(x), options);
}

/// As `drawn`, with x's shape; PyTorch's numbers in the order of x's memory.
Tensor drawn_like(const char* op, const Tensor& x, DType dtype, const TensorOptions& options,
                  const Draw& draw, const MaybeGenerator& generator) {
  if (x.is_contiguous() || !detail::draws_as_torch(generator ? *generator : default_generator(),
                                                   options.device.value_or(x.device())))
    return drawn(op, x.shape(), dtype, options, draw, generator);
  Tensor like = detail::empty_in_order_of(x, dtype);
  draw_into(like, draw, generator);
  return detail::finish(contiguous(like), options);
}

Tensor& draw_in_place(const char* op, Tensor& x, const Draw& draw, const MaybeGenerator& generator) {
  check_in_place(op, x);
  draw_into(x, draw, generator);
  record_in_place(op, x, {x},
                  [](GradContext&, const Tensor& g) { return filled(g.shape(), g.dtype(), g.device(), 0); });
  return x;
}

/// The largest value of a 16-bit dtype below `high`.
template <class T>
double below_16(double high) {
  T nearest(static_cast<float>(high));
  if (static_cast<double>(static_cast<float>(nearest)) < high) return static_cast<float>(nearest);
  // The values of either type are ordered as their bits, those of negative numbers backwards.
  uint16_t bits = nearest.bits;
  bool zero = (bits & 0x7fff) == 0;
  nearest.bits = zero ? uint16_t{0x8001} : static_cast<uint16_t>(bits & 0x8000 ? bits + 1 : bits - 1);
  return static_cast<float>(nearest);
}

double largest_below(double high, DType dtype) {
  if (dtype == DType::Float16) return below_16<Half>(high);
  if (dtype == DType::BFloat16) return below_16<BFloat16>(high);
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  if (dtype == DType::Float64) return std::nextafter(high, kLowest);
  float nearest = static_cast<float>(high);
  return static_cast<double>(nearest) < high
             ? nearest
             : std::nextafter(nearest, -std::numeric_limits<float>::infinity());
}

Draw uniform_draw(const char* op, double low, double high, DType dtype) {
  check_floating(op, dtype);
  TERN_CHECK(low <= high, ValueError, "{}: expects to return a [low, high) range, but found low={} > high={}",
             op, low, high);
  TERN_CHECK(detail::fits(low, dtype) && detail::fits(high, dtype) && std::isfinite(low) &&
                 std::isfinite(high) && detail::fits(high - low, dtype) && std::isfinite(high - low),
             ValueError, "{}: low={}, high={} and their difference must be finite values of {}", op, low,
             high, name(dtype));
  Draw draw{.asked = {.distribution = Distribution::Uniform, .a = low, .b = high}};
  draw.args.distribution = Distribution::Uniform;
  draw.args.a = low;
  draw.args.b = std::max(low, largest_below(high, dtype));
  draw.args.width = high - low;
  return draw;
}

Draw normal_draw(const char* op, double mean, double std, DType dtype) {
  check_floating(op, dtype);
  TERN_CHECK(std >= 0, ValueError, "{}: expects std >= 0, but found std {}", op, std);
  Draw draw{.asked = {.distribution = Distribution::Normal, .a = mean, .b = std}};
  draw.args.distribution = Distribution::Normal;
  draw.args.a = mean;
  draw.args.b = std;
  return draw;
}

Draw integers_of_range(int64_t low, uint64_t range, bool all_integers) {
  Draw draw{
      .asked = {
          .distribution = Distribution::Integer, .low = low, .range = range, .all_integers = all_integers}};
  draw.args.distribution = Distribution::Integer;
  draw.args.low = low;
  draw.args.range = range;
  return draw;
}

Draw integer_draw(const char* op, int64_t low, int64_t high, DType dtype) {
  TERN_CHECK(low < high, ValueError, "{}: expects low < high, but got low={} >= high={}", op, low, high);
  bool fits =
      is_bool(dtype) ? low >= 0 && high <= 2 : detail::fits(low, dtype) && detail::fits(high - 1, dtype);
  TERN_CHECK(fits, ValueError, "{}: [{}, {}) is out of bounds for {}", op, low, high, name(dtype));
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return integers_of_range(low, range, /*all_integers=*/false);
}

/// Complex numbers whose parts draw(shape, options) makes.
template <class DrawParts>
Tensor drawn_parts(IntArrayRef shape, const TensorOptions& options, DrawParts&& draw) {
  Shape parts = shape.to_shape();
  parts.push_back(2);
  return detail::finish(
      complex_view(draw(parts, {.dtype = real_dtype(*options.dtype), .device = options.device})), options);
}
bool draws_complex(const TensorOptions& options) {
  return options.dtype && is_complex_computable(*options.dtype);
}

DType floating_dtype(const char* op, const TensorOptions& options) {
  DType dtype = options.dtype.value_or(get_default_dtype());
  check_floating(op, dtype);
  return dtype;
}

}  // namespace

Tensor rand(IntArrayRef shape, const TensorOptions& options, const MaybeGenerator& generator) {
  if (draws_complex(options))
    return drawn_parts(shape, options, [&](const Shape& parts, const TensorOptions& real) {
      return rand(parts, real, generator);
    });
  DType dtype = floating_dtype("rand", options);
  return drawn("rand", shape, dtype, options, uniform_draw("rand", 0, 1, dtype), generator);
}

Tensor randn(IntArrayRef shape, const TensorOptions& options, const MaybeGenerator& generator) {
  if (draws_complex(options))
    return drawn_parts(shape, options, [&](const Shape& parts, const TensorOptions& real) {
      return normal(0, std::numbers::sqrt2 / 2, parts, real, generator);
    });
  DType dtype = floating_dtype("randn", options);
  return drawn("randn", shape, dtype, options, normal_draw("randn", 0, 1, dtype), generator);
}

Tensor normal(double mean, double std, IntArrayRef shape, const TensorOptions& options,
              const MaybeGenerator& generator) {
  DType dtype = floating_dtype("normal", options);
  return drawn("normal", shape, dtype, options, normal_draw("normal", mean, std, dtype), generator);
}

Tensor randint(int64_t low, int64_t high, IntArrayRef shape, const TensorOptions& options,
               const MaybeGenerator& generator) {
  DType dtype = options.dtype.value_or(DType::Int64);
  return drawn("randint", shape, dtype, options, integer_draw("randint", low, high, dtype), generator);
}

Tensor randint(int64_t high, IntArrayRef shape, const TensorOptions& options,
               const MaybeGenerator& generator) {
  return randint(0, high, shape, options, generator);
}

Tensor rand_like(const Tensor& x, const TensorOptions& options, const MaybeGenerator& generator) {
  const TensorOptions like = detail::like(x, options);
  if (draws_complex(like)) return rand(x.shape(), like, generator);
  const DType dtype = floating_dtype("rand_like", like);
  return drawn_like("rand_like", x, dtype, like, uniform_draw("rand_like", 0, 1, dtype), generator);
}
Tensor randn_like(const Tensor& x, const TensorOptions& options, const MaybeGenerator& generator) {
  const TensorOptions like = detail::like(x, options);
  if (draws_complex(like)) return randn(x.shape(), like, generator);
  const DType dtype = floating_dtype("randn_like", like);
  return drawn_like("randn_like", x, dtype, like, normal_draw("randn_like", 0, 1, dtype), generator);
}
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, const TensorOptions& options,
                    const MaybeGenerator& generator) {
  const TensorOptions like = detail::like(x, options);
  const DType dtype = like.dtype.value_or(DType::Int64);
  return drawn_like("randint_like", x, dtype, like, integer_draw("randint_like", low, high, dtype),
                    generator);
}

Tensor& uniform_(Tensor& x, double low, double high, const MaybeGenerator& generator) {
  if (is_complex_computable(x.dtype())) {
    check_in_place("uniform_", x);
    Tensor parts = real_view(x);
    uniform_(parts, low, high, generator);
    return x;
  }
  return draw_in_place("uniform_", x, uniform_draw("uniform_", low, high, x.dtype()), generator);
}

Tensor& normal_(Tensor& x, double mean, double std, const MaybeGenerator& generator) {
  if (is_complex_computable(x.dtype())) {
    check_in_place("normal_", x);
    Tensor parts = real_view(x);
    normal_(parts, 0, std * std::numbers::sqrt2 / 2, generator);
    if (mean != 0) select(parts, -1, 0).add_(mean);
    return x;
  }
  return draw_in_place("normal_", x, normal_draw("normal_", mean, std, x.dtype()), generator);
}

Tensor& exponential_(Tensor& x, double rate, const MaybeGenerator& generator) {
  check_floating("exponential_", x.dtype());
  TERN_CHECK(rate > 0, ValueError, "exponential_: expects rate > 0, but found rate={}", rate);
  Draw draw{.asked = {.distribution = Distribution::Exponential, .a = rate}};
  draw.args.distribution = Distribution::Exponential;
  draw.args.a = rate;
  return draw_in_place("exponential_", x, draw, generator);
}

Tensor& bernoulli_(Tensor& x, double p, const MaybeGenerator& generator) {
  TERN_CHECK(p >= 0 && p <= 1, ValueError, "bernoulli_: expects p to be in [0, 1], but got p={}", p);
  Draw draw{.asked = {.distribution = Distribution::Bernoulli, .a = p}};
  draw.args.distribution = Distribution::Bernoulli;
  draw.args.threshold = detail::random_threshold(p);
  return draw_in_place("bernoulli_", x, draw, generator);
}

Tensor& random_(Tensor& x, int64_t low, int64_t high, const MaybeGenerator& generator) {
  return draw_in_place("random_", x, integer_draw("random_", low, high, x.dtype()), generator);
}

Tensor& random_(Tensor& x, const MaybeGenerator& generator) {
  const uint64_t range = visit_dtype(x.dtype(), []<class T>() {
    if constexpr (std::is_integral_v<T>)
      return static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
    else if constexpr (std::is_same_v<T, Half>)
      return uint64_t{(1 << 11) + 1};
    else if constexpr (std::is_same_v<T, BFloat16>)
      return uint64_t{(1 << 8) + 1};
    else
      return (uint64_t{1} << std::numeric_limits<T>::digits) + 1;
  });
  return draw_in_place("random_", x, integers_of_range(0, range, /*all_integers=*/true), generator);
}

Tensor bernoulli(const Tensor& p, const MaybeGenerator& generator) {
  check_floating("bernoulli", p.dtype());
  Tensor y;
  {
    NoGradGuard no_grad;
    if (p.numel() != 0) {
      double low = item(min(p)).to_double(), high = item(max(p)).to_double();
      TERN_CHECK(low >= 0 && high <= 1, ValueError,
                 "bernoulli: expects 0 <= p <= 1 in every place, but found values from {} to {}", low, high);
    }
    DType dtype = p.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
    Tensor u = rand(p.shape(), {.dtype = dtype, .device = p.device(), .requires_grad = false}, generator);
    y = cast(lt(u, p), p.dtype());
  }
  if (tracks_grad(p))
    record("bernoulli", y, {p},
           [](GradContext&, const Tensor& g) { return filled(g.shape(), g.dtype(), g.device(), 0); });
  return y;
}

Tensor get_rng_state(const MaybeGenerator& generator) {
  return tensor((generator ? *generator : default_generator()).bytes(),
                {.dtype = DType::UInt8, .device = kCPU});
}

void set_rng_state(const Tensor& state, const MaybeGenerator& generator) {
  TERN_CHECK(state.dtype() == DType::UInt8 && state.dim() == 1, DTypeError,
             "set_rng_state: a state is a uint8 tensor of one dimension, got {} of shape {}",
             name(state.dtype()), to_string(state.shape()));
  const Tensor bytes = contiguous(state.to(kCPU));
  Generator target = generator ? *generator : default_generator();
  target.set_bytes({static_cast<const uint8_t*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel())});
}

}  // namespace tern
