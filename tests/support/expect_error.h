// What tests of a room expect of an error. The table of wrong uses has a stricter form of its own in
// tests/errors/.
#pragma once

#include <gmock/gmock.h>

#include <string>

namespace tern {

/// `call` throws an `Error` whose text contains `text`.
template <class Error, class F>
void expect_error(F&& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
  }
}

}  // namespace tern
