// Copies and sums over devices.
#include "tern/parallel/comm.h"

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/record.h"
#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/ops/copy.h"
#include "tern/ops/pointwise.h"
#include "tern/parallel/packing.h"

namespace tern::parallel {
namespace {

void check_alike(const char* op, const Tensor& a, const Tensor& b, size_t i) {
  TERN_CHECK(b.shape() == a.shape(), ShapeError,
             "{}: inputs must have one shape: input 0 is {}, input {} is {}", op, to_string(a.shape()), i,
             to_string(b.shape()));
  TERN_CHECK(b.dtype() == a.dtype(), DTypeError,
             "{}: inputs must have one dtype: input 0 is {}, input {} is {}", op, name(a.dtype()), i,
             name(b.dtype()));
}

}  // namespace

std::vector<Tensor> broadcast(const Tensor& x, const std::vector<Device>& devices) {
  TERN_CHECK(!devices.empty(), ValueError, "broadcast: expected at least one device");
  // Backward runs through later records first: the first device is recorded last.
  std::vector<Tensor> copies(devices.size());
  for (size_t d = devices.size(); d-- > 0;) copies[d] = to(x, devices[d]);
  return copies;
}

std::vector<std::vector<Tensor>> broadcast_coalesced(const std::vector<Tensor>& tensors,
                                                     const std::vector<Device>& devices) {
  TERN_CHECK(!devices.empty(), ValueError, "broadcast_coalesced: expected at least one device");
  std::vector<std::vector<Tensor>> result(devices.size());
  if (tensors.empty()) return result;
  const Device source = tensors[0].device();
  for (size_t i = 1; i < tensors.size(); ++i)
    TERN_CHECK(tensors[i].device() == source, DeviceError,
               "broadcast_coalesced: all tensors must be on one device: tensor 0 is on {}, tensor {} on {}",
               source.str(), i, tensors[i].device().str());
  std::vector<std::vector<Tensor>> copies(devices.size());
  bool elsewhere = false;
  for (size_t d = 0; d < devices.size(); ++d) {
    const bool here = resolve_device(devices[d]) == source;
    if (here)
      result[d] = tensors;
    else
      copies[d].resize(tensors.size());
    elsewhere = elsewhere || !here;
  }
  if (!elsewhere) return result;
  for (const Packing& packing : pack_by_dtype(tensors, /*aligned=*/true, [](size_t) { return true; })) {
    const Tensor row = packing.pack(tensors);
    for (size_t d = 0; d < devices.size(); ++d) {
      if (copies[d].empty()) continue;
      const Tensor there = moved(row, resolve_device(devices[d]));
      for (size_t m = 0; m < packing.members.size(); ++m)
        copies[d][packing.members[m]] = packing.view(there, m);
    }
  }
  record_broadcast(tensors, copies);
  for (size_t d = 0; d < devices.size(); ++d)
    if (!copies[d].empty()) result[d] = std::move(copies[d]);
  return result;
}

Tensor reduce_add(const std::vector<Tensor>& inputs, Device destination) {
  TERN_CHECK(!inputs.empty(), ValueError, "reduce_add: expected a non-empty list of tensors");
  for (size_t i = 1; i < inputs.size(); ++i) check_alike("reduce_add", inputs[0], inputs[i], i);
  Tensor sum = to(inputs[0], destination);
  for (size_t i = 1; i < inputs.size(); ++i) sum = add(sum, to(inputs[i], destination));
  return sum;
}

std::vector<Tensor> reduce_add_coalesced(const std::vector<std::vector<Tensor>>& inputs, Device destination) {
  TERN_CHECK(!inputs.empty(), ValueError, "reduce_add_coalesced: expected a list of tensors for each device");
  const std::vector<Tensor>& first = inputs[0];
  for (const std::vector<Tensor>& list : inputs) {
    TERN_CHECK(list.size() == first.size(), ValueError,
               "reduce_add_coalesced: every device must give as many tensors: got {} and {}", first.size(),
               list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      check_alike("reduce_add_coalesced", first[i], list[i], i);
      TERN_CHECK(
          list[i].device() == list[0].device(), DeviceError,
          "reduce_add_coalesced: the tensors of a list must be on one device: tensor 0 is on {}, tensor {} "
          "on {}",
          list[0].device().str(), i, list[i].device().str());
    }
  }
  const Device target = resolve_device(destination);
  std::vector<Tensor> result(first.size());
  for (const Packing& packing : pack_by_dtype(first, /*aligned=*/false, [](size_t) { return true; })) {
    Tensor sum;
    for (const std::vector<Tensor>& list : inputs) {
      const Tensor own = packing.pack(list), row = moved(own, target);
      if (sum.defined())
        accumulate_into(sum, row);
      else
        sum = row.storage() == list[packing.members[0]].storage() ? row.clone() : row;
    }
    for (size_t m = 0; m < packing.members.size(); ++m) result[packing.members[m]] = packing.view(sum, m);
  }
  return result;
}

}  // namespace tern::parallel
