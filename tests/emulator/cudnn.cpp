// cuDNN's graph API as the backend calls it: graphs of one convolution, and those of cudnn_program.h. Its
// heuristic advises engines that the backend must pass over (one that is not deterministic, one that rounds)
// before one that will do but is slow, and adds float32 in float32, and one that is better in both; a graph
// with dilation has none. With real_cudnn it is the real library that says what it takes and advises, and a
// graph that it makes no plan of ends the process.
#include <cudnn_graph.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "tests/emulator/cudnn_bag.h"
#include "tests/emulator/cudnn_program.h"
#include "tests/emulator/gpus.h"
#include "tests/emulator/numbers.h"
#include "tests/emulator/queue.h"

using emulator::Bag;
using emulator::bag;
using emulator::Engine;
using emulator::kEngines;
using emulator::Program;
using emulator::read_number;
using emulator::write_number;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, image, weight, out, alpha, beta;
};
constexpr Names kPasses[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};
const Names* names_of(cudnnBackendDescriptorType_t type) {
  for (const Names& each : kPasses)
    if (each.type == type) return &each;
  return nullptr;
}

using Sizes = std::array<int64_t, 4>;

/// A tensor descriptor's dimensions; all zeros unless it is four-dimensional and dense.
Sizes sizes_of(const Bag* tensor) {
  if (tensor == nullptr) return {};
  const auto sizes = tensor->numbers(CUDNN_ATTR_TENSOR_DIMENSIONS),
             strides = tensor->numbers(CUDNN_ATTR_TENSOR_STRIDES);
  if (sizes.size() != 4 || strides.size() != 4) return {};
  int64_t dense = 1;
  for (size_t d = 4; d-- > 0; dense *= sizes[d])
    if (strides[d] != dense || sizes[d] < 1) return {};
  return {sizes[0], sizes[1], sizes[2], sizes[3]};
}

/// One convolution, taken from the descriptors.
struct Convolution {
  const Names* names = nullptr;
  Sizes image{}, weight{}, out{};
  std::vector<int64_t> stride, padding, dilation;
  cudaDataType type = CUDA_R_32F;

  explicit Convolution(const Bag& operation) : names(names_of(operation.type)) {
    if (names == nullptr) return;
    image = sizes_of(operation.part(names->image));
    weight = sizes_of(operation.part(names->weight));
    out = sizes_of(operation.part(names->out));
    if (const Bag* how = operation.part(names->convolution)) {
      stride = how->numbers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
      padding = how->numbers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
      dilation = how->numbers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    }
    if (const Bag* tensor = operation.part(names->image)) {
      const auto dtype = tensor->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
      type = dtype == CUDNN_DATA_HALF       ? CUDA_R_16F
             : dtype == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF
             : dtype == CUDNN_DATA_DOUBLE   ? CUDA_R_64F
                                            : CUDA_R_32F;
    }
  }

  bool fits() const {
    if (names == nullptr || stride.size() != 2 || padding.size() != 2 || dilation.size() != 2 ||
        weight[1] == 0)
      return false;
    if (image[0] != out[0] || weight[0] != out[1] || image[1] % weight[1] != 0 ||
        out[1] % (image[1] / weight[1]) != 0)
      return false;
    for (size_t d = 0; d < 2; ++d)
      if (out[2 + d] !=
          (image[2 + d] + 2 * padding[d] - dilation[d] * (weight[2 + d] - 1) - 1) / stride[d] + 1)
        return false;
    return true;
  }

  /// Calls `f(image, weight, out)` with the offsets of every product.
  template <class F>
  void walk(const F& f) const {
    const int64_t groups = image[1] / weight[1], out_per_group = out[1] / groups;
    for (int64_t n = 0; n < out[0]; ++n)
      for (int64_t o = 0; o < out[1]; ++o)
        for (int64_t y = 0; y < out[2]; ++y)
          for (int64_t x = 0; x < out[3]; ++x)
            for (int64_t c = 0; c < weight[1]; ++c)
              for (int64_t ky = 0; ky < weight[2]; ++ky)
                for (int64_t kx = 0; kx < weight[3]; ++kx) {
                  const int64_t iy = y * stride[0] - padding[0] + ky * dilation[0],
                                ix = x * stride[1] - padding[1] + kx * dilation[1];
                  if (iy < 0 || iy >= image[2] || ix < 0 || ix >= image[3]) continue;
                  const int64_t channel = o / out_per_group * weight[1] + c;
                  f(((n * image[1] + channel) * image[2] + iy) * image[3] + ix,
                    ((o * weight[1] + c) * weight[2] + ky) * weight[3] + kx,
                    ((n * out[1] + o) * out[2] + y) * out[3] + x);
                }
  }

  void run(const void* image_data, const void* weight_data, const void* out_data, Engine engine) const {
    const auto count = [](const Sizes& s) { return s[0] * s[1] * s[2] * s[3]; };
    const bool to_image = names == &kPasses[1], to_weight = names == &kPasses[2];
    const int64_t results = count(to_image ? image : to_weight ? weight : out);
    std::vector<double> sums(static_cast<size_t>(results));
    const bool rounds = engine == Engine::Slow && type == CUDA_R_32F;
    walk([&](int64_t i, int64_t w, int64_t o) {
      const double product = to_image ? read_number(type, weight_data, w) * read_number(type, out_data, o)
                             : to_weight
                                 ? read_number(type, image_data, i) * read_number(type, out_data, o)
                                 : read_number(type, image_data, i) * read_number(type, weight_data, w);
      double& sum = sums[static_cast<size_t>(to_image ? i : to_weight ? w : o)];
      sum = rounds ? static_cast<double>(static_cast<float>(sum + product)) : sum + product;
    });
    if (engine == Engine::Slow) emulator::pass_time(1);
    void* target = const_cast<void*>(to_image ? image_data : to_weight ? weight_data : out_data);
    for (int64_t i = 0; i < results; ++i) write_number(type, target, i, sums[static_cast<size_t>(i)]);
  }
};

/// The graph that a heuristic, configuration or plan is of.
const Bag* graph_of(const Bag* from) {
  for (auto name : {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ATTR_ENGINECFG_ENGINE,
                    CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH})
    if (from != nullptr)
      if (const Bag* next = from->part(name)) from = next;
  return from != nullptr && from->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR ? from : nullptr;
}

/// Its convolution; null where it is of other operations.
const Bag* convolution_of(const Bag* from) {
  const Bag* graph = graph_of(from);
  if (graph == nullptr || graph->operations.size() != 1) return nullptr;
  const Bag* operation = graph->operations.front().get();
  return names_of(operation->type) != nullptr ? operation : nullptr;
}

bool fits(const Bag& from) {
  if (const Bag* operation = convolution_of(&from)) return Convolution(*operation).fits();
  const Bag* graph = graph_of(&from);
  return graph != nullptr && Program(graph->operations).fits();
}

cudnnStatus_t check(const Bag& made) {
  switch (made.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return made.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS).size() == 4 ? CUDNN_STATUS_SUCCESS
                                                                    : CUDNN_STATUS_BAD_PARAM;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return fits(made) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    default:
      return names_of(made.type) == nullptr || Convolution(made).fits() ? CUDNN_STATUS_SUCCESS
                                                                        : CUDNN_STATUS_BAD_PARAM;
  }
}

/// Without a plan the backend would go another way, and no test would tell.
void refuse_without_plan(const Bag& made) {
  const Bag* operation = convolution_of(&made);
  std::fprintf(stderr, "CUDA emulator: the real cuDNN refuses a descriptor of type %d", made.type);
  if (operation != nullptr) {
    const Convolution c(*operation);
    std::fprintf(stderr, ", operation %d, of numbers of type %d", operation->type, c.type);
    for (const Sizes& sizes : {c.image, c.weight, c.out})
      std::fprintf(stderr, ", [%ld, %ld, %ld, %ld]", sizes[0], sizes[1], sizes[2], sizes[3]);
    for (const auto& pair : {c.stride, c.padding, c.dilation})
      std::fprintf(stderr, ", (%ld, %ld)", pair[0], pair[1]);
  }
  std::fprintf(stderr, "\n");
  std::abort();
}

/// Finishes the twin too, and keeps in mind which graphs have a plan: one that fails where its code is
/// loaded, for which there is no GPU, is one.
cudnnStatus_t finish_twin(Bag& made) {
  cudnnStatus_t status = made.twin->finish();
  const bool advice = made.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
             plan = made.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  if (plan && status == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER) {
    made.loaded = false;
    status = CUDNN_STATUS_SUCCESS;
  }
  if (status != CUDNN_STATUS_SUCCESS && !advice && !plan) refuse_without_plan(made);
  if (status == CUDNN_STATUS_SUCCESS && plan)
    *made.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)->planned =
        true;
  return status;
}

/// What the real cuDNN says. Configurations that it advises are of the graph that it was asked about.
cudnnStatus_t ask_twin(const Bag& from, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t asked, int64_t* count, void* values) {
  if (!from.loaded && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    *count = 1;
    *static_cast<int64_t*>(values) = 0;
    return CUDNN_STATUS_SUCCESS;
  }
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR || values == nullptr)
    return from.twin->ask(name, type, asked, count, values);
  auto* descriptors = static_cast<cudnnBackendDescriptor_t*>(values);
  std::vector<cudnnBackendDescriptor_t> twins;
  for (int64_t i = 0; i < asked; ++i) twins.push_back(bag(descriptors[i]).twin->get());
  const cudnnStatus_t status = from.twin->ask(name, type, asked, count, twins.data());
  const auto graph = from.parts.find(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  for (int64_t i = 0; i < asked; ++i) {
    Bag& filled = bag(descriptors[i]);
    filled.finished = status == CUDNN_STATUS_SUCCESS && i < *count;
    if (graph != from.parts.end()) filled.parts[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = graph->second;
  }
  return status;
}

}  // namespace

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  // Inner streams of the handle may be part of what is recorded.
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (handle->stream != nullptr) cudaStreamIsCapturing(handle->stream, &status);
  if (status != cudaStreamCaptureStatusNone) return CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "the emulator refuses this"; }
void cudnnGetLastErrorString(char*, size_t) {}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  *made = new Bag{.type = type, .twin = emulator::Twin::make(type)};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t old) {
  const Bag& gone = bag(old);
  if (gone.twin && gone.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && !*gone.planned)
    refuse_without_plan(gone);
  delete &gone;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Bag& made = bag(descriptor);
  cudnnStatus_t status = check(made);
  if (status == CUDNN_STATUS_SUCCESS && made.twin) status = finish_twin(made);
  made.finished = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  Bag& made = bag(descriptor);
  if (made.finished || count < 1) return CUDNN_STATUS_NOT_INITIALIZED;
  const auto* bytes = static_cast<const char*>(values);
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    std::vector<std::shared_ptr<const Bag>> parts;
    std::vector<cudnnBackendDescriptor_t> twins;
    for (int64_t i = 0; i < count; ++i) {
      const Bag& part = bag(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
      if (!part.finished) return CUDNN_STATUS_BAD_PARAM;
      parts.push_back(std::make_shared<const Bag>(part));
      if (part.twin) twins.push_back(part.twin->get());
    }
    if (made.twin && made.twin->set(name, type, count, twins.data()) != CUDNN_STATUS_SUCCESS)
      return CUDNN_STATUS_BAD_PARAM;
    if (name == CUDNN_ATTR_OPERATIONGRAPH_OPS)
      made.operations = std::move(parts);
    else if (count == 1)
      made.parts[name] = parts.front();
    else
      return CUDNN_STATUS_BAD_PARAM;
  } else {
    made.attributes[name] = {
        type, count, std::vector<char>(bytes, bytes + static_cast<size_t>(count) * emulator::size_of(type))};
    if (made.twin) return made.twin->set(name, type, count, values);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t asked, int64_t* count,
                                       void* values) {
  const Bag& from = bag(descriptor);
  if (!from.finished) return CUDNN_STATUS_NOT_INITIALIZED;
  if (from.twin) return ask_twin(from, name, type, asked, count, values);
  auto* descriptors = static_cast<cudnnBackendDescriptor_t*>(values);
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const Bag* operation = convolution_of(&from);
      const auto is_dilated = [&] {
        const Convolution convolution(*operation);
        return convolution.dilation[0] != 1 || convolution.dilation[1] != 1;
      };
      *count = operation != nullptr && is_dilated() ? 0 : kEngines;
      if (asked < *count) return values == nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
      for (int64_t i = 0; i < *count; ++i) {
        auto engine = std::make_shared<Bag>(Bag{.type = CUDNN_BACKEND_ENGINE_DESCRIPTOR, .finished = true});
        engine->engine = static_cast<Engine>(i);
        engine->parts[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
            from.parts.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        Bag& configuration = bag(descriptors[i]);
        configuration.finished = true;
        configuration.parts[CUDNN_ATTR_ENGINECFG_ENGINE] = std::move(engine);
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      bag(descriptors[0]) = *from.part(name);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      *count = from.engine == Engine::Careless || from.engine == Engine::Rounding ? 1 : 0;
      auto* notes = static_cast<cudnnBackendNumericalNote_t*>(values);
      if (from.engine == Engine::Careless) notes[0] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
      if (from.engine == Engine::Rounding) notes[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      *count = 1;
      const int64_t nbytes = 1024;
      std::memcpy(values, &nbytes, sizeof nbytes);
      return CUDNN_STATUS_SUCCESS;
    }
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  if (!emulator::thread_has_context()) return CUDNN_STATUS_NOT_INITIALIZED;
  const auto ids = bag(pack).numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
             addresses = bag(pack).numbers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const bool needs_workspace = bag(plan).twin == nullptr;
  if (ids.size() != addresses.size() ||
      (needs_workspace && bag(pack).one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) == nullptr))
    return CUDNN_STATUS_BAD_PARAM;
  // Of a tensor; null where it has none, or a less aligned one than the graph says.
  const auto data = [&](const Bag& tensor) -> void* {
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == tensor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)) {
        const auto address = static_cast<uintptr_t>(addresses[i]);
        const bool aligned =
            tensor.one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE) ||
            address % static_cast<uintptr_t>(tensor.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)) == 0;
        return aligned ? reinterpret_cast<void*>(address) : nullptr;
      }
    return nullptr;
  };
  std::function<void()> work;
  if (const Bag* operation = convolution_of(&bag(plan))) {
    const Convolution convolution(*operation);
    const void *image = data(*operation->part(convolution.names->image)),
               *weight = data(*operation->part(convolution.names->weight)),
               *out = data(*operation->part(convolution.names->out));
    if (image == nullptr || weight == nullptr || out == nullptr) return CUDNN_STATUS_BAD_PARAM;
    const Bag* configuration = bag(plan).part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const Bag* engine = configuration->part(CUDNN_ATTR_ENGINECFG_ENGINE);
    work = [=, kind = engine ? engine->engine : Engine::Fast] { convolution.run(image, weight, out, kind); };
  } else {
    auto program = std::make_shared<Program>(graph_of(&bag(plan))->operations);
    if (!program->bind(data)) return CUDNN_STATUS_BAD_PARAM;
    work = [program] { program->run(); };
  }
  return emulator::enqueue(handle->stream, work) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                : CUDNN_STATUS_EXECUTION_FAILED;
}
