// Device: where a tensor lives, as a value. What devices there are is asked in device/registry.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tern {

enum class DeviceType : uint8_t { CPU, CUDA };
inline constexpr int kNumDeviceTypes = 2;

/// `cpu`, or the GPU number `index` of `cuda`. `cuda` without a number (index -1) means the current GPU, and
/// is resolved when a tensor is made. A simulated GPU is a `cuda` device too.
struct Device {
  DeviceType type = DeviceType::CPU;
  int16_t index = 0;

  constexpr Device() = default;
  /// Throws DeviceError above 32767 or below -1.
  constexpr Device(DeviceType type_, int index_) : type(type_), index(static_cast<int16_t>(index_)) {
    if (index_ < -1 || index_ > INT16_MAX) throw_bad_index(index_);
  }
  /// From "cpu", "cuda" or "cuda:1". Throws DeviceError with the valid forms, ValueError for a null pointer.
  Device(std::string_view text);
  Device(const char* text);
  Device(const std::string& text) : Device(std::string_view(text)) {}
  /// The GPU of this number, as in PyTorch. Throws DeviceError when negative.
  Device(int index);

  constexpr bool is_cpu() const noexcept { return type == DeviceType::CPU; }
  constexpr bool is_cuda() const noexcept { return type == DeviceType::CUDA; }
  constexpr bool operator==(const Device&) const noexcept = default;
  /// "cpu", "cuda:1".
  std::string str() const;

 private:
  [[noreturn]] static void throw_bad_index(int index);
};

inline constexpr Device kCPU{DeviceType::CPU, 0};

}  // namespace tern
