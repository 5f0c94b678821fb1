// The cases of the comparison, in Tern. The same cases are in libtorch_peer.cpp and torch_peer.py.
#include <tern/tern.h>

#include "peer.h"
#include "tern/core/memory.h"
#include "tern/kernels/list.h"

using namespace tern;

namespace {

/// The perceptron of the first tutorials: 20 inputs, 256 hidden units, 10 outputs.
struct Perceptron : nn::Module {
  nn::Linear hidden{20, 256};
  nn::Linear output{256, 10};
  TERN_MODULE(hidden, output)
  Tensor forward(const Tensor& x) { return output(relu(hidden(x))); }
};

/// Two convolutions beside a shortcut, of ResNet-18.
struct BasicBlock : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  std::optional<nn::Sequential> downsample;
  TERN_MODULE(conv1, bn1, conv2, bn2, downsample)

  BasicBlock(int64_t inputs, int64_t outputs, int64_t stride)
      : conv1(inputs, outputs, 3, {.stride = stride, .padding = 1, .bias = false}),
        bn1(outputs),
        conv2(outputs, outputs, 3, {.padding = 1, .bias = false}),
        bn2(outputs) {
    if (stride != 1)
      downsample.emplace(nn::Conv2d(inputs, outputs, 1, {.stride = stride, .bias = false}),
                         nn::BatchNorm2d(outputs));
  }
  Tensor forward(const Tensor& x) {
    const Tensor shortcut = downsample ? (*downsample)(x) : x;
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut);
  }
};

struct ResNet18 : nn::Module {
  nn::Conv2d conv1{3, 64, 7, {.stride = 2, .padding = 3, .bias = false}};
  nn::BatchNorm2d bn1{64};
  nn::Sequential blocks{BasicBlock(64, 64, 1),   BasicBlock(64, 64, 1),   BasicBlock(64, 128, 2),
                        BasicBlock(128, 128, 1), BasicBlock(128, 256, 2), BasicBlock(256, 256, 1),
                        BasicBlock(256, 512, 2), BasicBlock(512, 512, 1)};
  nn::Linear fc{512, 1000};
  TERN_MODULE(conv1, bn1, blocks, fc)
  Tensor forward(const Tensor& images) {
    const Tensor x = max_pool2d(relu(bn1(conv1(images))), {.kernel_size = 3, .stride = 2, .padding = 1});
    return fc(flatten(adaptive_avg_pool2d(blocks(x), 1), 1));
  }
};

peer::Step large(const std::function<Tensor(const Tensor&)>& op) {
  Tensor x = randn({int64_t{16} << 20});
  return [=] { op(x); };
}

peer::Step matmul_of(int64_t n) {
  Tensor a = randn({n, n}), b = randn({n, n});
  return [=] { matmul(a, b); };
}

template <class Net>
peer::Step sgd_step(const Tensor& x, const Tensor& y) {
  auto net = std::make_shared<Net>();
  auto optimizer =
      std::make_shared<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
  return [=] {
    optimizer->zero_grad();
    nn::cross_entropy((*net)(x), y).backward();
    optimizer->step();
  };
}

peer::Step lenet_step(int64_t batch) {
  return sgd_step<nn::LeNet>(randn({batch, 1, 28, 28}), randint(0, 10, {batch}));
}

/// Two products of 1024 x 1024 on simulated GPUs: on the two at once, or one after the other on the first.
peer::Step two_products(bool on_two) {
  if (cuda::device_count() < 2) simulate_gpus({.gpus = 2});
  std::vector<Tensor> x;
  for (int i = 0; i < 2; ++i) x.push_back(randn({1024, 1024}).to(Device(on_two ? i : 0)));
  return [=] {
    std::vector<Tensor> products;
    for (const Tensor& each : x) products.push_back(matmul(each, each));
    for (const Tensor& each : products) synchronize(each.device());
  };
}

const std::map<std::string, peer::Setup> kCases = {
    {"launch_empty",
     [] {
       FillArgs args{};
       args.dtype = float32;
       set_flat(args.geometry, 0);
       return peer::Step([=] { launch(current_stream(kCPU), kernels::fill, args); });
     }},
    {"storage_64", [] { return peer::Step([] { allocate_storage(64, kCPU); }); }},
    {"storage_1m", [] { return peer::Step([] { allocate_storage(1 << 20, kCPU); }); }},
    {"two_products_at_once", [] { return two_products(/*on_two=*/true); }},
    {"two_products_in_turn", [] { return two_products(/*on_two=*/false); }},
    {"add_small",
     [] {
       Tensor a = randn({2, 3}), b = randn({2, 3});
       return peer::Step([=] { add(a, b); });
     }},
    {"mlp_forward_b2",
     [] {
       auto net = std::make_shared<Perceptron>();
       Tensor x = randn({2, 20});
       return peer::Step([=] { (*net)(x); });
     }},
    {"mlp_forward_b2_no_grad",
     [] {
       auto net = std::make_shared<Perceptron>();
       Tensor x = randn({2, 20});
       return peer::Step([=] {
         NoGradGuard no_grad;
         (*net)(x);
       });
     }},
    {"mlp_adam_step_b2",
     [] {
       auto net = std::make_shared<Perceptron>();
       auto optimizer = std::make_shared<optim::Adam>(net->parameters(), optim::AdamOptions{.lr = 1e-3});
       Tensor x = randn({2, 20}), y = randint(0, 10, {2});
       return peer::Step([=] {
         optimizer->zero_grad();
         nn::cross_entropy((*net)(x), y).backward();
         optimizer->step();
       });
     }},
    {"lenet_step_b1", [] { return lenet_step(1); }},
    {"lenet_step_b32", [] { return lenet_step(32); }},
    {"lenet_step_b256", [] { return lenet_step(256); }},
    {"resnet18_forward_b1",
     [] {
       auto net = std::make_shared<ResNet18>();
       net->eval();
       Tensor x = randn({1, 3, 224, 224});
       return peer::Step([=] {
         NoGradGuard no_grad;
         (*net)(x);
       });
     }},
    {"resnet18_step_b8",
     [] {
       return sgd_step<ResNet18>(randn({8, 3, 224, 224}), randint(0, 1000, {8}));
     }},
    {"relu_16m", [] { return large([](const Tensor& x) { return relu(x); }); }},
    {"exp_16m", [] { return large([](const Tensor& x) { return exp(x); }); }},
    {"gelu_16m", [] { return large([](const Tensor& x) { return gelu(x); }); }},
    {"add_16m",
     [] {
       Tensor y = randn({int64_t{16} << 20});
       return large([y](const Tensor& x) { return add(x, y); });
     }},
    {"softmax_16m", [] { return large([](const Tensor& x) {
                           return softmax(x.view({16384, 1024}), 1);
                         }); }},
    {"sum_16m", [] { return large([](const Tensor& x) { return sum(x); }); }},
    {"transpose_copy_16m",
     [] { return large([](const Tensor& x) {
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
       Tensor a = randn({100, 100});
       return peer::Step([=] {
         double total = 0;
         for (int i = 0; i < 1000; ++i) total += norm(matmul(a, a)).item<double>();
         if (total < 0) throw std::runtime_error("a norm is negative");
       });
     }},
    {"products_1000_norm_once",
     [] {
       Tensor a = randn({100, 100});
       return peer::Step([=] {
         Tensor total = zeros({});
         for (int i = 0; i < 1000; ++i) total.add_(norm(matmul(a, a)));
         if (total.item<double>() < 0) throw std::runtime_error("a norm is negative");
       });
     }},
};

}  // namespace

int main() {
  manual_seed(0);
  return peer::serve(
      "Tern", [](int threads) { set_num_threads(threads); }, kCases);
}
