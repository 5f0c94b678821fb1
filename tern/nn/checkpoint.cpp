// Calling a function again for what its operators kept, and keeping it on the host.
#include "tern/nn/checkpoint.h"

#include <deque>
#include <mutex>

#include "tern/autograd/record.h"
#include "tern/base/check.h"
#include "tern/core/generator.h"
#include "tern/device/stream.h"
#include "tern/ops/autocast.h"
#include "tern/ops/copy.h"

namespace tern::nn::utils {
namespace detail {
namespace {

constexpr const char* kCheckpoint = "checkpoint";

/// Puts the thread's autocast back.
struct AutocastAs {
  explicit AutocastAs(const tern::detail::AutocastSettings& settings) {
    tern::detail::set_autocast_settings(settings);
  }
  ~AutocastAs() { tern::detail::set_autocast_settings(before); }
  const tern::detail::AutocastSettings before = tern::detail::autocast_settings();
};

}  // namespace

struct Recomputation::State {
  Call call;
  std::vector<Saved> inputs;
  std::vector<uint8_t> random = default_generator().bytes();
  tern::detail::AutocastSettings autocast = tern::detail::autocast_settings();
  std::vector<Stream> streams;  ///< of the inputs' devices

  /// Of what follows. The function may let go of a graph of the first call when it is called again.
  std::recursive_mutex mutex;
  std::vector<char> is_wanted;
  std::vector<Tensor> kept;

  void call_again() {
    const EnableGradGuard recording;
    const AutocastAs as_before(autocast);
    const DefaultGeneratorGuard same_numbers(Generator::repeating(random));
    std::deque<StreamGuard> on_streams;
    for (const Stream& stream : streams) {
      stream.wait_stream(current_stream(stream.device));
      on_streams.emplace_back(stream);
    }
    std::vector<Tensor> given;
    for (const Saved& input : inputs) given.push_back(input.unpack(kCheckpoint));
    size_t count = 0;
    const autograd::SavedTensorsHooks hooks([&](const Tensor& x) {
      if (count < kept.size() && is_wanted[count]) kept[count] = x;
      if (++count == kept.size()) throw Enough();
      return [x] { return x; };
    });
    try {
      call(given);
    } catch (Enough) {
    }
    TERN_CHECK(count == kept.size(), AutogradError,
               "checkpoint: the function kept {} tensors for backward when it was called again, and {} the "
               "first time: it must do the same each time",
               count, kept.size());
  }
};

/// One tensor that an operator kept.
struct Recomputation::Place {
  std::shared_ptr<Recomputation> owner;
  size_t number;

  Place(std::shared_ptr<Recomputation> of, size_t i) : owner(std::move(of)), number(i) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    State& state = *owner->state_;
    std::lock_guard lock(state.mutex);
    state.is_wanted[number] = 0;
    state.kept[number] = Tensor();
  }

  Tensor tensor() const {
    State& state = *owner->state_;
    std::lock_guard lock(state.mutex);
    if (!state.kept[number].defined()) {
      state.call_again();
      for (const Stream& stream : state.streams) {
        const Stream current = current_stream(stream.device);
        if (stream == current) continue;
        current.wait_stream(stream);
        for (const Tensor& x : state.kept)
          if (x.defined() && x.device() == current.device) x.record_stream(current);
      }
    }
    return state.kept[number];
  }
};

Recomputation::Recomputation(Call call, const std::vector<Tensor>& inputs) : state_(new State) {
  const int pending_saves = tern::detail::pending_saves;  // the inputs belong to no node
  state_->call = std::move(call);
  for (const Tensor& x : inputs) {
    state_->inputs.emplace_back(x, /*is_output=*/false);
    if (!x.defined() || x.device().is_cpu()) continue;
    const Stream stream = current_stream(x.device());
    if (std::find(state_->streams.begin(), state_->streams.end(), stream) == state_->streams.end())
      state_->streams.push_back(stream);
  }
  tern::detail::pending_saves = pending_saves;
}

Recomputation::~Recomputation() = default;

autograd::SavedTensorsHooks::Pack Recomputation::pack() {
  return [self = shared_from_this()](const Tensor&) {
    State& state = *self->state_;
    std::lock_guard lock(state.mutex);
    state.is_wanted.push_back(1);
    state.kept.emplace_back();
    return [place = std::make_shared<Place>(self, state.kept.size() - 1)] { return place->tensor(); };
  };
}

}  // namespace detail

Tensor checkpoint_sequential(const Sequential& net, int64_t segments, const Tensor& x) {
  const auto size = static_cast<int64_t>(net.size());
  TERN_CHECK(segments >= 1 && segments <= size, ValueError,
             "checkpoint_sequential: {} modules make 1 to {} segments, got {}", size, size, segments);
  const int64_t length = size / segments;
  Tensor y = x;
  for (int64_t s = 0; s < segments; ++s) {
    const bool is_last = s + 1 == segments;
    Sequential part;
    for (int64_t i = s * length; i < (is_last ? size : (s + 1) * length); ++i) part.push_back(net[i]);
    y = is_last ? part(y) : checkpoint(std::move(part), y);
  }
  return y;
}

SaveOnCpuGuard::SaveOnCpuGuard(bool pin_memory)
    : SavedTensorsHooks([pin_memory](const Tensor& x) -> Unpack {
        if (x.device().is_cpu()) return [x] { return x; };
        return [host = pin_memory ? tern::detail::pinned_copy(x) : x.cpu(), device = x.device(), pin_memory] {
          return host.to(device, {.non_blocking = pin_memory});
        };
      }) {}

}  // namespace tern::nn::utils
