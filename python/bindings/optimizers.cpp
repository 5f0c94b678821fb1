// Optimizers with their parameter groups, clipping and scaling of gradients, averages of weights. What is a
// dict or a list in PyTorch is made one in python/tern/optim.
#include "bindings.h"
#include "rows.h"
#include "tern/base/check.h"
#include "tern/parallel/fully_shard.h"
#include "values.h"

namespace tern::python {

namespace {

using optim::Optimizer;
using optim::OptimizerState;
using optim::StateMap;

// ---- parameter groups

/// The options of groups by name, whatever the optimizer: what optimizers show to their own kind alone.
struct GroupOptions : Optimizer {
  static StateMap read(const Optimizer& optimizer, size_t group) {
    return (optimizer.*(&GroupOptions::save_options))(group);
  }
  /// Throws TypeError for an option of another kind; then nothing has been changed.
  static void change(Optimizer& optimizer, size_t group, const StateMap& changes) {
    OptimizerState state;
    for (size_t g = 0; g < optimizer.num_groups(); ++g)
      state.param_groups.push_back({read(optimizer, g), {}});
    for (const optim::StateEntry& entry : changes)
      state.param_groups[group].options.set(entry.name, entry.value);
    (optimizer.*(&GroupOptions::read_options))(state)();
  }
};

/// All parameters, in the order of their numbers.
std::vector<Tensor> params_of(const Optimizer& optimizer) {
  std::vector<Tensor> params;
  for (size_t group = 0; group < optimizer.num_groups(); ++group)
    for (const Tensor& param : optimizer.params(group)) params.push_back(param);
  return params;
}

/// A group as it was given: a dict, or tensors alone.
struct GivenGroup {
  std::vector<Tensor> params;
  StateMap options;
};

[[noreturn]] void throw_no_tensor(py::handle object) {
  TERN_THROW(TypeError, "optimizer can only optimize Tensors, but one of the params is {}",
             Py_TYPE(object.ptr())->tp_name);
}

/// One tensor, or an iterable of tensors or of their names and them.
void add_params(GivenGroup& group, const py::object& params) {
  if (py::isinstance<TensorImpl>(params)) {
    group.params.push_back(params.cast<Tensor>());
    return;
  }
  TERN_CHECK(
      !PyAnySet_Check(params.ptr()), TypeError,
      "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
      "will change between runs. Please use a list instead.");
  std::vector<std::string> names;
  for (py::handle param : py::iter(params)) {
    if (py::isinstance<py::tuple>(param)) {
      const auto pair = py::reinterpret_borrow<py::tuple>(param);
      if (pair.size() != 2 || !py::isinstance<py::str>(pair[0])) throw_no_tensor(param);
      names.push_back(pair[0].cast<std::string>());
      param = PyTuple_GET_ITEM(pair.ptr(), 1);
    }
    if (!py::isinstance<TensorImpl>(param)) throw_no_tensor(param);
    group.params.push_back(param.cast<Tensor>());
  }
  TERN_CHECK(names.empty() || names.size() == group.params.size(), ValueError,
             "all optimizer params should be with/without names. Some param names are missing");
  if (!names.empty()) group.options.set("param_names", names);
}

GivenGroup group_from(py::handle given) {
  TERN_CHECK(py::isinstance<py::dict>(given), TypeError, "param_group must be a dict, but got {}",
             Py_TYPE(given.ptr())->tp_name);
  const py::dict options = given.attr("copy")();
  TERN_CHECK(options.contains("params"), ValueError, "param_group must have an entry 'params'");
  const py::object params = options.attr("pop")("params");
  GivenGroup group;
  group.options = state_from_python<StateMap>(options);
  add_params(group, params);
  return group;
}

std::vector<GivenGroup> groups_from(const py::object& params) {
  TERN_CHECK(!py::isinstance<TensorImpl>(params), TypeError,
             "params argument given to the optimizer should be an iterable of Tensors or dicts, but got a "
             "tensor: put it "
             "into a list");
  const py::list list(params);
  std::vector<GivenGroup> groups;
  if (!list.empty() && py::isinstance<py::dict>(list[0]))
    for (py::handle group : list) groups.push_back(group_from(group));
  else
    add_params(groups.emplace_back(), list);
  return groups;
}

/// The defaults, changed as the group says.
template <class Options>
Options options_of(Options options, const GivenGroup& group) {
  optim::detail::OptionReader reader{group.options};
  options.visit(reader);
  return options;
}

template <class O>
void add_group(O& optimizer, GivenGroup group) {
  if constexpr (requires { optimizer.add_param_group(group.params, optimizer.defaults()); }) {
    optimizer.add_param_group(std::move(group.params), options_of(optimizer.defaults(), group));
    GroupOptions::change(optimizer, optimizer.num_groups() - 1, group.options);  // what has no field
  } else {
    TERN_THROW(ValueError, "{} doesn't support per-parameter options (parameter groups)", optimizer.name());
  }
}

template <class O, class Options>
std::unique_ptr<O> make(const py::object& params, const Options& options) {
  std::vector<GivenGroup> groups = groups_from(params);
  auto optimizer = std::make_unique<O>(std::move(groups[0].params), options);
  const auto first = options_of(optimizer->defaults(), groups[0]);
  first.check(optimizer->name());
  optimizer->options() = first;
  if (groups[0].options.size() > 0) GroupOptions::change(*optimizer, 0, groups[0].options);
  for (size_t g = 1; g < groups.size(); ++g) add_group(*optimizer, std::move(groups[g]));
  return optimizer;
}

// ---- steps

/// The loss that a closure gave, as what C++ can compute with: LBFGS compares losses.
Tensor loss_from(const py::object& loss) {
  if (loss.is_none() || py::isinstance<TensorImpl>(loss)) return loss.cast<Tensor>();
  return full({}, loss.cast<double>(), {.dtype = DType::Float64, .device = kCPU});
}

py::object step(Optimizer& self, const py::object& closure) {
  py::object loss = py::none();
  if (closure.is_none()) {
    const py::gil_scoped_release no_gil;
    self.step();
    return loss;
  }
  bool is_first = true;
  const py::gil_scoped_release no_gil;
  self.step([&] {
    const py::gil_scoped_acquire gil;
    py::object given = closure();
    const Tensor value = loss_from(given);
    if (std::exchange(is_first, false)) loss = std::move(given);
    return value;
  });
  return loss;
}

/// What optimizers of C++ share; those written in Python have it from python/tern/optim/optimizer.py.
template <class Class>
void native_methods(Class& c) {
  c.def("step", &step, py::arg("closure") = py::none(),
        "Changes the parameters that have a gradient. A closure computes the loss anew and returns it.");
  c.def("zero_grad", &Optimizer::zero_grad, py::arg("set_to_none") = true, ReleaseGil());
  c.def("state_dict", [](py::object object) {
    const auto& self = object.cast<const Optimizer&>();
    py::object state = state_to_python(self.state_dict());
    const std::vector<Tensor> params = params_of(self);
    if (std::any_of(params.begin(), params.end(), dist::is_divided))
      imported("tern.distributed._pieces", "mark_state")(object, state);
    return state;
  });
  c.def(
      "load_state_dict",
      [](Optimizer& self, py::handle dict) { self.load_state_dict(state_from_python<OptimizerState>(dict)); },
      py::arg("state_dict"));
  c.def_property_readonly("_num_groups", &Optimizer::num_groups);
  c.def("_params", [](const Optimizer& self, size_t group) {
    py::list params;
    for (const Tensor& param : self.params(group)) params.append(parameter_object(param));
    return params;
  });
  c.def("_options",
        [](const Optimizer& self, size_t group) { return state_to_python(GroupOptions::read(self, group)); });
  c.def("_change_options", [](Optimizer& self, size_t group, py::handle changes) {
    GroupOptions::change(self, group, state_from_python<StateMap>(changes));
  });
}

/// An optimizer of the parameters and the rows' options.
template <class O, class Rows>
void optimizer(py::module_& m, const char* name, const Rows& options) {
  py::class_<O, Optimizer> c(m, name);
  const auto params = rows(argument<py::object>("params"));
  const auto construct = [](const py::object& given, const auto& values) { return make<O>(given, values); };
  detail::declare(params, options, [&](auto... declared) {
    c.def(py::init(detail::with_options(construct, params, options)), declared...);
  });
  native_methods(c);
  c.def(
      "add_param_group", [](O& self, py::handle group) { add_group(self, group_from(group)); },
      py::arg("param_group"));
  c.def_property_readonly("defaults", [](const O& self) {
    StateMap map;
    auto defaults = self.defaults();
    defaults.visit(optim::detail::OptionWriter{map, {}});
    return state_to_python(map);
  });
}

// ---- optimizers that are written in Python

/// One whose groups and state are dicts of its Python object (python/tern/optim/optimizer.py): what C++ asks
/// for is looked up there.
class PythonOptimizer final : public Optimizer {
 public:
  explicit PythonOptimizer(std::string name) : Optimizer("Optimizer"), class_name_(std::move(name)) {}

  void add(std::vector<Tensor> params) { add_slots(std::move(params)); }
  void step() override {
    const py::gil_scoped_acquire gil;
    object().attr("step")();
  }
  double lr(size_t group) const override { return number("lr", group); }
  void set_lr(double lr, size_t group) override { set("lr", lr, group); }
  std::optional<double> momentum(size_t group) const override {
    const py::gil_scoped_acquire gil;
    const py::dict options = options_of_group(group);
    if (options.contains("momentum")) return number("momentum", group);
    if (options.contains("betas")) return first_beta(options);
    return std::nullopt;
  }
  void set_momentum(double momentum, size_t group) override {
    const py::gil_scoped_acquire gil;
    const py::dict options = options_of_group(group);
    if (!options.contains("betas")) return set("momentum", momentum, group);
    py::list betas(options["betas"]);
    betas[0] = momentum;
    options["betas"] = py::tuple(betas);
  }
  bool uses_beta1() const noexcept override {
    const py::gil_scoped_acquire gil;
    return num_groups() > 0 && options_of_group(0).contains("betas");
  }
  std::optional<double> extra(std::string_view name, size_t group) const override {
    const py::gil_scoped_acquire gil;
    if (!options_of_group(group).contains(py::str(std::string(name)))) return std::nullopt;
    return number(name, group);
  }
  void set_extra(std::string_view name, double value, size_t group) override { set(name, value, group); }
  OptimizerState state_dict() const override {
    const py::gil_scoped_acquire gil;
    return state_from_python<OptimizerState>(object().attr("state_dict")());
  }
  void load_state_dict(const OptimizerState& saved) override {
    const py::gil_scoped_acquire gil;
    object().attr("load_state_dict")(state_to_python(saved));
  }

 protected:
  StateLayout state_layout(size_t) const override { return {}; }
  StateMap save_options(size_t) const override { return {}; }
  std::function<void()> read_options(const OptimizerState&) override {
    return [] {};
  }

 private:
  py::object object() const {
    return py::cast(static_cast<const Optimizer*>(this), py::return_value_policy::reference);
  }
  py::dict options_of_group(size_t group) const {
    const py::object all = object().attr("param_groups");
    TERN_CHECK(group < py::len(all), IndexError, "{}: there is no parameter group {}", class_name_, group);
    return all[py::int_(group)];
  }
  double number(std::string_view name, size_t group) const {
    const py::gil_scoped_acquire gil;
    const py::dict options = options_of_group(group);
    const py::str key{std::string(name)};
    TERN_CHECK(options.contains(key), ValueError, "{}: parameter group {} has no '{}'", class_name_, group,
               name);
    return py::float_(py::object(options[key]));
  }
  static double first_beta(const py::dict& options) {
    return py::float_(py::object(options["betas"][py::int_(0)]));
  }
  void set(std::string_view name, double value, size_t group) {
    const py::gil_scoped_acquire gil;
    options_of_group(group)[py::str(std::string(name))] = value;
  }

  std::string class_name_;
};

void bind_optimizer_base(py::module_& m) {
  py::class_<Optimizer, PythonOptimizer>(m, "Optimizer", py::dynamic_attr(), "Base of optimizers.")
      .def(py::init([](std::string name) { return std::make_unique<PythonOptimizer>(std::move(name)); }))
      .def("_add", [](Optimizer& self, std::vector<Tensor> params) {
        dynamic_cast<PythonOptimizer&>(self).add(std::move(params));
      });
}

void bind_algorithms(py::module_& m) {
  using namespace optim;
  const std::optional<bool> unsaid;
  const auto foreach = ignores("foreach", unsaid), fused = ignores("fused", unsaid);
  const auto capturable = ignores("capturable", false), differentiable = ignores("differentiable", false);
  optimizer<SGD>(
      m, "SGD",
      rows(option("lr", &SGDOptions::lr), option("momentum", &SGDOptions::momentum),
           option("dampening", &SGDOptions::dampening), option("weight_decay", &SGDOptions::weight_decay),
           option("nesterov", &SGDOptions::nesterov), option("maximize", &SGDOptions::maximize), foreach,
           differentiable, fused));
  optimizer<Adam>(m, "Adam",
                  rows(option("lr", &AdamOptions::lr), option("betas", &AdamOptions::betas),
                       option("eps", &AdamOptions::eps), option("weight_decay", &AdamOptions::weight_decay),
                       option("amsgrad", &AdamOptions::amsgrad), foreach,
                       option("maximize", &AdamOptions::maximize), capturable, differentiable, fused,
                       option("decoupled_weight_decay", &AdamOptions::decoupled_weight_decay)));
  optimizer<AdamW>(
      m, "AdamW",
      rows(option("lr", &AdamWOptions::lr), option("betas", &AdamWOptions::betas),
           option("eps", &AdamWOptions::eps), option("weight_decay", &AdamWOptions::weight_decay),
           option("amsgrad", &AdamWOptions::amsgrad), option("maximize", &AdamWOptions::maximize), foreach,
           capturable, differentiable, fused));
  optimizer<RMSprop>(
      m, "RMSprop",
      rows(option("lr", &RMSpropOptions::lr), option("alpha", &RMSpropOptions::alpha),
           option("eps", &RMSpropOptions::eps), option("weight_decay", &RMSpropOptions::weight_decay),
           option("momentum", &RMSpropOptions::momentum), option("centered", &RMSpropOptions::centered),
           capturable, foreach, option("maximize", &RMSpropOptions::maximize), differentiable));
  optimizer<Adagrad>(m, "Adagrad",
                     rows(option("lr", &AdagradOptions::lr), option("lr_decay", &AdagradOptions::lr_decay),
                          option("weight_decay", &AdagradOptions::weight_decay),
                          option("initial_accumulator_value", &AdagradOptions::initial_accumulator_value),
                          option("eps", &AdagradOptions::eps), foreach,
                          option("maximize", &AdagradOptions::maximize), differentiable, fused));
  optimizer<Adadelta>(
      m, "Adadelta",
      rows(option("lr", &AdadeltaOptions::lr), option("rho", &AdadeltaOptions::rho),
           option("eps", &AdadeltaOptions::eps), option("weight_decay", &AdadeltaOptions::weight_decay),
           foreach, capturable, option("maximize", &AdadeltaOptions::maximize), differentiable));
  optimizer<Adamax>(
      m, "Adamax",
      rows(option("lr", &AdamaxOptions::lr), option("betas", &AdamaxOptions::betas),
           option("eps", &AdamaxOptions::eps), option("weight_decay", &AdamaxOptions::weight_decay), foreach,
           option("maximize", &AdamaxOptions::maximize), differentiable, capturable));
  optimizer<ASGD>(m, "ASGD",
                  rows(option("lr", &ASGDOptions::lr), option("lambd", &ASGDOptions::lambd),
                       option("alpha", &ASGDOptions::alpha), option("t0", &ASGDOptions::t0),
                       option("weight_decay", &ASGDOptions::weight_decay), foreach,
                       option("maximize", &ASGDOptions::maximize), differentiable, capturable));
  optimizer<Muon>(
      m, "Muon",
      rows(option("lr", &MuonOptions::lr), option("weight_decay", &MuonOptions::weight_decay),
           option("momentum", &MuonOptions::momentum), option("nesterov", &MuonOptions::nesterov),
           option("ns_coefficients", &MuonOptions::ns_coefficients), option("eps", &MuonOptions::eps),
           option("ns_steps", &MuonOptions::ns_steps), option("adjust_lr_fn", &MuonOptions::adjust_lr_fn)));
  optimizer<NAdam>(
      m, "NAdam",
      rows(option("lr", &NAdamOptions::lr), option("betas", &NAdamOptions::betas),
           option("eps", &NAdamOptions::eps), option("weight_decay", &NAdamOptions::weight_decay),
           option("momentum_decay", &NAdamOptions::momentum_decay),
           option("decoupled_weight_decay", &NAdamOptions::decoupled_weight_decay), foreach,
           option("maximize", &NAdamOptions::maximize), capturable, differentiable));
  optimizer<RAdam>(
      m, "RAdam",
      rows(option("lr", &RAdamOptions::lr), option("betas", &RAdamOptions::betas),
           option("eps", &RAdamOptions::eps), option("weight_decay", &RAdamOptions::weight_decay),
           option("decoupled_weight_decay", &RAdamOptions::decoupled_weight_decay), foreach,
           option("maximize", &RAdamOptions::maximize), capturable, differentiable));
  optimizer<Rprop>(m, "Rprop",
                   rows(option("lr", &RpropOptions::lr), option("etas", &RpropOptions::etas),
                        option("step_sizes", &RpropOptions::step_sizes), capturable, foreach,
                        option("maximize", &RpropOptions::maximize), differentiable));
  optimizer<LBFGS>(m, "LBFGS",
                   rows(option("lr", &LBFGSOptions::lr), option("max_iter", &LBFGSOptions::max_iter),
                        option("max_eval", &LBFGSOptions::max_eval),
                        option("tolerance_grad", &LBFGSOptions::tolerance_grad),
                        option("tolerance_change", &LBFGSOptions::tolerance_change),
                        option("history_size", &LBFGSOptions::history_size),
                        option("line_search_fn", &LBFGSOptions::line_search_fn),
                        option("maximize", &LBFGSOptions::maximize)));
}

// ---- gradients

/// One tensor, or an iterable of them.
std::vector<Tensor> tensors_from(const py::object& tensors) {
  if (py::isinstance<TensorImpl>(tensors)) return {tensors.cast<Tensor>()};
  return tensors.cast<TensorIterable>().tensors;
}

void bind_clipping(py::module_& m) {
  const auto parameters = [] { return py::arg("parameters").none(false); };
  const auto foreach = [] { return py::arg("foreach") = py::none(); };
  m.def(
      "clip_grad_norm_",
      [](const py::object& of, double max_norm, double norm_type, bool error_if_nonfinite,
         std::optional<bool>) {
        const std::vector<Tensor> tensors = tensors_from(of);
        const py::gil_scoped_release no_gil;
        const optim::ClipGradNormOptions options{.norm_type = norm_type,
                                                 .error_if_nonfinite = error_if_nonfinite};
        return std::any_of(tensors.begin(), tensors.end(), dist::is_divided)
                   ? dist::clip_grad_norm_(tensors, max_norm, options)
                   : optim::clip_grad_norm_(tensors, max_norm, options);
      },
      parameters(), py::arg("max_norm"), py::arg("norm_type") = 2.0, py::arg("error_if_nonfinite") = false,
      foreach ());
  m.def(
      "clip_grad_value_",
      [](const py::object& of, double clip_value, std::optional<bool>) {
        const std::vector<Tensor> tensors = tensors_from(of);
        const py::gil_scoped_release no_gil;
        optim::clip_grad_value_(tensors, clip_value);
      },
      parameters(), py::arg("clip_value"), foreach ());
  m.def(
      "get_total_norm",
      [](const py::object& of, double norm_type, bool error_if_nonfinite, std::optional<bool>) {
        const std::vector<Tensor> tensors = tensors_from(of);
        const py::gil_scoped_release no_gil;
        return optim::get_total_norm(tensors,
                                     {.norm_type = norm_type, .error_if_nonfinite = error_if_nonfinite});
      },
      py::arg("tensors").none(false), py::arg("norm_type") = 2.0, py::arg("error_if_nonfinite") = false,
      foreach ());
  m.def(
      "clip_grads_with_norm_",
      [](const py::object& of, double max_norm, const Tensor& total_norm, std::optional<bool>) {
        const std::vector<Tensor> tensors = tensors_from(of);
        const py::gil_scoped_release no_gil;
        optim::clip_grads_with_norm_(tensors, max_norm, total_norm);
      },
      parameters(), py::arg("max_norm"), py::arg("total_norm").none(false), foreach ());
}

void bind_scaler(py::module_& m) {
  using optim::GradScaler;
  using optim::GradScalerOptions;
  py::class_<GradScaler> c(m, "GradScaler",
                           "Scales losses, so that small gradients are not lost in float16.");
  const auto options = rows(option("init_scale", &GradScalerOptions::init_scale),
                            option("growth_factor", &GradScalerOptions::growth_factor),
                            option("backoff_factor", &GradScalerOptions::backoff_factor),
                            option("growth_interval", &GradScalerOptions::growth_interval),
                            option("enabled", &GradScalerOptions::enabled));
  // tern.amp.GradScaler(device, ...), whose scale is on all devices, and tern.cuda.amp.GradScaler(...).
  const auto device = rows(argument<std::string>("device", "cuda"));
  detail::declare(device, options, [&](auto... declared) {
    c.def(py::init(detail::with_options(
              [](const std::string&, const GradScalerOptions& given) {
                return std::make_unique<GradScaler>(given);
              },
              device, options)),
          declared...);
  });
  detail::declare(rows(), options, [&](auto... declared) {
    c.def(py::init(detail::with_options(
              [](const GradScalerOptions& given) { return std::make_unique<GradScaler>(given); }, rows(),
              options)),
          declared...);
  });
  c.def(
      "scale", [](GradScaler& self, const Tensor& outputs) { return self.scale(outputs); },
      py::arg("outputs").none(false), ReleaseGil());
  c.def(
      "scale", [](GradScaler& self, const TensorIterable& outputs) { return self.scale(outputs.tensors); },
      py::arg("outputs"), ReleaseGil());
  // The scaler knows optimizers by their address.
  c.def(
      "unscale_",
      [](GradScaler& self, Optimizer& optimizer) {
        self.set_agreement(dist::agree_on_finite(params_of(optimizer)));
        self.unscale_(optimizer);
      },
      py::arg("optimizer"), py::keep_alive<1, 2>(), ReleaseGil());
  c.def(
      "step",
      [](GradScaler& self, py::object optimizer, const py::args& args, const py::kwargs& kwargs) {
        TERN_CHECK(!self.is_enabled() || !kwargs.contains("closure"), AutogradError,
                   "Closure use is not currently supported if GradScaler is enabled.");
        py::object result = py::none();
        auto& native = optimizer.cast<Optimizer&>();
        const py::gil_scoped_release no_gil;
        self.set_agreement(dist::agree_on_finite(params_of(native)));
        self.step(native, [&] {
          const py::gil_scoped_acquire gil;
          result = optimizer.attr("step")(*args, **kwargs);
        });
        return result;
      },
      py::arg("optimizer"), py::keep_alive<1, 2>());
  c.def("update", &GradScaler::update, py::arg("new_scale") = py::none(), ReleaseGil());
  c.def("is_enabled", &GradScaler::is_enabled);
  c.def("get_scale", &GradScaler::get_scale);
  c.def("get_growth_factor", &GradScaler::get_growth_factor);
  c.def("set_growth_factor", &GradScaler::set_growth_factor, py::arg("new_factor"));
  c.def("get_backoff_factor", &GradScaler::get_backoff_factor);
  c.def("set_backoff_factor", &GradScaler::set_backoff_factor, py::arg("new_factor"));
  c.def("get_growth_interval", &GradScaler::get_growth_interval);
  c.def("set_growth_interval", &GradScaler::set_growth_interval, py::arg("new_interval"));
  c.def("state_dict", [](const GradScaler& self) { return state_to_python(self.state_dict()); });
  c.def(
      "load_state_dict",
      [](GradScaler& self, py::handle dict) { self.load_state_dict(state_from_python<StateMap>(dict)); },
      py::arg("state_dict"));
}

// ---- averages of weights: the parts of python/tern/optim/swa_utils.py that compute

void bind_averages(py::module_& m) {
  m.def("get_ema_multi_avg_fn", &optim::get_ema_multi_avg_fn, py::arg("decay") = 0.999);
  m.def("get_swa_multi_avg_fn", &optim::get_swa_multi_avg_fn);
  m.def("_update_average", [](nn::Module& averaged, const nn::Module& model, const Tensor& n_averaged,
                              const optim::MultiAvgFn& multi_avg_fn, bool use_buffers) {
    nn::Buffer count(n_averaged);
    const py::gil_scoped_release no_gil;
    optim::detail::update_average(averaged, model, count,
                                  {.multi_avg_fn = multi_avg_fn, .use_buffers = use_buffers});
  });
  using optim::detail::CollectedStatistics;
  py::class_<CollectedStatistics>(m, "_CollectedStatistics")
      .def(py::init<nn::Module&>(), py::keep_alive<1, 2>())
      .def("empty", &CollectedStatistics::empty);
}

}  // namespace

void bind_optimizers(py::module_& m) {
  bind_optimizer_base(m);
  bind_algorithms(m);
  bind_clipping(m);
  bind_scaler(m);
  bind_averages(m);
}

}  // namespace tern::python
