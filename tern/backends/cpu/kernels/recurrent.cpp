// The cells of recurrent layers: what follows the products of one time step, with the gradients.
#include "tern/kernels/recurrent.h"

#include <algorithm>
#include <array>

#include "tern/backends/cpu/kernels/widen.h"
#include "tern/base/parallel.h"
#include "tern/device/launch.h"
#include "tern/kernels/math.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Elements of a cell below which it is not worth a second thread.
constexpr int64_t kGrain = 2048;

// The loops, over n elements of one row; gates lie `stride` elements apart. Functions of their own: loops
// over captured pointers are not vectorised.

template <class C>
[[gnu::noinline]] void lstm_row(C* gates, int64_t stride, const C* c_prev, C* c, C* h, int64_t n) {
  C *i_gate = gates, *f_gate = gates + stride, *g_gate = gates + 2 * stride, *o_gate = gates + 3 * stride;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const C i = math::sigmoid(i_gate[j]), f = math::sigmoid(f_gate[j]);
    const C g = math::tanh(g_gate[j]), o = math::sigmoid(o_gate[j]);
    const C cell = f * c_prev[j] + i * g;
    i_gate[j] = i;
    f_gate[j] = f;
    g_gate[j] = g;
    o_gate[j] = o;
    c[j] = cell;
    h[j] = o * math::tanh(cell);
  }
}

/// What comes from above and from the next step, for one row.
template <class C>
struct LstmRow {
  const C *grad_output, *grad_h, *gates, *c_prev, *c;
};

template <class C>
[[gnu::noinline]] void lstm_row_backward(const LstmRow<C>& row, int64_t stride, C* grad_c, C* grad_gates,
                                         int64_t n) {
  const C *grad_output = row.grad_output, *grad_h = row.grad_h, *c_prev = row.c_prev, *c = row.c;
  const C *i_gate = row.gates, *f_gate = i_gate + stride, *g_gate = f_gate + stride,
          *o_gate = g_gate + stride;
  C *grad_i = grad_gates, *grad_f = grad_i + stride, *grad_g = grad_f + stride, *grad_o = grad_g + stride;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const C i = i_gate[j], f = f_gate[j], g = g_gate[j], o = o_gate[j];
    const C grad = grad_output[j] + grad_h[j], tanh_c = math::tanh(c[j]);
    const C of_c = grad_c[j] + grad * o * (C(1) - tanh_c * tanh_c);
    grad_i[j] = of_c * g * i * (C(1) - i);
    grad_f[j] = of_c * c_prev[j] * f * (C(1) - f);
    grad_g[j] = of_c * i * (C(1) - g * g);
    grad_o[j] = grad * tanh_c * o * (C(1) - o);
    grad_c[j] = of_c * f;
  }
}

template <class C>
[[gnu::noinline]] void gru_row(C* gates, const C* h_gates, int64_t stride, const C* h_prev, C* h, int64_t n) {
  C *r_gate = gates, *z_gate = gates + stride, *n_gate = gates + 2 * stride;
  const C *h_r = h_gates, *h_z = h_gates + stride, *h_n = h_gates + 2 * stride;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const C r = math::sigmoid(r_gate[j] + h_r[j]), z = math::sigmoid(z_gate[j] + h_z[j]);
    const C next = math::tanh(n_gate[j] + r * h_n[j]);
    r_gate[j] = r;
    z_gate[j] = z;
    n_gate[j] = next;
    h[j] = next + z * (h_prev[j] - next);
  }
}

template <class C>
struct GruRow {
  const C *grad_output, *gates, *h_n, *h_prev;
};

template <class C>
[[gnu::noinline]] void gru_row_backward(const GruRow<C>& row, int64_t stride, C* grad_h, C* grad_gates,
                                        C* grad_h_gates, int64_t n) {
  const C *grad_output = row.grad_output, *h_n = row.h_n, *h_prev = row.h_prev;
  const C *r_gate = row.gates, *z_gate = r_gate + stride, *n_gate = z_gate + stride;
  C *grad_r = grad_gates, *grad_z = grad_r + stride, *grad_n = grad_z + stride;
  C *grad_h_r = grad_h_gates, *grad_h_z = grad_h_r + stride, *grad_h_n = grad_h_z + stride;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const C r = r_gate[j], z = z_gate[j], next = n_gate[j];
    const C grad = grad_output[j] + grad_h[j];
    const C of_n = grad * (C(1) - z) * (C(1) - next * next);
    const C of_z = grad * (h_prev[j] - next) * z * (C(1) - z);
    const C of_r = of_n * h_n[j] * r * (C(1) - r);
    grad_r[j] = grad_h_r[j] = of_r;
    grad_z[j] = grad_h_z[j] = of_z;
    grad_n[j] = of_n;
    grad_h_n[j] = of_n * r;
    grad_h[j] = grad * z;
  }
}

// ---- rows of any type: the 16-bit floats go through buffers, a tile at a time

template <int kGates, class T>
using Tile = std::array<Compute<T>, static_cast<size_t>(kWidened<T> ? kGates* kWideTile : 1)>;

/// `gates` neighbouring rows of `stride` elements at element j, as rows of the compute type, kWideTile apart.
template <class T>
const Compute<T>* widen_gates(const T* from, int64_t stride, int gates, int64_t n, Compute<T>* buffer) {
  if constexpr (!kWidened<T>) return from;
  for (int k = 0; k < gates; ++k) to_compute(from + k * stride, n, buffer + k * kWideTile);
  return buffer;
}
template <class T>
void narrow_gates(T* to, int64_t stride, int gates, int64_t n, const Compute<T>* buffer) {
  if constexpr (kWidened<T>)
    for (int k = 0; k < gates; ++k) from_compute(to + k * stride, buffer + k * kWideTile, n);
}
/// Where a row is computed: itself, or the buffer.
template <class T>
Compute<T>* place(T* row, Compute<T>* buffer) {
  if constexpr (kWidened<T>)
    return buffer;
  else
    return row;
}

/// Calls f(row, first, count) for pieces of the rows: whole ones, or tiles of the 16-bit floats; in parallel.
template <class T, class F>
void for_tiles(int64_t rows, int64_t hidden, const F& f) {
  const int64_t most = kWidened<T> ? kWideTile : hidden;
  parallel_for(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(hidden, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r)
                   for (int64_t j = 0; j < hidden; j += most) f(r, j, std::min(most, hidden - j));
               });
}

template <class T>
void lstm(const LstmCellArgs& args) {
  const int64_t hidden = args.hidden, stride = kWidened<T> ? kWideTile : hidden;
  for_tiles<T>(args.rows, hidden, [&](int64_t row, int64_t first, int64_t n) {
    Tile<4, T> gate_tile;
    Tile<1, T> c_prev_tile, c_tile, h_tile;
    const int64_t at = row * hidden + first;
    T* gates = static_cast<T*>(args.gates) + row * 4 * hidden + first;
    T *c = static_cast<T*>(args.c) + at, *h = static_cast<T*>(args.h) + at;
    widen_gates(gates, hidden, 4, n, gate_tile.data());
    lstm_row(place(gates, gate_tile.data()), stride,
             to_compute(static_cast<const T*>(args.c_prev) + at, n, c_prev_tile.data()),
             place(c, c_tile.data()), place(h, h_tile.data()), n);
    narrow_gates(gates, hidden, 4, n, gate_tile.data());
    narrow_gates(c, hidden, 1, n, c_tile.data());
    narrow_gates(h, hidden, 1, n, h_tile.data());
  });
}

template <class T>
void lstm_backward(const LstmCellBackwardArgs& args) {
  const int64_t hidden = args.hidden, stride = kWidened<T> ? kWideTile : hidden;
  for_tiles<T>(args.rows, hidden, [&](int64_t row, int64_t first, int64_t n) {
    Tile<4, T> gate_tile, grad_tile;
    Tile<1, T> tiles[5];
    const int64_t at = row * hidden + first, at_gates = row * 4 * hidden + first;
    const auto read = [&](const void* data, int tile) {
      return to_compute(static_cast<const T*>(data) + at, n, tiles[tile].data());
    };
    T* grad_c = static_cast<T*>(args.grad_c) + at;
    T* grad_gates = static_cast<T*>(args.grad_gates) + at_gates;
    read(args.grad_c, 0);
    const LstmRow<Compute<T>> given{
        read(args.grad_output, 1), read(args.grad_h, 2),
        widen_gates(static_cast<const T*>(args.gates) + at_gates, hidden, 4, n, gate_tile.data()),
        read(args.c_prev, 3), read(args.c, 4)};
    lstm_row_backward(given, stride, place(grad_c, tiles[0].data()), place(grad_gates, grad_tile.data()), n);
    narrow_gates(grad_c, hidden, 1, n, tiles[0].data());
    narrow_gates(grad_gates, hidden, 4, n, grad_tile.data());
  });
}

template <class T>
void gru(const GruCellArgs& args) {
  const int64_t hidden = args.hidden, stride = kWidened<T> ? kWideTile : hidden;
  for_tiles<T>(args.rows, hidden, [&](int64_t row, int64_t first, int64_t n) {
    Tile<3, T> gate_tile, h_gate_tile;
    Tile<1, T> h_prev_tile, h_tile;
    const int64_t at = row * hidden + first, at_gates = row * 3 * hidden + first;
    T* gates = static_cast<T*>(args.gates) + at_gates;
    const T* h_gates = static_cast<const T*>(args.h_gates) + at_gates;
    T* h = static_cast<T*>(args.h) + at;
    widen_gates(gates, hidden, 3, n, gate_tile.data());
    gru_row(place(gates, gate_tile.data()), widen_gates(h_gates, hidden, 3, n, h_gate_tile.data()), stride,
            to_compute(static_cast<const T*>(args.h_prev) + at, n, h_prev_tile.data()),
            place(h, h_tile.data()), n);
    narrow_gates(gates, hidden, 3, n, gate_tile.data());
    narrow_gates(h, hidden, 1, n, h_tile.data());
    if (args.h_n != nullptr) std::copy_n(h_gates + 2 * hidden, n, static_cast<T*>(args.h_n) + at);
  });
}

template <class T>
void gru_backward(const GruCellBackwardArgs& args) {
  const int64_t hidden = args.hidden, stride = kWidened<T> ? kWideTile : hidden;
  for_tiles<T>(args.rows, hidden, [&](int64_t row, int64_t first, int64_t n) {
    Tile<3, T> gate_tile, grad_tile, grad_h_tile;
    Tile<1, T> tiles[4];
    const int64_t at = row * hidden + first, at_gates = row * 3 * hidden + first;
    const auto read = [&](const void* data, int tile) {
      return to_compute(static_cast<const T*>(data) + at, n, tiles[tile].data());
    };
    T* grad_h = static_cast<T*>(args.grad_h) + at;
    T* grad_gates = static_cast<T*>(args.grad_gates) + at_gates;
    T* grad_h_gates = static_cast<T*>(args.grad_h_gates) + at_gates;
    read(args.grad_h, 0);
    const GruRow<Compute<T>> given{
        read(args.grad_output, 1),
        widen_gates(static_cast<const T*>(args.gates) + at_gates, hidden, 3, n, gate_tile.data()),
        read(args.h_n, 2), read(args.h_prev, 3)};
    gru_row_backward(given, stride, place(grad_h, tiles[0].data()), place(grad_gates, grad_tile.data()),
                     place(grad_h_gates, grad_h_tile.data()), n);
    narrow_gates(grad_h, hidden, 1, n, tiles[0].data());
    narrow_gates(grad_gates, hidden, 3, n, grad_tile.data());
    narrow_gates(grad_h_gates, hidden, 3, n, grad_h_tile.data());
  });
}

}  // namespace

void lstm_cell(const LaunchContext&, const LstmCellArgs& args) {
  visit_floating(args.dtype, [&]<class T>() { lstm<T>(args); });
}

void lstm_cell_backward(const LaunchContext&, const LstmCellBackwardArgs& args) {
  visit_floating(args.dtype, [&]<class T>() { lstm_backward<T>(args); });
}

void gru_cell(const LaunchContext&, const GruCellArgs& args) {
  visit_floating(args.dtype, [&]<class T>() { gru<T>(args); });
}

void gru_cell_backward(const LaunchContext&, const GruCellBackwardArgs& args) {
  visit_floating(args.dtype, [&]<class T>() { gru_backward<T>(args); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
