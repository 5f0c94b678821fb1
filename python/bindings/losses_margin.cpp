// Losses of rankings, embeddings and margins, as layers and as functions.
#include "losses.h"

namespace tern::python {

namespace {

auto triplet() {
  return rows(argument<Tensor>("anchor"), argument<Tensor>("positive"), argument<Tensor>("negative"));
}

template <class Options>
auto margin_and_reduction() {
  return rows(option("margin", &Options::margin), option("reduction", &Options::reduction));
}

void bind_of_pairs(py::module_& m) {
  {
    const auto options = margin_and_reduction<MarginRankingLossOptions>();
    auto c = loss<nn::MarginRankingLoss>(m, "MarginRankingLoss", "margin_ranking_loss", &margin_ranking_loss,
                                         two_inputs_and_target(), options);
    attributes(c, &nn::MarginRankingLoss::options, options);
  }
  {
    const auto options = margin_and_reduction<HingeEmbeddingLossOptions>();
    auto c = loss<nn::HingeEmbeddingLoss>(m, "HingeEmbeddingLoss", "hinge_embedding_loss",
                                          &hinge_embedding_loss, input_and_target(), options);
    attributes(c, &nn::HingeEmbeddingLoss::options, options);
  }
  {
    const auto options = margin_and_reduction<CosineEmbeddingLossOptions>();
    auto c = loss<nn::CosineEmbeddingLoss>(m, "CosineEmbeddingLoss", "cosine_embedding_loss",
                                           &cosine_embedding_loss, two_inputs_and_target(), options);
    attributes(c, &nn::CosineEmbeddingLoss::options, options);
  }
}

void bind_of_triplets(py::module_& m) {
  {
    using Options = TripletMarginLossOptions;
    const auto options =
        rows(option("margin", &Options::margin), option("p", &Options::p), option("eps", &Options::eps),
             option("swap", &Options::swap), option("reduction", &Options::reduction));
    auto c = loss<nn::TripletMarginLoss>(m, "TripletMarginLoss", "triplet_margin_loss", &triplet_margin_loss,
                                         triplet(), options);
    attributes(c, &nn::TripletMarginLoss::options, options);
  }
  {
    using Options = TripletMarginWithDistanceLossOptions;
    const auto options =
        rows(option("distance_function", &Options::distance_function), option("margin", &Options::margin),
             option("swap", &Options::swap), option("reduction", &Options::reduction));
    auto c = loss<nn::TripletMarginWithDistanceLoss>(m, "TripletMarginWithDistanceLoss",
                                                     "triplet_margin_with_distance_loss",
                                                     &triplet_margin_with_distance_loss, triplet(), options);
    attributes(c, &nn::TripletMarginWithDistanceLoss::options, options);
  }
}

void bind_of_margins(py::module_& m) {
  loss_with_reduction<nn::MultiLabelMarginLoss>(m, "MultiLabelMarginLoss", "multilabel_margin_loss",
                                                &multilabel_margin_loss);
  loss_with_reduction<nn::SoftMarginLoss>(m, "SoftMarginLoss", "soft_margin_loss", &soft_margin_loss);
  {
    using Options = MultiMarginLossOptions;
    const auto options = rows(option("p", &Options::p), option("margin", &Options::margin),
                              option("weight", &Options::weight), option("reduction", &Options::reduction));
    auto c = loss<nn::MultiMarginLoss>(m, "MultiMarginLoss", "multi_margin_loss", &multi_margin_loss,
                                       input_and_target(), options);
    attributes(c, &nn::MultiMarginLoss::options, options);
    tensor_field(c, "weight", &nn::MultiMarginLoss::weight);
  }
  {
    using Options = MultilabelSoftMarginLossOptions;
    auto c = loss<nn::MultiLabelSoftMarginLoss>(
        m, "MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", &multilabel_soft_margin_loss,
        input_and_target(),
        rows(option("weight", &Options::weight), option("reduction", &Options::reduction)));
    tensor_field(c, "weight", &nn::MultiLabelSoftMarginLoss::weight);
    c.def_property("reduction", &nn::MultiLabelSoftMarginLoss::reduction,
                   &nn::MultiLabelSoftMarginLoss::set_reduction);
  }
}

}  // namespace

void bind_margin_losses(py::module_& m) {
  bind_of_pairs(m);
  bind_of_triplets(m);
  bind_of_margins(m);
}

}  // namespace tern::python
