// What tests of a room expect of an error, on any device. The table of wrong uses has a stricter form of its
// own in tests/errors/.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "tern/base/error.h"
#include "tern/core/memory.h"
#include "tern/device/stream.h"

namespace tern {

/// Waits for the device that tests run on: what a kernel on a GPU throws arrives here.
inline void settle() { synchronize(get_default_device()); }

/// `call` throws an `Error` whose text contains `text`; on a GPU, at the latest at the next wait.
template <class Error, class F>
void expect_error(F&& call, const std::string& text) {
  try {
    call();
    settle();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
  }
}

/// The text of the error that `call` throws.
template <class Error = tern::Error, class F>
std::string message_of(F&& call) {
  try {
    call();
    settle();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of this type was thrown";
  return {};
}

}  // namespace tern
