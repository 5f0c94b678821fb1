// The gradient of a tensor that was cut into pieces, put together in place: what backward of a split or of a
// packed copy needs, without a tensor of the whole's size for every piece. Internal to parallel.
#pragma once

#include <memory>
#include <vector>

#include "tern/autograd/node.h"

namespace tern::parallel {

/// The elements start..start+length of a tensor along one dimension.
struct Piece {
  int64_t start = 0;
  int64_t length = 0;
  Shape shape = {};  ///< of the piece as a tensor; as many elements as the region
};

/// One recorded cut of a tensor into pieces. The first piece whose gradient comes in a run of backward makes
/// the whole gradient and hands it to the node that joins them; the others are written into it, across
/// devices where they must. With create_graph everything is made of operators instead.
class GradientPieces : public std::enable_shared_from_this<GradientPieces> {
 public:
  GradientPieces(Shape whole, int64_t dim, DType dtype, Device device, std::vector<Piece> pieces);
  virtual ~GradientPieces() = default;

  /// Records `outputs` as the pieces, in their order; an undefined one is left out. `inputs` is where the
  /// result of finish() goes.
  void record(const char* name, const std::vector<Tensor>& outputs, std::vector<Edge> inputs);

 protected:
  /// The gradients of the inputs from the whole one. Called once in each run.
  virtual void finish(const Tensor& whole, Tensor* results) = 0;
  /// Which pieces had a gradient in this run.
  const std::vector<char>& filled() const noexcept { return filled_; }

 private:
  class PieceNode;
  class JoinNode;

  Tensor put(size_t i, const Tensor& grad);
  Tensor embed(size_t i, const Tensor& grad) const;
  void join(const Tensor& whole, Tensor* results);

  Shape whole_shape_;
  int64_t dim_;
  DType dtype_;
  Device device_;
  std::vector<Piece> pieces_;
  /// The gradient of the run at hand; when nobody else holds it, that run has ended (with an exception).
  Tensor whole_;
  std::vector<char> filled_;
};

/// True when `tensor` is held by nobody else: what an interrupted run of backward leaves behind.
inline bool is_abandoned(const Tensor& tensor) {
  return tensor.defined() && tensor.impl_ptr()->use_count() == 1;
}

/// Copies x into `out`, which has as many elements and is a piece of a dense tensor, maybe on another device.
void copy_into(const Tensor& out, const Tensor& x);

}  // namespace tern::parallel
