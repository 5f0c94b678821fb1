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

peer::Step large(const std::function<Tensor(const Tensor&)>& op) {
  Tensor x = randn({int64_t{16} << 20});
  return [=] { op(x); };
}

peer::Step matmul_of(int64_t n) {
  Tensor a = randn({n, n}), b = randn({n, n});
  return [=] { matmul(a, b); };
}

peer::Step lenet_step(int64_t batch) {
  auto net = std::make_shared<nn::LeNet>();
  auto optimizer =
      std::make_shared<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
  Tensor x = randn({batch, 1, 28, 28}), y = randint(0, 10, {batch});
  return [=] {
    optimizer->zero_grad();
    Tensor loss = nn::cross_entropy((*net)(x), y);
    loss.backward();
    optimizer->step();
  };
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
