// Which modules share a unit, and what is done to all units of a network.
#include "tern/parallel/fully_shard.h"

#include <algorithm>
#include <cmath>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/nn/whole_shapes.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"
#include "tern/parallel/same_start.h"
#include "tern/parallel/sharded_unit.h"

namespace tern::dist {
namespace {

/// The tensors of a module and of those below it, without the divided ones.
void collect(nn::Module& module, const std::string& prefix, NamedTensors& parameters, NamedTensors& buffers) {
  const auto add = [&](NamedTensors& list, const std::string& name, const Tensor& tensor) {
    const auto is_it = [&](const auto& other) { return other.second.is_same(tensor); };
    if (std::none_of(list.begin(), list.end(), is_it)) list.emplace_back(prefix + name, tensor);
  };
  const nn::Fields fields = module.fields();
  for (const auto& [name, parameter] : fields.parameters) add(parameters, name, *parameter);
  for (const auto& [name, buffer] : fields.buffers) add(buffers, name, *buffer);
  for (const auto& [name, child] : fields.modules)
    if (!unit_of(*child)) collect(*child, prefix + name + ".", parameters, buffers);
}

/// nn::detail::WholeShapes::show
std::shared_ptr<void> show_whole_shapes(nn::Module& module) {
  using Fields = std::vector<std::pair<nn::Parameter*, Tensor>>;
  auto fields = std::make_unique<Fields>();
  for (const auto& [name, field] : module.fields().parameters)
    if (const auto piece = piece_of(*field)) {
      const Tensor shape_alone = expand(zeros({}, {.dtype = field->dtype(), .device = kCPU}), piece->whole);
      fields->emplace_back(field, std::exchange(static_cast<Tensor&>(*field), shape_alone));
    }
  if (fields->empty()) return nullptr;
  return {fields.release(), [](Fields* changed) {
            for (auto& [field, before] : *changed) static_cast<Tensor&>(*field) = before;
            delete changed;
          }};
}

}  // namespace

void fully_shard(nn::Module& module, const ProcessGroup& group, const FullyShardOptions& options) {
  TERN_CHECK(!unit_of(module), ValueError, "fully_shard: this {} is divided already", module.class_name());
  for (const auto& dtype : {options.param_dtype, options.reduce_dtype})
    TERN_CHECK(!dtype || is_floating_point(*dtype), DTypeError,
               "fully_shard: parameters can not be computed with in {}", name(*dtype));
  nn::detail::check_initialized("fully_shard", module);
  NamedTensors parameters, buffers;
  collect(module, "", parameters, buffers);
  std::vector<Tensor> own, all;
  for (const auto& [name, parameter] : parameters) {
    TERN_CHECK(
        !is_divided(parameter), ValueError,
        "fully_shard: the parameter '{}' is divided already, with another module: divide from the inside "
        "out, and modules that share a parameter in one call",
        name);
    TERN_CHECK(own.empty() || parameter.device() == own[0].device(), DeviceError,
               "fully_shard: the parameters '{}' and '{}' are on two devices, {} and {}: move the module "
               "to one first",
               parameters[0].first, name, own[0].device().str(), parameter.device().str());
    own.push_back(parameter);
  }
  check_same("fully_shard", parameters, buffers, group);
  all = own;
  for (const auto& [name, buffer] : buffers) all.push_back(buffer);
  broadcast_all(all, group);
  module.make_hooks().surrounding = std::make_shared<ShardedUnit>(own, group, options);
  nn::detail::WholeShapes::show.store(&show_whole_shapes, std::memory_order_release);
}

bool is_fully_sharded(const nn::Module& module) { return unit_of(module) != nullptr; }

void set_requires_gradient_sync(nn::Module& module, bool requires_gradient_sync) {
  for (const auto& [head, unit] : units_in(module)) unit->set_sync(requires_gradient_sync);
}

bool is_divided(const Tensor& parameter) { return unit_holding(parameter) != nullptr; }

std::optional<Piece> piece_of(const Tensor& parameter) {
  const ShardedUnit* unit = unit_holding(parameter);
  if (!unit) return std::nullopt;
  const ShardedUnit::Member& member = unit->members()[unit->find(parameter)];
  return Piece{member.shape, unit->span(member, unit->group().rank()).start};
}

bool is_like_parameter(std::string_view name, const Shape& shape, const Shape& parameter) {
  // Of a parameter without dimensions other entries have its shape too.
  return shape == parameter && name != "step" && name != "eta" && name != "mu";
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       optim::ClipGradNormOptions options) {
  const NoGradGuard no_grad;
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    TERN_CHECK(
        is_divided(parameter), ValueError,
        "clip_grad_norm_: of the parameters some are divided over processes and some, of shape {}, are "
        "not: call fully_shard with the outermost module too",
        to_string(parameter.shape()));
    if (const Tensor grad = parameter.grad(); grad.defined() && grad.numel() > 0) gradients.push_back(grad);
  }
  if (parameters.empty()) return optim::get_total_norm({});
  const double p = options.norm_type;
  const bool is_sum = p != 0 && !std::isinf(p);
  // Float64, since processes may have gradients of different dtypes, or none.
  Tensor norm = gradients.empty() ? zeros({}, {.dtype = DType::Float64, .device = parameters[0].device()})
                                  : optim::get_total_norm(gradients, {.norm_type = p}).to(DType::Float64);
  if (is_sum) norm = pow(norm, p);
  unit_holding(parameters[0])->group().all_reduce(norm, std::isinf(p) ? ReduceOp::Max : ReduceOp::Sum);
  if (is_sum) norm = pow(norm, 1 / p);
  const bool is_wide = std::any_of(parameters.begin(), parameters.end(),
                                   [](const Tensor& x) { return x.dtype() == DType::Float64; });
  if (!is_wide) norm = norm.to(DType::Float32);
  if (options.error_if_nonfinite) optim::get_total_norm({norm}, {.error_if_nonfinite = true});
  optim::clip_grads_with_norm_(parameters, max_norm, norm);
  return norm;
}

std::function<bool(bool)> agree_on_finite(const std::vector<Tensor>& parameters) {
  const auto divided = std::find_if(parameters.begin(), parameters.end(), is_divided);
  if (divided == parameters.end()) return {};
  return [group = unit_holding(*divided)->group()](bool is_finite) {
    const Tensor all = full({}, is_finite ? 1 : 0, {.dtype = DType::Int32, .device = kCPU});
    group.all_reduce(all, ReduceOp::Min);
    return all.item<int32_t>() != 0;
  };
}

}  // namespace tern::dist
