// The proof that descriptions of launches (kernels/work.h) are true: every kernel is run several times on
// memory whose bytes outside the operands that it is said to read were replaced. It must write the same
// results, and nothing outside the operands that it is said to write. CPU only; kernels must be
// deterministic.
#pragma once

#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tern/core/memory.h"
#include "tern/device/launch.h"
#include "tern/device/registry.h"
#include "tern/kernels/work.h"

namespace tern::testing {

/// The CPU's memory with a list of live storages, each between margins that belong to no tensor.
class TrackedMemory final : public Memory {
 public:
  static constexpr size_t kMargin = 64;
  using Blocks = std::map<char*, size_t>;  ///< start and bytes of the storages, without margins

  TrackedMemory() : below_(find_memory(DeviceType::CPU)) { register_memory(DeviceType::CPU, this); }
  ~TrackedMemory() override { register_memory(DeviceType::CPU, below_); }
  TrackedMemory(const TrackedMemory&) = delete;
  TrackedMemory& operator=(const TrackedMemory&) = delete;

  Blocks blocks() const {
    const std::lock_guard lock(live_->mutex);
    return live_->blocks;
  }

  Storage allocate(size_t nbytes, Device device) override {
    Storage whole = below_->allocate(nbytes + 2 * kMargin, device);
    char* data = static_cast<char*>(whole->data()) + kMargin;
    std::memset(whole->data(), 0x5b, whole->nbytes());
    {
      const std::lock_guard lock(live_->mutex);
      live_->blocks[data] = nbytes;
    }
    return Storage(new StorageImpl(data, nbytes, device, &forget, new Entry{live_, std::move(whole)}));
  }
  void copy_to_host(void* host, const StorageImpl& from, size_t offset, size_t nbytes) override {
    below_->copy_to_host(host, from, offset, nbytes);
  }
  void copy_from_host(StorageImpl& to, size_t offset, const void* host, size_t nbytes) override {
    below_->copy_from_host(to, offset, host, nbytes);
  }
  int device_count() override { return below_->device_count(); }
  int current_device() override { return below_->current_device(); }

 private:
  struct Live {
    std::mutex mutex;
    Blocks blocks;
  };
  /// Outlives this object where a tensor does.
  struct Entry {
    std::shared_ptr<Live> live;
    Storage whole;
  };
  static void forget(StorageImpl* self) noexcept {
    std::unique_ptr<Entry> entry(static_cast<Entry*>(self->context()));
    {
      const std::lock_guard lock(entry->live->mutex);
      entry->live->blocks.erase(static_cast<char*>(self->data()));
    }
    delete self;
  }

  Memory* below_;
  std::shared_ptr<Live> live_ = std::make_shared<Live>();
};

/// While it lives, every launch on the CPU, which is the default device then, is proved. Tensors from before
/// may not take part.
class LaunchProof final : public LaunchObserver {
 public:
  using Describe = std::function<Work(uint16_t id, const void* args)>;

  explicit LaunchProof(Describe describe = work_of) : describe_(std::move(describe)) {
    set_default_device(kCPU);
    previous_ = set_launch_observer(this);
  }
  ~LaunchProof() override {
    set_launch_observer(previous_);
    set_default_device(default_device_);
  }

  /// What was found wrong so far.
  const std::vector<std::string>& complaints() const { return complaints_; }
  const std::set<std::string>& kernels() const { return kernels_; }
  /// Goes before the complaints from now on.
  void set_title(std::string title) { title_ = std::move(title); }

  uint64_t started(const Activity& activity) noexcept override {
    if (activity.kind == Activity::Kind::Kernel && activity.stream.device.is_cpu())
      prove(activity.name, activity.kernel, activity.args);
    return 0;
  }
  void ran(uint64_t, Clock::time_point, Clock::time_point) noexcept override {}

  void prove(const char* kernel, uint16_t id, const void* args) noexcept {
    kernels_.insert(kernel);
    kernel_ = kernel;
    const Work work = describe_(id, args);
    blocks_ = memory_.blocks();
    const size_t complaints = complaints_.size();
    const Coverage coverage = check_operands(work);
    if (complaints_.size() != complaints) return;
    const Image before = save();
    if (!run(id, args).empty()) return restore(before);  // the launch itself throws again
    const Image clean = save();
    for (Poison poison : {Poison::Flip, Poison::Ones, Poison::Zeros}) {
      restore(before);
      spoil(poison, coverage);
      const Image spoiled = save();
      const std::string error = run(id, args);
      const Image after = save();
      restore(before);
      if (!error.empty())
        complain("reads memory that is not among its operands: it threw " + error);
      else
        compare(work, coverage, before, clean, spoiled, after, poison == Poison::Flip);
    }
  }

 private:
  enum class Poison { Flip, Ones, Zeros };
  enum : uint8_t { kRead = 1, kWritten = 2 };
  using Image = std::vector<std::string>;              // all bytes of each block, with its margins
  using Coverage = std::vector<std::vector<uint8_t>>;  // the same for flags of each byte

  void complain(const std::string& what) { complaints_.push_back(title_ + ": " + kernel_ + " " + what); }

  static char* start_of(const TrackedMemory::Blocks::value_type& block) {
    return block.first - TrackedMemory::kMargin;
  }
  static size_t length_of(const TrackedMemory::Blocks::value_type& block) {
    return block.second + 2 * TrackedMemory::kMargin;
  }

  Image save() const {
    Image image;
    for (const auto& block : blocks_) image.emplace_back(start_of(block), length_of(block));
    return image;
  }
  void restore(const Image& image) const {
    size_t i = 0;
    for (const auto& block : blocks_) std::memcpy(start_of(block), image[i++].data(), length_of(block));
  }

  /// Every operand lies in a live storage.
  Coverage check_operands(const Work& work) {
    Coverage coverage;
    for (const auto& block : blocks_) coverage.emplace_back(length_of(block));
    double most = 0;
    for (const Operand& operand : work.operands) {
      const char* data = static_cast<const char*>(operand.data);
      auto block = blocks_.upper_bound(const_cast<char*>(data));
      const bool found = block != blocks_.begin() &&
                         data + operand.nbytes <= std::prev(block)->first + std::prev(block)->second;
      if (!found || operand.nbytes == 0 || !(operand.read || operand.written)) {
        complain("has an operand that is no part of a live storage");
        continue;
      }
      --block;
      auto& flags = coverage[static_cast<size_t>(std::distance(blocks_.begin(), block))];
      const size_t first = static_cast<size_t>(data - start_of(*block));
      for (size_t i = first; i < first + operand.nbytes; ++i)
        flags[i] =
            static_cast<uint8_t>(flags[i] | (operand.read ? kRead : 0) | (operand.written ? kWritten : 0));
      most += static_cast<double>(operand.nbytes) * (operand.read + operand.written);
    }
    if (work.op.empty() || work.flops < 0) complain("has no name, or less than no operations");
    if (!(work.bytes <= most) || (work.bytes == 0) != work.operands.empty())
      complain("moves " + std::to_string(work.bytes) + " bytes, but its operands have " +
               std::to_string(most));
    return coverage;
  }

  /// The text of what the kernel throws.
  static std::string run(uint16_t id, const void* args) {
    try {
      backend_of(DeviceType::CPU).kernels()[id](LaunchContext{Stream{kCPU}}, args);
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  /// Replaces all bytes that nothing reads.
  void spoil(Poison poison, const Coverage& coverage) const {
    size_t b = 0;
    for (const auto& block : blocks_) {
      char* bytes = start_of(block);
      const auto& flags = coverage[b++];
      for (size_t i = 0; i < flags.size(); ++i) {
        if (flags[i] & kRead) continue;
        bytes[i] = poison == Poison::Flip   ? static_cast<char>(~bytes[i])
                   : poison == Poison::Ones ? static_cast<char>(0xff)
                                            : char{0};
      }
    }
  }

  void compare(const Work& work, const Coverage& coverage, const Image& before, const Image& clean,
               const Image& spoiled, const Image& after, bool flipped) {
    double written = 0;  // bytes that certainly were
    for (size_t b = 0; b < coverage.size(); ++b) {
      for (size_t i = 0; i < coverage[b].size(); ++i) {
        const bool untouched = after[b][i] == spoiled[b][i] && clean[b][i] == before[b][i];
        if (!(coverage[b][i] & kWritten) && !untouched)
          return complain("writes memory that is not among the operands written");
        if (!untouched && after[b][i] != clean[b][i])
          return complain("reads memory that is not among the operands read");
        written += !untouched;
      }
    }
    if (!flipped) return;
    if (written > work.bytes)
      complain("writes " + std::to_string(written) + " bytes, said to move " + std::to_string(work.bytes));
    // Operands are no wider than needed. Where scatter writes only the indices know.
    if (kernel_ == "index_put") return;
    for (const Operand& operand : work.operands) {
      const auto block = std::prev(blocks_.upper_bound(static_cast<char*>(const_cast<void*>(operand.data))));
      const size_t b = static_cast<size_t>(std::distance(blocks_.begin(), block));
      const size_t first = static_cast<size_t>(static_cast<const char*>(operand.data) - start_of(*block));
      for (size_t i : {first, first + operand.nbytes - 1})
        if (coverage[b][i] == kWritten && after[b][i] == spoiled[b][i] && clean[b][i] == before[b][i])
          return complain("does not write an end of an operand");
    }
  }

  Describe describe_;
  TrackedMemory memory_;
  LaunchObserver* previous_;
  Device default_device_ = get_default_device();
  TrackedMemory::Blocks blocks_;  // during a launch
  std::string kernel_, title_;
  std::vector<std::string> complaints_;
  std::set<std::string> kernels_;
};

}  // namespace tern::testing
