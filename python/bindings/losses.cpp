// Losses, as layers and as functions. Those of rankings, embeddings and margins are in losses_margin.cpp.
#include "losses.h"

namespace tern::python {

void take_old_reduction(py::module_& m, const char* name) {
  const py::object function = m.attr(name);
  m.def(name, [function](const py::args& args, const py::kwargs& given) {
    py::dict named(given);
    if (!named.contains("size_average") && !named.contains("reduce"))
      throw py::reference_cast_error();  // no overload fits
    named["reduction"] = imported("tern.nn.old_names", "reduction_of")(
        named.attr("pop")("size_average", py::none()), named.attr("pop")("reduce", py::none()));
    return function(*args, **named);
  });
}

namespace {

void bind_of_classes(py::module_& m) {
  {
    using Options = CrossEntropyOptions;
    const auto options =
        rows(option("weight", &Options::weight), option("ignore_index", &Options::ignore_index),
             option("reduction", &Options::reduction), option("label_smoothing", &Options::label_smoothing));
    auto c = loss<nn::CrossEntropyLoss>(m, "CrossEntropyLoss", "cross_entropy", &cross_entropy,
                                        input_and_target(), options);
    attributes(c, &nn::CrossEntropyLoss::options, options);
    tensor_field(c, "weight", &nn::CrossEntropyLoss::weight);
  }
  {
    using Options = NllLossOptions;
    const auto options =
        rows(option("weight", &Options::weight), option("ignore_index", &Options::ignore_index),
             option("reduction", &Options::reduction));
    auto c = loss<nn::NLLLoss>(m, "NLLLoss", "nll_loss", &nll_loss, input_and_target(), options);
    attributes(c, &nn::NLLLoss::options, options);
    tensor_field(c, "weight", &nn::NLLLoss::weight);
  }
  {
    using Options = BceOptions;
    auto c =
        loss<nn::BCELoss>(m, "BCELoss", "binary_cross_entropy", &binary_cross_entropy, input_and_target(),
                          rows(option("weight", &Options::weight), option("reduction", &Options::reduction)));
    tensor_field(c, "weight", &nn::BCELoss::weight);
    c.def_property("reduction", &nn::BCELoss::reduction, &nn::BCELoss::set_reduction);
  }
  {
    using Options = BceWithLogitsOptions;
    auto c = loss<nn::BCEWithLogitsLoss>(
        m, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits", &binary_cross_entropy_with_logits,
        input_and_target(),
        rows(option("weight", &Options::weight), option("reduction", &Options::reduction),
             option("pos_weight", &Options::pos_weight)));
    tensor_field(c, "weight", &nn::BCEWithLogitsLoss::weight);
    tensor_field(c, "pos_weight", &nn::BCEWithLogitsLoss::pos_weight);
    c.def_property("reduction", &nn::BCEWithLogitsLoss::reduction, &nn::BCEWithLogitsLoss::set_reduction);
  }
}

void bind_of_differences(py::module_& m) {
  loss_with_reduction<nn::MSELoss>(m, "MSELoss", "mse_loss", &mse_loss);
  loss_with_reduction<nn::L1Loss>(m, "L1Loss", "l1_loss", &l1_loss);
  {
    using Options = SmoothL1LossOptions;
    const auto options = rows(option("reduction", &Options::reduction), option("beta", &Options::beta));
    auto c = loss<nn::SmoothL1Loss>(m, "SmoothL1Loss", "smooth_l1_loss", &smooth_l1_loss, input_and_target(),
                                    options);
    attributes(c, &nn::SmoothL1Loss::options, options);
  }
  {
    using Options = HuberLossOptions;
    const auto options = rows(option("reduction", &Options::reduction), option("delta", &Options::delta));
    auto c = loss<nn::HuberLoss>(m, "HuberLoss", "huber_loss", &huber_loss, input_and_target(), options);
    attributes(c, &nn::HuberLoss::options, options);
  }
}

void bind_of_distributions(py::module_& m) {
  {
    using Options = KlDivOptions;
    const auto options =
        rows(option("reduction", &Options::reduction), option("log_target", &Options::log_target));
    auto c = loss<nn::KLDivLoss>(m, "KLDivLoss", "kl_div", &kl_div, input_and_target(), options);
    attributes(c, &nn::KLDivLoss::options, options);
  }
  {
    using Options = PoissonNllLossOptions;
    const auto options = rows(option("log_input", &Options::log_input), option("full", &Options::full),
                              option("eps", &Options::eps), option("reduction", &Options::reduction));
    auto c = loss<nn::PoissonNLLLoss>(m, "PoissonNLLLoss", "poisson_nll_loss", &poisson_nll_loss,
                                      input_and_target(), options);
    attributes(c, &nn::PoissonNLLLoss::options, options);
  }
  {
    using Options = GaussianNllLossOptions;
    const auto options = rows(option("full", &Options::full), option("eps", &Options::eps),
                              option("reduction", &Options::reduction));
    const auto with_number = std::tuple_cat(input_and_target(), rows(argument<double>("var")));
    const auto with_tensor = std::tuple_cat(input_and_target(), rows(argument<Tensor>("var")));
    const auto f = [](const Tensor& input, const Tensor& target, const auto& var, const Options& given) {
      return gaussian_nll_loss(input, target, var, given);
    };
    auto c = loss<nn::GaussianNLLLoss>(m, "GaussianNLLLoss", "gaussian_nll_loss", f, with_tensor, options);
    function(m, "gaussian_nll_loss", f, with_number, options);
    calls(c, with_number);
    attributes(c, &nn::GaussianNLLLoss::options, options);
  }
}

void bind_ctc(py::module_& m) {
  using Options = CtcLossOptions;
  const auto options = rows(option("blank", &Options::blank), option("reduction", &Options::reduction),
                            option("zero_infinity", &Options::zero_infinity));
  const auto arguments = [](auto lengths) {
    using Lengths = decltype(lengths);
    return rows(argument<Tensor>("log_probs"), argument<Tensor>("targets"),
                argument<Lengths>("input_lengths"), argument<Lengths>("target_lengths"));
  };
  const auto f = [](const Tensor& log_probs, const Tensor& targets, const auto& input_lengths,
                    const auto& target_lengths, const Options& given) {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, given);
  };
  auto c = loss<nn::CTCLoss>(m, "CTCLoss", "ctc_loss", f, arguments(Tensor()), options);
  function(m, "ctc_loss", f, arguments(IntArrayRef()), options);
  calls(c, arguments(IntArrayRef()));
  attributes(c, &nn::CTCLoss::options, options);
}

void bind_adaptive_softmax(py::module_& m) {
  using Layer = nn::AdaptiveLogSoftmaxWithLoss;
  using Options = nn::AdaptiveLogSoftmaxOptions;
  auto c = layer<Layer>(
      m, "AdaptiveLogSoftmaxWithLoss",
      rows(argument<int64_t>("in_features"), argument<int64_t>("n_classes"), argument<Ints>("cutoffs")),
      rows(option("div_value", &Options::div_value), option("head_bias", &Options::head_bias),
           option("device", &Options::device), option("dtype", &Options::dtype)));
  const py::object result =
      py::module_::import("collections").attr("namedtuple")("_ASMoutput", py::make_tuple("output", "loss"));
  const auto define = [&](const char* name, auto call) {
    c.def(
        name,
        [call, result](Layer& self, const Tensor& input, const Tensor& target) {
          const auto [output, loss_of_all] = [&] {
            const py::gil_scoped_release no_gil;
            return call(self, input, target);
          }();
          return result(output, loss_of_all);
        },
        py::arg("input_").none(false), py::arg("target_").none(false));
  };
  define("__call__",
         [](Layer& self, const Tensor& x, const Tensor& y) { return nn::detail::call(self, x, y); });
  define("forward", [](Layer& self, const Tensor& x, const Tensor& y) { return self.forward(x, y); });
  c.def("log_prob", &Layer::log_prob, py::arg("input").none(false), ReleaseGil())
      .def("predict", &Layer::predict, py::arg("input").none(false), ReleaseGil())
      .def_property_readonly("in_features", &Layer::in_features)
      .def_property_readonly("n_classes", &Layer::n_classes)
      .def_property_readonly("cutoffs", &Layer::cutoffs)
      .def_property_readonly("div_value", &Layer::div_value)
      .def_property_readonly("head_bias", &Layer::head_bias);
  module_field(c, "head", &Layer::head);
}

}  // namespace

void bind_losses(py::module_& m) {
  bind_of_classes(m);
  bind_of_differences(m);
  bind_of_distributions(m);
  bind_ctc(m);
  bind_adaptive_softmax(m);
  bind_margin_losses(m);
}

}  // namespace tern::python
