// The public side of recorded steps.
#include "tern/device/capture.h"

#include "tern/base/check.h"
#include "tern/device/recorder.h"

namespace tern {
namespace {

void check_none_recorded() {
  TERN_CHECK(!detail::step_recorder, CaptureError, "capture: another step is being recorded: end it first");
}

}  // namespace

CapturedStep::CapturedStep(std::unique_ptr<Recorder> recorder) : recorder_(std::move(recorder)) {}
CapturedStep::CapturedStep(CapturedStep&&) noexcept = default;
CapturedStep& CapturedStep::operator=(CapturedStep&&) noexcept = default;
CapturedStep::~CapturedStep() = default;

void CapturedStep::replay() {
  TERN_CHECK(recorder_ != nullptr, CaptureError, "replay: this step was moved to another object");
  TERN_CHECK(
      !detail::step_recorder, CaptureError,
      "replay: a step is being recorded, and a replay cannot be part of it: call the step's operators");
  recorder_->replay();
}

size_t CapturedStep::num_launches() const noexcept { return recorder_ ? recorder_->num_launches() : 0; }
size_t CapturedStep::num_bytes() const { return recorder_ ? recorder_->num_bytes() : 0; }

struct StepCapture::Recording {
  std::unique_ptr<Recorder> recorder = std::make_unique<Recorder>();
  detail::RecordingGuard guard{recorder.get()};
};

StepCapture::StepCapture() {
  check_none_recorded();
  recording_ = std::make_unique<Recording>();
}
StepCapture::~StepCapture() = default;

CapturedStep StepCapture::end() {
  TERN_CHECK(recording_ != nullptr, CaptureError, "capture: it has ended already");
  const std::unique_ptr<Recording> recording = std::move(recording_);
  recording->recorder->finish();
  return CapturedStep(std::move(recording->recorder));
}

CapturedStep capture(const std::function<void()>& step, CaptureOptions options) {
  check_none_recorded();
  TERN_CHECK(options.warmup >= 0, ValueError, "capture: warmup must be at least 0, got {}", options.warmup);
  for (int i = 0; i < options.warmup; ++i) step();
  StepCapture recording;
  step();
  return recording.end();
}

}  // namespace tern
