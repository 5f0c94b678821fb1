// A network and its optimizer as entries of a distributed checkpoint, and back.
#include "tern/train/distributed_checkpoint.h"

#include <map>
#include <unordered_map>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/io/distributed_reader.h"
#include "tern/io/distributed_writer.h"
#include "tern/ops/copy.h"
#include "tern/parallel/fully_shard.h"
#include "tern/train/state_value.h"

namespace tern::train {
namespace {

using io::DistributedRequest;

/// The parameters of the optimizer in the order of their numbers, with their names.
std::vector<std::pair<std::string, Tensor>> named_parameters(const nn::Module& module,
                                                             const optim::Optimizer& optimizer) {
  std::unordered_map<const TensorImpl*, std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) names[parameter.impl_ptr().get()] = name;
  std::vector<std::pair<std::string, Tensor>> all;
  for (size_t group = 0; group < optimizer.num_groups(); ++group)
    for (const Tensor& parameter : optimizer.params(group)) {
      const auto name = names.find(parameter.impl_ptr().get());
      TERN_CHECK(name != names.end(), ValueError,
                 "the optimizer has a parameter of shape {} that the module has not",
                 to_string(parameter.shape()));
      all.emplace_back(name->second, parameter);
    }
  return all;
}

std::map<std::string, dist::Piece> pieces_of(const nn::Module& module) {
  std::map<std::string, dist::Piece> pieces;
  for (const auto& [name, field] : module.named_parameters())
    if (auto piece = dist::piece_of(field)) pieces.emplace(name, std::move(*piece));
  return pieces;
}

}  // namespace

void save_distributed(const std::filesystem::path& folder, const dist::ProcessGroup& group,
                      const nn::Module& module, const optim::Optimizer* optimizer, const Value& extra) {
  std::map<std::string, io::DistributedPiece> pieces;  // by names in the folder
  const std::map<std::string, dist::Piece> divided = pieces_of(module);
  const auto note = [&](const std::string& parameter, const std::string& name) {
    if (const auto piece = divided.find(parameter); piece != divided.end())
      pieces.emplace(name, io::DistributedPiece{piece->second.whole, piece->second.start});
  };
  Value tree = Value::dict();
  const StateDict model = module.state_dict();
  tree.as_dict().set("model", model);
  for (const auto& [name, tensor] : model) note(name, "model." + name);
  if (optimizer) {
    const auto named = named_parameters(module, *optimizer);
    const optim::OptimizerState state = optimizer->state_dict();
    Value states = Value::dict(), groups = Value::list();
    for (const auto& [number, map] : state.state) {
      const auto& [name, parameter] = named.at(static_cast<size_t>(number));
      states.as_dict().set(name, to_value(map));
      for (const optim::StateEntry& entry : map)
        if (const auto* tensor = std::get_if<Tensor>(&entry.value);
            tensor && dist::is_like_parameter(entry.name, tensor->shape(), parameter.shape()))
          note(name, "optimizer.state." + name + "." + entry.name);
    }
    for (const auto& saved : state.param_groups) {
      Value options = to_value(saved.options), names = Value::list();
      for (const int64_t number : saved.params)
        names.as_list().push_back(named.at(static_cast<size_t>(number)).first);
      options.as_dict().set("params", names);
      groups.as_list().push_back(options);
    }
    tree.as_dict().set("optimizer", Value{{"state", states}, {"param_groups", groups}});
  }
  if (!extra.is_none()) tree.as_dict().set("extra", extra);
  io::write_distributed(folder, io::distributed_entries(tree, pieces), group.rank(), group.size(),
                        [&](const std::string& text) { return group.all_gather(text); });
}

Value load_distributed(const std::filesystem::path& folder, nn::Module& module, optim::Optimizer* optimizer) {
  const NoGradGuard no_grad;
  io::DistributedFolder saved_there(folder);
  std::vector<DistributedRequest> requests;
  const std::map<std::string, dist::Piece> pieces = pieces_of(module);
  const auto request = [&](const std::string& name, const std::string& parameter, int64_t length) {
    DistributedRequest& made = requests.emplace_back(DistributedRequest{name});
    if (const auto piece = pieces.find(parameter); piece != pieces.end()) {
      made.start = piece->second.start;
      made.length = length;
      made.shape = piece->second.whole;
    }
    return &made;
  };
  const StateDict own = module.state_dict();
  for (const auto& [name, tensor] : own) request("model." + name, name, tensor.numel());

  // The optimizer's: number of the parameter and name of the entry, one for each request after those.
  std::vector<std::pair<int64_t, std::string>> entries;
  optim::OptimizerState state;
  std::map<std::string, int64_t> numbers;
  if (optimizer) {
    const auto named = named_parameters(module, *optimizer);
    for (size_t i = 0; i < named.size(); ++i) numbers[named[i].first] = static_cast<int64_t>(i);
    for (const auto& [full, path] : saved_there.names()) {
      if (path.size() != 4 || path[0] != Value("optimizer") || path[1] != Value("state")) continue;
      const auto number = numbers.find(path[2].as_str());
      if (number == numbers.end()) continue;
      const Tensor& parameter = named[static_cast<size_t>(number->second)].second;
      DistributedRequest* made = request(full, number->first, parameter.numel());
      made->all_of_others = true;
      if (!dist::is_like_parameter(path[3].as_str(), {}, {})) made->length.reset();
      entries.emplace_back(number->second, path[3].as_str());
    }
  }
  const std::vector<Value> values = saved_there.parts(requests);
  const Value extra = saved_there.below({"extra"});

  for (size_t i = 0; const auto& [name, tensor] : own) {
    const Tensor saved = values[i++].as_tensor();
    TERN_CHECK(saved.shape() == tensor.shape(), CheckpointError, "'{}': '{}' has the shape {} there, {} here",
               folder.string(), name, to_string(saved.shape()), to_string(tensor.shape()));
  }
  if (optimizer) {
    std::map<int64_t, Value> maps;
    for (size_t e = 0; e < entries.size(); ++e) {
      auto [map, is_new] = maps.try_emplace(entries[e].first, Value::dict());
      map->second.as_dict().set(entries[e].second, values[own.size() + e]);
    }
    for (const auto& [number, map] : maps) state.state.emplace_back(number, to_state_map(map));
    const Value groups = saved_there.below({"optimizer", "param_groups"});
    TERN_CHECK(groups.is_list(), CheckpointError, "'{}' has no 'optimizer'", folder.string());
    for (const Value& saved : groups.as_list()) {
      optim::OptimizerState::Group group;
      for (const Value& name : saved.find("params")->as_sequence()) {
        const auto number = numbers.find(name.as_str());
        TERN_CHECK(number != numbers.end(), CheckpointError, "the optimizer here has no parameter '{}'",
                   name.as_str());
        group.params.push_back(number->second);
      }
      Value options = Value::dict();
      for (const auto& [key, value] : saved.as_dict())
        if (key.as_str() != "params") options.as_dict().set(key, value);
      group.options = to_state_map(options);
      state.param_groups.push_back(std::move(group));
    }
    optimizer->load_state_dict(state);
  }
  for (size_t i = 0; const auto& [name, tensor] : own) Tensor(tensor).copy_(values[i++].as_tensor());
  return extra;
}

}  // namespace tern::train
