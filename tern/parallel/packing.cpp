// Rows of elements and the way of gradients back through them.
#include "tern/parallel/packing.h"

#include <algorithm>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/record.h"
#include "tern/device/copy.h"
#include "tern/ops/copy.h"
#include "tern/ops/shape.h"
#include "tern/parallel/gradient_pieces.h"

namespace tern::parallel {
namespace {

constexpr int64_t kLineBytes = 64;

Strides dense_strides(const Shape& shape) {
  Strides strides(shape.size());
  int64_t stride = 1;
  for (size_t d = strides.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

/// Where the gradients of all devices meet: they are added up in place, and given out to the tensors.
class SumNode final : public Node {
 public:
  explicit SumNode(Packing packing)
      : Node("broadcast"), packing_(std::move(packing)), used_(packing_.members.size(), 0) {}

  /// Takes the packed gradient of one device; gives the sum when it is the first of a run.
  Tensor add(const Tensor& row, Device target, const std::vector<char>& filled) {
    if (!is_grad_enabled() && (!sum_.defined() || is_abandoned(sum_))) used_.assign(used_.size(), 0);
    for (size_t m = 0; m < used_.size(); ++m) used_[m] = static_cast<char>(used_[m] | filled[m]);
    if (is_grad_enabled()) return to(row, target);
    const Tensor here = moved(row, target);
    if (sum_.defined() && !is_abandoned(sum_)) {
      accumulate_into(sum_, here);
      return {};
    }
    return sum_ = here;
  }

  void apply(GradContext& context, const Tensor& grad, Tensor* results) override {
    sum_ = Tensor();
    for (size_t m = 0; m < used_.size(); ++m) {
      if (!used_[m] || !context.needs(m)) continue;
      results[m] = is_grad_enabled()
                       ? reshape(narrow(grad, 0, packing_.offsets[m], checked_numel(packing_.shapes[m])),
                                 packing_.shapes[m])
                       : packing_.view(grad, m);
    }
    used_.assign(used_.size(), 0);
  }
  void release_saved() override {}

 private:
  Packing packing_;
  Tensor sum_;
  std::vector<char> used_;  ///< tensors that had a gradient on some device in this run
};

/// The copies on one device.
class CopyPieces final : public GradientPieces {
 public:
  CopyPieces(IntrusivePtr<Node> sum, Device target, const Packing& packing, Device device,
             std::vector<Piece> pieces)
      : GradientPieces(Shape{packing.numel}, 0, packing.dtype, device, std::move(pieces)),
        sum_(std::move(sum)),
        target_(target) {}

 private:
  void finish(const Tensor& whole, Tensor* results) override {
    results[0] = static_cast<SumNode&>(*sum_).add(whole, target_, filled());
  }

  IntrusivePtr<Node> sum_;
  Device target_;
};

}  // namespace

void Packing::add(size_t member, const Tensor& tensor, int64_t alignment) {
  const int64_t start = (numel + alignment - 1) / alignment * alignment;
  members.push_back(member);
  shapes.push_back(tensor.shape());
  offsets.push_back(start);
  numel = start + tensor.numel();
}

Tensor Packing::pack(const std::vector<Tensor>& tensors) const {
  const Tensor& first = tensors[members.at(0)];
  if (members.size() == 1 && first.is_contiguous())
    return Tensor::view_of(first.storage(), dtype, Shape{numel}, Strides{1}, first.storage_offset());
  Tensor row = empty_contiguous(Shape{numel}, numel, dtype, first.device());
  for (size_t m = 0; m < members.size(); ++m) copy_into(view(row, m), tensors[members[m]]);
  return row;
}

Tensor Packing::view(const Tensor& row, size_t m) const {
  return Tensor::view_of(row.storage(), dtype, shapes[m], dense_strides(shapes[m]),
                         row.storage_offset() + offsets[m]);
}

std::vector<Packing> pack_by_dtype(const std::vector<Tensor>& tensors, bool aligned,
                                   const std::function<bool(size_t)>& take) {
  std::vector<Packing> packings;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!take(i)) continue;
    const DType dtype = tensors[i].dtype();
    auto last = std::find_if(packings.rbegin(), packings.rend(),
                             [&](const Packing& packing) { return packing.dtype == dtype; });
    Packing* open = last == packings.rend() ? nullptr : &*last;
    if (open && static_cast<size_t>(open->numel) * itemsize(dtype) + tensors[i].nbytes() > kMostPackedBytes)
      open = nullptr;
    if (!open) {
      open = &packings.emplace_back();
      open->dtype = dtype;
    }
    open->add(i, tensors[i], aligned ? kLineBytes / static_cast<int64_t>(itemsize(dtype)) : 1);
  }
  return packings;
}

Tensor moved(const Tensor& row, Device device) {
  if (row.device() == device) return row;
  const Tensor source = compact(row);
  Tensor there = empty_contiguous(row.shape(), row.numel(), row.dtype(), device);
  copy_into(there, source);
  return there;
}

void record_broadcast(const std::vector<Tensor>& tensors, const std::vector<std::vector<Tensor>>& copies) {
  for (Packing& packing :
       pack_by_dtype(tensors, /*aligned=*/false, [&](size_t i) { return tracks_grad(tensors[i]); })) {
    std::vector<Edge> edges;
    for (size_t member : packing.members) edges.push_back(gradient_edge(tensors[member]));
    const Device target = tensors[packing.members[0]].device();
    std::vector<Piece> pieces;
    for (size_t m = 0; m < packing.members.size(); ++m)
      pieces.push_back({packing.offsets[m], checked_numel(packing.shapes[m]), packing.shapes[m]});
    const IntrusivePtr<Node> sum(new SumNode(packing));
    sum->set_inputs(std::move(edges));
    // The last device first: backward runs through later records first, so it comes to the devices in order.
    for (size_t d = copies.size(); d-- > 0;) {
      if (copies[d].empty()) continue;
      std::vector<Tensor> outputs;
      for (size_t member : packing.members) outputs.push_back(copies[d][member]);
      std::make_shared<CopyPieces>(sum, target, packing, outputs[0].device(), pieces)
          ->record("broadcast", outputs, {Edge{sum, {}}});
    }
  }
}

}  // namespace tern::parallel
