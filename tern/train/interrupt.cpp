// The handlers of SIGINT and SIGTERM.
#include "tern/train/interrupt.h"

#include <csignal>

#include "tern/base/check.h"

namespace tern::train {
namespace {

volatile std::sig_atomic_t received = 0;
bool alive = false;
struct sigaction before_int, before_term;

bool is_ignored(const struct sigaction& action) { return action.sa_handler == SIG_IGN; }

extern "C" void on_signal(int number) {
  received = number;
  if (!is_ignored(before_int)) std::signal(SIGINT, SIG_DFL);
  if (!is_ignored(before_term)) std::signal(SIGTERM, SIG_DFL);
}

void install(int number, const struct sigaction& before) {
  if (is_ignored(before)) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  TERN_CHECK(!alive, ValueError, "Interrupt: there is one already, and signals can be given to one only");
  alive = true;
  received = 0;
  ::sigaction(SIGINT, nullptr, &before_int);
  ::sigaction(SIGTERM, nullptr, &before_term);
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
