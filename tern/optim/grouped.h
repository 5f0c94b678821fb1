// GroupedOptimizer: what all algorithms do with the options of their parameter groups. An algorithm gives its
// options as a plain struct with a member `visit` that names them in the order in which PyTorch saves them,
// and `check`.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/optim/optimizer.h"

namespace tern::optim {

namespace detail {

/// Writes options into a map.
struct OptionWriter {
  StateMap& map;
  const StateMap& extra;

  void operator()(const char* name, double value) { map.set(name, value); }
  void operator()(const char* name, bool value) { map.set(name, value); }
  void operator()(const char* name, int64_t value) { map.set(name, value); }
  void operator()(const char* name, const std::optional<std::string>& value) {
    map.set(name, value ? StateValue(*value) : StateValue());
  }
  void operator()(const char* name, const std::pair<double, double>& value) {
    map.set(name, std::vector<double>{value.first, value.second});
  }
  void operator()(const char* name, const std::array<double, 3>& value) {
    map.set(name, std::vector<double>(value.begin(), value.end()));
  }
  /// An option that PyTorch has and that makes no difference here: written as it was loaded, else with this
  /// value.
  void fixed(const char* name, StateValue value) {
    const StateEntry* loaded = extra.find(name);
    map.set(name, loaded ? loaded->value : std::move(value));
  }
};

/// Reads options from a map; those that are absent (older files) stay as they are.
struct OptionReader {
  const StateMap& map;
  std::vector<std::string> names = {"params"};

  void operator()(const char* name, double& value);
  void operator()(const char* name, bool& value);
  void operator()(const char* name, int64_t& value);
  void operator()(const char* name, std::optional<std::string>& value);
  void operator()(const char* name, std::pair<double, double>& value);
  void operator()(const char* name, std::array<double, 3>& value);
  void fixed(const char*, const StateValue&) {}
};

/// Throws ValueError "<optimizer>: Invalid <what>: <value>" unless `valid`.
void check_option(bool valid, const char* optimizer, const char* what, double value,
                  const char* rule = "at least 0");
/// The same for the options that Adam and its relatives have.
void check_adam_options(const char* optimizer, double lr, std::pair<double, double> betas, double eps,
                        double weight_decay);

}  // namespace detail

/// Parameters with options of their own. What these do not name has the default of the struct.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options;
};

template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  /// The options of a group; a change holds from the next step on.
  Options& options(size_t group = 0) { return options_[checked(group)]; }
  const Options& options(size_t group = 0) const { return options_[checked(group)]; }
  /// The options that the optimizer was made with; made of groups, those of the first.
  const Options& defaults() const noexcept { return defaults_; }

  /// One more group. What `options` do not name has the default of the struct, not the optimizer's own
  /// value as in PyTorch: to change some of the optimizer's, change a copy of defaults(). Throws ValueError
  /// for a parameter that is optimized already.
  void add_param_group(std::vector<Tensor> params, const Options& options) {
    options.check(name());
    if constexpr (requires { options.check_parameter("", Tensor()); })
      for (const Tensor& param : params)
        if (param.defined()) options.check_parameter(name(), param);
    add_slots(std::move(params));
    options_.push_back(options);
  }
  /// One more group with the options that the optimizer was made with.
  void add_param_group(std::vector<Tensor> params) { add_param_group(std::move(params), defaults_); }

  double lr(size_t group = 0) const override { return options(group).lr; }
  void set_lr(double lr, size_t group) override { options(group).lr = lr; }
  using Optimizer::set_lr;

  std::optional<double> momentum(size_t group = 0) const override {
    checked(group);
    if constexpr (requires(Options o) { o.betas; })
      return options(group).betas.first;
    else if constexpr (requires(Options o) { o.momentum; })
      return options(group).momentum;
    else
      return std::nullopt;
  }
  void set_momentum([[maybe_unused]] double momentum, size_t group) override {
    checked(group);
    if constexpr (requires(Options o) { o.betas; })
      options(group).betas.first = momentum;
    else if constexpr (requires(Options o) { o.momentum; })
      options(group).momentum = momentum;
  }
  bool uses_beta1() const noexcept override {
    return requires(Options o) { o.betas; };
  }

 protected:
  GroupedOptimizer(const char* name, std::vector<Tensor> params, const Options& defaults)
      : Optimizer(name), defaults_(defaults) {
    add_param_group(std::move(params), defaults);
  }
  GroupedOptimizer(const char* name, std::vector<ParamGroup<Options>> groups) : Optimizer(name) {
    if (!groups.empty()) defaults_ = groups.front().options;
    if (groups.empty()) add_slots({});  // throws: there is nothing to optimize
    for (auto& group : groups) add_param_group(std::move(group.params), group.options);
  }

  StateMap save_options(size_t group) const override {
    StateMap map;
    Options(options(group)).visit(detail::OptionWriter{map, extras(group)});
    for (const StateEntry& entry : extras(group))
      if (!map.contains(entry.name)) map.set(entry.name, entry.value);
    return map;
  }

  std::function<void()> read_options(const OptimizerState& saved) override {
    auto read = std::make_shared<std::vector<std::pair<Options, StateMap>>>();
    for (size_t g = 0; g < num_groups(); ++g) {
      auto& [options, extra] = read->emplace_back(options_[g], StateMap());
      detail::OptionReader reader{saved.param_groups[g].options};
      options.visit(reader);
      for (const StateEntry& entry : reader.map)
        if (std::find(reader.names.begin(), reader.names.end(), entry.name) == reader.names.end())
          extra.set(entry.name, entry.value);
    }
    return [this, read] {
      for (size_t g = 0; g < num_groups(); ++g) {
        options_[g] = (*read)[g].first;
        extras(g) = (*read)[g].second;
      }
    };
  }

 private:
  Options defaults_;
  std::vector<Options> options_;
};

}  // namespace tern::optim
