// Replicas: the parameters and buffers of one module on several devices, kept from call to call and sent
// again only when they changed. The modules that use them are made by parallel/data_parallel.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tern/nn/module.h"
#include "tern/parallel/packing.h"

namespace tern::parallel {

/// The tensors of a module on the devices 1, 2, ... of a list; on device 0 is the module itself. What a copy
/// keeps between calls is not copied with it: another owner has replicas of its own.
class ReplicaSet {
 public:
  explicit ReplicaSet(std::vector<Device> devices);
  ReplicaSet(const ReplicaSet& other) : ReplicaSet(other.devices_) {}
  ReplicaSet(ReplicaSet&&) = default;
  ReplicaSet& operator=(const ReplicaSet& other) { return *this = ReplicaSet(other.devices_); }
  ReplicaSet& operator=(ReplicaSet&&) = default;

  const std::vector<Device>& devices() const noexcept { return devices_; }

  /// Throws DeviceError in PyTorch's words unless all parameters and buffers are on device 0. False while
  /// lazy layers among them wait for their first input.
  bool check_home(const nn::Module& module) const;
  /// The module's tensors, each once in its order, on the devices 1 to count - 1 (the first list is empty),
  /// up to date. Throws ValueError for those of lazy layers without a size. Tensors whose storages are the
  /// same and were not changed in place since they were sent are not sent again, but in a recorded step;
  /// writing through data_ptr() goes unnoticed. Where gradients are recorded, the parameters have a history
  /// that leads to the module's own.
  std::vector<std::vector<Tensor>> refresh(const nn::Module& module, size_t count);
  /// Puts the tensors of a device in the place of the module's own in a copy of the module's struct. Throws
  /// ValueError when the copy does not share the module's tensors.
  void adopt(nn::Module& copy, const std::vector<Tensor>& tensors) const;

 private:
  /// A storage as it was.
  struct Stamp {
    Storage storage;
    uint32_t version = 0;
    explicit Stamp(const Tensor& tensor) : storage(tensor.storage()), version(tensor.version()) {}
    bool fits(const Tensor& tensor) const {
      return storage == tensor.storage() && version == tensor.version();
    }
  };
  /// Tensors that are sent together.
  struct Group {
    Packing packing;
    bool learned =
        false;  ///< parameters; the replicas' share a storage. Buffers are changed in place one by one.
    std::vector<Stamp> sent = {};          ///< the module's tensors as they were sent last
    uint64_t generation = 0;               ///< how often they changed
    std::vector<uint64_t> arrived = {};    ///< by device: the generation that it has
    std::vector<std::vector<Stamp>> kept;  ///< by device: its tensors as they came
  };

  void look_at(const nn::Module& module);
  void send(Group& group, size_t count);
  size_t position_of(const Tensor& tensor, size_t guess) const;

  std::vector<Device> devices_;
  std::vector<Tensor> tensors_;      ///< the module's, in its order, each once
  std::vector<char> requires_grad_;  ///< of those
  std::vector<Group> groups_;
  std::vector<std::vector<Tensor>> values_;  ///< by device: the tensors without history
};

}  // namespace tern::parallel
