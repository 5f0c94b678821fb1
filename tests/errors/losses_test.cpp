// Wrong uses of losses: shapes, dtypes, options, labels and lengths.
#include "wrong_use.h"

namespace tern {
namespace {

/// log_probs of 4 steps, 2 samples and 3 classes.
Tensor even() { return log_softmax(zeros({4, 2, 3}), 2); }
Tensor labels() { return tensor({{1, 2}, {2, 1}}); }

std::vector<WrongUse> ctc_rows() {
  const std::type_index shape = typeid(ShapeError), dtype = typeid(DTypeError), value = typeid(ValueError),
                        index = typeid(IndexError);
  return {
      {"ctc_rank",
       shape,
       [] {
         ctc_loss(ones({3}), labels(), {4, 4}, {2, 2});
       },
       {"ctc_loss: ", "[T, N, C] or [T, C]", "[3]"}},
      {"ctc_empty",
       shape,
       [] {
         ctc_loss(ones({0, 2, 3}), labels(), {0, 0}, {2, 2});
       },
       {"ctc_loss: log_probs tensor must not be empty", "[0, 2, 3]"}},
      {"ctc_half",
       dtype,
       [] {
         ctc_loss(even().to(float16), labels(), {4, 4}, {2, 2});
       },
       {"ctc_loss: not implemented for float16", "to(float32)"}},
      {"ctc_labels_of_floats",
       dtype,
       [] {
         ctc_loss(even(), labels().to(float32), {4, 4}, {2, 2});
       },
       {"ctc_loss: ", "class numbers", "float32", "to(int64)"}},
      {"ctc_lengths_of_floats",
       dtype,
       [] {
         ctc_loss(even(), labels(), tensor({4.0, 4.0}), tensor({2, 2}));
       },
       {"ctc_loss: input_lengths must be integral", "float32"}},
      {"ctc_lengths_of_rank_2",
       shape,
       [] {
         ctc_loss(even(), labels(), tensor({4, 4}), ones({2, 1}, {.dtype = int64}));
       },
       {"ctc_loss: target_lengths", "[2, 1]"}},
      {"ctc_number_of_lengths",
       shape,
       [] {
         ctc_loss(even(), labels(), {4}, {2, 2});
       },
       {"ctc_loss: ", "batch_size, 2", "got 1 and 2"}},
      {"ctc_batch_of_targets",
       shape,
       [] {
         ctc_loss(even(), ones({3, 2}, {.dtype = int64}), {4, 4}, {2, 2});
       },
       {"ctc_loss: expected targets [2, S]", "[3, 2]"}},
      {"ctc_rank_of_targets",
       shape,
       [] {
         ctc_loss(even(), ones({2, 2, 1}, {.dtype = int64}), {4, 4}, {2, 2});
       },
       {"ctc_loss: expected targets [2, S]", "[2, 2, 1]"}},
      {"ctc_input_too_long",
       value,
       [] {
         ctc_loss(even(), labels(), {4, 5}, {2, 2});
       },
       {"ctc_loss: ", "input_lengths", "at most 4", "5"}},
      {"ctc_negative_input",
       value,
       [] {
         ctc_loss(even(), labels(), {4, INT64_MIN}, {2, 2});
       },
       {"ctc_loss: ", "input_lengths", "at least 0", "-9223372036854775808"}},
      {"ctc_negative_target",
       value,
       [] {
         ctc_loss(even(), labels(), {4, 4}, {2, -1});
       },
       {"ctc_loss: ", "target_lengths", "at least 0", "-1"}},
      {"ctc_target_too_long",
       shape,
       [] {
         ctc_loss(even(), labels(), {4, 4}, {2, 3});
       },
       {"ctc_loss: targets [2, 2] have no room for the 3 labels of sample 1"}},
      {"ctc_joined_targets_too_short",
       shape,
       [] {
         ctc_loss(even(), tensor({1, 2, 1}), {4, 4}, {2, INT64_MAX});
       },
       {"ctc_loss: targets [3] have no room for the 9223372036854775807 labels of sample 1: 1 are left"}},
      {"ctc_joined_targets_too_long",
       shape,
       [] {
         ctc_loss(even(), tensor({1, 2, 1}), {4, 4}, {1, 1});
       },
       {"ctc_loss: targets have 3 labels", "add up to 2"}},
      {"ctc_blank",
       value,
       [] {
         ctc_loss(even(), labels(), {4, 4}, {2, 2}, {.blank = 3});
       },
       {"ctc_loss: blank must be in label range", "got 3 for 3 classes"}},
      {"ctc_reduction",
       value,
       [] {
         ctc_loss(even(), labels(), {4, 4}, {2, 2}, {.reduction = Reduction::BatchMean});
       },
       {"ctc_loss: batchmean", "mean or sum"}},
      {"ctc_label",
       index,
       [] {
         ctc_loss(even(), tensor({{1, 2}, {3, 1}}), {4, 4}, {2, 2});
       },
       {"ctc_loss: target 3 is none of the 3 classes"}},
      {"ctc_negative_label",
       index,
       [] {
         ctc_loss(even(), tensor({1, 2, -1, 1}), {4, 4}, {2, 2});
       },
       {"ctc_loss: target -1 is none of the 3 classes"}},
      {"ctc_twice_differentiated",
       typeid(NotImplementedError),
       [] {
         const Tensor x = even().requires_grad_();
         grad({ctc_loss(x, labels(), {4, 4}, {2, 2})}, {x}, {}, {.create_graph = true})[0].sum().backward();
       },
       {"ctc_loss: the derivative of its gradient is not implemented"}},
  };
}

std::vector<WrongUse> margin_rows() {
  const std::type_index shape = typeid(ShapeError), dtype = typeid(DTypeError), value = typeid(ValueError),
                        index = typeid(IndexError);
  return {
      {"ranks",
       shape,
       [] {
         margin_ranking_loss(ones({3}), ones({3}), ones({1, 3}));
       },
       {"margin_ranking_loss: All input tensors should have same dimension", "input1: [3]",
        "target: [1, 3]"}},
      {"angles",
       shape,
       [] {
         cosine_embedding_loss(ones({3, 2}), ones({3, 2}), tensor(1.0));
       },
       {"cosine_embedding_loss: expected inputs [N, D]", "[3, 2]", "target with size []"}},
      {"triplet_ranks",
       shape,
       [] {
         triplet_margin_loss(ones({3, 2}), ones({3, 2}), ones({2}));
       },
       {"triplet_margin_loss: ", "same number of dimensions", "[3, 2] and [2]"}},
      {"triplet_margin",
       value,
       [] { triplet_margin_loss(ones({2}), ones({2}), ones({2}), {.margin = 0}); },
       {"triplet_margin_loss: margin must be greater than 0", "0"}},
      {"multi_margin_p",
       value,
       [] {
         multi_margin_loss(ones({2, 3}), tensor({0, 1}), {.p = 3});
       },
       {"multi_margin_loss: only p == 1 and p == 2", "3"}},
      {"multi_margin_target",
       shape,
       [] {
         multi_margin_loss(ones({2, 3}), tensor({0, 1, 2}));
       },
       {"multi_margin_loss: ", "[3]", "[2, 3]"}},
      {"multi_margin_class",
       index,
       [] {
         multi_margin_loss(ones({2, 3}), tensor({0, 3}));
       },
       {"index 3 is out of bounds"}},
      {"multi_margin_target_dtype",
       dtype,
       [] {
         multi_margin_loss(ones({2, 3}), ones({2}));
       },
       {"multi_margin_loss: ", "int64", "float32"}},
      {"multi_margin_weight",
       shape,
       [] {
         multi_margin_loss(ones({2, 3}), tensor({0, 1}), {.weight = ones({2})});
       },
       {"multi_margin_loss: inconsistent weight size, expected 3", "[2]"}},
      {"multilabel_margin_rank",
       shape,
       [] {
         multilabel_margin_loss(ones({1, 2, 3}), ones({1, 2, 3}, {.dtype = int64}));
       },
       {"multilabel_margin_loss: Expected non-empty vector or matrix", "[1, 2, 3]"}},
      {"multilabel_margin_of_no_classes",
       shape,
       [] {
         multilabel_margin_loss(ones({2, 0}), ones({2, 0}, {.dtype = int64}));
       },
       {"multilabel_margin_loss: Expected non-empty vector or matrix", "[2, 0]"}},
      {"multilabel_margin_class",
       index,
       [] {
         multilabel_margin_loss(ones({1, 3}), tensor({{0, 3, -1}}));
       },
       {"multilabel_margin_loss: target 3 is none of the 3 classes"}},
      {"multilabel_margin_negative",
       index,
       [] {
         multilabel_margin_loss(ones({3}), tensor({0, -1, -2}));
       },
       {"multilabel_margin_loss: target -2 is none of the 3 classes"}},
      {"multilabel_margin_of_integers",
       dtype,
       [] {
         multilabel_margin_loss(tensor({1, 2}), tensor({0, -1}));
       },
       {"multilabel_margin_loss: not implemented for int64", "to(float32)"}},
      {"multilabel_soft_margin_rank",
       shape,
       [] { multilabel_soft_margin_loss(tensor(1.0), tensor(1.0)); },
       {"multilabel_soft_margin_loss: ", "0-d"}},
      {"gaussian_var",
       shape,
       [] {
         gaussian_nll_loss(ones({2, 3}), ones({2, 3}), ones({3}));
       },
       {"gaussian_nll_loss: var is of incorrect size [3]", "[2, 3]"}},
      {"gaussian_negative_number",
       value,
       [] { gaussian_nll_loss(ones({2}), ones({2}), -0.5); },
       {"gaussian_nll_loss: var has negative entry", "-0.5"}},
      {"bce_target",
       value,
       [] { binary_cross_entropy(full({2}, 0.5), full({2}, -0.5)); },
       {"binary_cross_entropy: all elements of target should be between 0 and 1"}},
  };
}

TERN_WRONG_USES(ConnectionistLosses, ctc_rows);
TERN_WRONG_USES(MarginLosses, margin_rows);

}  // namespace
}  // namespace tern
