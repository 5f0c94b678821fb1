// Losses, for operator_list.cpp: one line for each.
#include "tern/ops/loss.h"

#include "tern/ops/copy.h"
#include "tern/ops/loss_margin.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {

const Table kLoss = {
    {"cross_entropy",
     [](A a) {
       return cross_entropy(a.tensor(0), a.tensor(1),
                            {a.tensor(2), a.integer(3, -100), reduction(a, 4), a.real(5)});
     }},
    {"nll_loss",
     [](A a) {
       return nll_loss(a.tensor(0), a.tensor(1), {a.tensor(2), a.integer(3, -100), reduction(a, 4)});
     }},
    {"mse_loss", [](A a) { return mse_loss(a.tensor(0), a.tensor(1), reduction(a, 2)); }},
    {"l1_loss", [](A a) { return l1_loss(a.tensor(0), a.tensor(1), reduction(a, 2)); }},
    {"smooth_l1_loss",
     [](A a) {
       return smooth_l1_loss(a.tensor(0), a.tensor(1), {reduction(a, 2), a.real(3, 1)});
     }},
    {"huber_loss",
     [](A a) {
       return huber_loss(a.tensor(0), a.tensor(1), {reduction(a, 2), a.real(3, 1)});
     }},
    {"binary_cross_entropy",
     [](A a) {
       return binary_cross_entropy(a.tensor(0), a.tensor(1), {a.tensor(2), reduction(a, 3)});
     }},
    {"binary_cross_entropy_with_logits",
     [](A a) {
       return binary_cross_entropy_with_logits(a.tensor(0), a.tensor(1),
                                               {a.tensor(2), a.tensor(3), reduction(a, 4)});
     }},
    {"kl_div",
     [](A a) {
       return kl_div(a.tensor(0), a.tensor(1), {reduction(a, 2), a.flag(3)});
     }},
    {"poisson_nll_loss",
     [](A a) {
       return poisson_nll_loss(a.tensor(0), a.tensor(1), {a.flag(2, true), a.flag(3), 1e-8, reduction(a, 4)});
     }},
    {"gaussian_nll_loss",
     [](A a) {
       const GaussianNllLossOptions options{a.flag(3), 1e-6, reduction(a, 4)};
       return a.is_tensor(2) ? gaussian_nll_loss(a.tensor(0), a.tensor(1), a.tensor(2), options)
                             : gaussian_nll_loss(a.tensor(0), a.tensor(1), a.real(2), options);
     }},
    {"ctc_loss",
     [](A a) {
       const CtcLossOptions options{a.integer(4), reduction(a, 5), a.flag(6)};
       return a.is_tensor(2) ? ctc_loss(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), options)
                             : ctc_loss(a.tensor(0), a.tensor(1), a.integers(2), a.integers(3), options);
     }},
    {"margin_ranking_loss",
     [](A a) {
       return margin_ranking_loss(a.tensor(0), a.tensor(1), a.tensor(2), {a.real(3), reduction(a, 4)});
     }},
    {"hinge_embedding_loss",
     [](A a) {
       return hinge_embedding_loss(a.tensor(0), a.tensor(1), {a.real(2, 1), reduction(a, 3)});
     }},
    {"cosine_embedding_loss",
     [](A a) {
       return cosine_embedding_loss(a.tensor(0), a.tensor(1), a.tensor(2), {a.real(3), reduction(a, 4)});
     }},
    {"triplet_margin_loss",
     [](A a) {
       return triplet_margin_loss(a.tensor(0), a.tensor(1), a.tensor(2),
                                  {a.real(3, 1), a.real(4, 2), 1e-6, a.flag(5), reduction(a, 6)});
     }},
    {"triplet_margin_with_distance_loss",
     [](A a) {
       return triplet_margin_with_distance_loss(a.tensor(0), a.tensor(1), a.tensor(2),
                                                {{}, a.real(3, 1), a.flag(4), reduction(a, 5)});
     }},
    {"multi_margin_loss",
     [](A a) {
       return multi_margin_loss(a.tensor(0), a.tensor(1),
                                {a.integer(2, 1), a.real(3, 1), a.tensor(4), reduction(a, 5)});
     }},
    {"multilabel_margin_loss",
     [](A a) { return multilabel_margin_loss(a.tensor(0), a.tensor(1), reduction(a, 2)); }},
    {"multilabel_soft_margin_loss",
     [](A a) {
       return multilabel_soft_margin_loss(a.tensor(0), a.tensor(1), {a.tensor(2), reduction(a, 3)});
     }},
    {"soft_margin_loss", [](A a) { return soft_margin_loss(a.tensor(0), a.tensor(1), reduction(a, 2)); }},
};

}  // namespace tern::testing
