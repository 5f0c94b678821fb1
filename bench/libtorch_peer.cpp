// The cases of the comparison, in libtorch. The same cases are in tern_peer.cpp and torch_peer.py. Built by
// compare.py against the libtorch inside the PyTorch that it is given.
#include <torch/torch.h>

#include "peer.h"

namespace {

struct PerceptronImpl : torch::nn::Module {
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(20, 256))};
  torch::nn::Linear output{register_module("output", torch::nn::Linear(256, 10))};
  torch::Tensor forward(const torch::Tensor& x) { return output(torch::relu(hidden(x))); }
};
TORCH_MODULE(Perceptron);

struct LeNetImpl : torch::nn::Module {
  torch::nn::Conv2d conv1{
      register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).padding(2)))};
  torch::nn::Conv2d conv2{register_module("conv2", torch::nn::Conv2d(6, 16, 5))};
  torch::nn::Linear fc1{register_module("fc1", torch::nn::Linear(400, 120))};
  torch::nn::Linear fc2{register_module("fc2", torch::nn::Linear(120, 84))};
  torch::nn::Linear fc3{register_module("fc3", torch::nn::Linear(84, 10))};
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    x = torch::relu(fc1(x.flatten(1)));
    return fc3(torch::relu(fc2(x)));
  }
};
TORCH_MODULE(LeNet);

/// Two convolutions beside a shortcut, of ResNet-18.
struct BasicBlockImpl : torch::nn::Module {
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  torch::nn::Sequential downsample{nullptr};

  BasicBlockImpl(int64_t inputs, int64_t outputs, int64_t stride) {
    using Options = torch::nn::Conv2dOptions;
    const auto conv = [](int64_t from, int64_t to, int64_t size, int64_t step) {
      return torch::nn::Conv2d(Options(from, to, size).stride(step).padding(size / 2).bias(false));
    };
    conv1 = register_module("conv1", conv(inputs, outputs, 3, stride));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(outputs));
    conv2 = register_module("conv2", conv(outputs, outputs, 3, 1));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(outputs));
    if (stride != 1)
      downsample = register_module("downsample", torch::nn::Sequential(conv(inputs, outputs, 1, stride),
                                                                       torch::nn::BatchNorm2d(outputs)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor shortcut = downsample ? downsample->forward(x) : x;
    return torch::relu(bn2(conv2(torch::relu(bn1(conv1(x))))) + shortcut);
  }
};
TORCH_MODULE(BasicBlock);

struct ResNet18Impl : torch::nn::Module {
  torch::nn::Conv2d conv1{register_module(
      "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)))};
  torch::nn::BatchNorm2d bn1{register_module("bn1", torch::nn::BatchNorm2d(64))};
  torch::nn::Sequential blocks{register_module(
      "blocks",
      torch::nn::Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1), BasicBlock(64, 128, 2),
                            BasicBlock(128, 128, 1), BasicBlock(128, 256, 2), BasicBlock(256, 256, 1),
                            BasicBlock(256, 512, 2), BasicBlock(512, 512, 1)))};
  torch::nn::Linear fc{register_module("fc", torch::nn::Linear(512, 1000))};
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(bn1(conv1(x))), 3, 2, 1);
    return fc(torch::adaptive_avg_pool2d(blocks->forward(x), {1, 1}).flatten(1));
  }
};
TORCH_MODULE(ResNet18);

peer::Step large(const std::function<torch::Tensor(const torch::Tensor&)>& op) {
  auto x = torch::randn({int64_t{16} << 20});
  return [=] { op(x); };
}

peer::Step matmul_of(int64_t n) {
  auto a = torch::randn({n, n}), b = torch::randn({n, n});
  return [=] { torch::matmul(a, b); };
}

template <class Net>
peer::Step sgd_step(const torch::Tensor& x, int64_t classes) {
  Net net;
  auto optimizer =
      std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  auto y = torch::randint(0, classes, {x.size(0)}, torch::kLong);
  return [=]() mutable {
    optimizer->zero_grad();
    auto loss = torch::cross_entropy_loss(net(x), y);
    loss.backward();
    optimizer->step();
  };
}

peer::Step lenet_step(int64_t batch) { return sgd_step<LeNet>(torch::randn({batch, 1, 28, 28}), 10); }

const std::map<std::string, peer::Setup> kCases = {
    {"storage_64", [] { return peer::Step([] { c10::GetAllocator(c10::kCPU)->allocate(64); }); }},
    {"storage_1m", [] { return peer::Step([] { c10::GetAllocator(c10::kCPU)->allocate(1 << 20); }); }},
    {"add_small",
     [] {
       auto a = torch::randn({2, 3}), b = torch::randn({2, 3});
       return peer::Step([=] { torch::add(a, b); });
     }},
    {"mlp_forward_b2",
     [] {
       Perceptron net;
       auto x = torch::randn({2, 20});
       return peer::Step([=]() mutable { net(x); });
     }},
    {"mlp_forward_b2_no_grad",
     [] {
       Perceptron net;
       auto x = torch::randn({2, 20});
       return peer::Step([=]() mutable {
         torch::NoGradGuard no_grad;
         net(x);
       });
     }},
    {"mlp_adam_step_b2",
     [] {
       Perceptron net;
       auto optimizer =
           std::make_shared<torch::optim::Adam>(net->parameters(), torch::optim::AdamOptions(1e-3));
       auto x = torch::randn({2, 20});
       auto y = torch::randint(0, 10, {2}, torch::kLong);
       return peer::Step([=]() mutable {
         optimizer->zero_grad();
         torch::cross_entropy_loss(net(x), y).backward();
         optimizer->step();
       });
     }},
    {"lenet_step_b1", [] { return lenet_step(1); }},
    {"lenet_step_b32", [] { return lenet_step(32); }},
    {"lenet_step_b256", [] { return lenet_step(256); }},
    {"resnet18_forward_b1",
     [] {
       ResNet18 net;
       net->eval();
       auto x = torch::randn({1, 3, 224, 224});
       return peer::Step([=]() mutable {
         torch::NoGradGuard no_grad;
         net(x);
       });
     }},
    {"resnet18_step_b8",
     [] {
       return sgd_step<ResNet18>(torch::randn({8, 3, 224, 224}), 1000);
     }},
    {"relu_16m", [] { return large([](const torch::Tensor& x) { return torch::relu(x); }); }},
    {"exp_16m", [] { return large([](const torch::Tensor& x) { return torch::exp(x); }); }},
    {"gelu_16m", [] { return large([](const torch::Tensor& x) { return torch::gelu(x); }); }},
    {"add_16m",
     [] {
       auto y = torch::randn({int64_t{16} << 20});
       return large([y](const torch::Tensor& x) { return torch::add(x, y); });
     }},
    {"softmax_16m",
     [] { return large([](const torch::Tensor& x) {
            return torch::softmax(x.view({16384, 1024}), 1);
          }); }},
    {"sum_16m", [] { return large([](const torch::Tensor& x) { return torch::sum(x); }); }},
    {"transpose_copy_16m",
     [] { return large([](const torch::Tensor& x) {
            return x.view({4096, 4096}).t().contiguous();
          }); }},
    {"matmul_100", [] { return matmul_of(100); }},
    {"matmul_256", [] { return matmul_of(256); }},
    {"matmul_512", [] { return matmul_of(512); }},
    {"matmul_1024", [] { return matmul_of(1024); }},
    {"matmul_2048", [] { return matmul_of(2048); }},
    {"matmul_4096", [] { return matmul_of(4096); }},
    {"products_1000_norm_each",
     [] {
       auto a = torch::randn({100, 100});
       return peer::Step([=] {
         double total = 0;
         for (int i = 0; i < 1000; ++i) total += torch::norm(torch::matmul(a, a)).item<double>();
         if (total < 0) throw std::runtime_error("a norm is negative");
       });
     }},
    {"products_1000_norm_once",
     [] {
       auto a = torch::randn({100, 100});
       return peer::Step([=] {
         auto total = torch::zeros({});
         for (int i = 0; i < 1000; ++i) total.add_(torch::norm(torch::matmul(a, a)));
         if (total.item<double>() < 0) throw std::runtime_error("a norm is negative");
       });
     }},
};

}  // namespace

int main() {
  torch::manual_seed(0);
  return peer::serve(
      std::string("libtorch ") + TORCH_VERSION, [](int threads) { at::set_num_threads(threads); }, kCases);
}
