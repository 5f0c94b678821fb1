// The cells of recurrent layers: one thread for each element of a hidden state.
#include "tern/kernels/recurrent.h"

#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/math.h"

namespace tern::cuda_backend {
namespace {

/// Where a thread works: an element of [rows, hidden], and of the first gate's.
struct CellElement {
  int64_t at, at_gates;
};
__device__ __forceinline__ CellElement cell_element(int64_t hidden, int gates) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const int64_t row = i / hidden;
  return {i, row * gates * hidden + (i - row * hidden)};
}

template <class T>
__global__ void __launch_bounds__(kBlock) lstm(LstmCellArgs args) {
  using C = Compute<T>;
  const auto [at, at_gates] = cell_element(args.hidden, 4);
  if (at >= args.rows * args.hidden) return;
  T* gates = static_cast<T*>(args.gates) + at_gates;
  const C i = math::sigmoid(widen(gates[0])), f = math::sigmoid(widen(gates[args.hidden]));
  const C g = math::tanh(widen(gates[2 * args.hidden])), o = math::sigmoid(widen(gates[3 * args.hidden]));
  const C c = f * widen(static_cast<const T*>(args.c_prev)[at]) + i * g;
  gates[0] = narrow<T>(i);
  gates[args.hidden] = narrow<T>(f);
  gates[2 * args.hidden] = narrow<T>(g);
  gates[3 * args.hidden] = narrow<T>(o);
  static_cast<T*>(args.c)[at] = narrow<T>(c);
  static_cast<T*>(args.h)[at] = narrow<T>(o * math::tanh(c));
}

template <class T>
__global__ void __launch_bounds__(kBlock) lstm_backward(LstmCellBackwardArgs args) {
  using C = Compute<T>;
  const auto [at, at_gates] = cell_element(args.hidden, 4);
  if (at >= args.rows * args.hidden) return;
  const T* gates = static_cast<const T*>(args.gates) + at_gates;
  const C i = widen(gates[0]), f = widen(gates[args.hidden]);
  const C g = widen(gates[2 * args.hidden]), o = widen(gates[3 * args.hidden]);
  const C grad =
      widen(static_cast<const T*>(args.grad_output)[at]) + widen(static_cast<const T*>(args.grad_h)[at]);
  const C tanh_c = math::tanh(widen(static_cast<const T*>(args.c)[at]));
  T* grad_c = static_cast<T*>(args.grad_c);
  const C of_c = widen(grad_c[at]) + grad * o * (C(1) - tanh_c * tanh_c);
  T* grad_gates = static_cast<T*>(args.grad_gates) + at_gates;
  grad_gates[0] = narrow<T>(of_c * g * i * (C(1) - i));
  grad_gates[args.hidden] = narrow<T>(of_c * widen(static_cast<const T*>(args.c_prev)[at]) * f * (C(1) - f));
  grad_gates[2 * args.hidden] = narrow<T>(of_c * i * (C(1) - g * g));
  grad_gates[3 * args.hidden] = narrow<T>(grad * tanh_c * o * (C(1) - o));
  grad_c[at] = narrow<T>(of_c * f);
}

template <class T>
__global__ void __launch_bounds__(kBlock) gru(GruCellArgs args) {
  using C = Compute<T>;
  const auto [at, at_gates] = cell_element(args.hidden, 3);
  if (at >= args.rows * args.hidden) return;
  T* gates = static_cast<T*>(args.gates) + at_gates;
  const T* h_gates = static_cast<const T*>(args.h_gates) + at_gates;
  const C r = math::sigmoid(widen(gates[0]) + widen(h_gates[0]));
  const C z = math::sigmoid(widen(gates[args.hidden]) + widen(h_gates[args.hidden]));
  const T h_n = h_gates[2 * args.hidden];
  const C n = math::tanh(widen(gates[2 * args.hidden]) + r * widen(h_n));
  gates[0] = narrow<T>(r);
  gates[args.hidden] = narrow<T>(z);
  gates[2 * args.hidden] = narrow<T>(n);
  static_cast<T*>(args.h)[at] = narrow<T>(n + z * (widen(static_cast<const T*>(args.h_prev)[at]) - n));
  if (args.h_n) static_cast<T*>(args.h_n)[at] = h_n;
}

template <class T>
__global__ void __launch_bounds__(kBlock) gru_backward(GruCellBackwardArgs args) {
  using C = Compute<T>;
  const auto [at, at_gates] = cell_element(args.hidden, 3);
  if (at >= args.rows * args.hidden) return;
  const T* gates = static_cast<const T*>(args.gates) + at_gates;
  const C r = widen(gates[0]), z = widen(gates[args.hidden]), n = widen(gates[2 * args.hidden]);
  T* grad_h = static_cast<T*>(args.grad_h);
  const C grad = widen(static_cast<const T*>(args.grad_output)[at]) + widen(grad_h[at]);
  const C of_n = grad * (C(1) - z) * (C(1) - n * n);
  const T of_z = narrow<T>(grad * (widen(static_cast<const T*>(args.h_prev)[at]) - n) * z * (C(1) - z));
  const T of_r = narrow<T>(of_n * widen(static_cast<const T*>(args.h_n)[at]) * r * (C(1) - r));
  T* grad_gates = static_cast<T*>(args.grad_gates) + at_gates;
  T* grad_h_gates = static_cast<T*>(args.grad_h_gates) + at_gates;
  grad_gates[0] = grad_h_gates[0] = of_r;
  grad_gates[args.hidden] = grad_h_gates[args.hidden] = of_z;
  grad_gates[2 * args.hidden] = narrow<T>(of_n);
  grad_h_gates[2 * args.hidden] = narrow<T>(of_n * r);
  grad_h[at] = narrow<T>(grad * z);
}

template <class Args>
unsigned cell_blocks(const Args& args) {
  return blocks(ceil_div(args.rows * args.hidden, kBlock));
}

}  // namespace

void lstm_cell(const LaunchContext& context, const LstmCellArgs& args) {
  visit_floating(args.dtype, [&]<class T>() { start(context, cell_blocks(args), kBlock, 0, lstm<T>, args); });
}

void lstm_cell_backward(const LaunchContext& context, const LstmCellBackwardArgs& args) {
  visit_floating(args.dtype,
                 [&]<class T>() { start(context, cell_blocks(args), kBlock, 0, lstm_backward<T>, args); });
}

void gru_cell(const LaunchContext& context, const GruCellArgs& args) {
  visit_floating(args.dtype, [&]<class T>() { start(context, cell_blocks(args), kBlock, 0, gru<T>, args); });
}

void gru_cell_backward(const LaunchContext& context, const GruCellBackwardArgs& args) {
  visit_floating(args.dtype,
                 [&]<class T>() { start(context, cell_blocks(args), kBlock, 0, gru_backward<T>, args); });
}

}  // namespace tern::cuda_backend
