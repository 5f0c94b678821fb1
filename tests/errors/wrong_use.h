// The table of wrong uses: each row is a call that must end in one typed exception with a complete text. The
// rows stand by theme in the files beside this one.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <typeindex>
#include <vector>

#include "tern/tern.h"

namespace tern {

/// A wrong use. What the text says: the operator, the rule, what was given, and the remedy where the rule
/// does not name it already.
struct WrongUse {
  std::string name;
  std::type_index type;
  std::function<void()> use;
  std::vector<std::string> says;
};

class WrongUses : public ::testing::TestWithParam<WrongUse> {
 protected:
  /// Errors must be of exactly the row's type, say everything that it lists, and leave the thread as it was.
  /// Those of kernels on a GPU come at the next wait.
  static void check(const WrongUse& row) {
    const bool recorded = is_grad_enabled();
    try {
      row.use();
      synchronize(get_default_device());
      ADD_FAILURE() << "no error was thrown";
    } catch (const Error& error) {
      RecordProperty("text", error.what());
      EXPECT_EQ(std::type_index(typeid(error)), row.type)
          << "the type is " << typeid(error).name() << ", the text: " << error.what();
      for (const std::string& part : row.says)
        EXPECT_NE(error.message().find(part), std::string::npos)
            << "'" << part << "' is not in: " << error.what();
      EXPECT_EQ(error.message().find('\0'), std::string::npos);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not an error of the library: " << error.what();
    }
    EXPECT_EQ(is_grad_enabled(), recorded);
    // The library goes on.
    EXPECT_EQ((ones({2, 2}) + 1).sum().item<float>(), 8);
  }
};

inline std::string row_name(const ::testing::TestParamInfo<WrongUse>& row) { return row.param.name; }

/// Makes tests of the rows that `rows()` returns; `Theme` is the name of their test suite.
#define TERN_WRONG_USES(Theme, rows)                                 \
  class Theme : public WrongUses {};                                 \
  TEST_P(Theme, ThrowsATypedErrorThatSaysAll) { check(GetParam()); } \
  INSTANTIATE_TEST_SUITE_P(Row, Theme, ::testing::ValuesIn(rows()), row_name)

}  // namespace tern
