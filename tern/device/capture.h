// Capture: a step (forward, backward, update) recorded once and then replayed without the cost of its
// operators. As CUDA graphs in PyTorch (torch.cuda.graph), on every device.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tern {

class Recorder;

/// A recorded step. A replay does the same kernels, copies and waits between streams on the same memory
/// again:
/// - it reads its inputs where they lay and writes its results where they went: new data is copied into the
///   input tensors (`x.copy_(batch)`), results are read from the tensors that the step has set, after
///   replay();
/// - kernels that do not need each other may run side by side on a GPU, which changes no number;
/// - random numbers go on where the generator is; optimizers count their steps and use their present options,
/// and gradient scalers their present scale;
/// - everything else that the host did while the step was recorded (its branches, numbers that it computed)
/// stays as it was;
/// - tensors that the step reads or writes, and optimizers and gradient scalers that are part of it, must
/// live as long as it.
///
/// The step's own memory lies in a pool apart, so that nobody else uses it between replays, and is given back
/// with the step. One thread at a time may replay it. While a step is recorded, other threads must not use
/// its streams: on a GPU they would break off the recording, or become part of it.
class CapturedStep {
 public:
  CapturedStep(CapturedStep&&) noexcept;
  CapturedStep& operator=(CapturedStep&&) noexcept;
  ~CapturedStep();

  /// Does the step once more. Like operators, it may return before the device has done it, but where a
  /// gradient scaler asks whether gradients are finite. Throws CaptureError while another step is being
  /// recorded on this thread.
  void replay();
  /// Kernels that a replay starts, apart from those of optimizers and gradient scalers.
  size_t num_launches() const noexcept;
  /// Bytes of memory that it holds for itself, on all devices together.
  size_t num_bytes() const;

 private:
  friend class StepCapture;
  explicit CapturedStep(std::unique_ptr<Recorder> recorder);

  std::unique_ptr<Recorder> recorder_;
};

struct CaptureOptions {
  /// How often the step is done before it is recorded: what happens in a first step only, such as making the
  /// state of an optimizer, must be over.
  int warmup = 1;
};

/// Does `step` `warmup` times and then once more, recording what the calling thread gives to devices. Throws
/// CaptureError, with the place in the model, for what a replay could not do: a tensor read on the host, a
/// wait, a shape that depends on data, a generator that is seeded, an optimizer's first step; and for a
/// capture within another.
CapturedStep capture(const std::function<void()>& step, CaptureOptions options = {});

/// The same for a step that is not one function: what the thread does from here to end() is done and
/// recorded, as between capture_begin() and capture_end() of PyTorch's CUDAGraph. What must be over before is
/// done by the caller. On one thread.
class StepCapture {
 public:
  /// Throws CaptureError within another capture.
  StepCapture();
  /// Without end(), what was recorded is forgotten.
  ~StepCapture();
  StepCapture(const StepCapture&) = delete;
  StepCapture& operator=(const StepCapture&) = delete;

  CapturedStep end();

 private:
  struct Recording;
  std::unique_ptr<Recording> recording_;
};

}  // namespace tern
