// A helper of resume_in_torch.py: goes on with a run that PyTorch began.
//   resume_tool OPTIMIZER SCHEDULE STEPS DEVICES IN OUT
// IN is {'model', 'optimizer', 'scheduler', 'inputs', 'targets', 'dropout', 'random'}; OUT is the same with
// 'losses'. With DEVICES of 2 or more, the steps run in a DataParallel over that many GPUs.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "tern/io/serialize.h"
#include "tern/tern.h"
#include "tern/train/state_value.h"

namespace {

using namespace tern;

struct Net : nn::Module {
  nn::Linear hidden{8, 16};
  nn::Linear output{16, 3};
  TERN_MODULE(hidden, output)
  double p = 0;
  Tensor forward(const Tensor& x) { return output(dropout(tanh(hidden(x)), p, is_training())); }
};

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, const std::vector<Tensor>& params) {
  if (name == "SGD")
    return std::make_unique<optim::SGD>(params, optim::SGDOptions{.lr = 0.5, .momentum = 0.5});
  if (name == "Adam") return std::make_unique<optim::Adam>(params);
  if (name == "AMSGrad") return std::make_unique<optim::Adam>(params, optim::AdamOptions{.amsgrad = true});
  if (name == "AdamW") return std::make_unique<optim::AdamW>(params);
  if (name == "RMSprop") return std::make_unique<optim::RMSprop>(params);
  if (name == "NAdam") return std::make_unique<optim::NAdam>(params);
  if (name == "RAdam") return std::make_unique<optim::RAdam>(params);
  if (name == "Adamax") return std::make_unique<optim::Adamax>(params);
  if (name == "Adadelta") return std::make_unique<optim::Adadelta>(params);
  if (name == "Adagrad") return std::make_unique<optim::Adagrad>(params);
  if (name == "ASGD") return std::make_unique<optim::ASGD>(params);
  if (name == "Rprop") return std::make_unique<optim::Rprop>(params);
  if (name == "LBFGS") return std::make_unique<optim::LBFGS>(params);
  throw ValueError("unknown optimizer " + name);
}

std::unique_ptr<optim::LRScheduler> make_schedule(const std::string& name, optim::Optimizer& optimizer) {
  if (name == "StepLR")
    return std::make_unique<optim::StepLR>(optimizer, optim::StepLROptions{.step_size = 9});
  if (name == "CosineAnnealingLR")
    return std::make_unique<optim::CosineAnnealingLR>(optimizer, optim::CosineAnnealingLROptions{.T_max = 5});
  if (name == "OneCycleLR")
    return std::make_unique<optim::OneCycleLR>(optimizer,
                                               optim::OneCycleLROptions{.max_lr = 1, .total_steps = 50});
  if (name == "LambdaLR")
    return std::make_unique<optim::LambdaLR>(optimizer, optim::LambdaLR::Function([](int64_t epoch) {
                                               return 1 / (1 + 0.1 * static_cast<double>(epoch));
                                             }));
  if (name == "SequentialLR")
    return std::make_unique<optim::SequentialLR>(
        optimizer,
        std::vector<std::shared_ptr<optim::LRScheduler>>{
            std::make_shared<optim::LinearLR>(optimizer),
            std::make_shared<optim::MultiStepLR>(optimizer, optim::MultiStepLROptions{{9}})},
        optim::SequentialLROptions{{1}});
  if (name == "PolynomialLR") return std::make_unique<optim::PolynomialLR>(optimizer);
  if (name == "MultiplicativeLR")
    return std::make_unique<optim::MultiplicativeLR>(
        optimizer, optim::MultiplicativeLR::Function(
                       [](int64_t epoch) { return 1 - 0.5 / static_cast<double>(epoch); }));
  if (name == "CosineAnnealingWarmRestarts")
    return std::make_unique<optim::CosineAnnealingWarmRestarts>(
        optimizer, optim::CosineAnnealingWarmRestartsOptions{.T_0 = 9});
  if (name == "CyclicLR")
    return std::make_unique<optim::CyclicLR>(optimizer, optim::CyclicLROptions{.base_lr = 1, .max_lr = 2});
  if (name == "ChainedScheduler")
    return std::make_unique<optim::ChainedScheduler>(
        optim::ChainedScheduler::Schedulers{std::make_shared<optim::ConstantLR>(optimizer),
                                            std::make_shared<optim::ExponentialLR>(optimizer, 0.5)});
  if (name == "SWALR") return std::make_unique<optim::SWALR>(optimizer, optim::SWALROptions{.swa_lr = 1});
  throw ValueError("unknown schedule " + name);
}

void run(char** argv) {
  const int steps = std::stoi(argv[3]), devices = std::stoi(argv[4]);
  const Device device = devices > 0 ? Device("cuda:0") : kCPU;
  const Value file = load(argv[5], {.map_location = "auto", .weights_only = false});
  Net net;
  net.load_state_dict(file["model"].as_state_dict(), {.prefix = "auto"});
  net.p = file["dropout"].as_float();
  net.to(device);
  set_rng_state(file["random"].as_tensor());
  std::unique_ptr<parallel::DataParallel<Net>> replicas;
  if (devices > 1) {
    std::vector<Device> ids;
    for (int i = 0; i < devices; ++i) ids.push_back(Device(DeviceType::CUDA, i));
    replicas =
        std::make_unique<parallel::DataParallel<Net>>(net, parallel::DataParallelOptions{.device_ids = ids});
  }
  auto optimizer = make_optimizer(argv[1], net.parameters());
  auto schedule = make_schedule(argv[2], *optimizer);
  optimizer->load_state_dict(train::to_optimizer_state(file["optimizer"]));
  schedule->load_state_dict(train::to_state_map(file["scheduler"]));
  const Tensor inputs = file["inputs"].as_tensor().to(device),
               targets = file["targets"].as_tensor().to(device);
  std::vector<Value> losses;
  for (int step = 0; step < steps; ++step) {
    const Tensor loss = optimizer->step([&] {
      optimizer->zero_grad();
      Tensor at = nn::cross_entropy(replicas ? (*replicas)(inputs) : net(inputs), targets);
      at.backward();
      return at;
    });
    losses.push_back(loss.item<double>());
    schedule->step();
  }
  save({{"model", replicas ? replicas->state_dict() : net.state_dict()},
        {"optimizer", train::to_value(optimizer->state_dict())},
        {"scheduler", train::to_value(schedule->state_dict())},
        {"inputs", inputs},
        {"targets", targets},
        {"dropout", net.p},
        {"random", get_rng_state()},
        {"losses", Value::list(std::move(losses))}},
       argv[6]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: resume_tool OPTIMIZER SCHEDULE STEPS DEVICES IN OUT\n");
    return 2;
  }
  try {
    run(argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
