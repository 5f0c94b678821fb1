// Parsing and printing of device names.
#include "tern/core/device.h"

#include <charconv>

#include "tern/base/check.h"
#include "tern/base/env.h"

namespace tern {

Device::Device(std::string_view text) {
  std::string_view kind = text.substr(0, text.find(':'));
  bool numbered = kind.size() < text.size();
  std::string_view digits = numbered ? text.substr(kind.size() + 1) : std::string_view();
  int number = -1;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  bool canonical = digits == "0" || (!digits.empty() && digits[0] >= '1' && digits[0] <= '9');
  bool good_number = !numbered || (error == std::errc() && end == digits.data() + digits.size() &&
                                   canonical && number <= INT16_MAX);
  bool is_cpu_kind = kind == "cpu";
  TERN_CHECK((is_cpu_kind || kind == "cuda") && good_number && !(is_cpu_kind && numbered && number != 0),
             DeviceError,
             "Invalid device string: '{}' (expected cpu, cuda, or cuda:N with N from 0, such as cuda:1)",
             text);
  type = is_cpu_kind ? DeviceType::CPU : DeviceType::CUDA;
  index = static_cast<int16_t>(is_cpu_kind ? 0 : number);
}

Device::Device(const char* text)
    : Device(std::string_view(
          given_text(text, "Device: the text is a null pointer (expected cpu, cuda, or cuda:N)"))) {}

Device::Device(int number) : Device(DeviceType::CUDA, number) {
  if (number < 0) throw_bad_index(number);
}

void Device::throw_bad_index(int index) {
  TERN_THROW(DeviceError, "Device index must be from 0 to {}, got {}", INT16_MAX, index);
}

std::string Device::str() const {
  if (is_cpu()) return "cpu";
  return index < 0 ? "cuda" : fmt::format("cuda:{}", index);
}

}  // namespace tern
