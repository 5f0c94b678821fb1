// Measuring several ways of a library to do the same, so that the fastest is kept, and the plans that are
// kept so.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/plan_key.h"
#include "tern/device/backend.h"

namespace tern::cuda_backend {

/// Nothing can be measured while a stream is recorded.
bool is_recorded(const CudaStream& stream);

/// Which of `count` ways takes the least time on the stream, in the best of some rounds; the first way where
/// no other is clearly faster. The host waits. `run(i)` gives way i to the stream; one that has no memory for
/// it or that the library refuses is out of the question, and where all are, 0 is the answer.
size_t fastest_of(size_t count, CudaStream& stream, const std::function<void(size_t)>& run);

/// Leaves the way for which `run(way)` takes the least time, whose result is written again and again.
template <class Way, class Run>
void keep_fastest(std::vector<Way>& ways, CudaStream& stream, const Run& run) {
  if (ways.size() < 2) return;
  std::swap(ways.front(), ways[fastest_of(ways.size(), stream, [&](size_t i) { run(ways[i]); })]);
  ways.erase(ways.begin() + 1, ways.end());
}

/// The plan of a problem, which is made when that is met first. With `problem.fastest` it is measured then; a
/// recorded step takes what was measured before it, else the library's advice.
template <class Problem, class Plan, class Handle, class Operands>
Plan& plan_of(std::unordered_map<Problem, std::unique_ptr<Plan>, PlanHash<Problem>>& plans, Problem problem,
              const LaunchContext& context, Handle handle, const Operands& operands) {
  if (problem.fastest && !plans.contains(problem) && is_recorded(stream_of(context.stream)))
    problem.fastest = false;
  std::unique_ptr<Plan>& plan = plans[problem];
  if (!plan) {
    plan = std::make_unique<Plan>(handle, problem);
    if (problem.fastest) plan->measure(context, handle, operands);
  }
  return *plan;
}

}  // namespace tern::cuda_backend
