// The state of autocast, one for each thread, and the cache of cast weights.
#include "tern/ops/autocast.h"

#include <array>
#include <unordered_map>

#include "tern/autograd/grad_mode.h"
#include "tern/autograd/node.h"
#include "tern/base/check.h"
#include "tern/core/recording.h"
#include "tern/device/stream.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/copy.h"

namespace tern {
namespace {

/// A weight that was cast, as it was then.
struct CastWeight {
  Tensor weight;  // keeps the key's address
  Storage storage;
  uint32_t version;
  Stream stream;  // on which the cast was computed
  Tensor cast;
};

/// `autocasting` is kept where backward finds it (autograd/autocast_mode.h).
struct State : detail::AutocastSettings {
  int depth = 0;
  std::unordered_map<const TensorImpl*, CastWeight> cache;
};
static_assert(static_cast<int>(DeviceType::CPU) == 0 && static_cast<int>(DeviceType::CUDA) == 1);

thread_local State state;

bool any_enabled() noexcept {
  for (const bool enabled : state.enabled)
    if (enabled) return true;
  return false;
}

/// Leaves that require a gradient, which is what parameters are.
bool is_weight(const Tensor& x) {
  return x.dtype() == DType::Float32 && x.requires_grad() && x.is_leaf() && !x.impl_ptr()->autograd->is_view;
}

Tensor cast_weight(const Tensor& x, DType dtype) {
  const Stream stream = current_stream(x.device());
  const auto found = state.cache.find(x.impl_ptr().get());
  if (found != state.cache.end()) {
    const CastWeight& kept = found->second;
    // A cast that was made where nothing is recorded leads to no gradient.
    if (kept.cast.dtype() == dtype && kept.storage == x.storage() && kept.version == x.version() &&
        kept.stream == stream && kept.cast.requires_grad() == is_grad_enabled())
      return kept.cast;
  }
  Tensor cast = to(x, dtype);
  state.cache[x.impl_ptr().get()] = {x, x.storage(), x.version(), stream, cast};
  return cast;
}

}  // namespace

AutocastGuard::AutocastGuard(const AutocastOptions& options)
    : device_type_(options.device_type),
      enabled_before_(state.enabled[static_cast<size_t>(device_type_)]),
      cache_before_(state.cache_enabled),
      autocasting_before_(detail::autocasting),
      dtype_before_(state.dtype[static_cast<size_t>(device_type_)]) {
  const DType dtype = options.dtype.value_or(dtype_before_);
  TERN_CHECK(!options.enabled || dtype == DType::BFloat16 || dtype == DType::Float16, ValueError,
             "autocast: dtype {} is not supported: give bfloat16 or float16, or enabled = false",
             name(dtype));
  state.enabled[static_cast<size_t>(device_type_)] = options.enabled;
  if (options.enabled) state.dtype[static_cast<size_t>(device_type_)] = dtype;
  state.cache_enabled = options.cache_enabled;
  detail::autocasting = options.enabled || (autocasting_before_ && any_enabled());
  ++state.depth;
}

AutocastGuard::~AutocastGuard() {
  state.enabled[static_cast<size_t>(device_type_)] = enabled_before_;
  state.dtype[static_cast<size_t>(device_type_)] = dtype_before_;
  state.cache_enabled = cache_before_;
  detail::autocasting = autocasting_before_;
  if (--state.depth == 0) clear_autocast_cache();
}

bool is_autocast_enabled(DeviceType device_type) noexcept {
  return detail::autocasting && state.enabled[static_cast<size_t>(device_type)];
}
DType get_autocast_dtype(DeviceType device_type) noexcept {
  return state.dtype[static_cast<size_t>(device_type)];
}
bool is_autocast_cache_enabled() noexcept { return state.cache_enabled; }
void clear_autocast_cache() noexcept { state.cache.clear(); }

namespace detail {

AutocastSettings autocast_settings() noexcept {
  AutocastSettings settings = state;
  settings.autocasting = autocasting;
  return settings;
}
void set_autocast_settings(const AutocastSettings& settings) noexcept {
  static_cast<AutocastSettings&>(state) = settings;
  autocasting = settings.autocasting;
}

bool autocasts_on(const Tensor& x) noexcept { return x.defined() && is_autocast_enabled(x.device().type); }

bool can_autocast(const Tensor& x, DeviceType type) noexcept {
  return x.defined() && x.device().type == type && is_floating_point(x.dtype()) && is_computable(x.dtype()) &&
         x.dtype() != DType::Float64;
}

Tensor autocast_tensor(const Tensor& x, DeviceType type, DType dtype) {
  if (!can_autocast(x, type) || x.dtype() == dtype) return x;
  // A recorded step casts anew: what was cast before it would be an old weight at every replay.
  const bool caches = state.cache_enabled && state.depth > 0 && !step_recorder &&
                      dtype == get_autocast_dtype(type) && is_weight(x);
  return caches ? cast_weight(x, dtype) : to(x, dtype);
}

DType autocast_widest(DType current, const Tensor& x, DeviceType type) noexcept {
  return can_autocast(x, type) ? promote_types(current, x.dtype()) : current;
}

}  // namespace detail
}  // namespace tern
