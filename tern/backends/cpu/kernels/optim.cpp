// The fused optimizer kernels: steps of the older algorithms, norms, clipping and unscaling. The formulas are
// written in kernels/optim.h.
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/optim.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <class T, bool decays, bool has_momentum, bool fresh, bool nesterov>
void sgd_rows(const SgdStepArgs& args, const OptimEntry& entry, int64_t begin, int64_t end) {
  using C = Compute<T>;
  const C sign = args.maximize ? C(-1) : C(1), decay = static_cast<C>(args.weight_decay);
  const C momentum = static_cast<C>(args.momentum), keep = static_cast<C>(1 - args.dampening),
          lr = static_cast<C>(args.lr);
  T* p = static_cast<T*>(entry.param) + begin;
  const T* grad = static_cast<const T*>(entry.grad) + begin;
  T* buffer = state_of<T>(entry, 0, begin);
  const int64_t n = end - begin;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C g = sign * static_cast<C>(grad[i]);
    C x = static_cast<C>(p[i]);
    if constexpr (decays) g = g + decay * x;
    if constexpr (has_momentum) {
      C b = g;
      if constexpr (!fresh) b = momentum * static_cast<C>(buffer[i]) + keep * g;
      buffer[i] = static_cast<T>(b);
      g = nesterov ? g + momentum * b : b;
    }
    p[i] = static_cast<T>(x - lr * g);
  }
}

template <class T, Decay decay, bool amsgrad>
void adam_rows(const AdamStepArgs& args, const OptimEntry& entry, int64_t begin, int64_t end) {
  using C = Compute<T>;
  const C sign = args.maximize ? C(-1) : C(1), eps = static_cast<C>(args.eps);
  const C weight_decay = static_cast<C>(args.weight_decay),
          shrink = static_cast<C>(1 - args.lr * args.weight_decay);
  const C beta2 = static_cast<C>(args.beta2), rest1 = static_cast<C>(1 - args.beta1),
          rest2 = static_cast<C>(1 - args.beta2);
  const C step_size = static_cast<C>(-entry.scalars[0]), correction = static_cast<C>(entry.scalars[1]);
  // torch.lerp starts from the nearer end.
  const bool far = !(rest1 < C(0.5));
  T* p = static_cast<T*>(entry.param) + begin;
  const T* grad = static_cast<const T*>(entry.grad) + begin;
  T* exp_avg = state_of<T>(entry, 0, begin);
  T* exp_avg_sq = state_of<T>(entry, 1, begin);
  T* largest = state_of<T>(entry, 2, begin);
  const int64_t n = end - begin;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C g = sign * static_cast<C>(grad[i]);
    C x = static_cast<C>(p[i]);
    if constexpr (decay == Decay::Parameter) x = x * shrink;
    if constexpr (decay == Decay::Gradient) g = g + weight_decay * x;
    C m = static_cast<C>(exp_avg[i]);
    m = far ? g - (g - m) * (C(1) - rest1) : m + rest1 * (g - m);
    C v = static_cast<C>(exp_avg_sq[i]) * beta2 + rest2 * g * g;
    exp_avg[i] = static_cast<T>(m);
    exp_avg_sq[i] = static_cast<T>(v);
    if constexpr (amsgrad) {
      C before = static_cast<C>(largest[i]);
      v = before > v || before != before ? before : v;
      largest[i] = static_cast<T>(v);
    }
    p[i] = static_cast<T>(x + step_size * m / (std::sqrt(v) / correction + eps));
  }
}

template <class T, bool decays, bool centered, bool has_momentum>
void rmsprop_rows(const RmspropStepArgs& args, const OptimEntry& entry, int64_t begin, int64_t end) {
  using C = Compute<T>;
  const C sign = args.maximize ? C(-1) : C(1), decay = static_cast<C>(args.weight_decay),
          eps = static_cast<C>(args.eps);
  const C alpha = static_cast<C>(args.alpha), rest = static_cast<C>(1 - args.alpha),
          momentum = static_cast<C>(args.momentum);
  const C lr = static_cast<C>(args.lr);
  const bool far = !(rest < C(0.5));
  T* p = static_cast<T*>(entry.param) + begin;
  const T* grad = static_cast<const T*>(entry.grad) + begin;
  T* square_avg = state_of<T>(entry, 0, begin);
  T* buffer = state_of<T>(entry, 1, begin);
  T* grad_avg = state_of<T>(entry, 2, begin);
  const int64_t n = end - begin;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C g = sign * static_cast<C>(grad[i]);
    C x = static_cast<C>(p[i]);
    if constexpr (decays) g = g + decay * x;
    C v = static_cast<C>(square_avg[i]) * alpha + rest * g * g;
    square_avg[i] = static_cast<T>(v);
    if constexpr (centered) {
      C m = static_cast<C>(grad_avg[i]);
      m = far ? g - (g - m) * (C(1) - rest) : m + rest * (g - m);
      grad_avg[i] = static_cast<T>(m);
      v = v - m * m;
    }
    C avg = std::sqrt(v) + eps;
    if constexpr (has_momentum) {
      C b = static_cast<C>(buffer[i]) * momentum + g / avg;
      buffer[i] = static_cast<T>(b);
      p[i] = static_cast<T>(x - lr * b);
    } else {
      p[i] = static_cast<T>(x - lr * g / avg);
    }
  }
}

template <class T, bool decays>
void adagrad_rows(const AdagradStepArgs& args, const OptimEntry& entry, int64_t begin, int64_t end) {
  using C = Compute<T>;
  const C sign = args.maximize ? C(-1) : C(1), decay = static_cast<C>(args.weight_decay),
          eps = static_cast<C>(args.eps);
  const C lr = static_cast<C>(-entry.scalars[0]);
  T* p = static_cast<T*>(entry.param) + begin;
  const T* grad = static_cast<const T*>(entry.grad) + begin;
  T* sum = state_of<T>(entry, 0, begin);
  const int64_t n = end - begin;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C g = sign * static_cast<C>(grad[i]);
    C x = static_cast<C>(p[i]);
    if constexpr (decays) g = g + decay * x;
    C s = static_cast<C>(sum[i]) + g * g;
    sum[i] = static_cast<T>(s);
    p[i] = static_cast<T>(x + lr * g / (std::sqrt(s) + eps));
  }
}

/// What is added up, or for infinity compared, for a norm.
enum class NormKind { Two, One, Zero, Infinity, General };

NormKind norm_kind(double norm_type) {
  if (norm_type == 2) return NormKind::Two;
  if (norm_type == 1) return NormKind::One;
  if (norm_type == 0) return NormKind::Zero;
  return std::isinf(norm_type) ? NormKind::Infinity : NormKind::General;
}

constexpr int64_t kNormBlock = 8192;
constexpr int64_t kLanes = 32;

template <class C>
[[gnu::always_inline]] inline C larger(C a, C b) {
  return a > b || a != a ? a : b;
}

/// The sum (or maximum) over one block: 32 running sums side by side, then those in order, so that the result
/// depends on the elements alone. In double for what is left after the lanes.
template <NormKind kind, class T>
double block_norm(const T* x, int64_t n, [[maybe_unused]] double norm_type) {
  using C = Compute<T>;
  auto term = [&](C v) -> C {
    if constexpr (kind == NormKind::Two) return v * v;
    if constexpr (kind == NormKind::Zero) return v != C(0) ? C(1) : C(0);
    if constexpr (kind == NormKind::General)
      return static_cast<C>(std::pow(std::fabs(v), static_cast<C>(norm_type)));
    return std::fabs(v);
  };
  auto join = [](auto a, auto b) {
    if constexpr (kind == NormKind::Infinity)
      return larger(a, b);
    else
      return a + b;
  };
  C lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = join(lanes[j], term(static_cast<C>(x[i + j])));
  double total = 0;
  for (C lane : lanes) total = join(total, static_cast<double>(lane));
  for (; i < n; ++i) total = join(total, static_cast<double>(term(static_cast<C>(x[i]))));
  return total;
}

template <NormKind kind, class T>
double list_norm(const OptimList& list, double norm_type) {
  struct Block {
    const T* x;
    int64_t n;
    double result;
  };
  std::vector<Block> blocks;
  blocks.reserve(static_cast<size_t>(list.numel / kNormBlock + list.count));
  for (int32_t e = 0; e < list.count; ++e) {
    const OptimEntry& entry = list.entries[e];
    for (int64_t begin = 0; begin < entry.numel; begin += kNormBlock)
      blocks.push_back(
          {static_cast<const T*>(entry.grad) + begin, std::min(kNormBlock, entry.numel - begin), 0});
  }
  const int64_t count = static_cast<int64_t>(blocks.size());
  const int64_t grain = list.numel < 4 * kStepGrain ? count : 1;
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      Block& block = blocks[static_cast<size_t>(b)];
      block.result = block_norm<kind>(block.x, block.n, norm_type);
    }
  });
  double total = 0;
  for (const Block& block : blocks)
    total = kind == NormKind::Infinity ? larger(total, block.result) : total + block.result;
  if constexpr (kind == NormKind::Two) return std::sqrt(total);
  if constexpr (kind == NormKind::General) return std::pow(total, 1 / norm_type);
  return total;
}

template <class T>
double list_norm(const OptimList& list, double norm_type) {
  switch (norm_kind(norm_type)) {
    case NormKind::Two:
      return list_norm<NormKind::Two, T>(list, norm_type);
    case NormKind::One:
      return list_norm<NormKind::One, T>(list, norm_type);
    case NormKind::Zero:
      return list_norm<NormKind::Zero, T>(list, norm_type);
    case NormKind::Infinity:
      return list_norm<NormKind::Infinity, T>(list, norm_type);
    case NormKind::General:
      break;
  }
  return list_norm<NormKind::General, T>(list, norm_type);
}

/// param[i] = f(param[i]) over all entries.
template <class T, class F>
void map_params(const OptimList& list, const F& f) {
  for_each_piece(list, [&](const OptimEntry& entry, int64_t begin, int64_t end) {
    T* x = static_cast<T*>(entry.param) + begin;
    row1(x, x, end - begin, f);
  });
}

}  // namespace

void sgd_step(const LaunchContext&, const SgdStepArgs& args) {
  visit_floating(args.list.dtype, [&]<class T>() {
    with_flag(args.weight_decay != 0, [&](auto decays) {
      for_each_piece(args.list, [&](const OptimEntry& entry, int64_t begin, int64_t end) {
        if (args.momentum == 0)
          return sgd_rows<T, decays.value, false, false, false>(args, entry, begin, end);
        with_flag(entry.fresh, [&](auto fresh) {
          with_flag(args.nesterov, [&](auto nesterov) {
            sgd_rows<T, decays.value, true, fresh.value, nesterov.value>(args, entry, begin, end);
          });
        });
      });
    });
  });
}

void adam_step(const LaunchContext&, const AdamStepArgs& args) {
  visit_floating(args.list.dtype, [&]<class T>() {
    with_decay(args.weight_decay, args.decoupled, [&](auto decay) {
      with_flag(args.amsgrad, [&](auto amsgrad) {
        for_each_piece(args.list, [&](const OptimEntry& entry, int64_t begin, int64_t end) {
          adam_rows<T, decay.value, amsgrad.value>(args, entry, begin, end);
        });
      });
    });
  });
}

void rmsprop_step(const LaunchContext&, const RmspropStepArgs& args) {
  visit_floating(args.list.dtype, [&]<class T>() {
    with_flag(args.weight_decay != 0, [&](auto decays) {
      with_flag(args.centered, [&](auto centered) {
        with_flag(args.momentum != 0, [&](auto momentum) {
          for_each_piece(args.list, [&](const OptimEntry& entry, int64_t begin, int64_t end) {
            rmsprop_rows<T, decays.value, centered.value, momentum.value>(args, entry, begin, end);
          });
        });
      });
    });
  });
}

void adagrad_step(const LaunchContext&, const AdagradStepArgs& args) {
  visit_floating(args.list.dtype, [&]<class T>() {
    with_flag(args.weight_decay != 0, [&](auto decays) {
      for_each_piece(args.list, [&](const OptimEntry& entry, int64_t begin, int64_t end) {
        adagrad_rows<T, decays.value>(args, entry, begin, end);
      });
    });
  });
}

void optim_norm(const LaunchContext&, const OptimNormArgs& args) {
  visit_floating(args.list.dtype, [&]<class T>() {
    *static_cast<Compute<T>*>(args.out) = static_cast<Compute<T>>(list_norm<T>(args.list, args.norm_type));
  });
}

void optim_clip_norm(const LaunchContext&, const OptimClipNormArgs& args) {
  const bool wide = args.norm_dtype == DType::Float64;
  const double coefficient =
      wide ? args.max_norm / (*static_cast<const double*>(args.norm) + 1e-6)
           : static_cast<float>(args.max_norm) / (*static_cast<const float*>(args.norm) + 1e-6f);
  if (coefficient >= 1) return;
  visit_floating(args.list.dtype, [&]<class T>() {
    using C = Compute<T>;
    map_params<T>(args.list, [c = static_cast<C>(coefficient)](C x) { return x * c; });
  });
}

void optim_clip_value(const LaunchContext&, const OptimClipValueArgs& args) {
  visit_floating(args.list.dtype, [&]<class T>() {
    using C = Compute<T>;
    const C limit = static_cast<C>(args.clip_value);
    map_params<T>(args.list, [limit](C x) { return x < -limit ? -limit : (x > limit ? limit : x); });
  });
}

void optim_unscale(const LaunchContext&, const OptimUnscaleArgs& args) {
  std::atomic<bool> found = false;
  visit_floating(args.list.dtype, [&]<class T>() {
    using C = Compute<T>;
    const C inv_scale = static_cast<C>(args.inv_scale);
    for_each_piece(args.list, [&](const OptimEntry& entry, int64_t begin, int64_t end) {
      T* x = static_cast<T*>(entry.param);
      int wrong = 0;
      for (int64_t i = begin; i < end; ++i) {
        const C v = static_cast<C>(x[i]);
        wrong |= !(std::fabs(v) <= std::numeric_limits<C>::max());
        x[i] = static_cast<T>(v * inv_scale);
      }
      if (wrong) found.store(true, std::memory_order_relaxed);
    });
  });
  if (found) *args.found_inf = 1;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
