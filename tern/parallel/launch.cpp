// Processes are started, their lines passed on, and their ends waited for.
#include "tern/parallel/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tern/base/check.h"
#include "tern/device/machine.h"
#include "tern/parallel/socket.h"

namespace tern::dist {
namespace {

volatile sig_atomic_t asked_to_end = 0;

/// SIGINT and SIGTERM are noted while it lives.
class SignalGuard {
 public:
  SignalGuard() {
    asked_to_end = 0;
    struct sigaction action {};
    action.sa_handler = [](int number) { asked_to_end = number; };
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~SignalGuard() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM};
  std::array<struct sigaction, 2> before_{};
};

/// The environment with these variables set.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> result;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each, name = text.substr(0, text.find('='));
    if (std::none_of(variables.begin(), variables.end(), [&](const auto& v) { return v.first == name; }))
      result.emplace_back(text);
  }
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// What a process writes, passed on line by line.
class Lines {
 public:
  Lines(Socket pipe, int target, int rank)
      : pipe_(std::move(pipe)), target_(target), tag_(fmt::format("[{}] ", rank)) {}

  bool is_open() const { return pipe_.is_open(); }
  int fd() const { return pipe_.fd(); }

  /// Passes on what has come.
  void read() {
    std::array<char, 65536> bytes;
    const ssize_t count = ::read(fd(), bytes.data(), bytes.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count > 0) text_.append(bytes.data(), static_cast<size_t>(count));
    if (count <= 0 && !text_.empty()) text_ += '\n';
    std::string whole;
    size_t first = 0;
    for (size_t end; (end = text_.find('\n', first)) != std::string::npos; first = end + 1)
      whole += tag_ + text_.substr(first, end + 1 - first);
    text_.erase(0, first);
    for (size_t done = 0; done < whole.size();) {
      const ssize_t written = ::write(target_, whole.data() + done, whole.size() - done);
      if (written < 0 && errno != EINTR) break;  // nobody reads it
      done += static_cast<size_t>(std::max<ssize_t>(written, 0));
    }
    if (count <= 0) pipe_ = Socket();
  }

 private:
  Socket pipe_;  ///< closed like one
  int target_;
  std::string tag_, text_;
};

class Processes {
 public:
  Processes(std::vector<std::string> command, const LaunchOptions& options)
      : command_(std::move(command)), options_(options) {}
  ~Processes() { signal_all(SIGKILL), wait_for_all(); }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// The process of a rank. In the child nothing is allocated: other threads' locks may be held there.
  void start(int rank, std::vector<std::string> environment) {
    const std::vector<char*> arguments = pointers_to(command_), variables = pointers_to(environment);
    std::array<int, 2> failed{}, out{-1, -1}, err{-1, -1};
    TERN_CHECK(::pipe2(failed.data(), O_CLOEXEC) == 0, DistributedError, "launch: {}", std::strerror(errno));
    const Socket failed_read(failed[0]);
    Socket failed_write(failed[1]);
    if (options_.tag_output)
      TERN_CHECK(::pipe2(out.data(), O_CLOEXEC) == 0 && ::pipe2(err.data(), O_CLOEXEC) == 0, DistributedError,
                 "launch: {}", std::strerror(errno));
    Socket out_read(out[0]), out_write(out[1]), err_read(err[0]), err_write(err[1]);
    const pid_t parent = ::getpid(), child = ::fork();
    TERN_CHECK(child >= 0, DistributedError, "launch: {}", std::strerror(errno));
    if (child == 0) {
      for (const int ignored : {SIGPIPE, SIGXFSZ}) ::signal(ignored, SIG_DFL);  // this program's own affair
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody is left behind by a launcher that was killed
      if (::getppid() != parent) ::_exit(1);
      if (options_.tag_output) {
        ::dup2(out[1], STDOUT_FILENO);
        ::dup2(err[1], STDERR_FILENO);
      }
      ::execvpe(arguments[0], arguments.data(), variables.data());
      const int error = errno;
      [[maybe_unused]] const ssize_t told = ::write(failed[1], &error, sizeof error);
      ::_exit(127);
    }
    running_.push_back({child, rank});
    failed_write = Socket();
    int error = 0;
    if (::read(failed_read.fd(), &error, sizeof error) == sizeof error)
      TERN_THROW(DistributedError, "launch: '{}' cannot be started: {}", printable(command_[0]),
                 std::strerror(error));
    if (!options_.tag_output) return;
    lines_.emplace_back(std::move(out_read), STDOUT_FILENO, rank);
    lines_.emplace_back(std::move(err_read), STDERR_FILENO, rank);
  }

  LaunchResult wait() {
    LaunchResult result;
    bool was_asked = false, was_told = false;
    auto next = Clock::time_point::max();
    while (!running_.empty()) {
      pass_on();
      look_for_ends(result);
      if (asked_to_end != 0 && !was_asked) {
        was_asked = true;
        was_told = asked_to_end != SIGINT;  // which a terminal has sent to all of them already
        if (was_told) signal_all(asked_to_end);
        next = Clock::now() + options_.grace;
      } else if (result.failed_rank >= 0 && next == Clock::time_point::max()) {
        next = Clock::now() + options_.grace;
      }
      if (Clock::now() < next) continue;
      signal_all(was_told ? SIGKILL : SIGTERM);
      was_told = true;
      next = Clock::now() + options_.grace;
    }
    while (std::any_of(lines_.begin(), lines_.end(), [](const Lines& l) { return l.is_open(); }))
      if (!pass_on()) break;  // a process of theirs lives on, and holds them open
    if (was_asked && result.failed_rank < 0) {
      result.exit_code = 128 + asked_to_end;
      result.reason = fmt::format("ended by signal {}", asked_to_end);
    }
    return result;
  }

 private:
  struct Running {
    pid_t pid;
    int rank;
  };

  void signal_all(int number) const {
    for (const Running& each : running_) ::kill(each.pid, number);
  }
  void wait_for_all() const {
    for (const Running& each : running_) ::waitpid(each.pid, nullptr, 0);
  }

  /// Waits a moment for lines. False where none came.
  bool pass_on() {
    constexpr int kMomentMs = 20;
    std::vector<pollfd> polled;
    for (const Lines& each : lines_) polled.push_back({each.fd(), POLLIN, 0});  // negative: left out
    const int come = ::poll(polled.data(), polled.size(), kMomentMs);
    for (size_t i = 0; i < lines_.size(); ++i)
      if (come > 0 && polled[i].revents != 0) lines_[i].read();
    return come > 0;
  }

  void look_for_ends(LaunchResult& result) {
    for (auto each = running_.begin(); each != running_.end();) {
      int status = 0;
      if (::waitpid(each->pid, &status, WNOHANG) != each->pid) {
        ++each;
        continue;
      }
      const bool was_killed = WIFSIGNALED(status);
      const int code = was_killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (code != 0 && result.failed_rank < 0 && asked_to_end == 0) {
        result.exit_code = code;
        result.failed_rank = each->rank;
        result.reason = was_killed ? fmt::format("rank {} was ended by signal {} ({})", each->rank,
                                                 WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                   : fmt::format("rank {} ended with exit code {}", each->rank, code);
      }
      each = running_.erase(each);
    }
  }

  std::vector<std::string> command_;
  LaunchOptions options_;
  std::vector<Running> running_;
  std::vector<Lines> lines_;
};

}  // namespace

LaunchResult launch(const std::vector<std::string>& command, const LaunchOptions& options) {
  TERN_CHECK(!command.empty(), ValueError, "launch: there is no program to start");
  TERN_CHECK(options.nproc_per_node >= 1, ValueError, "launch: {} processes: at least one",
             options.nproc_per_node);
  TERN_CHECK(options.nnodes >= 1 && options.node_rank >= 0 && options.node_rank < options.nnodes, ValueError,
             "launch: there is no node {} among {}", options.node_rank, options.nnodes);
  TERN_CHECK(options.nnodes == 1 || !is_this_machine(options.master_addr), ValueError,
             "launch: master_addr is '{}', which every machine calls itself: give the address of node 0",
             options.master_addr);
  uint16_t port = options.master_port;
  Socket reserved;  // until all have ended
  if (port == 0 && options.nnodes == 1) reserved = Socket::reserve();
  if (port == 0) port = reserved.is_open() ? reserved.port() : 29500;

  std::vector<std::pair<std::string, std::string>> shared{
      {"WORLD_SIZE", std::to_string(options.nproc_per_node * options.nnodes)},
      {"LOCAL_WORLD_SIZE", std::to_string(options.nproc_per_node)},
      {"MASTER_ADDR", options.master_addr},
      {"MASTER_PORT", std::to_string(port)}};
  if (options.nnodes == 1) {
    const Secret secret = make_secret();
    shared.emplace_back("TERN_JOB", std::string(secret.begin(), secret.end()));
  }

  const SignalGuard signals;
  Processes processes(command, options);
  for (int local = 0; local < options.nproc_per_node; ++local) {
    const int rank = options.node_rank * options.nproc_per_node + local;
    auto variables = shared;
    variables.emplace_back("RANK", std::to_string(rank));
    variables.emplace_back("LOCAL_RANK", std::to_string(local));
    processes.start(rank, environment_with(variables));
  }
  return processes.wait();
}

}  // namespace tern::dist
