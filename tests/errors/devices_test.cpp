// Wrong uses: devices that are not there, badly named, or mixed. Their texts differ between processes with
// and without GPUs; both forms are tested, since these rows run with simulated GPUs too.
#include "tern/core/memory.h"
#include "wrong_use.h"

namespace tern {
namespace {

/// Inside, tensors made without a device are on the CPU.
class MadeOnCpu {
 public:
  MadeOnCpu() { set_default_device(kCPU); }
  ~MadeOnCpu() { set_default_device(outside_); }
  MadeOnCpu(const MadeOnCpu&) = delete;
  MadeOnCpu& operator=(const MadeOnCpu&) = delete;

 private:
  Device outside_ = get_default_device();
};

/// A tensor on a GPU. Where there is none, one that claims to be there: no kernel ever runs on it, since
/// every row must fail before.
Tensor on_gpu(IntArrayRef shape, DType dtype = float32, int index = 0) {
  const Device gpu(DeviceType::CUDA, index);
  if (index < cuda::device_count()) return zeros(shape, {.dtype = dtype, .device = gpu});
  const size_t nbytes = static_cast<size_t>(checked_numel(shape)) * itemsize(dtype);
  auto* memory = new char[nbytes];
  Storage storage(new StorageImpl(
      memory, nbytes, gpu,
      [](StorageImpl* self) noexcept {
        delete[] static_cast<char*>(self->data());
        delete self;
      },
      nullptr));
  return Tensor::from_storage(storage, dtype, shape);
}

const char* const kTwoDevices =
    "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!";

std::vector<WrongUse> mixed_rows() {
  const std::type_index device = typeid(DeviceError);
  std::vector<WrongUse> rows = {
      {"add",
       device,
       [] { add(ones({2}), on_gpu({2})); },
       {kTwoDevices, "add: the first operand is on cpu, the second operand is on cuda:0", "to(device)"}},
      {"add_two_gpus",
       device,
       [] { add(on_gpu({2}), on_gpu({2}, float32, 1)); },
       {"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!",
        "add: the first operand is on cuda:0, the second operand is on cuda:1"}},
      {"add_in_place", device, [] { ones({2}).add_(on_gpu({2})); }, {kTwoDevices, "add_: ", "to(device)"}},
      {"matmul",
       device,
       [] {
         matmul(ones({2, 2}), on_gpu({2, 2}));
       },
       {kTwoDevices, "matmul: a is on cpu, b is on cuda:0"}},
      {"linear",
       device,
       [] {
         linear(ones({2, 2}), ones({2, 2}), on_gpu({2}));
       },
       {kTwoDevices, "linear: input is on cpu, weight is on cpu, bias is on cuda:0"}},
      {"conv2d",
       device,
       [] {
         conv2d(ones({1, 1, 3, 3}), on_gpu({1, 1, 3, 3}));
       },
       {kTwoDevices, "conv2d: input is on cpu, weight is on cuda:0"}},
      {"batch_norm",
       device,
       [] {
         batch_norm(ones({4, 3}), on_gpu({3}), ones({3}));
       },
       {kTwoDevices, "batch_norm: input is on cpu, running_mean is on cuda:0"}},
      {"cat",
       device,
       [] {
         cat({ones({2}), on_gpu({2})});
       },
       {kTwoDevices, "cat: ", "tensors[1] is on cuda:0"}},
      {"where",
       device,
       [] { where(ones({2}) > 0, ones({2}), on_gpu({2})); },
       {kTwoDevices, "where: condition is on cpu", "cuda:0"}},
      {"gather",
       device,
       [] { gather(ones({2}), 0, on_gpu({2}, int64)); },
       {kTwoDevices, "gather: ", "index is on cuda:0"}},
      {"embedding",
       device,
       [] {
         embedding(on_gpu({2}, int64), ones({4, 3}));
       },
       {kTwoDevices, "embedding: "}},
      {"cross_entropy",
       device,
       [] {
         cross_entropy(ones({2, 3}), on_gpu({2}, int64));
       },
       {kTwoDevices, "cross_entropy: input is on cpu, target is on cuda:0"}},
      {"mse_loss",
       device,
       [] { mse_loss(ones({2}), on_gpu({2})); },
       {kTwoDevices, "mse_loss: input is on cpu, target is on cuda:0"}},
      {"module_says_its_path",
       device,
       [] {
         nn::MLP({2, 2})(on_gpu({1, 2}));
       },
       {"fc1", "Linear", "linear: input is on cuda:0, weight is on cpu", "to(device)"}},
      {"data_of_a_gpu_tensor",
       device,
       [] { on_gpu({2}).data<float>(); },
       {"data<float32>(): the tensor is on cuda:0", "cpu()"}},
      {"index_add",
       device,
       [] { index_add(ones({3}), 0, tensor({0}), on_gpu({1})); },
       {kTwoDevices, "index_add: ", "source is on cuda:0"}},
      {"set_grad",
       device,
       [] { ones({2}, {.requires_grad = true}).set_grad(on_gpu({2})); },
       {"set_grad: ", "cpu", "cuda:0"}},
      {"index",
       device,
       [] { index(ones({3}), {on_gpu({1}, int64)}); },
       {kTwoDevices, "index: x is on cpu, index is on cuda:0"}},
      {"index_put",
       device,
       [] { index_put(ones({3}), {tensor({0})}, on_gpu({1})); },
       {kTwoDevices, "index_put: x is on cpu, values is on cuda:0"}},
      {"normalize",
       device,
       [] {
         data::Normalize({0.0}, {1.0})(on_gpu({1, 2, 2}));
       },
       {"Normalize: works on the CPU, the picture is on cuda:0", ".cpu()"}},
      {"to_float",
       device,
       [] {
         data::ToFloat()(on_gpu({1, 2, 2}, uint8));
       },
       {"ToFloat: works on the CPU, the picture is on cuda:0", ".cpu()"}},
      {"tensor_to_image",
       device,
       [] {
         data::tensor_to_image(on_gpu({1, 2, 2}, uint8));
       },
       {"tensor_to_image: works on the CPU, the tensor is on cuda:0", ".cpu()"}},
      {"transform_to_the_gpu",
       device,
       [] {
         data::Digits({.size = 1,
                       .image = {.transform =
                                     [](const Tensor&) {
                                       return on_gpu({1, 28, 28}, uint8);
                                     }}})
             .get(0);
       },
       {"Digits: the transform must give pictures on the CPU, it gave one on cuda:0"}},
  };
  for (WrongUse& row : rows)
    row.use = [use = row.use] {
      const MadeOnCpu inside;
      use();
    };
  return rows;
}

std::vector<WrongUse> absent_rows() {
  const std::type_index device = typeid(DeviceError);
  const int gpus = cuda::device_count();
  const std::string gpu = "cuda:" + std::to_string(gpus);
  const std::string absent = "device " + gpu + " is not available";
  const std::string remedy =
      gpus == 0 ? "use the cpu" : "the program sees " + std::to_string(gpus) + " GPU(s), numbered from 0";
  std::vector<WrongUse> rows = {
      {"zeros", device, [=] { zeros({2}, {.device = gpu}); }, {"zeros: ", absent, remedy}},
      {"tensor", device, [=] { tensor(1.0, {.device = gpu}); }, {"tensor: ", absent, remedy}},
      {"rand", device, [=] { rand({2}, {.device = gpu}); }, {"rand: ", absent, remedy}},
      {"arange", device, [=] { arange(3, {.device = gpu}); }, {"arange: ", absent, remedy}},
      {"to", device, [=] { ones({2}).to(gpu); }, {"to: ", absent, remedy}},
      {"cuda", device, [=] { ones({2}).cuda(gpus); }, {absent, remedy}},
      {"module_to", device, [=] { nn::Linear(2, 2).to(gpu); }, {absent, remedy}},
      {"module_made_there", device, [=] { nn::Linear(2, 2, {.device = gpu}); }, {absent, remedy}},
      {"resolve", device, [=] { resolve_device("cuda:77"); }, {"device cuda:77 is not available", remedy}},
      {"synchronize", device, [=] { synchronize(gpu); }, {absent, remedy}},
      {"load_to_gpu",
       device,
       [=] { load_from_buffer(save_to_buffer(ones({2})), {.map_location = gpu}); },
       {"loading from memory", "CUDA", "map_location"}},
      {"safetensors_to_gpu",
       device,
       [=] {
         load_safetensors_from_buffer(save_safetensors_to_buffer({{"x", ones({2})}}), {.map_location = gpu});
       },
       {"loading from memory", "CUDA", "map_location"}},
      {"map_location_to_nowhere",
       typeid(CheckpointError),
       [=] {
         load_from_buffer(save_to_buffer(ones({2}, {.device = kCPU})),
                          {.map_location = std::map<std::string, std::string>{{"cpu", "xpu:0"}}});
       },
       {"loading from memory", "xpu:0", "map_location", "\"cpu\""}},
      {"map_location_number",
       device,
       [=] { load_from_buffer(save_to_buffer(ones({2})), {.map_location = gpus}); },
       {"loading from memory", "CUDA", "map_location"}},
      {"map_location_negative",
       device,
       [] { load_from_buffer(save_to_buffer(1), {.map_location = -1}); },
       {"Device index", "0 to 32767", "-1"}},
      {"map_location_table_to_nowhere",
       device,
       [] {
         load_from_buffer(save_to_buffer(1), {.map_location = {{"cpu", "xpu:0"}}});
       },
       {"Invalid device string: 'xpu:0'", "cpu, cuda, or cuda:N"}},
      {"map_location_null_pointer",
       typeid(ValueError),
       [] { load_from_buffer(save_to_buffer(1), {.map_location = static_cast<const char*>(nullptr)}); },
       {"map_location is a null pointer", "leave it out", "environment variable"}},
      {"data_loader",
       device,
       [=] { data::DataLoader(data::TensorDataset(ones({4})), {.device = gpu}); },
       {"DataLoader", absent, remedy}},
  };
  if (gpus == 0) {
    const std::string cuda_absent = "device cuda is not available";
    rows.push_back({"any_gpu", device, [] { ones({2}).cuda(); }, {cuda_absent, remedy}});
    rows.push_back({"backend", device, [] { backend_of(DeviceType::CUDA); }, {cuda_absent, remedy}});
  }
  return rows;
}

std::vector<WrongUse> name_rows() {
  const std::type_index device = typeid(DeviceError);
  std::vector<WrongUse> rows;
  const std::pair<const char*, const char*> texts[] = {
      {"empty", ""},           {"other_kind", "gpu"},  {"upper_case", "CUDA"},
      {"negative", "cuda:-1"}, {"no_number", "cuda:"}, {"not_a_number", "cuda:x"},
      {"second_cpu", "cpu:1"}, {"space", "cuda: 0"},   {"huge", "cuda:99999999999999999999"},
      {"plus", "cuda:+1"},     {"rest", "cuda:0,1"}};
  for (const auto& [name, text] : texts)
    rows.push_back(
        {name,
         device,
         [text = text] { Device{text}; },
         {"Invalid device string: '" + std::string(text) + "'", "cpu, cuda, or cuda:N", "cuda:1"}});
  rows.push_back({"null_pointer",
                  typeid(ValueError),
                  [] { Device{static_cast<const char*>(nullptr)}; },
                  {"Device: the text is a null pointer", "cpu, cuda, or cuda:N", "environment variable"}});
  rows.push_back({"negative_number", device, [] { Device{-2}; }, {"Device index", "0 to 32767", "-2"}});
  rows.push_back({"large_number_of_type",
                  device,
                  [] {
                    Device{DeviceType::CUDA, 65536};
                  },
                  {"Device index", "0 to 32767", "65536"}});
  rows.push_back({"large_number", device, [] { Device{70000}; }, {"Device index", "0 to 32767", "70000"}});
  return rows;
}

TERN_WRONG_USES(MixedDevices, mixed_rows);
TERN_WRONG_USES(AbsentDevices, absent_rows);
TERN_WRONG_USES(DeviceNames, name_rows);

}  // namespace
}  // namespace tern
