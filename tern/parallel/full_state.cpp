// Gathering what is divided, and dividing what is whole.
#include "tern/parallel/full_state.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"
#include "tern/parallel/fully_shard.h"
#include "tern/parallel/same_start.h"
#include "tern/parallel/sharded_unit.h"

namespace tern::dist {
namespace {

using Member = ShardedUnit::Member;

/// Any group of the module's units: they share one.
const ProcessGroup* group_of(const nn::Module& module) {
  const auto units = units_in(module);
  return units.empty() ? nullptr : &units[0].second->group();
}

/// f(entry, unit, member) for each entry of the optimizer's state that is of the parameters' sizes, before or
/// after they were divided as `is_like` says.
template <class IsLike, class F>
void visit_state(const nn::Module& module, const optim::Optimizer& optimizer, optim::OptimizerState& state,
                 const IsLike& is_like, const F& f) {
  TERN_CHECK(std::string_view(optimizer.name()) != "LBFGS", ValueError,
             "the state of LBFGS is not by parameters: it can not be divided");
  const auto units = units_in(module);
  for (size_t g = 0; g < state.param_groups.size() && g < optimizer.num_groups(); ++g) {
    const std::vector<Tensor> parameters = optimizer.params(g);
    const std::vector<int64_t>& numbers = state.param_groups[g].params;
    for (size_t p = 0; p < parameters.size() && p < numbers.size(); ++p) {
      const auto saved = std::find_if(state.state.begin(), state.state.end(),
                                      [&](const auto& entry) { return entry.first == numbers[p]; });
      if (saved == state.state.end()) continue;
      for (const auto& [head, unit] : units) {
        const size_t number = unit->find(parameters[p]);
        if (number == unit->members().size()) continue;
        const Member& member = unit->members()[number];
        for (const optim::StateEntry& entry : saved->second)
          if (const Tensor* tensor = std::get_if<Tensor>(&entry.value);
              tensor && tensor->defined() && is_like(entry.name, *tensor, member))
            f(const_cast<optim::StateEntry&>(entry), *unit, member);
      }
    }
  }
}

/// What all processes have of one that is divided as the member is.
Tensor gather_like(const ShardedUnit& unit, const Member& member, const Tensor& piece) {
  const ProcessGroup& group = unit.group();
  int64_t most = 0;
  for (int r = 0; r < group.size(); ++r) most = std::max(most, unit.span(member, r).length);
  const TensorOptions options{.dtype = piece.dtype(), .device = piece.device()};
  const Tensor rows = zeros({group.size(), most}, options), whole = empty({member.numel}, options);
  rows[group.rank()].narrow(0, 0, piece.numel()).copy_(piece.detach().flatten());
  group.all_gather_async(rows).get();
  for (int r = 0; r < group.size(); ++r) {
    const ShardedUnit::Span span = unit.span(member, r);
    whole.narrow(0, span.start, span.length).copy_(rows[r].narrow(0, 0, span.length));
  }
  return whole.view(member.shape);
}

bool is_first(const ProcessGroup* group) { return group == nullptr || group->rank() == 0; }

}  // namespace

struct FullParameters::Part {
  ShardedUnit* unit;
  std::vector<Tensor> tensors;  ///< of the members
  std::unique_ptr<ShardedUnit::Swap> swap = nullptr;
};

FullParameters::FullParameters(const nn::Module& module, const FullParametersOptions& options)
    : module_(module) {
  const bool keep = !options.rank0_only || is_first(group_of(module));
  const auto units = units_in(module);
  for (const auto& [head, unit] : units) {
    Part part{unit, unit->gather_members()};
    if (!keep) continue;
    for (size_t i = 0; i < part.tensors.size(); ++i) {
      const Tensor& shard = unit->members()[i].shard;
      Tensor copy =
          part.tensors[i].detach().to(options.offload_to_cpu ? kCPU : shard.device(), shard.dtype());
      if (copy.storage() == part.tensors[i].storage()) copy = copy.clone();
      part.tensors[i] = copy.requires_grad_(shard.requires_grad());
    }
    parts_.push_back(std::move(part));
  }
  for (size_t i = 0; i < parts_.size(); ++i)
    parts_[i].swap = std::make_unique<ShardedUnit::Swap>(*units[i].first, *parts_[i].unit, parts_[i].tensors);
}

FullParameters::~FullParameters() = default;

void FullParameters::broadcast() const {
  const ProcessGroup* group = group_of(module_);
  if (group == nullptr) return;
  broadcast_all(module_.parameters(), *group);
  broadcast_all(module_.buffers(), *group);
}

void FullParameters::write_back() const {
  for (const Part& part : parts_)
    for (size_t i = 0; i < part.tensors.size(); ++i) part.unit->put(part.unit->members()[i], part.tensors[i]);
}

StateDict full_state_dict(const nn::Module& module, const FullStateOptions& options) {
  const FullParameters whole(module,
                             {.rank0_only = options.cpu_offload, .offload_to_cpu = options.cpu_offload});
  if (options.cpu_offload && !is_first(group_of(module))) return {};
  StateDict dict = module.state_dict();
  if (options.cpu_offload)
    for (const auto& [name, tensor] : dict) dict.insert(name, tensor.cpu());
  return dict;
}

nn::IncompatibleKeys load_full_state_dict(nn::Module& module, const StateDict& dict,
                                          const LoadFullStateOptions& options) {
  const FullParameters whole(module, {.offload_to_cpu = true});
  const ProcessGroup* group = group_of(module);
  const auto load = [&] {
    return module.load_state_dict(
        dict, {.strict = options.strict, .prefix = options.prefix, .on_mismatch = options.on_mismatch});
  };
  if (!options.broadcast_from_rank0 || group == nullptr) {
    const nn::IncompatibleKeys keys = load();
    whole.write_back();
    return keys;
  }
  nn::IncompatibleKeys keys;
  std::exception_ptr error;
  std::string text;
  try {
    if (is_first(group)) keys = load();
  } catch (const std::exception& thrown) {
    error = std::current_exception();
    text = thrown.what();
  }
  text = group->broadcast(text);
  if (error) std::rethrow_exception(error);
  TERN_CHECK(text.empty(), CheckpointError, "rank 0: {}", text);
  whole.broadcast();
  whole.write_back();
  return keys;
}

std::optional<int> rank_of_shards(const nn::Module& module) {
  const ProcessGroup* group = group_of(module);
  return group ? std::optional(group->rank()) : std::nullopt;
}

optim::OptimizerState full_optimizer_state_dict(const nn::Module& module, const optim::Optimizer& optimizer,
                                                const FullStateOptions& options) {
  const NoGradGuard no_grad;
  optim::OptimizerState state = optimizer.state_dict();
  const bool keep = !options.cpu_offload || is_first(group_of(module));
  const auto is_piece = [](const std::string& name, const Tensor& tensor, const Member& member) {
    return is_like_parameter(name, tensor.shape(), member.shard.shape());
  };
  visit_state(module, optimizer, state, is_piece,
              [&](optim::StateEntry& entry, const ShardedUnit& unit, const Member& member) {
                const Tensor whole = gather_like(unit, member, std::get<Tensor>(entry.value));
                entry.value = !keep ? Tensor() : options.cpu_offload ? whole.cpu() : whole;
              });
  return keep ? state : optim::OptimizerState();
}

void load_full_optimizer_state_dict(const nn::Module& module, optim::Optimizer& optimizer,
                                    const optim::OptimizerState& state) {
  const NoGradGuard no_grad;
  optim::OptimizerState pieces = state;
  const auto is_whole = [](const std::string& name, const Tensor& tensor, const Member& member) {
    return is_like_parameter(name, tensor.shape(), member.shape);
  };
  visit_state(module, optimizer, pieces, is_whole,
              [&](optim::StateEntry& entry, const ShardedUnit& unit, const Member& member) {
                const ShardedUnit::Span span = unit.span(member, unit.group().rank());
                entry.value =
                    std::get<Tensor>(entry.value).detach().flatten().narrow(0, span.start, span.length);
              });
  optimizer.load_state_dict(pieces);
}

}  // namespace tern::dist
