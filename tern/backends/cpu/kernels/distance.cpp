// Distances between the rows of matrices, and their gradient. A tile of rows lies turned, so that its rows
// are the lanes of registers and sums go over the coordinates, or over the other rows, in their order.
// Argument structs are in tern/kernels/distance.h.
#include "tern/kernels/distance.h"

#include <algorithm>
#include <cstring>

#include "tern/backends/cpu/kernels/gemm_vec.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/base/parallel.h"
#include "tern/kernels/distance_terms.h"
#include "tern/kernels/list.h"
#include "tern/kernels/math.h"
#include "tern/kernels/real_types.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int kTileRegisters = 4;
/// Rows of a tile.
template <class C>
constexpr int64_t kTileRows = kTileRegisters* kLanes<C>;
/// Rows of the other matrix that a tile meets in one piece of work.
constexpr int64_t kMetRows = 64;
/// Coordinates whose gradients are summed at a time.
constexpr int64_t kCoordinates = 32;
/// Differences that are not worth a second thread.
constexpr int64_t kDifferences = 32768;

/// Powers of the lanes of a register.
struct LanePowers {
  template <class V, class C>
  [[gnu::noinline]] static V of(V x, C exponent) {
    C lanes[kLanes<C>];
    std::memcpy(lanes, &x, sizeof x);
    for (C& lane : lanes) lane = math::pow(lane, exponent);
    std::memcpy(&x, lanes, sizeof x);
    return x;
  }
};

/// to[f * kTileRows + i] = from[i * step + f] for i < rows, f < size; other lanes are 0.
template <class C>
void turn(const C* from, int64_t step, int64_t rows, int64_t size, C* to) {
  if (rows < kTileRows<C>) std::fill_n(to, size * kTileRows<C>, C(0));
  transpose_elements(sizeof(C), from, step, rows, size, to, kTileRows<C>);
}

/// out[lane] = distance of the row and the row of the tile that the lane is.
template <class C, class Terms>
[[gnu::noinline]] void tile_distances(const Terms& given, const C* row, int64_t size, const C* tile, C* out) {
  const Terms terms = given;
  Vec<C> sums[kTileRegisters] = {};
  for (int64_t f = 0; f < size; ++f) {
    const Vec<C> x = splat(row[f]);
    TERN_UNROLL for (int v = 0; v < kTileRegisters; ++v) sums[v] =
        terms.add(sums[v], x - load(tile + f * kTileRows<C> + v * kLanes<C>));
  }
  TERN_UNROLL for (int v = 0; v < kTileRegisters; ++v) store(out + v * kLanes<C>, terms.distance(sums[v]));
}

/// sums[f, lane] += grad[j, lane] * slope of the distance of the lane's row and row j of the others.
template <class C, class Terms>
[[gnu::noinline]] void tile_slopes(const Terms& given, const C* tile, int64_t size, const C* others,
                                   int64_t step, int64_t count, const C* distance, const C* grad, C* sums) {
  const Terms terms = given;
  for (int64_t f = 0; f < size; ++f) {
    Vec<C> x[kTileRegisters], sum[kTileRegisters];
    TERN_UNROLL for (int v = 0; v < kTileRegisters; ++v) {
      x[v] = load(tile + f * kTileRows<C> + v * kLanes<C>);
      sum[v] = load(sums + f * kTileRows<C> + v * kLanes<C>);
    }
    for (int64_t j = 0; j < count; ++j) {
      const Vec<C> other = splat(others[j * step + f]);
      TERN_UNROLL for (int v = 0; v < kTileRegisters; ++v) {
        const int64_t lane = j * kTileRows<C> + v * kLanes<C>;
        sum[v] += terms.slope(x[v] - other, load(distance + lane)) * load(grad + lane);
      }
    }
    TERN_UNROLL for (int v = 0; v < kTileRegisters; ++v)
        store(sums + f * kTileRows<C> + v * kLanes<C>, sum[v]);
  }
}

/// Pieces of work that are worth a thread.
int64_t pieces_at_once(int64_t tile_rows, int64_t coordinates) {
  return std::max<int64_t>(1, kDifferences / (tile_rows * kMetRows * std::max<int64_t>(1, coordinates)));
}

/// Distances, where tiles are of the matrix with more rows: few would leave lanes empty.
template <class C, class Terms>
void distances(const DistanceArgs& args, const Terms& terms) {
  constexpr int64_t kRows = kTileRows<C>;
  const DistanceProblem& p = args.problem;
  const bool swapped = p.rows > p.others && p.others < kRows;
  const int64_t lanes = swapped ? p.rows : p.others, met = swapped ? p.others : p.rows;
  const int64_t lane_step = swapped ? p.others : 1, met_step = swapped ? 1 : p.others;
  const auto *of_lanes = static_cast<const C*>(swapped ? p.a : p.b),
             *of_met = static_cast<const C*>(swapped ? p.b : p.a);
  const int64_t tiles = (lanes + kRows - 1) / kRows, parts = (met + kMetRows - 1) / kMetRows;
  parallel_for(p.batch * tiles * parts, pieces_at_once(kRows, p.size), [&](int64_t begin, int64_t end) {
    const Scratch<C> tile(kRows * p.size);
    alignas(64) C out[kRows];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / (tiles * parts), lane = i / parts % tiles * kRows, row = i % parts * kMetRows;
      const int64_t count = std::min(kRows, lanes - lane);
      if (i == begin || row == 0)
        turn(of_lanes + (n * lanes + lane) * p.size, p.size, count, p.size, tile.get());
      C* output = static_cast<C*>(args.output) + n * p.rows * p.others + lane * lane_step;
      for (int64_t r = row; r < std::min(met, row + kMetRows); ++r) {
        tile_distances(terms, of_met + (n * met + r) * p.size, p.size, tile.get(), out);
        for (int64_t l = 0; l < count; ++l) output[r * met_step + l * lane_step] = out[l];
      }
    }
  });
}

template <class C, class Terms>
void slopes(const DistanceBackwardArgs& args, const Terms& terms) {
  constexpr int64_t kRows = kTileRows<C>;
  const DistanceProblem& p = args.problem;
  const int64_t tiles = (p.rows + kRows - 1) / kRows, parts = (p.size + kCoordinates - 1) / kCoordinates;
  parallel_for(p.batch * tiles * parts, pieces_at_once(kRows, kCoordinates), [&](int64_t begin, int64_t end) {
    alignas(64) C tile[kRows * kCoordinates], sums[kRows * kCoordinates];
    alignas(64) C distance[kRows * kMetRows], grad[kRows * kMetRows];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / (tiles * parts), row = i / parts % tiles * kRows,
                    first = i % parts * kCoordinates;
      const int64_t count = std::min(kRows, p.rows - row), size = std::min(kCoordinates, p.size - first);
      const int64_t place = (n * p.rows + row) * p.size + first;
      turn(static_cast<const C*>(p.a) + place, p.size, count, size, tile);
      std::fill_n(sums, kRows * size, C(0));
      for (int64_t other = 0; other < p.others; other += kMetRows) {
        const int64_t met = std::min(kMetRows, p.others - other);
        const int64_t pair = (n * p.rows + row) * p.others + other;
        turn(static_cast<const C*>(args.output) + pair, p.others, count, met, distance);
        turn(static_cast<const C*>(args.grad_output) + pair, p.others, count, met, grad);
        const C* others = static_cast<const C*>(p.b) + (n * p.others + other) * p.size + first;
        tile_slopes(terms, tile, size, others, p.size, met, distance, grad, sums);
      }
      transpose_elements(sizeof(C), sums, kRows, size, count, static_cast<C*>(args.grad_a) + place, p.size);
    }
  });
}

}  // namespace

void distance(const LaunchContext&, const DistanceArgs& args) {
  visit_real(args.problem.dtype, [&]<class C>() {
    distance_terms::visit<C, LanePowers>(args.problem.p,
                                         [&](const auto& terms) { distances<C>(args, terms); });
  });
}

void distance_backward(const LaunchContext&, const DistanceBackwardArgs& args) {
  visit_real(args.problem.dtype, [&]<class C>() {
    distance_terms::visit<C, LanePowers>(args.problem.p, [&](const auto& terms) { slopes<C>(args, terms); });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
