// Runs the program under test, as a shell or a person at a terminal would. The program is found in
// TERN_PROGRAM.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tern::cli {

struct Outcome {
  int code = -1;    ///< exit code, or 128 + the signal that ended it
  std::string out;  ///< of a terminal, everything
  std::string err;
  long peak_kib = 0;  ///< largest resident memory
};

struct RunOptions {
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<std::string> launcher = {};  ///< a program, by its path, and its arguments that start ours
  std::string folder = {};                 ///< working directory
  int terminal_columns = 0;       ///< above 0: standard output and error are a terminal of this width
  long long file_size_limit = 0;  ///< above 0: writes beyond it fail, as on a full disk
  bool in_background = false;     ///< SIGINT is ignored, as by what a script puts in the background
  std::vector<std::pair<int, const char*>> streams = {};  ///< descriptors with the file instead; null: closed
  /// Called with the process when `out` has grown; may send signals.
  std::function<void(pid_t process, const std::string& out)> watch = {};
};

inline std::string program_path() {
  const char* path = std::getenv("TERN_PROGRAM");
  return path ? path : "";
}

inline void check(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string(what) + " failed");
}

/// Starts the program and waits for its end, at most two minutes.
inline Outcome run_program(const std::vector<std::string>& arguments, const RunOptions& options = {}) {
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  if (options.terminal_columns > 0) {
    out[0] = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    check(out[0] >= 0 && ::grantpt(out[0]) == 0 && ::unlockpt(out[0]) == 0, "posix_openpt");
    out[1] = ::open(::ptsname(out[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
    winsize size{};
    size.ws_col = static_cast<unsigned short>(options.terminal_columns);
    size.ws_row = 50;
    check(out[1] >= 0 && ::ioctl(out[1], TIOCSWINSZ, &size) == 0, "terminal");
  } else {
    check(::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(err, O_CLOEXEC) == 0, "pipe");
  }
  const std::string program = options.launcher.empty() ? program_path() : options.launcher[0],
                    tern = program_path();
  std::vector<char*> argv;
  for (const std::string& word : options.launcher) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(const_cast<char*>(options.launcher.empty() ? "tern" : tern.c_str()));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const pid_t process = ::fork();
  check(process >= 0, "fork");
  if (process == 0) {
    std::signal(SIGINT, options.in_background ? SIG_IGN : SIG_DFL);
    ::dup2(out[1], 1);
    ::dup2(err[1] >= 0 ? err[1] : out[1], 2);
    for (const auto& [descriptor, file] : options.streams) {
      ::close(descriptor);
      if (file) ::open(file, O_RDWR);  // gets the lowest number, which is free now
    }
    // On a busy machine threads that wait for each other make a small network many times slower.
    ::setenv("TERN_NUM_THREADS", "1", 0);
    for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
    if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(126);
    if (options.file_size_limit > 0) {
      const rlimit limit{static_cast<rlim_t>(options.file_size_limit),
                         static_cast<rlim_t>(options.file_size_limit)};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  if (err[1] >= 0) ::close(err[1]);

  Outcome outcome;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  pollfd sources[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  while (sources[0].fd >= 0 || sources[1].fd >= 0) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(process, SIGKILL);
      break;
    }
    ::poll(sources, 2, 100);
    for (int i = 0; i < 2; ++i) {
      if (sources[i].fd < 0 || sources[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t count = ::read(sources[i].fd, buffer, sizeof buffer);
      if (count > 0)
        (i == 0 ? outcome.out : outcome.err).append(buffer, static_cast<size_t>(count));
      else if (count == 0 || errno != EINTR)
        sources[i].fd = -1;  // a terminal whose other end is closed gives an error
      if (i == 0 && count > 0 && options.watch) options.watch(process, outcome.out);
    }
  }
  int status = 0;
  rusage used{};
  ::wait4(process, &status, 0, &used);
  outcome.peak_kib = used.ru_maxrss;
  ::close(out[0]);
  if (err[0] >= 0) ::close(err[0]);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace tern::cli
