// What layers are made of, for operator_list.cpp: one line for each.
#include "tern/ops/attention.h"
#include "tern/ops/conv.h"
#include "tern/ops/copy.h"
#include "tern/ops/distance.h"
#include "tern/ops/embedding.h"
#include "tern/ops/linear.h"
#include "tern/ops/matmul.h"
#include "tern/ops/names.h"
#include "tern/ops/norm.h"
#include "tern/ops/pad.h"
#include "tern/ops/pixel.h"
#include "tern/ops/pool.h"
#include "tern/ops/products.h"
#include "tern/ops/reduce.h"
#include "tests/ops/operator_recurrent.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {

const Table kNetwork = {
    {"matmul", two(matmul)},
    {"mm", two(mm)},
    {"bmm", two(bmm)},
    {"mv", two(mv)},
    {"dot", two(dot)},
    {"outer", two(outer)},
    {"addmv",
     [](A a) { return addmv(a.tensor(0), a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); }},
    {"addr", [](A a) { return addr(a.tensor(0), a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); }},
    {"chain_matmul", [](A a) { return chain_matmul(a.tensors(0)); }},
    {"inner", two(inner)},
    {"vdot", two(vdot)},
    {"addmm",
     [](A a) { return addmm(a.tensor(0), a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); }},
    {"baddbmm",
     [](A a) { return baddbmm(a.tensor(0), a.tensor(1), a.tensor(2), a.number(3, 1), a.number(4, 1)); }},
    {"linear", [](A a) { return linear(a.tensor(0), a.tensor(1), a.tensor(2)); }},
    {"linear_gelu_linear",
     [](A a) { return linear_gelu_linear(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), a.tensor(4)); }},
    {"linear_relu", [](A a) { return linear_relu(a.tensor(0), a.tensor(1), a.tensor(2)); }},
    {"scaled_dot_product_attention",
     [](A a) {
       return scaled_dot_product_attention(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), a.real(4),
                                           a.flag(5), a.optional_real(6), a.flag(7));
     }},
    {"einsum", [](A a) { return einsum(a.text(0), a.tensors(1)); }},
    {"conv2d",
     [](A a) {
       return conv2d(a.tensor(0), a.tensor(1), a.tensor(2),
                     {size2(a, 3, 1), padding(a, 4, a.flag(7)), size2(a, 5, 1), a.integer(6, 1)});
     }},
    {"conv2d_relu",
     [](A a) {
       return conv2d_relu(a.tensor(0), a.tensor(1), a.tensor(2),
                          {size2(a, 3, 1), padding(a, 4, a.flag(7)), size2(a, 5, 1), a.integer(6, 1)});
     }},
    {"conv1d",
     [](A a) {
       return conv1d(a.tensor(0), a.tensor(1), a.tensor(2),
                     {a.integer(3, 1), padding(a, 4, a.flag(7)), a.integer(5, 1), a.integer(6, 1)});
     }},
    {"conv_transpose2d",
     [](A a) {
       return conv_transpose2d(
           a.tensor(0), a.tensor(1), a.tensor(2),
           {size2(a, 3, 1), size2(a, 4, 0), size2(a, 5, 0), a.integer(6, 1), size2(a, 7, 1)});
     }},
    {"conv_transpose1d",
     [](A a) {
       return conv_transpose1d(
           a.tensor(0), a.tensor(1), a.tensor(2),
           {a.integer(3, 1), a.integer(4), a.integer(5), a.integer(6, 1), a.integer(7, 1)});
     }},
    {"conv3d",
     [](A a) {
       return conv3d(a.tensor(0), a.tensor(1), a.tensor(2),
                     {size3(a, 3, 1), a.flag(7) ? ConvPadding3d(a.text(4)) : ConvPadding3d(size3(a, 4, 0)),
                      size3(a, 5, 1), a.integer(6, 1)});
     }},
    {"conv_transpose3d",
     [](A a) {
       return conv_transpose3d(
           a.tensor(0), a.tensor(1), a.tensor(2),
           {size3(a, 3, 1), size3(a, 4, 0), size3(a, 5, 0), a.integer(6, 1), size3(a, 7, 1)});
     }},
    {"max_pool3d",
     [](A a) {
       return max_pool3d(a.tensor(0),
                         {size3(a, 1, 0), optional_size3(a, 2), size3(a, 3, 0), size3(a, 4, 1), a.flag(5)});
     }},
    {"max_pool3d_with_indices",
     [](A a) {
       return max_pool3d_with_indices(
           a.tensor(0), {size3(a, 1, 0), optional_size3(a, 2), size3(a, 3, 0), size3(a, 4, 1), a.flag(5)});
     }},
    {"avg_pool3d",
     [](A a) {
       return avg_pool3d(a.tensor(0), {size3(a, 1, 0), optional_size3(a, 2), size3(a, 3, 0), a.flag(4),
                                       a.flag(5, true), a.optional_integer(6)});
     }},
    {"adaptive_avg_pool3d", [](A a) { return adaptive_avg_pool3d(a.tensor(0), size3(a, 1, 1)); }},
    {"adaptive_max_pool3d", [](A a) { return adaptive_max_pool3d(a.tensor(0), size3(a, 1, 1)); }},
    {"adaptive_max_pool3d_with_indices",
     [](A a) { return adaptive_max_pool3d_with_indices(a.tensor(0), size3(a, 1, 1)); }},
    {"bilinear", [](A a) { return bilinear(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3)); }},
    {"local_response_norm",
     [](A a) {
       return local_response_norm(a.tensor(0), a.integer(1), a.real(2, 1e-4), a.real(3, 0.75), a.real(4, 1));
     }},
    {"lp_pool1d",
     [](A a) {
       return lp_pool1d(a.tensor(0), a.real(1, 2), a.integer(2), a.optional_integer(3), a.flag(4));
     }},
    {"lp_pool2d",
     [](A a) {
       return lp_pool2d(a.tensor(0), a.real(1, 2), size2(a, 2, 0), optional_size2(a, 3), a.flag(4));
     }},
    {"lp_pool3d",
     [](A a) {
       return lp_pool3d(a.tensor(0), a.real(1, 2), size3(a, 2, 0), optional_size3(a, 3), a.flag(4));
     }},
    {"embedding_bag",
     [](A a) {
       return embedding_bag(a.tensor(0), a.tensor(1), a.tensor(2),
                            {.mode = parse_bag_mode(a.text(3, "mean")),
                             .per_sample_weights = a.tensor(4),
                             .include_last_offset = a.flag(5),
                             .padding_idx = a.optional_integer(6),
                             .scale_grad_by_freq = a.flag(7)});
     }},
    {"embedding_bag_renormed",
     [](A a) {
       const Tensor table = clone(a.tensor(1));
       const Tensor bags = embedding_bag(
           a.tensor(0), table, a.tensor(2),
           {.mode = parse_bag_mode(a.text(3)), .max_norm = a.real(4), .norm_type = a.real(5, 2)});
       return std::vector<Tensor>{bags, table.detach()};
     }},
    {"max_unpool1d",
     [](A a) {
       return max_unpool1d(
           a.tensor(0), a.tensor(1),
           {a.integer(2), a.optional_integer(3), a.integer(4), IntArrayRef(a.integers(5)).to_shape()});
     }},
    {"max_unpool2d",
     [](A a) {
       return max_unpool2d(
           a.tensor(0), a.tensor(1),
           {size2(a, 2, 0), optional_size2(a, 3), size2(a, 4, 0), IntArrayRef(a.integers(5)).to_shape()});
     }},
    {"max_unpool3d",
     [](A a) {
       return max_unpool3d(
           a.tensor(0), a.tensor(1),
           {size3(a, 2, 0), optional_size3(a, 3), size3(a, 4, 0), IntArrayRef(a.integers(5)).to_shape()});
     }},
    {"pad", [](A a) { return pad(a.tensor(0), a.integers(1), a.text(2, "constant"), a.number(3, 0)); }},
    {"pixel_shuffle", [](A a) { return pixel_shuffle(a.tensor(0), a.integer(1)); }},
    {"pixel_unshuffle", [](A a) { return pixel_unshuffle(a.tensor(0), a.integer(1)); }},
    {"max_pool2d",
     [](A a) {
       return max_pool2d(a.tensor(0),
                         {size2(a, 1, 0), optional_size2(a, 2), size2(a, 3, 0), size2(a, 4, 1), a.flag(5)});
     }},
    {"max_pool2d_with_indices",
     [](A a) {
       return max_pool2d_with_indices(
           a.tensor(0), {size2(a, 1, 0), optional_size2(a, 2), size2(a, 3, 0), size2(a, 4, 1), a.flag(5)});
     }},
    {"avg_pool2d",
     [](A a) {
       return avg_pool2d(a.tensor(0), {size2(a, 1, 0), optional_size2(a, 2), size2(a, 3, 0), a.flag(4),
                                       a.flag(5, true), a.optional_integer(6)});
     }},
    {"adaptive_avg_pool2d", [](A a) { return adaptive_avg_pool2d(a.tensor(0), size2(a, 1, 1)); }},
    {"adaptive_max_pool2d", [](A a) { return adaptive_max_pool2d(a.tensor(0), size2(a, 1, 1)); }},
    {"adaptive_max_pool2d_with_indices",
     [](A a) { return adaptive_max_pool2d_with_indices(a.tensor(0), size2(a, 1, 1)); }},
    {"max_pool1d",
     [](A a) {
       return max_pool1d(a.tensor(0),
                         {a.integer(1), a.optional_integer(2), a.integer(3), a.integer(4, 1), a.flag(5)});
     }},
    {"max_pool1d_with_indices",
     [](A a) {
       return max_pool1d_with_indices(
           a.tensor(0), {a.integer(1), a.optional_integer(2), a.integer(3), a.integer(4, 1), a.flag(5)});
     }},
    {"avg_pool1d",
     [](A a) {
       return avg_pool1d(a.tensor(0),
                         {a.integer(1), a.optional_integer(2), a.integer(3), a.flag(4), a.flag(5, true)});
     }},
    {"adaptive_avg_pool1d", [](A a) { return adaptive_avg_pool1d(a.tensor(0), a.integer(1)); }},
    {"adaptive_max_pool1d_with_indices",
     [](A a) { return adaptive_max_pool1d_with_indices(a.tensor(0), a.integer(1)); }},
    {"adaptive_max_pool1d", [](A a) { return adaptive_max_pool1d(a.tensor(0), a.integer(1)); }},
    {"batch_norm",
     [](A a) {
       // The running statistics, which are changed, are results too.
       Tensor mean = a.has(1) ? clone(a.tensor(1)) : Tensor(), var = a.has(2) ? clone(a.tensor(2)) : Tensor();
       std::vector<Tensor> all = {batch_norm(a.tensor(0), mean, var, a.tensor(3), a.tensor(4), a.flag(5),
                                             a.real(6, 0.1), a.real(7, 1e-5))};
       if (mean.defined()) all.push_back(mean);
       if (var.defined()) all.push_back(var);
       return all;
     }},
    {"instance_norm",
     [](A a) {
       Tensor mean = a.has(1) ? clone(a.tensor(1)) : Tensor(), var = a.has(2) ? clone(a.tensor(2)) : Tensor();
       std::vector<Tensor> all = {instance_norm(a.tensor(0), mean, var, a.tensor(3), a.tensor(4),
                                                a.flag(5, true), a.real(6, 0.1), a.real(7, 1e-5))};
       if (mean.defined()) all.push_back(mean);
       if (var.defined()) all.push_back(var);
       return all;
     }},
    {"normalize",
     [](A a) { return normalize(a.tensor(0), a.real(1, 2), a.integer(2, 1), a.real(3, 1e-12)); }},
    {"cosine_similarity",
     [](A a) { return cosine_similarity(a.tensor(0), a.tensor(1), a.integer(2, 1), a.real(3, 1e-8)); }},
    {"pairwise_distance",
     [](A a) {
       return pairwise_distance(a.tensor(0), a.tensor(1), a.real(2, 2), a.real(3, 1e-6), a.flag(4));
     }},
    {"layer_norm",
     [](A a) { return layer_norm(a.tensor(0), a.integers(1), a.tensor(2), a.tensor(3), a.real(4, 1e-5)); }},
    {"group_norm",
     [](A a) { return group_norm(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3), a.real(4, 1e-5)); }},
    {"rms_norm", [](A a) { return rms_norm(a.tensor(0), a.integers(1), a.tensor(2), a.optional_real(3)); }},
    {"recurrent_layer", run_recurrent_layer},
    {"lstm_cell", run_lstm_cell},
    {"gru_cell", recurrent_cell(gru_cell)},
    {"rnn_tanh_cell", recurrent_cell(rnn_tanh_cell)},
    {"rnn_relu_cell", recurrent_cell(rnn_relu_cell)},
};

}  // namespace tern::testing
