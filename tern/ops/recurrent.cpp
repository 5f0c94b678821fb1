// Recurrent cells and layers. Of a layer, the input's products of all steps are one linear; the walk over the
// steps is one node, which launches a product and a cell for each (kernels/recurrent.h).
#include "tern/ops/recurrent.h"

#include <array>
#include <utility>
#include <vector>

#include "tern/ops/activation.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/linear.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace detail {

const char* name(RecurrentKind kind) {
  constexpr const char* kNames[] = {"rnn_tanh", "rnn_relu", "lstm", "gru"};
  return kNames[static_cast<size_t>(kind)];
}

int64_t gates_of(RecurrentKind kind) {
  return kind == RecurrentKind::Lstm ? 4 : kind == RecurrentKind::Gru ? 3 : 1;
}

namespace {

/// The walk over the steps: the k-th one lies at at(k).
struct Steps {
  int64_t count, rows, hidden, gates;
  bool reverse;

  int64_t at(int64_t k) const { return reverse ? count - 1 - k : k; }
  int64_t last() const { return count - 1; }
  int64_t width() const { return gates * hidden; }
  bool empty() const { return rows == 0; }
};

Tensor zeros_of(const Tensor& like, const Shape& shape) {
  return zeros(shape, {.dtype = like.dtype(), .device = like.device()});
}

/// Step t of a contiguous [T, N, ...].
void* step(const Tensor& x, int64_t t) {
  return static_cast<char*>(x.data_ptr()) + t * x.strides()[0] * static_cast<int64_t>(itemsize(x.dtype()));
}

// ---- products

/// What is added to a product: its result so far, or a bias.
struct Addend {
  const void* data = nullptr;
  int64_t row_stride = 0, col_stride = 0;
};

void multiply(const Tensor& like, const ProductSizes& sizes, const ProductOperand& a, const ProductOperand& b,
              void* out, const Addend& addend = {}) {
  if (sizes.m == 0 || sizes.n == 0) return;
  MatmulArgs args = plain_product(like.dtype(), sizes, a, b, out);
  if (addend.data != nullptr) {
    args.addend = addend.data;
    args.addend_row_stride = addend.row_stride;
    args.addend_col_stride = addend.col_stride;
  }
  launch(current_stream(like.device()), kernels::matmul, args);
}

/// out = h w^T + addend for one step.
void multiply_hidden(const Steps& s, const void* h, const Tensor& w, void* out, const Addend& addend) {
  multiply(w, {s.rows, s.width(), s.hidden}, {h, s.hidden, 1}, {w.data_ptr(), w.strides()[1], w.strides()[0]},
           out, addend);
}

/// out = grad_gates w + addend for one step; the addend is [N, H], or null.
void multiply_back(const Steps& s, const void* grad_gates, const Tensor& w, void* out,
                   const void* addend = nullptr) {
  multiply(w, {s.rows, s.hidden, s.width()}, {grad_gates, s.width(), 1},
           {w.data_ptr(), w.strides()[0], w.strides()[1]}, out, {addend, s.hidden, 1});
}

/// The gradient of w_hh: one product over the rows of all steps but the first, whose hidden state is h0. `h`
/// begins with what the steps gave, [T, N, H].
Tensor weight_gradient(const Steps& s, const Tensor& grad_gates, const Tensor& h, const Tensor& h0) {
  Tensor grad =
      s.count > 1 && !s.empty() ? empty_of({s.width(), s.hidden}, h) : zeros_of(h, {s.width(), s.hidden});
  if (s.empty()) return grad;
  const auto add = [&](const void* of_gates, const void* of_h, int64_t rows, bool adds) {
    multiply(h, {s.width(), s.hidden, rows}, {of_gates, 1, s.width()}, {of_h, s.hidden, 1}, grad.data_ptr(),
             adds ? Addend{grad.data_ptr(), s.hidden, 1} : Addend());
  };
  if (s.count > 1)
    add(step(grad_gates, s.reverse ? 0 : 1), step(h, s.reverse ? 1 : 0), (s.count - 1) * s.rows,
        /*adds=*/false);
  if (h0.defined()) add(step(grad_gates, s.at(0)), h0.data_ptr(), s.rows, /*adds=*/true);
  return grad;
}

// ---- second derivatives

/// Where the gradients are recorded themselves, gives them a history that says what is missing.
void refuse_more(const char* op, const std::vector<Tensor>& gradients, const std::vector<Tensor>& inputs) {
  if (!tracks_grad(inputs)) return;
  for (const Tensor& gradient : gradients)
    if (gradient.defined())
      record(op, gradient, inputs, [op](GradContext&, const Tensor&) -> std::vector<Tensor> {
        TERN_THROW(
            NotImplementedError,
            "{}: second derivatives of recurrent layers are not implemented: compute the cells with linear, "
            "sigmoid and tanh where you need them",
            op);
      });
}

// ---- the plain layer

struct PlainLayer {
  Steps steps;
  UnaryOp activation;
  BinaryOp backward;
};

/// h of all steps, in the memory of their sums.
void run_plain(const PlainLayer& layer, const Tensor& h, const Tensor& w, const Tensor& h0) {
  const Steps& s = layer.steps;
  if (s.empty()) return;
  UnaryArgs args{};
  args.op = layer.activation;
  args.dtype = h.dtype();
  set_flat(args.geometry, s.rows * s.hidden);
  for (int64_t k = 0; k < s.count; ++k) {
    void* sums = step(h, s.at(k));
    const void* before = k > 0 ? step(h, s.at(k - 1)) : h0.defined() ? h0.data_ptr() : nullptr;
    if (before != nullptr) multiply_hidden(s, before, w, sums, {sums, s.width(), 1});
    args.in = args.out = sums;
    launch(current_stream(h.device()), kernels::unary, args);
  }
}

/// The gradients of the sums of all steps.
Tensor plain_gate_gradients(const PlainLayer& layer, const Tensor& grad, const Tensor& h, const Tensor& w) {
  const Steps& s = layer.steps;
  const Tensor grads = empty_of(h.shape(), h), sum = empty_of({s.rows, s.hidden}, h);
  if (s.empty()) return grads;
  BinaryArgs args{};
  args.op = layer.backward;
  args.dtype = h.dtype();
  set_flat(args.geometry, s.rows * s.hidden);
  for (int64_t k = s.last(); k >= 0; --k) {
    const int64_t t = s.at(k);
    args.a = step(grad, t);
    if (k < s.last()) {
      multiply_back(s, step(grads, s.at(k + 1)), w, sum.data_ptr(), args.a);
      args.a = sum.data_ptr();
    }
    args.b = step(h, t);
    args.out = step(grads, t);
    launch(current_stream(h.device()), kernels::binary, args);
  }
  return grads;
}

/// The gradient of h0 from that of the first step's sums.
Tensor first_state_gradient(const Steps& s, const Tensor& grad_gates, const Tensor& w) {
  const Tensor grad = empty_of({s.rows, s.hidden}, w);
  multiply_back(s, step(grad_gates, s.at(0)), w, grad.data_ptr());
  return grad;
}

/// `sums` [T, N, H] become the result.
RecurrentResult plain_layer(const char* op, const PlainLayer& layer, const Tensor& sums, const Tensor& w,
                            const Tensor& h0) {
  const Steps& s = layer.steps;
  const Tensor h = sums.detach();
  run_plain(layer, h, w, h0);
  if (tracks_grad(sums, w, h0))
    record(
        op, h, {sums, w, h0},
        [op, layer, h_ = save_output(h), w_ = save(w), h0_ = save(h0)](GradContext& c, const Tensor& given) {
          const Steps& steps = layer.steps;
          const Tensor out = c[h_], weight = c[w_], first = c[h0_], g = contiguous(given);
          std::array<Tensor, 3> grads{plain_gate_gradients(layer, g, out, weight), {}, {}};
          if (c.needs(1)) grads[1] = weight_gradient(steps, grads[0], out, first);
          if (c.needs(2)) grads[2] = first_state_gradient(steps, grads[0], weight);
          refuse_more(op, {grads[0], grads[1], grads[2]}, {given, out, weight});
          return grads;
        });
  return {h, {select(h, 0, s.at(s.last())), {}}};
}

// ---- LSTM

/// `packed` [T + 1, N, H] holds h of all steps, then the last c; `cells` [T - 1, N, H] the other c in the
/// order of the walk, or is undefined where they need not stay.
struct LstmMemory {
  Tensor gates, packed, cells, c0;

  void* c_after(const Steps& s, int64_t k) const {
    if (k < 0) return c0.data_ptr();
    return k < s.last() && cells.defined() ? step(cells, k) : step(packed, s.count);
  }
};

void run_lstm(const Steps& s, const LstmMemory& x, const Tensor& w, const Tensor& h0) {
  if (s.empty()) return;
  for (int64_t k = 0; k < s.count; ++k) {
    const int64_t t = s.at(k);
    void* gates = step(x.gates, t);
    const void* before = k > 0 ? step(x.packed, s.at(k - 1)) : h0.defined() ? h0.data_ptr() : nullptr;
    if (before != nullptr) multiply_hidden(s, before, w, gates, {gates, s.width(), 1});
    launch(current_stream(w.device()), kernels::lstm_cell,
           {.dtype = w.dtype(),
            .rows = s.rows,
            .hidden = s.hidden,
            .gates = gates,
            .c_prev = x.c_after(s, k - 1),
            .c = x.c_after(s, k),
            .h = step(x.packed, t)});
  }
}

/// The gradients of the sums of all steps; `grad_c` becomes that of c0.
Tensor lstm_gate_gradients(const Steps& s, const LstmMemory& x, const Tensor& grad, const Tensor& w,
                           const Tensor& grad_c) {
  const Tensor grads = empty_of({s.count, s.rows, s.width()}, w), grad_h = zeros_of(w, {s.rows, s.hidden});
  if (s.empty()) return grads;
  for (int64_t k = s.last(); k >= 0; --k) {
    const int64_t t = s.at(k);
    if (k < s.last()) multiply_back(s, step(grads, s.at(k + 1)), w, grad_h.data_ptr());
    launch(current_stream(w.device()), kernels::lstm_cell_backward,
           {.dtype = w.dtype(),
            .rows = s.rows,
            .hidden = s.hidden,
            .grad_output = step(grad, t),
            .grad_h = grad_h.data_ptr(),
            .grad_c = grad_c.data_ptr(),
            .gates = step(x.gates, t),
            .c_prev = x.c_after(s, k - 1),
            .c = x.c_after(s, k),
            .grad_gates = step(grads, t)});
  }
  return grads;
}

/// `gates` [T, N, 4 H], the input's part of the sums, change.
RecurrentResult lstm_layer(const Steps& s, const Tensor& gates, const Tensor& w, const Tensor& h0,
                           const Tensor& c0_given) {
  const Tensor c0 = c0_given.defined() ? c0_given : zeros_of(w, {s.rows, s.hidden});
  const bool tracked = tracks_grad(gates, w, h0, c0);
  const LstmMemory memory{gates.detach(), empty_of({s.count + 1, s.rows, s.hidden}, w),
                          tracked ? empty_of({s.count - 1, s.rows, s.hidden}, w) : Tensor(), c0};
  run_lstm(s, memory, w, h0);
  if (tracked)
    record("lstm", memory.packed, {gates, w, h0, c0},
           [s, gates_ = save(gates), packed_ = save_output(memory.packed), cells_ = save(memory.cells),
            w_ = save(w), h0_ = save(h0), c0_ = save(c0)](GradContext& c, const Tensor& given) {
             const LstmMemory x{c[gates_], c[packed_], c[cells_], c[c0_]};
             const Tensor weight = c[w_], first = c[h0_], g = contiguous(given.detach());
             const Tensor grad_c = clone(select(g, 0, s.count));
             std::array<Tensor, 4> grads{lstm_gate_gradients(s, x, g, weight, grad_c), {}, {}, {}};
             if (c.needs(1)) grads[1] = weight_gradient(s, grads[0], x.packed, first);
             if (c.needs(2)) grads[2] = first_state_gradient(s, grads[0], weight);
             if (c.needs(3)) grads[3] = grad_c;
             refuse_more("lstm", {grads[0], grads[1], grads[2], grads[3]}, {given, x.packed, weight});
             return grads;
           });
  return {narrow(memory.packed, 0, 0, s.count),
          {select(memory.packed, 0, s.at(s.last())), select(memory.packed, 0, s.count)}};
}

/// The same with projections, step by step. A step alone, without a product, is lstm_layer's.
RecurrentResult projected_lstm_layer(const Steps& s, const Tensor& gates, const RecurrentWeights& weights,
                                     const Tensor& h0, const Tensor& c0) {
  const Steps one{1, s.rows, s.hidden, s.gates, false};
  const Tensor unused = weights.w_hh.detach();
  std::vector<Tensor> outputs(static_cast<size_t>(s.count));
  Tensor h = h0, c = c0;
  for (int64_t k = 0; k < s.count; ++k) {
    const int64_t t = s.at(k);
    const Tensor of_input = narrow(gates, 0, t, 1);
    const Tensor sums = h.defined() ? add(of_input, linear(h, weights.w_hh)) : clone(of_input);
    const RecurrentResult step = lstm_layer(one, sums, unused, {}, c);
    h = linear(step.state.h, weights.w_hr);
    c = step.state.c;
    outputs[static_cast<size_t>(t)] = h;
  }
  return {stack(outputs), {h, c}};
}

// ---- GRU

/// `gates` [T, N, 3 H]; `h_n` [T, N, H], what the reset gate chose from, is undefined where it need not stay.
struct GruMemory {
  Tensor gates, h, h_n, h0;

  const void* h_after(const Steps& s, int64_t k) const { return k < 0 ? h0.data_ptr() : step(h, s.at(k)); }
};

void run_gru(const Steps& s, const GruMemory& x, const Tensor& w, const Tensor& bias) {
  if (s.empty()) return;
  const Tensor h_gates = empty_of({s.rows, s.width()}, w);
  const Addend addend = bias.defined() ? Addend{bias.data_ptr(), 0, bias.strides()[0]} : Addend();
  for (int64_t k = 0; k < s.count; ++k) {
    const int64_t t = s.at(k);
    multiply_hidden(s, x.h_after(s, k - 1), w, h_gates.data_ptr(), addend);
    launch(current_stream(w.device()), kernels::gru_cell,
           {.dtype = w.dtype(),
            .rows = s.rows,
            .hidden = s.hidden,
            .gates = step(x.gates, t),
            .h_gates = h_gates.data_ptr(),
            .h_prev = x.h_after(s, k - 1),
            .h = step(x.h, t),
            .h_n = x.h_n.defined() ? step(x.h_n, t) : nullptr});
  }
}

struct GruGradients {
  Tensor gates, h_gates, h0;
};

GruGradients gru_gradients(const Steps& s, const GruMemory& x, const Tensor& grad, const Tensor& w,
                           bool needs_h0) {
  GruGradients grads{empty_of(x.gates.shape(), w), empty_of(x.gates.shape(), w),
                     zeros_of(w, {s.rows, s.hidden})};
  if (s.empty()) return grads;
  for (int64_t k = s.last(); k >= 0; --k) {
    const int64_t t = s.at(k);
    launch(current_stream(w.device()), kernels::gru_cell_backward,
           {.dtype = w.dtype(),
            .rows = s.rows,
            .hidden = s.hidden,
            .grad_output = step(grad, t),
            .grad_h = grads.h0.data_ptr(),
            .gates = step(x.gates, t),
            .h_n = step(x.h_n, t),
            .h_prev = x.h_after(s, k - 1),
            .grad_gates = step(grads.gates, t),
            .grad_h_gates = step(grads.h_gates, t)});
    if (k > 0 || needs_h0)
      multiply_back(s, step(grads.h_gates, t), w, grads.h0.data_ptr(), grads.h0.data_ptr());
  }
  return grads;
}

/// `gates` [T, N, 3 H], the input's part of the sums, change.
RecurrentResult gru_layer(const Steps& s, const Tensor& gates, const Tensor& w, const Tensor& bias,
                          const Tensor& h0_given) {
  const bool starts_at_zero = !h0_given.defined();
  const Tensor h0 = starts_at_zero ? zeros_of(w, {s.rows, s.hidden}) : h0_given;
  const bool tracked = tracks_grad(gates, w, bias, h0);
  const Shape shape{s.count, s.rows, s.hidden};
  const GruMemory memory{gates.detach(), empty_of(shape, w), tracked ? empty_of(shape, w) : Tensor(), h0};
  run_gru(s, memory, w, bias);
  if (tracked)
    record("gru", memory.h, {gates, w, bias, h0},
           [s, starts_at_zero, gates_ = save(gates), h_ = save_output(memory.h), h_n_ = save(memory.h_n),
            w_ = save(w), h0_ = save(h0)](GradContext& c, const Tensor& given) {
             const GruMemory x{c[gates_], c[h_], c[h_n_], c[h0_]};
             const Tensor weight = c[w_];
             const GruGradients all = gru_gradients(s, x, contiguous(given.detach()), weight, c.needs(3));
             std::array<Tensor, 4> grads{all.gates, {}, {}, {}};
             if (c.needs(1))
               grads[1] = weight_gradient(s, all.h_gates, x.h, starts_at_zero ? Tensor() : x.h0.detach());
             if (c.needs(2)) grads[2] = sum(all.h_gates, {0, 1});
             if (c.needs(3)) grads[3] = all.h0;
             refuse_more("gru", {grads[0], grads[1], grads[2], grads[3]}, {given, x.h, weight});
             return grads;
           });
  return {memory.h, {select(memory.h, 0, s.at(s.last())), {}}};
}

// ---- all kinds

void check_parameter(RecurrentKind kind, const char* what, const Tensor& x, const Shape& expected,
                     DType dtype) {
  if (!x.defined()) return;
  TERN_CHECK(x.shape() == expected, ShapeError, "{}: {} must be {}, got {}", name(kind), what,
             to_string(expected), to_string(x.shape()));
  TERN_CHECK(x.dtype() == dtype, DTypeError,
             "{}: {} must have the dtype of the weights, {}, got {}: convert it with to(dtype)", name(kind),
             what, tern::name(dtype), tern::name(x.dtype()));
}

Steps checked_steps(RecurrentKind kind, const Tensor& x, const LSTMState& state,
                    const RecurrentWeights& weights, bool reverse) {
  const auto& [w_ih, w_hh, b_ih, b_hh, w_hr] = weights;
  const DType dtype = w_hh.dtype();
  TERN_CHECK(x.dim() == 3, ShapeError, "{}: input must have 3 dimensions, got {}", name(kind), x.dim());
  TERN_CHECK(w_hh.dim() == 2 && w_ih.dim() == 2, ShapeError, "{}: weights must be matrices, got {} and {}",
             name(kind), to_string(w_ih.shape()), to_string(w_hh.shape()));
  TERN_CHECK(is_floating_point(dtype), DTypeError, "{}: not implemented for {}: convert with to(float32)",
             name(kind), tern::name(dtype));
  TERN_CHECK(x.size(0) > 0, ShapeError, "{}: Expected sequence length to be larger than 0 in RNN",
             name(kind));
  const int64_t of_state = w_hh.size(1);
  TERN_CHECK(!w_hr.defined() || (kind == RecurrentKind::Lstm && w_hr.dim() == 2), ShapeError,
             "{}: w_hr must be a matrix, of an LSTM, got {}", name(kind), to_string(w_hr.shape()));
  const Steps s{x.size(0), x.size(1), w_hr.defined() ? w_hr.size(1) : of_state, gates_of(kind), reverse};
  check_same_device(name(kind), {{"input", x},
                                 {"hx", state.h},
                                 {"cx", state.c},
                                 {"w_ih", w_ih},
                                 {"w_hh", w_hh},
                                 {"b_ih", b_ih},
                                 {"b_hh", b_hh},
                                 {"w_hr", w_hr}});
  check_parameter(kind, "w_ih", w_ih, {s.width(), x.size(2)}, dtype);
  check_parameter(kind, "w_hh", w_hh, {s.width(), of_state}, dtype);
  check_parameter(kind, "b_ih", b_ih, {s.width()}, dtype);
  check_parameter(kind, "b_hh", b_hh, {s.width()}, dtype);
  check_parameter(kind, "w_hr", w_hr, {of_state, s.hidden}, dtype);
  check_parameter(kind, "hx", state.h, {s.rows, of_state}, dtype);
  check_parameter(kind, "cx", state.c, {s.rows, s.hidden}, dtype);
  return s;
}

/// The sum of two biases, either of which may be undefined.
Tensor both(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() ? add(a, b) : a.defined() ? a : b;
}

Tensor dense(const Tensor& x) { return x.defined() ? contiguous(x) : x; }

}  // namespace

RecurrentResult recurrent_layer(RecurrentKind kind, const Tensor& x, const LSTMState& state,
                                const RecurrentWeights& weights, bool reverse) {
  const auto& [w_ih, w_hh, b_ih, b_hh, w_hr] = weights;
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(
        [&](const Tensor& x_, const Tensor& h, const Tensor& c, const Tensor& w1, const Tensor& w2,
            const Tensor& b1, const Tensor& b2, const Tensor& w3) {
          return recurrent_layer(kind, x_, {h, c}, {w1, w2, b1, b2, w3}, reverse);
        },
        x, state.h, state.c, w_ih, w_hh, b_ih, b_hh, w_hr);
  const Steps s = checked_steps(kind, x, state, weights, reverse);
  const Tensor h0 = dense(state.h), c0 = dense(state.c);
  if (kind == RecurrentKind::Gru) return gru_layer(s, linear(x, w_ih, b_ih), w_hh, b_hh, h0);
  const Tensor sums = linear(x, w_ih, both(b_ih, b_hh));
  if (w_hr.defined()) return projected_lstm_layer(s, sums, weights, h0, c0);
  if (kind == RecurrentKind::Lstm) return lstm_layer(s, sums, w_hh, h0, c0);
  const bool relu = kind == RecurrentKind::Relu;
  return plain_layer(
      name(kind),
      {s, relu ? UnaryOp::Relu : UnaryOp::Tanh, relu ? BinaryOp::ReluBackward : BinaryOp::TanhBackward}, sums,
      w_hh, h0);
}

}  // namespace detail

namespace {

using detail::RecurrentKind;

/// The rules of torch.lstm_cell and its like for what a cell is given.
void check_cell(RecurrentKind kind, const Tensor& input, std::initializer_list<Tensor> states,
                const Tensor& w_ih, const Tensor& w_hh) {
  const char* op = name(kind);
  TERN_CHECK(input.dim() == 2 && w_ih.dim() == 2 && w_hh.dim() == 2, ShapeError,
             "{}_cell: input and weights must be matrices, got {}, {} and {}", op, to_string(input.shape()),
             to_string(w_ih.shape()), to_string(w_hh.shape()));
  TERN_CHECK(input.size(1) == w_ih.size(1), ShapeError,
             "{}_cell: input has inconsistent input_size: got {} expected {}", op, input.size(1),
             w_ih.size(1));
  int64_t number = 0;
  for (const Tensor& state : states) {
    if (!state.defined()) continue;
    TERN_CHECK(state.dim() == 2 && state.size(0) == input.size(0), ShapeError,
               "{}_cell: Input batch size {} doesn't match hidden{} batch size {}", op, input.size(0), number,
               state.dim() == 2 ? std::to_string(state.size(0)) : "of " + to_string(state.shape()));
    TERN_CHECK(state.size(1) == w_hh.size(1), ShapeError,
               "{}_cell: hidden{} has inconsistent hidden_size: got {}, expected {}", op, number,
               state.size(1), w_hh.size(1));
    ++number;
  }
}

LSTMState cell(RecurrentKind kind, const Tensor& input, const LSTMState& hx,
               const detail::RecurrentWeights& weights) {
  check_cell(kind, input, {hx.h, hx.c}, weights.w_ih, weights.w_hh);
  return recurrent_layer(kind, unsqueeze(input, 0), hx, weights).state;
}

/// Made of operators, for any derivative.
Tensor sums_of_plain_cell(RecurrentKind kind, const Tensor& input, const Tensor& hx,
                          const detail::RecurrentWeights& weights) {
  check_cell(kind, input, {hx}, weights.w_ih, weights.w_hh);
  const Tensor of_input = linear(input, weights.w_ih, weights.b_ih);
  return hx.defined()             ? add(of_input, linear(hx, weights.w_hh, weights.b_hh))
         : weights.b_hh.defined() ? add(of_input, weights.b_hh)
                                  : of_input;
}

}  // namespace

LSTMState lstm_cell(const Tensor& input, const LSTMState& hx, const Tensor& w_ih, const Tensor& w_hh,
                    const Tensor& b_ih, const Tensor& b_hh) {
  return cell(RecurrentKind::Lstm, input, hx, {w_ih, w_hh, b_ih, b_hh});
}

Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                const Tensor& b_ih, const Tensor& b_hh) {
  return cell(RecurrentKind::Gru, input, {hx, {}}, {w_ih, w_hh, b_ih, b_hh}).h;
}

Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const Tensor& b_ih, const Tensor& b_hh) {
  return tanh(sums_of_plain_cell(RecurrentKind::Tanh, input, hx, {w_ih, w_hh, b_ih, b_hh}));
}

Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const Tensor& b_ih, const Tensor& b_hh) {
  return relu(sums_of_plain_cell(RecurrentKind::Relu, input, hx, {w_ih, w_hh, b_ih, b_hh}));
}

}  // namespace tern
