// A line: "tern", the job, the port, and every address of the machine, of which one leads to it from each
// other.
#include "tern/parallel/file_rendezvous.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "tern/base/check.h"
#include "tern/device/machine.h"

namespace tern::dist {
namespace {

constexpr std::string_view kStart = "tern ";
/// With addresses that lead elsewhere from here.
constexpr auto kPatience = std::chrono::seconds(2);

struct Told {
  bool is_empty = true;
  std::string job = {};
  uint16_t port = 0;
  std::vector<std::string> hosts = {};
};

std::string start_of(const std::filesystem::path& path) {
  std::array<char, 4096> text{};
  std::ifstream file(path);
  file.read(text.data(), text.size());
  return {text.data(), static_cast<size_t>(file.gcount())};
}

/// Without hosts where nobody has written the file, or something else stands in it.
Told read_notice(const std::filesystem::path& path) {
  const std::string start = start_of(path);
  Told told{.is_empty = start.empty()};
  if (!start.starts_with(kStart)) return told;
  std::istringstream words(start.substr(kStart.size()));
  words >> told.job >> told.port;
  for (std::string word; words >> word;) told.hosts.push_back(word);
  if (!told.hosts.empty() && told.hosts.front() == own_host_name())
    told.hosts.insert(told.hosts.begin(), "127.0.0.1");
  return told;
}

}  // namespace

Notice::Notice(std::filesystem::path path, uint16_t port, const std::string& job) : path_(std::move(path)) {
  const std::string before = start_of(path_);
  TERN_CHECK(before.empty() || before.starts_with(kStart), DistributedError,
             "init_method: '{}' exists, and is no file by which processes meet: name a new one",
             printable(path_.string()));
  const std::filesystem::path whole = path_.string() + "." + job.substr(0, 8);
  std::ofstream file(whole);
  file << kStart << job << ' ' << port << ' ' << own_host_name();
  for (const std::string& address : own_addresses()) file << ' ' << address;
  file << '\n';
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(whole, path_, error);
  if (file && !error) return;
  const std::string reason = error ? error.message() : std::strerror(errno);
  std::filesystem::remove(whole, error);
  TERN_THROW(DistributedError, "init_method: '{}' cannot be written: {}", printable(path_.string()), reason);
}

Notice::~Notice() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

Socket Notice::follow(const std::filesystem::path& path, Clock::time_point deadline, std::string& job) {
  for (;;) {
    const Told told = read_notice(path);
    std::string reason = told.is_empty ? "nobody has written it" : "something else stands in it";
    for (const std::string& host : told.hosts) {
      Socket socket =
          Socket::try_connect(host, told.port, std::min(deadline, Clock::now() + kPatience), reason);
      if (!socket.is_open()) continue;
      job = told.job;
      return socket;
    }
    TERN_CHECK(
        Clock::now() < deadline, DistributedError,
        "cannot reach the process that '{}' leads to: {}: is rank 0 there, and does it see the same file?",
        printable(path.string()), reason);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace tern::dist
