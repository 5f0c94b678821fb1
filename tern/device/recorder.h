// Recorder: what a thread does to devices while it records a step, kept so that it can be done again. The
// public side is device/capture.h.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "tern/core/recording.h"
#include "tern/device/backend.h"
#include "tern/device/kept_launch.h"

namespace tern {

class CachingAllocator;

/// A list of launches, copies, events and calls of host code. While it records, `detail::step_recorder` of
/// the thread points to it, and all that is told to it has been or is then done as well.
class Recorder final : public StepRecorder {
 public:
  using RecordedEvent = std::shared_ptr<std::shared_ptr<EventRecord>>;

  Recorder() = default;
  /// Waits for the work of the last replay, and gives the memory back.
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void host_reads(const char* operation) override;
  void host_wrote(const Storage& storage) override { kept_.push_back(storage); }
  void host_writes(StorageImpl& to, size_t offset, const void* host, size_t nbytes) override;
  void changed(StorageImpl& storage) override;
  void random_reserved(const Generator& generator, Generator::State first, uint64_t counters) override;
  void call(std::function<void()> action) override;

  /// To be told before the backend is, as everything here. Returns what the backend is to be given, valid
  /// until the next launch.
  const Launch& launched(Backend& backend, Stream stream, const Launch& launch);
  /// The storages of the caller that are no tensor's memory of a device must be kept (`keep`).
  void copied(Stream stream, void* to, Device to_device, const void* from, Device from_device, size_t nbytes);
  /// Told afterwards: end_segment() comes before. Replays change what the event points to.
  void event_recorded(const RecordedEvent& event, Stream stream, bool timed);
  void event_waited(const RecordedEvent& event, Stream stream);
  /// Keeps the memory from being reused by what the step does later.
  void keep(const StorageImpl& storage) { kept_.emplace_back(const_cast<StorageImpl*>(&storage)); }
  /// The allocator serves this step from memory of its own.
  void allocates_from(CachingAllocator& allocator);

  /// Where the backend records kernels itself (CUDA's graphs), those of one stream between two other events
  /// are a segment. This ends the open one, if any, and gives it to its stream.
  void end_segment();
  /// The same where nothing can be thrown: finish() throws what it has thrown.
  void try_end_segment() noexcept;

  /// At the end of the step.
  void finish();

  /// Does everything again. Not while this thread records.
  void replay();

  size_t num_launches() const noexcept { return num_launches_; }
  /// Bytes that the step holds for itself on all devices.
  size_t num_bytes() const;

 private:
  /// Throws CaptureError while a condition is set.
  void check_unconditional(const char* what) const;

  /// The numbers that the step took from a generator.
  struct Draws {
    Generator generator;
    Generator::State first;
    uint64_t counters = 0;
    Generator::State now;  ///< of the replay
  };
  /// A launch's numbers among those that the step takes.
  struct Drawn {
    Draws* draws;  ///< null: it draws nothing, or what was drawn before the step
    uint64_t position;
  };
  struct LaunchOp {
    Backend* backend;
    Stream stream;
    KeptLaunch kept;
    Drawn drawn;
  };
  struct CopyOp {
    Stream stream;
    void* to;
    Device to_device;
    const void* from;
    Device from_device;
    size_t nbytes;
  };
  struct RecordOp {
    RecordedEvent event;
    Stream stream;
    bool timed;
  };
  struct WaitOp {
    RecordedEvent event;
    Stream stream;
  };
  struct CallOp {
    std::function<void()> action;
  };
  struct SegmentOp {
    std::unique_ptr<RecordedWork> work;
    std::vector<Draws*> origins;  ///< what its random numbers count from
  };
  struct Segment {
    Backend* backend = nullptr;  ///< null: none is open
    Stream stream = {};
    std::vector<Draws*> origins = {};
  };

  void works_on(Device device);
  bool in_segment(Backend& backend, Stream stream);
  Drawn drawn_by(const Launch& launch) const;
  /// The number of the draws among the origins of the open segment, from 1; 0: there are too many.
  uint32_t origin_of(Draws* draws);

  static void run(const SegmentOp& segment);

  std::vector<std::variant<LaunchOp, CopyOp, RecordOp, WaitOp, CallOp, SegmentOp>> ops_;
  Segment segment_;
  std::optional<KeptLaunch> redirected_;
  std::vector<std::unique_ptr<Draws>> draws_;
  std::vector<RecordedEvent> events_;
  std::vector<Storage> kept_;
  std::vector<Storage> changed_;  ///< in place, other than by call()
  std::vector<CachingAllocator*> allocators_;
  std::vector<Device> devices_;  ///< other than the CPU
  std::exception_ptr failure_;
  size_t num_launches_ = 0;
  const char* last_kernel_ = nullptr;
};

namespace detail {
/// What records on the calling thread, or null.
inline Recorder* this_recorder() noexcept { return static_cast<Recorder*>(step_recorder); }

/// Makes the thread record, or stop to.
class RecordingGuard {
 public:
  explicit RecordingGuard(StepRecorder* recorder) noexcept;
  ~RecordingGuard();
  RecordingGuard(const RecordingGuard&) = delete;
  RecordingGuard& operator=(const RecordingGuard&) = delete;

 private:
  StepRecorder* before_;
};
}  // namespace detail

}  // namespace tern
