// What is sent when, and what the replicas are given.
#include "tern/parallel/replicas.h"

#include <algorithm>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/core/recording.h"
#include "tern/nn/lazy.h"

namespace tern::parallel {
namespace {

/// Calls `f(tensor, is_parameter)` for every tensor of a module and those below it, in order; `tensor` may be
/// assigned to.
template <class F>
void visit(nn::Module& module, F& f) {
  const nn::Fields fields = module.fields();
  for (const auto& [name, parameter] : fields.parameters) f(static_cast<Tensor&>(*parameter), true);
  for (const auto& [name, buffer] : fields.buffers) f(static_cast<Tensor&>(*buffer), false);
  for (const auto& [name, child] : fields.modules) visit(*child, f);
}

/// Where `tensor` itself stands among `tensors`, or how many they are.
size_t position_among(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  return std::find_if(tensors.begin(), tensors.end(),
                      [&](const Tensor& other) { return other.is_same(tensor); }) -
         tensors.begin();
}

}  // namespace

ReplicaSet::ReplicaSet(std::vector<Device> devices)
    : devices_(std::move(devices)), values_(devices_.size()) {}

bool ReplicaSet::check_home(const nn::Module& module) const {
  bool complete = true;
  auto check = [&](const Tensor& tensor, bool) {
    TERN_CHECK(
        tensor.device() == devices_[0], DeviceError,
        "module must have its parameters and buffers on device {0} (device_ids[0]) but found one of them on "
        "device: {1}: move it there with to(\"{0}\")",
        devices_[0].str(), tensor.device().str());
    complete = complete && !nn::is_lazy(tensor);
  };
  visit(const_cast<nn::Module&>(module), check);
  return complete;
}

size_t ReplicaSet::position_of(const Tensor& tensor, size_t guess) const {
  if (guess < tensors_.size() && tensors_[guess].is_same(tensor)) return guess;
  return position_among(tensors_, tensor);
}

void ReplicaSet::look_at(const nn::Module& module) {
  std::vector<Tensor> tensors;
  std::vector<char> learned, requires_grad;
  auto add = [&](const Tensor& tensor, bool is_parameter) {
    if (nn::is_lazy(tensor)) nn::detail::check_initialized("DataParallel", module);
    tensors.push_back(tensor);
    learned.push_back(is_parameter);
    requires_grad.push_back(tensor.requires_grad());
  };
  visit(const_cast<nn::Module&>(module), add);
  // A tensor that stands in several places counts once.
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return tensors[a].impl_ptr().get() < tensors[b].impl_ptr().get();
  });
  std::vector<char> again(tensors.size(), 0);
  for (size_t i = 1; i < order.size(); ++i)
    again[order[i]] = tensors[order[i]].is_same(tensors[order[i - 1]]);
  size_t kept = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (again[i]) continue;
    tensors[kept] = tensors[i];
    learned[kept] = learned[i];
    requires_grad[kept++] = requires_grad[i];
  }
  tensors.resize(kept);
  learned.resize(kept);
  requires_grad.resize(kept);

  const bool same =
      requires_grad == requires_grad_ &&
      std::equal(tensors.begin(), tensors.end(), tensors_.begin(), tensors_.end(),
                 [](const Tensor& now, const Tensor& known) { return now.is_same(known); }) &&
      std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
        for (size_t m = 0; m < group.packing.members.size(); ++m) {
          const Tensor& tensor = tensors_[group.packing.members[m]];
          if (tensor.dtype() != group.packing.dtype || !(tensor.shape() == group.packing.shapes[m]))
            return false;
        }
        return true;
      });
  if (same) return;
  tensors_ = std::move(tensors);
  requires_grad_ = std::move(requires_grad);
  groups_.clear();
  // What is frozen does not travel with what is learned.
  for (const auto& [is_learned, is_required] : {std::pair{1, 1}, {1, 0}, {0, 1}, {0, 0}})
    for (Packing& packing :
         pack_by_dtype(tensors_, /*aligned=*/true, [&, l = is_learned, g = is_required](size_t i) {
           return learned[i] == l && requires_grad_[i] == g;
         }))
      groups_.push_back({.packing = std::move(packing), .learned = is_learned == 1, .kept = {}});
  for (Group& group : groups_) {
    group.arrived.assign(devices_.size(), 0);
    group.kept.resize(devices_.size());
  }
  for (std::vector<Tensor>& values : values_) values.assign(tensors_.size(), Tensor());
}

void ReplicaSet::send(Group& group, size_t count) {
  const std::vector<size_t>& members = group.packing.members;
  // Every replay must send what is there then, into memory of its own, which others must not build on.
  const bool recorded = tern::detail::step_recorder != nullptr;
  bool changed = recorded || group.sent.empty();
  for (size_t m = 0; m < group.sent.size() && !changed; ++m)
    changed = !group.sent[m].fits(tensors_[members[m]]);
  if (changed) {
    ++group.generation;
    group.sent.clear();
    for (size_t member : members) group.sent.emplace_back(tensors_[member]);
  }
  Tensor row;
  for (size_t d = 1; d < count; ++d) {
    bool current = group.arrived[d] == group.generation;
    // A forward may have changed a replica's own tensors: that is lost, as it is in PyTorch.
    for (size_t m = 0; m < group.kept[d].size() && current; ++m)
      current = group.kept[d][m].fits(values_[d][members[m]]);
    if (current) continue;
    group.arrived[d] = 0;  // until all of it is there
    if (!row.defined()) row = group.packing.pack(tensors_);
    // Always into new memory: the graph of an earlier call may still need the old.
    const Tensor there = moved(row, devices_[d]);
    group.kept[d].clear();
    for (size_t m = 0; m < members.size(); ++m) {
      const Tensor view = group.packing.view(there, m);
      values_[d][members[m]] = group.learned ? view : view.clone();
      group.kept[d].emplace_back(values_[d][members[m]]);
    }
    group.arrived[d] = recorded ? 0 : group.generation;
  }
}

std::vector<std::vector<Tensor>> ReplicaSet::refresh(const nn::Module& module, size_t count) {
  look_at(module);
  {
    NoGradGuard no_grad;
    for (Group& group : groups_) send(group, count);
  }
  std::vector<std::vector<Tensor>> current(count);
  for (size_t d = 1; d < count; ++d)
    for (size_t i = 0; i < tensors_.size(); ++i)
      // Parameters get a new handle for each call, since a handle has one history.
      current[d].push_back(requires_grad_[i] ? values_[d][i].detach() : values_[d][i]);
  record_broadcast(tensors_, current);
  return current;
}

void ReplicaSet::adopt(nn::Module& copy, const std::vector<Tensor>& tensors) const {
  size_t guess = 0;
  auto replace = [&](Tensor& tensor, bool) {
    const size_t i = position_of(tensor, guess);
    // A module of Python may stand in several places and be met again.
    if (i == tensors_.size() && position_among(tensors, tensor) < tensors.size()) return;
    TERN_CHECK(i < tensors_.size(), ValueError,
               "DataParallel: the copy of {} has a tensor of shape {} that is not the module's own: the copy "
               "constructor of a module must share its tensors",
               copy.class_name(), to_string(tensor.shape()));
    tensor = tensors[i];
    guess = i + 1;
  };
  visit(copy, replace);
}

}  // namespace tern::parallel
