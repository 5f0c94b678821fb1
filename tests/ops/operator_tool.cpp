// Runs the cases of operator_table.py on Tern: operator_tool REQUEST RESULTS [FIRST [LEFT_OUT...]]. REQUEST
// is a file of torch.save with a list of {"op", "args", "cotangents", "autocast"}, the last a dtype or None.
// Cases are numbered from 0; it begins with FIRST. RESULTS.N, one for each second of work, gets a list of
// {"outputs", "requires_grad", "grads"} or {"error"} from case N on, None for a case that is LEFT_OUT: what a
// crash costs is the last piece. On standard output the number of each case as it begins, and "saved" for
// each file. The operators are in operator_list.cpp. With TERN_TEST_DEVICE=cuda:0 all arguments and what is
// made without a device lie there.
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "tern/autograd/engine.h"
#include "tern/base/env.h"
#include "tern/core/memory.h"
#include "tern/device/stream.h"
#include "tern/io/serialize.h"
#include "tern/ops/autocast.h"
#include "tern/ops/copy.h"
#include "tests/ops/operator_arguments.h"

namespace tern::testing {
namespace {

/// One case: the results, and the gradients of what wants one for the cotangents given (one for each result,
/// None for those without a gradient).
Value run_case(const Value& request) {
  const Arguments arguments(request["args"]);
  std::optional<AutocastGuard> autocast;
  if (!request["autocast"].is_none())
    autocast.emplace(
        AutocastOptions{.device_type = get_default_device().type, .dtype = request["autocast"].as_dtype()});
  const std::vector<Tensor> results = find_operator(request["op"].as_str())(arguments).tensors();
  std::vector<Value> requires_grad;
  for (const Tensor& result : results) requires_grad.emplace_back(result.requires_grad());

  const std::vector<Value>& cotangents = request["cotangents"].as_list();
  std::vector<Tensor> outputs, weights;
  for (size_t i = 0; i < results.size() && i < cotangents.size(); ++i) {
    if (cotangents[i].is_none() || !results[i].requires_grad()) continue;
    outputs.push_back(results[i]);
    weights.push_back(cotangents[i].as_tensor().to(results[i].device()));
  }
  std::vector<Value> grads;
  if (!outputs.empty())
    for (const Tensor& gradient :
         grad(outputs, arguments.wanting_gradients(), weights, {.allow_unused = true}))
      grads.push_back(gradient.defined() ? Value(gradient.cpu()) : Value());

  std::vector<Value> detached;
  for (const Tensor& result :
       results)  // cloned, as a file cannot hold one memory as real and as complex numbers
    detached.emplace_back(clone(result.detach()).cpu());
  synchronize(get_default_device());  // for the errors of kernels whose results nobody reads
  return {{"outputs", Value::list(detached)},
          {"requires_grad", Value::list(requires_grad)},
          {"grads", Value::list(grads)}};
}

/// Tern's own errors are results; any other exception ends the run.
Value run_case_or_error(const Value& request) {
  try {
    return run_case(request);
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

void run(const char* request_path, const std::string& results_path, size_t first,
         const std::set<size_t>& left_out) {
  using Clock = std::chrono::steady_clock;
  if (const auto device = env_text("TERN_TEST_DEVICE")) set_default_device(*device);
  const Value request = load(request_path, {.map_location = get_default_device().str()});
  const std::vector<Value>& cases = request.as_list();
  std::vector<Value> results;
  Clock::time_point begin = Clock::now();
  for (size_t i = first; i < cases.size(); ++i) {
    const bool wanted = left_out.count(i) == 0;
    if (wanted) std::printf("%zu\n", i);
    std::fflush(stdout);
    results.push_back(wanted ? run_case_or_error(cases[i]) : Value());
    if (i + 1 < cases.size() && Clock::now() - begin < std::chrono::seconds(1)) continue;
    save(Value::list(std::exchange(results, {})), results_path + "." + std::to_string(first),
         {.sync = false});
    std::printf("saved\n");
    std::fflush(stdout);
    first = i + 1;
    begin = Clock::now();
  }
}

}  // namespace
}  // namespace tern::testing

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: operator_tool REQUEST RESULTS [FIRST [LEFT_OUT...]]\n");
    return 2;
  }
  try {
    std::set<size_t> left_out;
    for (int i = 4; i < argc; ++i) left_out.insert(std::stoul(argv[i]));
    tern::testing::run(argv[1], argv[2], argc > 3 ? std::stoul(argv[3]) : 0, left_out);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
