// The operations of a graph for cuDNN, as they are added: products, reductions, pointwise operations. What
// one of them gives to the next is an inner tensor, which is never in memory where an engine knows the graph
// as one kernel.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tern/backends/cuda/cudnn.h"

namespace tern::cuda_backend {

class CudnnGraph {
 public:
  using Sizes = std::array<int64_t, 4>;  // batch, heads, rows, columns

  /// Numbers of inner tensors begin at `first_inner`.
  explicit CudnnGraph(int64_t first_inner) : next_(first_inner) {}

  static Sizes contiguous(const Sizes& sizes) {
    return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
  }
  static Sizes turned(const Sizes& x) { return {x[0], x[1], x[3], x[2]}; }

  /// A tensor in memory, at addresses of multiples of 16.
  static Descriptor tensor(int64_t id, cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    Descriptor made = describe(id, type, sizes, strides);
    made.finish();
    return made;
  }
  /// A float in the host's memory.
  static Descriptor scalar(int64_t id) {
    Descriptor made = describe(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1});
    made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    made.finish();
    return made;
  }
  Descriptor inner(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    Descriptor made = describe(next_++, type, sizes, strides);
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    made.finish();
    return made;
  }
  Descriptor inner(cudnnDataType_t type, const Sizes& sizes) { return inner(type, sizes, contiguous(sizes)); }

  void matmul(const Descriptor& a, const Descriptor& b, const Descriptor& c) {
    Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finish();
    Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add(std::move(operation));
  }
  /// Along dimensions in which y has size 1.
  void reduce(cudnnReduceTensorOp_t op, const Descriptor& x, const Descriptor& y) {
    Descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finish();
    Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    add(std::move(operation));
  }
  /// The same memory with other sizes and strides.
  void reshape(const Descriptor& x, const Descriptor& y) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add(std::move(operation));
  }
  void unary(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor& y) {
    add(pointwise(mode, x, y));
  }
  void binary(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor& b, const Descriptor& y) {
    Descriptor operation = pointwise(mode, x, y);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    add(std::move(operation));
  }
  /// y = choice ? x : b.
  void select(const Descriptor& choice, const Descriptor& x, const Descriptor& b, const Descriptor& y) {
    Descriptor operation = pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, y);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, choice);
    add(std::move(operation));
  }
  /// The number of each element of x in its dimension `axis`.
  void number(const Descriptor& x, int64_t axis, const Descriptor& y) {
    add(pointwise(CUDNN_POINTWISE_GEN_INDEX, x, y, axis));
  }

  std::span<const Descriptor> operations() const { return operations_; }

 private:
  static Descriptor describe(int64_t id, cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<int64_t>(sizes.begin(), sizes.end()));
    made.set(CUDNN_ATTR_TENSOR_STRIDES, std::vector<int64_t>(strides.begin(), strides.end()));
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
    return made;
  }
  /// Unfinished.
  static Descriptor pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor& y,
                              int64_t axis = -1) {
    Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    how.finish();
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return operation;
  }
  void add(Descriptor operation) {
    operation.finish();
    operations_.push_back(std::move(operation));
  }

  std::vector<Descriptor> operations_;
  int64_t next_;
};

}  // namespace tern::cuda_backend
