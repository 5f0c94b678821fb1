// The classes of torch/nn/modules/loss.py.
#include "tern/nn/loss.h"

#include "tern/nn/loss_margin.h"
#include "tern/train/module_settings.h"

namespace tern::train {
namespace {

const char* word_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::None:
      return "none";
    case Reduction::Mean:
      return "mean";
    case Reduction::Sum:
      return "sum";
    default:
      return "batchmean";
  }
}
Reduction reduction_of(const Reader& in) { return parse_reduction(in.at("reduction").as_str()); }

template <class M>
concept OnlyReduction = std::same_as<M, nn::MSELoss> || std::same_as<M, nn::L1Loss> ||
    std::same_as<M, nn::MultiLabelMarginLoss> || std::same_as<M, nn::SoftMarginLoss>;
template <OnlyReduction M>
Attributes settings(const M& layer) {
  return {{"reduction", word_of(layer.reduction)}};
}
template <OnlyReduction M>
nn::AnyModule make(const Reader& in, const M*) {
  return M(reduction_of(in));
}

template <class M>
concept WithMargin = std::same_as<M, nn::MarginRankingLoss> || std::same_as<M, nn::HingeEmbeddingLoss> ||
    std::same_as<M, nn::CosineEmbeddingLoss>;
template <WithMargin M>
Attributes settings(const M& layer) {
  return {{"reduction", word_of(layer.options.reduction)}, {"margin", layer.options.margin}};
}
template <WithMargin M>
nn::AnyModule make(const Reader& in, const M*) {
  return M({.margin = in.number("margin"), .reduction = reduction_of(in)});
}

Attributes settings(const nn::CrossEntropyLoss& layer) {
  return {{"reduction", word_of(layer.options().reduction)},
          {"ignore_index", layer.options().ignore_index},
          {"label_smoothing", layer.options().label_smoothing}};
}
nn::AnyModule make(const Reader& in, const nn::CrossEntropyLoss*) {
  return nn::CrossEntropyLoss({.weight = in.buffer("weight"),
                               .ignore_index = in.integer("ignore_index"),
                               .reduction = reduction_of(in),
                               .label_smoothing = in.number("label_smoothing", 0)});
}

Attributes settings(const nn::NLLLoss& layer) {
  return {{"reduction", word_of(layer.options().reduction)}, {"ignore_index", layer.options().ignore_index}};
}
nn::AnyModule make(const Reader& in, const nn::NLLLoss*) {
  return nn::NLLLoss({.weight = in.buffer("weight"),
                      .ignore_index = in.integer("ignore_index"),
                      .reduction = reduction_of(in)});
}

Attributes settings(const nn::SmoothL1Loss& layer) {
  return {{"reduction", word_of(layer.options.reduction)}, {"beta", layer.options.beta}};
}
nn::AnyModule make(const Reader& in, const nn::SmoothL1Loss*) {
  return nn::SmoothL1Loss({.reduction = reduction_of(in), .beta = in.number("beta", 1)});
}

Attributes settings(const nn::HuberLoss& layer) {
  return {{"reduction", word_of(layer.options.reduction)}, {"delta", layer.options.delta}};
}
nn::AnyModule make(const Reader& in, const nn::HuberLoss*) {
  return nn::HuberLoss({.reduction = reduction_of(in), .delta = in.number("delta")});
}

Attributes settings(const nn::BCELoss& layer) { return {{"reduction", word_of(layer.reduction())}}; }
nn::AnyModule make(const Reader& in, const nn::BCELoss*) {
  return nn::BCELoss({.weight = in.buffer("weight"), .reduction = reduction_of(in)});
}

Attributes settings(const nn::BCEWithLogitsLoss& layer) {
  return {{"reduction", word_of(layer.reduction())}};
}
nn::AnyModule make(const Reader& in, const nn::BCEWithLogitsLoss*) {
  return nn::BCEWithLogitsLoss(
      {.weight = in.buffer("weight"), .pos_weight = in.buffer("pos_weight"), .reduction = reduction_of(in)});
}

Attributes settings(const nn::KLDivLoss& layer) {
  return {{"reduction", word_of(layer.options.reduction)}, {"log_target", layer.options.log_target}};
}
nn::AnyModule make(const Reader& in, const nn::KLDivLoss*) {
  return nn::KLDivLoss({.reduction = reduction_of(in), .log_target = in.flag("log_target", false)});
}

Attributes settings(const nn::PoissonNLLLoss& layer) {
  return {{"reduction", word_of(layer.options.reduction)},
          {"log_input", layer.options.log_input},
          {"full", layer.options.full},
          {"eps", layer.options.eps}};
}
nn::AnyModule make(const Reader& in, const nn::PoissonNLLLoss*) {
  return nn::PoissonNLLLoss({.log_input = in.flag("log_input", true),
                             .full = in.flag("full", false),
                             .eps = in.number("eps"),
                             .reduction = reduction_of(in)});
}

Attributes settings(const nn::GaussianNLLLoss& layer) {
  return {{"reduction", word_of(layer.options.reduction)},
          {"full", layer.options.full},
          {"eps", layer.options.eps}};
}
nn::AnyModule make(const Reader& in, const nn::GaussianNLLLoss*) {
  return nn::GaussianNLLLoss(
      {.full = in.flag("full", false), .eps = in.number("eps"), .reduction = reduction_of(in)});
}

Attributes settings(const nn::CTCLoss& layer) {
  return {{"reduction", word_of(layer.options.reduction)},
          {"blank", layer.options.blank},
          {"zero_infinity", layer.options.zero_infinity}};
}
nn::AnyModule make(const Reader& in, const nn::CTCLoss*) {
  return nn::CTCLoss({.blank = in.integer("blank"),
                      .reduction = reduction_of(in),
                      .zero_infinity = in.flag("zero_infinity", false)});
}

Attributes settings(const nn::TripletMarginLoss& layer) {
  return {{"reduction", word_of(layer.options.reduction)},
          {"margin", layer.options.margin},
          {"p", layer.options.p},
          {"eps", layer.options.eps},
          {"swap", layer.options.swap}};
}
nn::AnyModule make(const Reader& in, const nn::TripletMarginLoss*) {
  return nn::TripletMarginLoss({.margin = in.number("margin"),
                                .p = in.number("p"),
                                .eps = in.number("eps"),
                                .swap = in.flag("swap", false),
                                .reduction = reduction_of(in)});
}

Attributes settings(const nn::MultiMarginLoss& layer) {
  return {{"reduction", word_of(layer.options().reduction)},
          {"p", layer.options().p},
          {"margin", layer.options().margin}};
}
nn::AnyModule make(const Reader& in, const nn::MultiMarginLoss*) {
  return nn::MultiMarginLoss({.p = in.integer("p"),
                              .margin = in.number("margin"),
                              .weight = in.buffer("weight"),
                              .reduction = reduction_of(in)});
}

Attributes settings(const nn::MultiLabelSoftMarginLoss& layer) {
  return {{"reduction", word_of(layer.reduction())}};
}
nn::AnyModule make(const Reader& in, const nn::MultiLabelSoftMarginLoss*) {
  return nn::MultiLabelSoftMarginLoss({.weight = in.buffer("weight"), .reduction = reduction_of(in)});
}

template <class M>
ModuleClass row(const char* name, std::vector<std::string> buffers = {}) {
  return module_class<M, settings, make>("loss", name, {}, std::move(buffers));
}

}  // namespace

std::vector<ModuleClass> loss_classes() {
  return {row<nn::CrossEntropyLoss>("CrossEntropyLoss", {"weight"}),
          row<nn::NLLLoss>("NLLLoss", {"weight"}),
          row<nn::MSELoss>("MSELoss"),
          row<nn::L1Loss>("L1Loss"),
          row<nn::SmoothL1Loss>("SmoothL1Loss"),
          row<nn::HuberLoss>("HuberLoss"),
          row<nn::BCELoss>("BCELoss", {"weight"}),
          row<nn::BCEWithLogitsLoss>("BCEWithLogitsLoss", {"weight", "pos_weight"}),
          row<nn::KLDivLoss>("KLDivLoss"),
          row<nn::PoissonNLLLoss>("PoissonNLLLoss"),
          row<nn::GaussianNLLLoss>("GaussianNLLLoss"),
          row<nn::CTCLoss>("CTCLoss"),
          row<nn::MarginRankingLoss>("MarginRankingLoss"),
          row<nn::HingeEmbeddingLoss>("HingeEmbeddingLoss"),
          row<nn::CosineEmbeddingLoss>("CosineEmbeddingLoss"),
          row<nn::TripletMarginLoss>("TripletMarginLoss"),
          row<nn::MultiMarginLoss>("MultiMarginLoss", {"weight"}),
          row<nn::MultiLabelMarginLoss>("MultiLabelMarginLoss"),
          row<nn::MultiLabelSoftMarginLoss>("MultiLabelSoftMarginLoss", {"weight"}),
          row<nn::SoftMarginLoss>("SoftMarginLoss")};
}

}  // namespace tern::train
