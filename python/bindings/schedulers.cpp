// Schedules of the learning rate.
#include "bindings.h"
#include "rows.h"
#include "tern/base/check.h"
#include "values.h"

namespace pybind11::detail {

/// A number, or a list of one for each parameter group.
template <>
struct type_caster<tern::optim::PerGroup> {
  static constexpr auto name = const_name("Union[float, List[float]]");
  template <class>
  using cast_op_type = tern::optim::PerGroup;
  bool load(handle source, bool) {
    make_caster<double> number;
    make_caster<std::vector<double>> list;
    if (number.load(source, true))
      value_ = {cast_op<double>(number)};
    else if (list.load(source, true))
      value_ = cast_op<std::vector<double>&&>(std::move(list));
    else
      return false;
    return true;
  }
  operator tern::optim::PerGroup() { return value_; }
  static handle cast(const tern::optim::PerGroup& given, return_value_policy, handle) {
    if (given.values.size() == 1) return float_(given.values[0]).release();
    return pybind11::cast(given.values).release();
  }

 private:
  std::vector<double> value_;
};

}  // namespace pybind11::detail

namespace tern::python {

namespace {

using optim::LRScheduler;

/// A field that must be given.
template <class Options, class T>
struct Required {
  using Owner = Options;
  using Type = T;
  const char* name;
  T Options::*field;
  py::arg declared() const { return py::arg(name); }
  void set(Options& options, T value) const { options.*field = std::move(value); }
};
template <class Options, class T>
Required<Options, T> required(const char* name, T Options::*field) {
  return {name, field};
}

/// The epoch to go on from, which PyTorch takes and Tern's schedules get with load_state_dict().
void check_last_epoch(int64_t epoch) {
  TERN_CHECK(epoch == -1, NotImplementedError,
             "last_epoch={}: a schedule goes on where it was with load_state_dict()", epoch);
}
struct LastEpoch {
  using Owner = void;
  using Type = int64_t;
  py::arg_v declared() const { return py::arg_v("last_epoch", int64_t{-1}); }
  template <class Options>
  void set(Options&, int64_t epoch) const {
    check_last_epoch(epoch);
  }
};

optim::Optimizer& optimizer_from(const py::object& optimizer) {
  TERN_CHECK(py::isinstance<optim::Optimizer>(optimizer), TypeError, "{} is not an Optimizer",
             Py_TYPE(optimizer.ptr())->tp_name);
  return optimizer.cast<optim::Optimizer&>();
}

/// A schedule refers to its optimizer, which its owner keeps, whoever that is.
template <class S>
std::shared_ptr<S> keeping(py::object optimizer, std::unique_ptr<S> schedule) {
  return {schedule.release(), [optimizer = std::move(optimizer)](S* last) mutable {
            delete last;
            const py::gil_scoped_acquire gil;
            optimizer.release().dec_ref();
          }};
}

template <class S>
using ScheduleClass = py::class_<S, LRScheduler, std::shared_ptr<S>>;

/// A schedule made by `S(optimizer, options)`.
template <class S, class Rows>
ScheduleClass<S> define_schedule(py::module_& m, const char* name, const Rows& options) {
  ScheduleClass<S> c(m, name);
  const auto optimizer = rows(argument<py::object>("optimizer"));
  const auto construct = [](const py::object& given, const auto& values) {
    return keeping(given, std::make_unique<S>(optimizer_from(given), values));
  };
  detail::declare(optimizer, options, [&](auto... declared) {
    c.def(py::init(detail::with_options(construct, optimizer, options)), declared...);
  });
  return c;
}
template <class S, class... Rows>
ScheduleClass<S> schedule(py::module_& m, const char* name, Rows... options) {
  return define_schedule<S>(m, name, rows(std::move(options)..., LastEpoch()));
}

/// One function for all groups, or one for each.
template <class S>
void function_schedule(py::module_& m, const char* name) {
  using Function = optim::FunctionLR::Function;
  ScheduleClass<S> c(m, name);
  const auto define = [&](auto lambda) {
    c.def(py::init([](const py::object& optimizer, const decltype(lambda)& lr_lambda, int64_t last_epoch) {
            check_last_epoch(last_epoch);
            return keeping(optimizer, std::make_unique<S>(optimizer_from(optimizer), lr_lambda));
          }),
          py::arg("optimizer"), py::arg("lr_lambda").none(false), py::arg("last_epoch") = -1);
  };
  define(Function());
  define(std::vector<Function>());
}

/// A schedule that is written in Python: its get_lr() gives the learning rates of all groups.
class PythonSchedule final : public LRScheduler {
 public:
  explicit PythonSchedule(optim::Optimizer& optimizer) : LRScheduler("LRScheduler", optimizer) {}
  /// The first step, when the Python object is there.
  void begin() { start(); }

 private:
  double next_lr(size_t group) override {
    const py::function get_lr = py::get_override(static_cast<const LRScheduler*>(this), "get_lr");
    TERN_CHECK(get_lr, NotImplementedError, "LRScheduler: a class derived from it has a method get_lr()");
    const auto lrs = get_lr().cast<std::vector<double>>();
    TERN_CHECK(lrs.size() == optimizer().num_groups(), ValueError,
               "LRScheduler: get_lr() gave {} learning rates for {} parameter groups", lrs.size(),
               optimizer().num_groups());
    return lrs[group];
  }
  void save(optim::StateMap&) const override {}
  std::function<void()> load(const optim::StateMap&) override {
    return [] {};
  }
};

void bind_scheduler_base(py::module_& m) {
  py::class_<LRScheduler, PythonSchedule, std::shared_ptr<LRScheduler>>(m, "LRScheduler", py::dynamic_attr(),
                                                                        "Base of schedules.")
      .def(py::init([](const py::object& optimizer, int64_t last_epoch) {
             check_last_epoch(last_epoch);
             return keeping(optimizer, std::make_unique<PythonSchedule>(optimizer_from(optimizer)));
           }),
           py::arg("optimizer"), py::arg("last_epoch") = -1)
      .def("_begin", [](LRScheduler& self) { dynamic_cast<PythonSchedule&>(self).begin(); })
      .def(
          "step", [](LRScheduler& self) { self.step(); },
          "Sets the learning rates of the next epoch, or whatever is counted; to be called after the "
          "optimizer's step().")
      .def("get_last_lr", &LRScheduler::get_last_lr, "The learning rates that the last step set.")
      .def_property_readonly("last_epoch", &LRScheduler::last_epoch)
      .def_property_readonly("optimizer", &LRScheduler::optimizer, py::return_value_policy::reference)
      .def("state_dict", [](const LRScheduler& self) { return state_to_python(self.state_dict()); })
      .def(
          "load_state_dict",
          [](LRScheduler& self, py::handle dict) {
            self.load_state_dict(state_from_python<optim::StateMap>(dict));
          },
          py::arg("state_dict"))
      // gamma, base_lrs and all else that PyTorch keeps as attributes.
      .def("__getattr__", [](const LRScheduler& self, const std::string& name) {
        const py::dict state = state_to_python(self.state_dict());
        if (state.contains(name)) return py::object(state[py::str(name)]);
        throw py::attribute_error(fmt::format("'{}' object has no attribute '{}'", self.name(), name));
      });
}

void bind_simple(py::module_& m) {
  using namespace optim;
  schedule<StepLR>(m, "StepLR", required("step_size", &StepLROptions::step_size),
                   option("gamma", &StepLROptions::gamma));
  schedule<MultiStepLR>(m, "MultiStepLR", required("milestones", &MultiStepLROptions::milestones),
                        option("gamma", &MultiStepLROptions::gamma));
  schedule<ConstantLR>(m, "ConstantLR", option("factor", &ConstantLROptions::factor),
                       option("total_iters", &ConstantLROptions::total_iters));
  schedule<LinearLR>(m, "LinearLR", option("start_factor", &LinearLROptions::start_factor),
                     option("end_factor", &LinearLROptions::end_factor),
                     option("total_iters", &LinearLROptions::total_iters));
  schedule<CosineAnnealingLR>(m, "CosineAnnealingLR", required("T_max", &CosineAnnealingLROptions::T_max),
                              option("eta_min", &CosineAnnealingLROptions::eta_min));
  schedule<PolynomialLR>(m, "PolynomialLR", option("total_iters", &PolynomialLROptions::total_iters),
                         option("power", &PolynomialLROptions::power));
  ScheduleClass<ExponentialLR>(m, "ExponentialLR")
      .def(py::init([](const py::object& optimizer, double gamma, int64_t last_epoch) {
             check_last_epoch(last_epoch);
             return keeping(optimizer, std::make_unique<ExponentialLR>(optimizer_from(optimizer), gamma));
           }),
           py::arg("optimizer"), py::arg("gamma"), py::arg("last_epoch") = -1);
  function_schedule<LambdaLR>(m, "LambdaLR");
  function_schedule<MultiplicativeLR>(m, "MultiplicativeLR");
}

void bind_cycles(py::module_& m) {
  using namespace optim;
  schedule<CyclicLR>(
      m, "CyclicLR", required("base_lr", &CyclicLROptions::base_lr),
      required("max_lr", &CyclicLROptions::max_lr), option("step_size_up", &CyclicLROptions::step_size_up),
      option("step_size_down", &CyclicLROptions::step_size_down), option("mode", &CyclicLROptions::mode),
      option("gamma", &CyclicLROptions::gamma), option("scale_fn", &CyclicLROptions::scale_fn),
      option("scale_mode", &CyclicLROptions::scale_mode),
      option("cycle_momentum", &CyclicLROptions::cycle_momentum),
      option("base_momentum", &CyclicLROptions::base_momentum),
      option("max_momentum", &CyclicLROptions::max_momentum));
  schedule<OneCycleLR>(m, "OneCycleLR", required("max_lr", &OneCycleLROptions::max_lr),
                       option("total_steps", &OneCycleLROptions::total_steps),
                       option("epochs", &OneCycleLROptions::epochs),
                       option("steps_per_epoch", &OneCycleLROptions::steps_per_epoch),
                       option("pct_start", &OneCycleLROptions::pct_start),
                       option("anneal_strategy", &OneCycleLROptions::anneal_strategy),
                       option("cycle_momentum", &OneCycleLROptions::cycle_momentum),
                       option("base_momentum", &OneCycleLROptions::base_momentum),
                       option("max_momentum", &OneCycleLROptions::max_momentum),
                       option("div_factor", &OneCycleLROptions::div_factor),
                       option("final_div_factor", &OneCycleLROptions::final_div_factor),
                       option("three_phase", &OneCycleLROptions::three_phase));
  using WarmRestarts = CosineAnnealingWarmRestarts;
  using WarmRestartsOptions = CosineAnnealingWarmRestartsOptions;
  schedule<WarmRestarts>(m, "CosineAnnealingWarmRestarts", required("T_0", &WarmRestartsOptions::T_0),
                         option("T_mult", &WarmRestartsOptions::T_mult),
                         option("eta_min", &WarmRestartsOptions::eta_min))
      .def(
          "step",
          [](WarmRestarts& self, std::optional<double> epoch) {
            if (epoch)
              self.step(*epoch);
            else
              self.step();
          },
          py::arg("epoch") = py::none());
  schedule<SWALR>(m, "SWALR", required("swa_lr", &SWALROptions::swa_lr),
                  option("anneal_epochs", &SWALROptions::anneal_epochs),
                  option("anneal_strategy", &SWALROptions::anneal_strategy));
  using Plateau = ReduceLROnPlateauOptions;
  define_schedule<ReduceLROnPlateau>(
      m, "ReduceLROnPlateau",
      rows(option("mode", &Plateau::mode), option("factor", &Plateau::factor),
           option("patience", &Plateau::patience), option("threshold", &Plateau::threshold),
           option("threshold_mode", &Plateau::threshold_mode), option("cooldown", &Plateau::cooldown),
           option("min_lr", &Plateau::min_lr), option("eps", &Plateau::eps)))
      .def(
          "step", [](ReduceLROnPlateau& self, double metrics) { self.step(metrics); }, py::arg("metrics"));
}

/// Schedules made of schedules, which keep those and so the optimizer.
void bind_combined(py::module_& m) {
  using namespace optim;
  using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;
  ScheduleClass<SequentialLR>(m, "SequentialLR")
      .def(py::init([](const py::object& optimizer, const Schedulers& schedulers,
                       std::vector<int64_t> milestones, int64_t last_epoch) {
             check_last_epoch(last_epoch);
             return keeping(optimizer, std::make_unique<SequentialLR>(
                                           optimizer_from(optimizer), schedulers,
                                           SequentialLROptions{.milestones = std::move(milestones)}));
           }),
           py::arg("optimizer"), py::arg("schedulers"), py::arg("milestones"), py::arg("last_epoch") = -1);
  ScheduleClass<ChainedScheduler>(m, "ChainedScheduler")
      .def(py::init([](const Schedulers& schedulers, const py::object& optimizer) {
             auto chained = std::make_unique<ChainedScheduler>(schedulers);
             TERN_CHECK(
                 optimizer.is_none() || &optimizer_from(optimizer) == &chained->optimizer(), ValueError,
                 "ChainedScheduler: the schedulers belong to another optimizer than the one that is given");
             return keeping(optimizer, std::move(chained));
           }),
           py::arg("schedulers"), py::arg("optimizer") = py::none());
}

}  // namespace

void bind_schedulers(py::module_& m) {
  bind_scheduler_base(m);
  bind_simple(m);
  bind_cycles(m);
  bind_combined(m);
}

}  // namespace tern::python
