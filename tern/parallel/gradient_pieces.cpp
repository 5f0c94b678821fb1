// Nodes of pieces, and writing into a region of the whole.
#include "tern/parallel/gradient_pieces.h"

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/record.h"
#include "tern/device/copy.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"

namespace tern::parallel {
namespace {

/// The part start..start+length of a dense tensor along `dim`; no history.
Tensor region_of(const Tensor& whole, int64_t dim, int64_t start, int64_t length) {
  const auto d = static_cast<size_t>(dim);
  Shape shape = whole.shape();
  shape[d] = length;
  return Tensor::view_of(whole.storage(), whole.dtype(), std::move(shape), whole.strides(),
                         whole.storage_offset() + start * whole.strides()[d]);
}

size_t byte_offset(const Tensor& x) { return static_cast<size_t>(x.storage_offset()) * itemsize(x.dtype()); }

}  // namespace

void copy_into(const Tensor& out, const Tensor& x) {
  if (out.numel() == 0) return;
  if (!out.is_contiguous()) {
    Tensor local = x.detach();
    if (x.device() != out.device()) local = local.to(out.device());
    copy_elements(out, local.shape() == out.shape() ? local : reshape(local, out.shape()));
  } else if (x.device() == out.device()) {
    // Both in row-major order: the elements may be written under the shape of x.
    Strides strides(x.shape().size());
    int64_t stride = 1;
    for (size_t d = strides.size(); d-- > 0; stride *= x.shape()[d]) strides[d] = stride;
    copy_elements(
        Tensor::view_of(out.storage(), out.dtype(), x.shape(), std::move(strides), out.storage_offset()), x);
  } else {
    const Tensor source = compact(x);
    copy_bytes(*out.storage(), byte_offset(out), *source.storage(), byte_offset(source), source.nbytes());
  }
}

class GradientPieces::PieceNode final : public Node {
 public:
  PieceNode(const char* name, std::shared_ptr<GradientPieces> owner, size_t number)
      : Node(name), owner_(std::move(owner)), number_(number) {}
  void apply(GradContext&, const Tensor& grad, Tensor* results) override {
    results[0] = is_grad_enabled() ? owner_->embed(number_, grad) : owner_->put(number_, grad);
    owner_->filled_[number_] = 1;
  }
  void release_saved() override {}

 private:
  std::shared_ptr<GradientPieces> owner_;
  size_t number_;
};

class GradientPieces::JoinNode final : public Node {
 public:
  JoinNode(const char* name, std::shared_ptr<GradientPieces> owner) : Node(name), owner_(std::move(owner)) {}
  void apply(GradContext&, const Tensor& grad, Tensor* results) override { owner_->join(grad, results); }
  void release_saved() override {}

 private:
  std::shared_ptr<GradientPieces> owner_;
};

GradientPieces::GradientPieces(Shape whole, int64_t dim, DType dtype, Device device,
                               std::vector<Piece> pieces)
    : whole_shape_(std::move(whole)),
      dim_(dim),
      dtype_(dtype),
      device_(device),
      pieces_(std::move(pieces)),
      filled_(pieces_.size(), 0) {}

void GradientPieces::record(const char* name, const std::vector<Tensor>& outputs, std::vector<Edge> inputs) {
  const IntrusivePtr<Node> join(new JoinNode(name, shared_from_this()));
  join->set_inputs(std::move(inputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    IntrusivePtr<Node> piece(new PieceNode(name, shared_from_this(), i));
    piece->set_inputs({Edge{join, {}}});
    tern::detail::attach(outputs[i], std::move(piece));
  }
}

Tensor GradientPieces::put(size_t i, const Tensor& grad) {
  Tensor first;
  if (!whole_.defined() || is_abandoned(whole_)) {
    filled_.assign(pieces_.size(), 0);
    first = whole_ = empty_contiguous(whole_shape_, checked_numel(whole_shape_), dtype_, device_);
  }
  copy_into(region_of(whole_, dim_, pieces_[i].start, pieces_[i].length), grad);
  return first;
}

Tensor GradientPieces::embed(size_t i, const Tensor& grad) const {
  const Piece& piece = pieces_[i];
  auto shape_of = [&](int64_t length) {
    Shape shape = whole_shape_;
    shape[static_cast<size_t>(dim_)] = length;
    return shape;
  };
  const int64_t size = whole_shape_[static_cast<size_t>(dim_)];
  const TensorOptions options{.dtype = dtype_, .device = device_};
  return cat({zeros(shape_of(piece.start), options), reshape(to(grad, device_), shape_of(piece.length)),
              zeros(shape_of(size - piece.start - piece.length), options)},
             dim_);
}

void GradientPieces::join(const Tensor& whole, Tensor* results) {
  if (!is_grad_enabled())
    for (size_t i = 0; i < pieces_.size(); ++i)
      if (!filled_[i] && pieces_[i].length > 0)
        fill_elements(region_of(whole, dim_, pieces_[i].start, pieces_[i].length), 0);
  whole_ = Tensor();
  finish(whole, results);
  filled_.assign(pieces_.size(), 0);
}

}  // namespace tern::parallel
