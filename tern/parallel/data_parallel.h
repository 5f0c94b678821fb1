// DataParallel: one module on several devices of one process, each with a part of the batch. What is sent
// between the devices is in parallel/replicas.h, the splitting of inputs in parallel/scatter_gather.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/nn/any_module.h"
#include "tern/nn/module.h"
#include "tern/parallel/replicas.h"
#include "tern/parallel/scatter_gather.h"
#include "tern/parallel/sync_batch_norm.h"

namespace tern::parallel {

struct DataParallelOptions {
  /// The GPUs; the module's parameters are on the first one. Empty: all GPUs.
  std::vector<Device> device_ids = {};
  /// Where outputs are joined; by default the first of device_ids.
  std::optional<Device> output_device = {};
  /// The dimension along which inputs are split and outputs joined.
  int64_t dim = 0;
  /// Told of what is meaningful but may not be meant: kScalarGatherWarning, once.
  Warn on_warning = {};
};

namespace detail {

/// Resolved and checked. Throws DeviceError for a device that is not there or is no GPU, ValueError for one
/// that occurs twice.
std::vector<Device> checked_device_ids(const std::vector<Device>& device_ids);

/// Calls body(r) with device r as the current one, for all devices: one after the other, or where replicas
/// must meet on threads in turn. An error gets "in replica 1 on device cuda:1: " before its text and keeps
/// its type.
void for_each_replica(const std::vector<Device>& devices, bool meet, const std::function<void(size_t)>& body);

inline nn::Module& module_of(nn::Module& module) { return module; }
inline nn::Module& module_of(nn::AnyModule& module) { return module.get(); }

/// An argument of a call, for each replica.
template <class T>
class ScatteredArgument {
 public:
  ScatteredArgument(const T& value, const std::vector<Device>& devices, int64_t dim)
      : parts_(scatter(value, devices, dim)) {}
  decltype(auto) operator[](size_t r) { return (parts_[r]); }

 private:
  std::vector<T> parts_;
};
template <class T>
requires(!has_tensors<T>) class ScatteredArgument<T> {
 public:
  ScatteredArgument(T& value, const std::vector<Device>&, int64_t) : value_(value) {}
  T& operator[](size_t) { return value_; }

 private:
  T& value_;
};
/// Tensors are scattered as what they are, whatever they were derived from.
template <class T>
using ScatteredType = std::conditional_t<
    std::is_base_of_v<Tensor, std::remove_cvref_t<T>>, Tensor,
    std::conditional_t<has_tensors<T>, std::remove_cvref_t<T>, std::remove_reference_t<T>>>;

}  // namespace detail

/// Runs a module on several GPUs (torch.nn.DataParallel): inputs are split along `dim`, each device runs a
/// replica of the module on its part, outputs are joined on one device, and backward adds the gradients up in
/// the module's own parameters.
///
///     parallel::DataParallel model(Net(), {.device_ids = {0, 1}});
///     model.to("cuda:0");
///     Tensor loss = nn::cross_entropy(model(x), y.to("cuda:0"));   // 30 rows: 15 on cuda:0, 15 on cuda:1
///
/// - Arguments: Tensor, Nested, and vector, optional, pair, tuple and map<string, ...> of such are split,
///   wherever their tensors are; everything else is handed to every replica. Parts are those of
///   chunk_sizes(): a batch smaller than the number of devices uses fewer of them.
/// - Results: the same types. Scalars become a vector with one element for each device.
/// - Lazy layers (nn/lazy.h) take their sizes from the first device's part of the first batch. With
///   SyncBatchNorm they can not: call the module with one batch before.
/// - With one device, to which the module is moved, or none on a machine without GPUs, a plain call.
/// - The replica on the first device is the module itself: its running statistics, and whatever its forward
///   keeps, stay; what the other replicas keep is lost after the call, as in PyTorch.
/// - Parameters and buffers are sent when they changed, packed; gradients come back the same way, and are
///   added in the order of the devices: results are the same to the bit in every run.
///
/// `module` is a copy of the struct that was given and shares its tensors; modes (train, eval), hooks and
/// fields that are no tensors are its own. state_dict() has PyTorch's prefix "module."; save
/// module.state_dict() to load without it. Throws DeviceError unless the module is on the first device,
/// ShapeError when inputs give different numbers of parts, and what replicas throw, with the replica's number
/// and device before the text.
template <class Net>
class DataParallel final : public nn::Module {
  static_assert(std::is_copy_constructible_v<Net>,
                "DataParallel makes a copy of the module for every device");

 public:
  Net module;
  TERN_MODULE(module)

  explicit DataParallel(Net net, DataParallelOptions options = {})
      : module(std::move(net)),
        replicas_(detail::checked_device_ids(options.device_ids)),
        output_device_(options.output_device),
        dim_(options.dim),
        on_warning_(std::move(options.on_warning)) {
    if (device_ids().size() == 1) detail::module_of(module).to(device_ids().front());
  }

  /// Empty where there are no GPUs.
  const std::vector<Device>& device_ids() const noexcept { return replicas_.devices(); }
  /// Where outputs are joined; the CPU where there are no GPUs.
  Device output_device() const {
    return output_device_.value_or(device_ids().empty() ? kCPU : device_ids().front());
  }

  template <class... Args>
  auto forward(Args&&... args) {
    using Output = std::remove_cvref_t<decltype(call(module, args...))>;
    static_assert(has_tensors<Output>,
                  "DataParallel joins outputs of type Tensor, Nested, and vector, optional, pair, tuple and "
                  "map<string, ...> of such");
    const std::vector<Device>& devices = device_ids();
    if (devices.empty()) return Output(call(module, args...));
    const bool complete = replicas_.check_home(detail::module_of(module));
    const size_t count =
        sizeof...(Args) == 0 ? 1 : number_of_parts(devices.size(), dim_, std::as_const(args)...);
    const std::vector<Device> used(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(count));
    std::tuple<detail::ScatteredArgument<detail::ScatteredType<Args>>...> scattered(
        detail::ScatteredArgument<detail::ScatteredType<Args>>(args, used, dim_)...);

    std::vector<Net> copies;  // of replicas 1, 2, ...
    std::vector<std::optional<Output>> results(count);
    auto run = [&](size_t r) {
      if (results[r]) return;
      std::apply(
          [&](auto&... argument) {
            results[r].emplace(call(r == 0 ? module : copies[r - 1], argument[r]...));
          },
          scattered);
    };
    const bool meet = count > 1 && needs_meetings(detail::module_of(module));
    // Lazy layers get their sizes from the first part, before there is anything to send.
    if (!complete && count > 1 && !meet)
      detail::for_each_replica(used, /*meet=*/false, [&](size_t r) {
        if (r == 0) run(0);
      });
    if (count > 1) {
      const auto tensors = replicas_.refresh(detail::module_of(module), count);
      copies.reserve(count - 1);
      for (size_t r = 1; r < count; ++r) {
        copies.push_back(module);
        replicas_.adopt(detail::module_of(copies.back()), tensors[r]);
      }
    }
    detail::for_each_replica(used, meet, run);
    if (devices.size() == 1) return std::move(*results[0]);
    std::vector<Output> outputs;
    for (std::optional<Output>& result : results) outputs.push_back(std::move(*result));
    return gather(outputs, output_device(), dim_, [this](const std::string& text) {
      if (on_warning_) std::exchange(on_warning_, {})(text);
    });
  }

  std::string class_name() const override { return "DataParallel"; }

 private:
  template <class... Args>
  static decltype(auto) call(Net& net, Args&... args) {
    return net(args...);
  }

  ReplicaSet replicas_;
  std::optional<Device> output_device_;
  int64_t dim_;
  Warn on_warning_;
};

/// Copies of a module on several devices: the struct is copied, its tensors are on the device, with gradients
/// that lead back to the module's own. On the module's own device its tensors themselves. Throws DeviceError
/// unless the module is on the first device.
template <class Net>
std::vector<Net> replicate(Net& net, const std::vector<Device>& devices) {
  ReplicaSet set(detail::checked_device_ids(devices));
  set.check_home(detail::module_of(net));
  const auto tensors = set.refresh(detail::module_of(net), devices.size());
  std::vector<Net> replicas(devices.size(), net);
  for (size_t r = 1; r < devices.size(); ++r) set.adopt(detail::module_of(replicas[r]), tensors[r]);
  return replicas;
}

/// Calls replica r with inputs[r] on devices[r]; an input is one argument, or a tuple of all. The devices
/// work at the same time. Throws ValueError unless there are as many of each.
template <class Net, class Input>
auto parallel_apply(std::vector<Net>& replicas, const std::vector<Input>& inputs,
                    const std::vector<Device>& devices) {
  if (replicas.size() != inputs.size() || devices.size() != inputs.size() || inputs.empty())
    throw ValueError(
        "parallel_apply: expected as many replicas, inputs and devices, at least one of each: got " +
        std::to_string(replicas.size()) + ", " + std::to_string(inputs.size()) + " and " +
        std::to_string(devices.size()));
  auto call = [&](size_t r) {
    if constexpr (requires { std::tuple_size<Input>::value; })
      return std::apply(replicas[r], inputs[r]);
    else
      return replicas[r](inputs[r]);
  };
  std::vector<decltype(call(0))> outputs(inputs.size());
  detail::for_each_replica(devices, needs_meetings(detail::module_of(replicas[0])),
                           [&](size_t r) { outputs[r] = call(r); });
  return outputs;
}

}  // namespace tern::parallel
