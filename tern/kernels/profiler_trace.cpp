// The profiler's events in Chrome's trace format: "Trace Event Format", Google, 2016.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "tern/base/check.h"
#include "tern/kernels/profiler.h"

namespace tern {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (result += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      result += c;
  }
  return result + '"';
}

const char* kind_name(Activity::Kind kind) {
  return kind == Activity::Kind::Kernel ? "kernel" : kind == Activity::Kind::Copy ? "copy" : "wait";
}

int process_of(Device device) { return device.is_cpu() ? 0 : 1 + device.index; }

}  // namespace

std::string Profiler::chrome_trace() const {
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  std::set<std::pair<int, int>> named;
  const char* separator = "\n";
  const auto add = [&](const std::string& entry) {
    text += separator;
    text += entry;
    separator = ",\n";
  };
  for (const ProfileEvent& event : events()) {
    const int process = process_of(event.stream.device), thread = event.stream.id;
    if (named.insert({process, -1}).second)
      add(fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "args": {{"name": {}}}}})", process,
                      quoted(event.stream.device.str())));
    if (named.insert({process, thread}).second)
      add(fmt::format(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})",
                      process, thread, quoted(fmt::format("stream {}", thread))));
    add(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
        R"("args": {{"kernel": {}, "module": {}, "bytes": {:.0f}, "flops": {:.0f}}}}})",
        kind_name(event.kind), quoted(event.name), process, thread, event.begin * 1e6, event.duration * 1e6,
        quoted(event.kernel), quoted(event.module), event.bytes, event.flops));
  }
  return text + "\n]}\n";
}

void Profiler::export_chrome_trace(const std::string& path) const {
  const std::string text = chrome_trace();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int cause = errno;
  if (file && std::fclose(file) != 0 && written) {
    written = false;
    cause = errno;
  }
  TERN_CHECK(written, IoError, "Profiler: cannot write the trace '{}': {}", path, std::strerror(cause));
}

}  // namespace tern
