// Interrupt: Ctrl-C and SIGTERM as a question that a loop asks, so that it can end at a good place.
#pragma once

namespace tern::train {

/// While one of these lives, the first SIGINT or SIGTERM only sets a flag; the second ends the process as
/// usual. One that the process ignores stays ignored, as SIGINT for what a script's shell puts in the
/// background: Ctrl-C is not for those. What was set up before is put back by the destructor. One at a time.
class Interrupt {
 public:
  /// Throws ValueError when another one lives.
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  bool requested() const noexcept { return signal() != 0; }
  /// The signal that came, or 0.
  int signal() const noexcept;
};

}  // namespace tern::train
