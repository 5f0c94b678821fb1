// What opening a pickle with Python would mean, judged by the classes and functions that it names.
#pragma once

#include <cstdint>
#include <string_view>

#include "tern/io/value.h"

namespace tern::io {

enum class Verdict : uint8_t {
  PlainData,     ///< only names whose meaning the readers know
  NeedsClasses,  ///< Python would import other classes, and make objects of them
  WouldRunCode,  ///< Python would run commands, load modules or evaluate text
};

/// "plain data", "needs classes", "would run code".
std::string_view name(Verdict verdict) noexcept;

/// The verdict for one name. `getattr` is how Python 3.11 writes members of an Enum: it needs classes, unless
/// what it gives is called (`calls_results`). So do names of methods ("Class.method").
Verdict judge_global(const GlobalName& global, bool calls_results);

}  // namespace tern::io
