// Tern's side of bench/operators.py: operator_peer REQUEST. REQUEST is a file of torch.save with a list of
// {"op", "args", "weight"}; the cases are numbered as in the list. With a weight the gradients are computed
// too, for that gradient of the first result.
#include <cstdio>

#include "bench/peer.h"
#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/parallel.h"
#include "tern/io/serialize.h"
#include "tests/ops/operator_arguments.h"

namespace {

using tern::Tensor;
using tern::Value;
using tern::testing::Arguments;

peer::Step step_of(const Value& request) {
  const tern::testing::Operator& run = tern::testing::find_operator(request["op"].as_str());
  if (request["weight"].is_none())
    return [arguments = Arguments(request["args"]), &run] {
      const tern::NoGradGuard no_grad;
      run(arguments);
    };
  return [arguments = Arguments(request["args"]), &run, weight = request["weight"].as_tensor()] {
    const std::vector<Tensor> outputs{run(arguments).tensors().front()}, weights{weight};
    tern::grad(outputs, arguments.wanting_gradients(), weights, {.allow_unused = true});
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: operator_peer REQUEST\n");
    return 2;
  }
  try {
    const Value requests = tern::load(argv[1]);
    std::map<std::string, peer::Setup> cases;
    for (const Value& request : requests.as_list())
      cases.emplace(std::to_string(cases.size()), [&request] { return step_of(request); });
    return peer::serve(
        "Tern", [](int threads) { tern::set_num_threads(threads); }, cases);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "operator_peer: %s\n", error.what());
    return 1;
  }
}
