// The handlers of SIGINT and SIGTERM.
#include "tern/train/interrupt.h"

#include <csignal>

#include "tern/base/check.h"

namespace tern::train {
namespace {

volatile std::sig_atomic_t received = 0;
bool alive = false;
struct sigaction before_int, before_term;

extern "C" void on_signal(int number) {
  received = number;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

/// Also where the signal was ignored, as shells do for what a script puts in the background: `kill -INT` is
/// meant.
void install(int number, struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, &before);
}

}  // namespace

Interrupt::Interrupt() {
  TERN_CHECK(!alive, ValueError, "Interrupt: there is one already, and signals can be given to one only");
  alive = true;
  received = 0;
  install(SIGINT, before_int);
  install(SIGTERM, before_term);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &before_int, nullptr);
  ::sigaction(SIGTERM, &before_term, nullptr);
  alive = false;
}

int Interrupt::signal() const noexcept { return received; }

}  // namespace tern::train
