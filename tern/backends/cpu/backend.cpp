// The CPU backend: memory from the system, kernels run at once on the calling thread and its helpers. The
// kernels are in kernels/, compiled once for each instruction set; the best one that the processor has is
// chosen here.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string_view>

#include "tern/backends/cpu/tables.h"
#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/base/parallel.h"
#include "tern/core/recording.h"
#include "tern/device/caching_allocator.h"
#include "tern/device/registry.h"
#include "tern/kernels/attention.h"
#include "tern/kernels/precision.h"

namespace tern::cpu {
namespace {

uint64_t physical_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

/// Segments straight from mmap, in huge pages where the system gives them.
class SystemMemory final : public MemorySource {
 public:
  void* allocate_segment(size_t nbytes) noexcept override {
    void* segment = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (segment == MAP_FAILED) return nullptr;
    madvise(segment, nbytes, MADV_HUGEPAGE);
    return segment;
  }
  void free_segment(void* segment, size_t nbytes) noexcept override { munmap(segment, nbytes); }
  size_t segment_granularity() const noexcept override { return size_t{2} << 20; }
  size_t cache_limit() const noexcept override { return limit_; }

 private:
  size_t limit_ = physical_memory() / 4;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(const KernelTable& table, std::string complaint)
      : Backend(table.kernels, /*runs_at_once=*/true),
        variant_(table.variant),
        complaint_(std::move(complaint)) {}

  std::string_view name() const override { return "cpu"; }
  DeviceType type() const override { return DeviceType::CPU; }
  DeviceProperties properties(int) override {
    check_variant();
    return {fmt::format("{} ({} kernels)", processor_name(), variant_), physical_memory(), num_threads(),
            /*simulated=*/false};
  }

  bool fuses(Stream, const AttentionArgs& args) override { return fuses_attention(args.dtype, args.shape); }
  bool fuses(Stream, const AttentionBackwardArgs& args) override {
    return args.shape.key_heads == args.shape.heads && fuses_attention(args.dtype, args.shape);
  }

  Storage allocate(size_t nbytes, Device) override {
    check_variant();
#if defined(__SANITIZE_ADDRESS__)
    // AddressSanitizer sees overflows and uses after free only when every storage is an allocation of its
    // own. Beyond its limit it would end the program. A recorded step needs what it has freed.
    if (detail::step_recorder) return allocator_.allocate(nbytes);
    void* data = nbytes < size_t{1} << 40
                     ? ::operator new (std::max<size_t>(nbytes, 1), std::align_val_t{64}, std::nothrow)
                     : nullptr;
    TERN_CHECK(data != nullptr, OutOfMemoryError, "out of memory on cpu: tried to allocate {} bytes", nbytes);
    return Storage(new StorageImpl(
        data, nbytes, kCPU,
        [](StorageImpl* self) noexcept {
          ::operator delete (self->data(), std::align_val_t{64});
          delete self;
        },
        nullptr));
#else
    return allocator_.allocate(nbytes);
#endif
  }
  void copy_to_host(void* host, const StorageImpl& from, size_t offset, size_t nbytes) override {
    std::memcpy(host, static_cast<const char*>(from.data()) + offset, nbytes);
  }
  void copy_from_host(StorageImpl& to, size_t offset, const void* host, size_t nbytes) override {
    std::memcpy(static_cast<char*>(to.data()) + offset, host, nbytes);
  }
  int device_count() override { return 1; }
  int current_device() override { return 0; }
  MemoryStats memory_stats(int) override { return allocator_.stats(); }
  void reset_peak_memory_stats(int) override { allocator_.reset_peaks(); }
  std::vector<MemorySegment> memory_snapshot(int) override { return allocator_.snapshot(); }
  void empty_cache(int) override { allocator_.empty_cache(); }
  void set_memory_limit(int, size_t nbytes) override { allocator_.set_limit(nbytes); }
  size_t free_memory(int) override {
    return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  }
  void record_stream(const StorageImpl&, Stream) override {}

  // Work is done when it is given: there is nothing to wait for.
  uint16_t num_pool_streams() const override { return 0; }
  bool query(Stream) override { return true; }
  void synchronize(Stream) override {}
  void synchronize_device(int) override {}
  std::shared_ptr<EventRecord> record_event(Stream, bool) override { return std::make_shared<PastEvent>(); }
  void wait_event(Stream, std::shared_ptr<EventRecord> event) override { event->synchronize(); }
  void enqueue(Stream stream, const Launch& launch) override {
    kernels()[launch.id](LaunchContext{stream}, launch.args);
  }
  void enqueue_copy(Stream, void* to, Device, const void* from, Device, size_t nbytes) override {
    std::memcpy(to, from, nbytes);
  }
  Storage allocate_pinned(size_t nbytes) override { return allocate(nbytes, kCPU); }
  CachingAllocator& allocator() noexcept { return allocator_; }

 private:
  void check_variant() const {
    if (!complaint_.empty()) [[unlikely]]
      throw EnvironmentError(complaint_);
  }
  /// A few rows are multiplied where keys and values lie. Where products go by tiles or pairs of bfloat16,
  /// attention by products is faster.
  bool fuses_attention(DType dtype, const AttentionShape& shape) const {
    constexpr int64_t kFewest = 16;
    const bool has_narrow_products = variant_ == "amx" || variant_ == "bf16";
    const bool narrows =
        dtype == DType::BFloat16 ||
        (dtype == DType::Float32 && kernels::matmul_precision() != kernels::MatmulPrecision::Highest);
    return dtype != DType::Float64 && shape.rows >= kFewest && shape.columns >= kFewest &&
           !(has_narrow_products && narrows);
  }

  SystemMemory memory_;
  CachingAllocator allocator_{memory_, kCPU};
  std::string_view variant_;
  /// What is wrong with TERN_CPU_VARIANT: thrown by the first use, since backends register before main.
  std::string complaint_;
};

struct Choice {
  const KernelTable* table = nullptr;
  std::string complaint;
};

/// The last of the built variants that this processor can run, or the one that TERN_CPU_VARIANT names.
Choice choose_table() {
  const auto wanted = env_text("TERN_CPU_VARIANT");
  Choice choice;
  std::string names;
  bool found = false;
  for (const KernelTable* table : kernel_tables()) {
    if (!table->supported()) continue;
    names += (names.empty() ? "" : ", ") + std::string(table->variant);
    if (!found) choice.table = table;
    found = found || wanted == table->variant;
  }
  if (wanted && !found)
    choice.complaint = fmt::format(
        "environment variable TERN_CPU_VARIANT: expected one of the variants that this processor runs ({}), "
        "got '{}'",
        names, *wanted);
  return choice;
}

}  // namespace
}  // namespace tern::cpu

namespace tern::detail {

void register_cpu_backend() {
  cpu::Choice choice = cpu::choose_table();
  // Without a table the first use of the CPU says that it has no backend.
  if (choice.table == nullptr) return;
  // Never destroyed: tensors of static duration outlive it.
  static auto* backend = new cpu::CpuBackend(*choice.table, std::move(choice.complaint));
  register_backend(backend);
  ::pthread_atfork([] { backend->allocator().before_fork(); }, [] { backend->allocator().after_fork(); },
                   [] { backend->allocator().after_fork(); });
}

}  // namespace tern::detail
