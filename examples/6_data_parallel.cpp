// 6. One network on all GPUs, each with a part of the batch: PyTorch's tutorial "Optional: Data Parallelism",
// which prints the same lines. Without GPUs, or with one, the network gets the whole batch.
// TERN_SIM_GPUS=2 ./6_data_parallel
#include <tern/parallel/data_parallel.h>
#include <tern/tern.h>

#include <iostream>

using namespace tern;

constexpr int64_t input_size = 5;
constexpr int64_t output_size = 2;
constexpr int64_t batch_size = 30;
constexpr int64_t data_size = 100;

// Any struct with size() and get(index) is a dataset: __len__ and __getitem__.
struct RandomDataset {
  Tensor data;
  RandomDataset(int64_t size, int64_t length) : data(randn({length, size})) {}
  Tensor get(int64_t index) const { return data[index]; }
  int64_t size() const { return data.size(0); }
};

struct Model : nn::Module {
  nn::Linear fc;
  TERN_MODULE(fc)
  Model(int64_t inputs, int64_t outputs) : fc(inputs, outputs) {}

  Tensor forward(const Tensor& input) {
    Tensor output = fc(input);
    std::cout << "\tIn Model: input size " << input.sizes() << " output size " << output.sizes() << '\n';
    return output;
  }
};

int main() {
  manual_seed(0);
  Device device = try_gpu();  // torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
  data::DataLoader rand_loader(RandomDataset(input_size, data_size),
                               {.batch_size = batch_size, .shuffle = true});

  // The wrapper takes all GPUs; with one or none it just calls the network, so no `if` is needed around it.
  if (cuda::device_count() > 1) std::cout << "Let's use " << cuda::device_count() << " GPUs!\n";
  parallel::DataParallel model(Model(input_size, output_size));  // model = nn.DataParallel(model)
  model.to(device);                                              // model.to(device)

  for (auto& batch : rand_loader) {        // for data in rand_loader:
    Tensor input = batch.data.to(device);  //     input = data.to(device)
    Tensor output = model(input);          //     output = model(input)
    std::cout << "Outside: input size " << input.sizes() << " output_size " << output.sizes() << '\n';
  }
}
