// The cases of the comparison on a GPU, in Tern. The same cases are in torch_gpu_peer.py, those of the bare
// machine in gpu_bare.cu; bench/gpu_compare.py drives them. Usage: gpu_peer [--small], or gpu_peer soak STEPS
// [--captured].
#include <tern/tern.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "peer.h"
#include "tern/kernels/list.h"
#include "tern/kernels/precision.h"

using namespace tern;

namespace {

const Device kGpu("cuda:0");
bool small = false;  // sizes for trying this program itself, on simulated GPUs

/// Elements of the large cases: so many that even what is only read can not stay in a cache; and of a copy
/// from the host.
int64_t large_numel() { return small ? int64_t{1} << 16 : int64_t{256} << 20; }
int64_t copied_numel() { return small ? int64_t{1} << 16 : int64_t{64} << 20; }
constexpr int64_t kColumns = 1024;
Tensor large() { return randn({large_numel() / kColumns, kColumns}, {.device = kGpu}); }

void wait() { synchronize(kGpu); }

peer::Step on_large(const std::function<void(const Tensor&)>& op) {
  Tensor x = large();
  return [=] {
    NoGradGuard no_grad;
    op(x);
  };
}

/// A training step; net and optimizer live as long as it.
template <class Net, class Optimizer>
peer::Step training_step(std::shared_ptr<Net> net, std::shared_ptr<Optimizer> optimizer, const Tensor& x,
                         const Tensor& y) {
  return [=] {
    optimizer->zero_grad();
    nn::cross_entropy((*net)(x), y).backward();
    optimizer->step();
  };
}

/// The same step, recorded after it has been taken once.
peer::Step captured(const peer::Step& step) {
  auto recorded = std::make_shared<CapturedStep>(capture(step));
  return [=] {
    (void)step;  // kept: it owns what is read
    recorded->replay();
  };
}

peer::Step lenet_step(int64_t batch) {
  auto net = std::make_shared<nn::LeNet>();
  net->to(kGpu);
  auto optimizer =
      std::make_shared<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
  return training_step(net, optimizer, randn({batch, 1, 28, 28}, {.device = kGpu}),
                       randint(0, 10, {batch}, {.device = kGpu}));
}

peer::Step mlp_step(int64_t batch) {
  auto net = std::make_shared<nn::MLP>(std::vector<int64_t>{20, 256, 10});
  net->to(kGpu);
  auto optimizer = std::make_shared<optim::Adam>(net->parameters(), optim::AdamOptions{.lr = 1e-3});
  return training_step(net, optimizer, randn({batch, 20}, {.device = kGpu}),
                       randint(0, 10, {batch}, {.device = kGpu}));
}

/// A product of n x n; `precision` is what float32 means. By the algorithm that cuBLASLt advises, or by the
/// fastest of those that were measured.
peer::Step matmul_of(int64_t n, DType dtype, const char* precision, bool measured) {
  if (small) n /= 32;
  set_matmul_benchmark(measured);
  Tensor a = randn({n, n}, {.device = kGpu}).to(dtype), b = randn({n, n}, {.device = kGpu}).to(dtype);
  set_float32_matmul_precision(precision);
  return [=] {
    NoGradGuard no_grad;
    matmul(a, b);
  };
}

/// `forward` of bfloat16 tensors of these shapes, with all their gradients for one of the first's shape.
peer::Step bfloat16_step(const std::vector<Shape>& shapes,
                         const std::function<Tensor(const std::vector<Tensor>&)>& forward) {
  set_matmul_benchmark(false);
  std::vector<Tensor> leaves;
  for (const Shape& shape : shapes)
    leaves.push_back(randn(shape, {.device = kGpu}).to(bfloat16).requires_grad_());
  const Tensor grad = randn(shapes[0], {.device = kGpu}).to(bfloat16);
  return [=] {
    for (const Tensor& each : leaves) each.set_grad({});
    forward(leaves).backward(grad);
  };
}

peer::Step linear_step() {
  const int64_t n = small ? 128 : 4096;
  return bfloat16_step({{n, n}, {n, n}, {n}},
                       [](const std::vector<Tensor>& t) { return linear(t[0], t[1], t[2]); });
}

/// What a transformer has after its attention.
peer::Step feed_forward_step() {
  const int64_t n = small ? 128 : 4096, width = n / 4;
  return bfloat16_step({{n, width}, {n, width}, {n}, {width, n}, {width}}, [](const std::vector<Tensor>& t) {
    return linear_gelu_linear(t[0], t[1], t[2], t[3], t[4]);
  });
}

/// The gradients of an operator, for x and for `others`.
peer::Step gradient_on_large(const std::function<Tensor(const Tensor&)>& f, std::vector<Tensor> others = {}) {
  Tensor x = large().requires_grad_();
  for (const Tensor& each : others) each.requires_grad_();
  const Tensor y = f(x), g = randn(y.shape(), {.device = kGpu});
  others.insert(others.begin(), x);
  return [=] { grad({y}, others, {g}, GradOptions{.retain_graph = true}); };
}

/// 1000 products of 100 x 100 and their norms: each read by the host, or kept on the device.
peer::Step products(bool read_each) {
  set_float32_matmul_precision("highest");
  Tensor a = randn({100, 100}, {.device = kGpu});
  return [=] {
    NoGradGuard no_grad;
    double sum = 0;
    Tensor total = zeros({}, {.device = kGpu});
    for (int i = 0; i < 1000; ++i) {
      const Tensor each = norm(matmul(a, a));
      if (read_each)
        sum += each.item<double>();
      else
        total.add_(each);
    }
    if (sum + total.item<double>() < 0) throw std::runtime_error("a norm is negative");
  };
}

/// The same, kept on the device and recorded.
peer::Step products_captured() {
  set_float32_matmul_precision("highest");
  Tensor a = randn({100, 100}, {.device = kGpu}), total = zeros({}, {.device = kGpu});
  const peer::Step replay = captured([=] {
    NoGradGuard no_grad;
    Tensor sum = total;
    sum.zero_();
    for (int i = 0; i < 1000; ++i) sum.add_(norm(matmul(a, a)));
  });
  return [=] {
    replay();
    if (total.item<double>() <= 0) throw std::runtime_error("a norm is not positive");
  };
}

peer::Step pinned_copy() {
  Tensor x = randn({copied_numel()}).pin_memory();
  return [=] { x.to(kGpu, {.non_blocking = true}); };
}

constexpr int kLaunches = 256;  // fewer than the driver queues without blocking

/// Kernels that write one number: what the host needs for each, or host and GPU together.
peer::Step launches(bool host_alone) {
  Tensor x = zeros({1}, {.device = kGpu});
  FillArgs args{};
  args.dtype = float32;
  args.out = x.data_ptr();
  set_flat(args.geometry, 1);
  const Stream stream = current_stream(kGpu);
  return [=] {
    (void)x;  // kept
    for (int i = 0; i < kLaunches; ++i) launch(stream, kernels::fill, args);
    if (host_alone) peer::untimed(wait);
  };
}

/// Two chains of products, on the two parts of a GPU at once, or one after the other on the first.
peer::Step two_chains(bool on_two) {
  if (cuda::device_count() < 2) throw DeviceError("this needs two GPUs: set TERN_LOGICAL_GPUS=2");
  const int64_t n = small ? 32 : 512;
  std::vector<Tensor> x;
  for (int i = 0; i < 2; ++i) x.push_back(randn({n, n}).to(Device(on_two ? i : 0)));
  return [=] {
    NoGradGuard no_grad;
    std::vector<Tensor> y = x;
    for (int i = 0; i < 20; ++i)
      for (size_t d = 0; d < y.size(); ++d) y[d] = softmax(matmul(y[d], x[d]), 1);
    for (const Tensor& each : y) synchronize(each.device());
  };
}

std::map<std::string, peer::Setup> cases() {
  std::map<std::string, peer::Setup> all = {
      {"launch_host", [] { return launches(/*host_alone=*/true); }},
      {"launch_rate", [] { return launches(/*host_alone=*/false); }},
      {"lenet_step_b256", [] { return lenet_step(small ? 8 : 256); }},
      {"mlp_step_b2", [] { return mlp_step(2); }},
      {"lenet_step_b256_captured", [] { return captured(lenet_step(small ? 8 : 256)); }},
      {"mlp_step_b2_captured", [] { return captured(mlp_step(2)); }},
      {"relu", [] { return on_large([](const Tensor& x) { relu(x); }); }},
      {"exp", [] { return on_large([](const Tensor& x) { exp(x); }); }},
      {"gelu", [] { return on_large([](const Tensor& x) { gelu(x); }); }},
      {"add",
       [] {
         Tensor y = large();
         return on_large([y](const Tensor& x) { add(x, y); });
       }},
      {"add_row",
       [] {
         Tensor y = randn({kColumns}, {.device = kGpu});
         return on_large([y](const Tensor& x) { add(x, y); });
       }},
      {"softmax", [] { return on_large([](const Tensor& x) { softmax(x, 1); }); }},
      {"log_softmax", [] { return on_large([](const Tensor& x) { log_softmax(x, 1); }); }},
      {"layer_norm",
       [] {
         Tensor weight = ones({kColumns}, {.device = kGpu}), bias = zeros({kColumns}, {.device = kGpu});
         return on_large([=](const Tensor& x) { layer_norm(x, {kColumns}, weight, bias); });
       }},
      {"sum", [] { return on_large([](const Tensor& x) { sum(x); }); }},
      {"sum_rows", [] { return on_large([](const Tensor& x) { sum(x, {1}); }); }},
      {"sum_columns", [] { return on_large([](const Tensor& x) { sum(x, {0}); }); }},
      {"amax_rows", [] { return on_large([](const Tensor& x) { amax(x, {1}); }); }},
      {"norm", [] { return on_large([](const Tensor& x) { norm(x); }); }},
      {"softmax_gradient", [] { return gradient_on_large([](const Tensor& x) { return softmax(x, 1); }); }},
      {"layer_norm_gradient",
       [] {
         Tensor weight = ones({kColumns}, {.device = kGpu}), bias = zeros({kColumns}, {.device = kGpu});
         return gradient_on_large([=](const Tensor& x) { return layer_norm(x, {kColumns}, weight, bias); },
                                  {weight, bias});
       }},
      {"norm_gradient", [] { return gradient_on_large([](const Tensor& x) { return norm(x); }); }},
      {"linear_bfloat16", [] { return linear_step(); }},
      {"feed_forward_bfloat16", [] { return feed_forward_step(); }},
      {"products_each", [] { return products(/*read_each=*/true); }},
      {"products_kept", [] { return products(/*read_each=*/false); }},
      {"products_captured", [] { return products_captured(); }},
      {"h2d_pinned", [] { return pinned_copy(); }},
      {"two_at_once", [] { return two_chains(/*on_two=*/true); }},
      {"two_in_turn", [] { return two_chains(/*on_two=*/false); }},
  };
  for (int64_t n : {1024, 2048, 4096, 8192, 16384}) {
    const std::string size = "_" + std::to_string(n);
    for (const bool measured : {false, true}) {
      const std::string name = size + (measured ? "_measured" : "");
      all["matmul_float32" + name] = [=] { return matmul_of(n, float32, "highest", measured); };
      all["matmul_tf32" + name] = [=] { return matmul_of(n, float32, "high", measured); };
      all["matmul_bfloat16" + name] = [=] { return matmul_of(n, bfloat16, "highest", measured); };
    }
  }
  // Nobody's matrices lie where an earlier case has left room for them: PyTorch's side does the same.
  for (auto& [name, setup] : all)
    setup = [made = std::move(setup)] {
      cuda::empty_cache();
      return made();
    };
  return all;
}

/// Bytes of the process in the machine's memory.
long long resident_bytes() {
  std::ifstream file("/proc/self/statm");
  long long pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

void print_memory(int64_t step, double loss) {
  std::printf(
      "{\"step\":%lld,\"loss\":%.6g,\"allocated\":%llu,\"reserved\":%llu,\"free\":%llu,\"resident\":%lld}\n",
      static_cast<long long>(step), loss, static_cast<unsigned long long>(cuda::memory_allocated(kGpu)),
      static_cast<unsigned long long>(cuda::memory_reserved(kGpu)),
      static_cast<unsigned long long>(cuda::mem_get_info(kGpu).first), resident_bytes());
  std::fflush(stdout);
}

/// Trains LeNet on batches that come from the host, and prints how much memory is in use ten times.
void soak(int64_t steps, bool by_capture) {
  nn::LeNet net;
  net.to(kGpu);
  optim::SGD optimizer(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  const Tensor x = randn({64, 1, 28, 28}), y = randint(0, 10, {64});
  Tensor loss, x_there = x.to(kGpu), y_there = y.to(kGpu);
  const auto train = [&] {
    optimizer.zero_grad();
    loss = nn::cross_entropy(net(x_there), y_there);
    loss.backward();
    optimizer.step();
  };
  std::optional<CapturedStep> recorded;
  if (by_capture) recorded = capture(train);
  for (int64_t step = 1; step <= steps; ++step) {
    if (recorded) {
      x_there.copy_(x);
      y_there.copy_(y);
      recorded->replay();
    } else {
      x_there = x.to(kGpu);
      y_there = y.to(kGpu);
      train();
    }
    if (step % std::max<int64_t>(1, steps / 10) == 0) print_memory(step, loss.item<double>());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  for (int i = 1; i < argc; ++i) small = small || std::strcmp(argv[i], "--small") == 0;
  manual_seed(0);
  if (argc > 2 && std::strcmp(argv[1], "soak") == 0) {
    soak(std::stoll(argv[2]), /*by_capture=*/argc > 3 && std::strcmp(argv[3], "--captured") == 0);
    return 0;
  }
  const std::string name = "Tern on " + cuda::get_device_name(kGpu);
  return peer::serve(
      name, [](int threads) { set_num_threads(threads); }, cases(), wait);
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpu_peer: %s\n", error.what());
  return 1;
}
