#include "tests/emulator/cudnn_program.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/emulator/numbers.h"

namespace emulator {
namespace {

/// Which attributes name the operands and the result of an operation.
struct Names {
  cudnnBackendDescriptorType_t type;
  std::vector<cudnnBackendAttributeName_t> operands;
  cudnnBackendAttributeName_t result;
};
const Names* names_of(const Bag& operation) {
  static const std::vector<Names> all = {
      {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
       CUDNN_ATTR_OPERATION_MATMUL_CDESC},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
       CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
      {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
       CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
       CUDNN_ATTR_OPERATION_POINTWISE_YDESC}};
  for (const Names& each : all)
    if (each.type == operation.type) return &each;
  return nullptr;
}

bool is_known(cudnnPointwiseMode_t mode) {
  const auto known = {CUDNN_POINTWISE_MUL,    CUDNN_POINTWISE_ADD,       CUDNN_POINTWISE_SUB,
                      CUDNN_POINTWISE_DIV,    CUDNN_POINTWISE_EXP,       CUDNN_POINTWISE_LOG,
                      CUDNN_POINTWISE_CMP_GE, CUDNN_POINTWISE_GEN_INDEX, CUDNN_POINTWISE_BINARY_SELECT};
  return std::find(known.begin(), known.end(), mode) != known.end();
}

/// Whether y is x with rows and columns exchanged, in sizes and strides.
bool turns(const Bag& x, const Bag& y) {
  for (const auto name : {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES}) {
    auto of_x = x.numbers(name);
    if (of_x.size() != 4) return false;
    std::swap(of_x[2], of_x[3]);
    if (of_x != y.numbers(name)) return false;
  }
  return true;
}

int64_t id_of(const Bag& tensor) { return tensor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID); }

/// The type of numbers in memory; integers and truth values have room in a double.
cudaDataType type_of(const Bag& tensor) {
  switch (tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)) {
    case CUDNN_DATA_HALF:
      return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16:
      return CUDA_R_16BF;
    case CUDNN_DATA_FLOAT:
      return CUDA_R_32F;
    default:
      return CUDA_R_64F;
  }
}

int64_t count_of(const std::array<int64_t, 4>& sizes) { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }

template <class F>
void for_each_place(const std::array<int64_t, 4>& sizes, const F& f) {
  for (int64_t b = 0; b < sizes[0]; ++b)
    for (int64_t h = 0; h < sizes[1]; ++h)
      for (int64_t i = 0; i < sizes[2]; ++i)
        for (int64_t j = 0; j < sizes[3]; ++j) f(b, h, i, j);
}

}  // namespace

Program::Sizes Program::sizes_of(const Bag& tensor) {
  const auto sizes = tensor.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  return sizes.size() == 4 ? Sizes{sizes[0], sizes[1], sizes[2], sizes[3]} : Sizes{};
}

/// Dimensions of size 1 are read again and again, and heads that several share.
double Program::Values::at(int64_t b, int64_t h, int64_t i, int64_t j) const {
  return numbers[static_cast<size_t>(
      (((sizes[0] == 1 ? 0 : b) * sizes[1] + h) * sizes[2] + (sizes[2] == 1 ? 0 : i)) * sizes[3] +
      (sizes[3] == 1 ? 0 : j))];
}

bool Program::fits() const {
  for (const auto& operation : operations_) {
    const Names* names = names_of(*operation);
    if (names == nullptr || operation->part(names->result) == nullptr) return false;
    const Sizes out = sizes_of(*operation->part(names->result));
    std::vector<Sizes> operands;
    for (const auto name : names->operands)
      if (const Bag* tensor = operation->part(name)) operands.push_back(sizes_of(*tensor));
    if (operands.empty() || count_of(out) < 1) return false;
    if (names->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      if (operands.size() != 2) return false;
      const Sizes &a = operands[0], &b = operands[1];
      if (a[3] != b[2] || out[2] != a[2] || out[3] != b[3] || a[0] != out[0] || b[0] != out[0] ||
          a[1] != out[1] || b[1] < 1 || out[1] % b[1] != 0)
        return false;
    } else if (names->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      if (!turns(*operation->part(names->operands[0]), *operation->part(names->result))) return false;
    } else if (names->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
      const Bag* how = operation->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      if (how == nullptr || !is_known(how->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE)))
        return false;
      for (const Sizes& sizes : operands)
        for (size_t d = 0; d < 4; ++d)
          if (sizes[d] != 1 && sizes[d] != out[d]) return false;
    }
  }
  return true;
}

bool Program::bind(const std::function<void*(const Bag&)>& data) {
  for (const auto& operation : operations_)
    for (const auto& [name, tensor] : operation->parts) {
      if (tensor->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR || tensor->one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
        continue;
      void* const address = data(*tensor);
      if (address == nullptr) return false;
      if (tensor->one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
        scalars_[id_of(*tensor)] = read_number(type_of(*tensor), address, 0);
      else
        memory_[id_of(*tensor)] = address;
    }
  return true;
}

Program::Values Program::read(const Bag& tensor, const std::map<int64_t, Values>& inner) const {
  const int64_t id = id_of(tensor);
  if (const auto found = inner.find(id); found != inner.end()) return found->second;
  if (const auto found = scalars_.find(id); found != scalars_.end()) return {{1, 1, 1, 1}, {found->second}};
  Values values{sizes_of(tensor)};
  const auto strides = tensor.numbers(CUDNN_ATTR_TENSOR_STRIDES);
  for_each_place(values.sizes, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    values.numbers.push_back(read_number(type_of(tensor), memory_.at(id),
                                         b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3]));
  });
  return values;
}

void Program::write(const Bag& tensor, Values values, std::map<int64_t, Values>& inner) const {
  const int64_t id = id_of(tensor);
  const cudaDataType type = type_of(tensor);
  if (tensor.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
    for (double& x : values.numbers) {
      double room = 0;
      write_number(type, &room, 0, x);
      x = read_number(type, &room, 0);
    }
    inner[id] = std::move(values);
    return;
  }
  const auto strides = tensor.numbers(CUDNN_ATTR_TENSOR_STRIDES);
  for_each_place(values.sizes, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    write_number(type, memory_.at(id), b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3],
                 values.at(b, h, i, j));
  });
}

void Program::run() const {
  std::map<int64_t, Values> inner;
  for (const auto& operation : operations_) {
    const Names& names = *names_of(*operation);
    std::vector<Values> x;
    for (const auto name : names.operands)
      if (const Bag* tensor = operation->part(name)) x.push_back(read(*tensor, inner));
    const Bag& result = *operation->part(names.result);
    Values out{sizes_of(result)};
    out.numbers.reserve(static_cast<size_t>(count_of(out.sizes)));
    if (names.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      const int64_t shared = out.sizes[1] / x[1].sizes[1];
      for_each_place(out.sizes, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
        double sum = 0;
        for (int64_t k = 0; k < x[0].sizes[3]; ++k) sum += x[0].at(b, h, i, k) * x[1].at(b, h / shared, k, j);
        out.numbers.push_back(sum);
      });
    } else if (names.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      const bool sums =
          operation->part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
              ->one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_ADD;
      for_each_place(out.sizes, [&](int64_t b, int64_t h, int64_t i, int64_t) {
        double all = x[0].at(b, h, i, 0);
        for (int64_t j = 1; j < x[0].sizes[3]; ++j) {
          const double next = x[0].at(b, h, i, j);
          all = sums ? all + next : std::max(all, next);
        }
        out.numbers.push_back(all);
      });
    } else if (names.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      for_each_place(out.sizes, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
        out.numbers.push_back(x[0].at(b, h, j, i));
      });
    } else {
      const Bag& how = *operation->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      const auto mode = how.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
      const auto axis = how.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
      const auto value = [&](size_t n, int64_t b, int64_t h, int64_t i, int64_t j) {
        return x[n].at(b, x[n].sizes[1] == 1 ? 0 : h, i, j);
      };
      for_each_place(out.sizes, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
        const double first = value(0, b, h, i, j), second = x.size() > 1 ? value(1, b, h, i, j) : 0;
        const std::array<int64_t, 4> place = {b, h, i, j};
        switch (mode) {
          case CUDNN_POINTWISE_MUL:
            return out.numbers.push_back(first * second);
          case CUDNN_POINTWISE_ADD:
            return out.numbers.push_back(first + second);
          case CUDNN_POINTWISE_SUB:
            return out.numbers.push_back(first - second);
          case CUDNN_POINTWISE_DIV:
            return out.numbers.push_back(first / second);
          case CUDNN_POINTWISE_EXP:
            return out.numbers.push_back(std::exp(first));
          case CUDNN_POINTWISE_LOG:
            return out.numbers.push_back(std::log(first));
          case CUDNN_POINTWISE_CMP_GE:
            return out.numbers.push_back(first >= second ? 1 : 0);
          case CUDNN_POINTWISE_GEN_INDEX:
            return out.numbers.push_back(static_cast<double>(place[static_cast<size_t>(axis)]));
          case CUDNN_POINTWISE_BINARY_SELECT:
            return out.numbers.push_back(value(2, b, h, i, j) != 0 ? first : second);
          default:
            std::abort();  // see is_known()
        }
      });
    }
    write(result, std::move(out), inner);
  }
}

}  // namespace emulator
