// Tern's side of bench/operators.py: operator_peer REQUEST [DEVICE]. REQUEST is a file of torch.save with a
// list of {"op", "args", "backward"}; the cases are numbered as in the list. With "backward" the gradients
// are computed too, for a gradient of ones of the first result. The tensors go to DEVICE.
#include <cstdio>

#include "bench/peer.h"
#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/parallel.h"
#include "tern/device/cuda.h"
#include "tern/io/serialize.h"
#include "tern/ops/creation.h"
#include "tests/ops/operator_arguments.h"

namespace {

using tern::Tensor;
using tern::Value;
using tern::testing::Arguments;

peer::Step step_of(const Value& request) {
  const tern::testing::Operator& run = tern::testing::find_operator(request["op"].as_str());
  const Arguments arguments(request["args"]);
  const auto plain = [arguments, &run] {
    const tern::NoGradGuard no_grad;
    return run(arguments);
  };
  if (!request["backward"].as_bool()) return [plain] { plain(); };
  return [arguments, &run, weight = tern::ones_like(plain().tensors().front())] {
    const std::vector<Tensor> outputs{run(arguments).tensors().front()}, weights{weight};
    tern::grad(outputs, arguments.wanting_gradients(), weights, {.allow_unused = true});
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: operator_peer REQUEST [DEVICE]\n");
    return 2;
  }
  try {
    const tern::Device device(argc > 2 ? argv[2] : "cpu");
    const Value requests = tern::load(argv[1], {.map_location = device});
    std::map<std::string, peer::Setup> cases;
    for (const Value& request : requests.as_list())
      cases.emplace(std::to_string(cases.size()), [&request] { return step_of(request); });
    return peer::serve(
        "Tern", [](int threads) { tern::set_num_threads(threads); }, cases,
        [device] {
          if (!device.is_cpu()) tern::cuda::synchronize(device);
        });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "operator_peer: %s\n", error.what());
    return 1;
  }
}
