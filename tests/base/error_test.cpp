// The exceptions' family, context on the way out, and the environment.
#include "tern/base/error.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/base/intrusive_ptr.h"

namespace tern {
namespace {

template <class E>
void throws_as_error() {
  EXPECT_THROW(TERN_THROW(E, "{} of {}", 1, 2), E);
  try {
    TERN_CHECK(1 + 1 == 3, E, "got {}", 2);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "got 2");
    EXPECT_EQ(typeid(error), typeid(E));
  }
}

TEST(Errors, AllAreErrorsAndStdExceptions) {
  throws_as_error<ShapeError>();
  throws_as_error<DTypeError>();
  throws_as_error<DeviceError>();
  throws_as_error<IndexError>();
  throws_as_error<ValueError>();
  throws_as_error<TypeError>();
  throws_as_error<AutogradError>();
  throws_as_error<OutOfMemoryError>();
  throws_as_error<IoError>();
  throws_as_error<CheckpointError>();
  throws_as_error<DataError>();
  throws_as_error<NotImplementedError>();
  EXPECT_THROW(throw ShapeError("x"), std::exception);
}

TEST(Errors, ContextGoesBeforeAndKeepsTheType) {
  try {
    with_context("loading 'm.pt'",
                 [] { with_context("tensor 'w'", [] { throw ShapeError("[2] is not [3]"); }); });
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "loading 'm.pt': tensor 'w': [2] is not [3]");
  }
  EXPECT_EQ(with_context("no error", [] { return 5; }), 5);
  EXPECT_THROW(with_context("another kind", [] { throw 7; }), int);
}

TEST(Errors, AConditionIsEvaluatedOnce) {
  int calls = 0;
  TERN_CHECK(++calls == 1, ValueError, "never");
  EXPECT_EQ(calls, 1);
}

TEST(Environment, Text) {
  ::setenv("TERN_BASE_TEST", "some text", 1);
  EXPECT_EQ(env_text("TERN_BASE_TEST"), "some text");
  ::setenv("TERN_BASE_TEST", "", 1);
  EXPECT_EQ(env_text("TERN_BASE_TEST"), std::nullopt) << "empty counts as unset";
  ::unsetenv("TERN_BASE_TEST");
  EXPECT_EQ(env_text("TERN_BASE_TEST"), std::nullopt);
}

TEST(Environment, Integers) {
  auto read = [](const char* text) {
    ::setenv("TERN_BASE_TEST", text, 1);
    return env_int("TERN_BASE_TEST", -5, 1000);
  };
  EXPECT_EQ(read("42"), 42);
  EXPECT_EQ(read("-5"), -5);
  EXPECT_EQ(read("1000"), 1000);
  EXPECT_EQ(read(""), std::nullopt);
  for (const char* text :
       {"1001", "-6", "4x", "x", " 4", "4 ", "4.0", "0x10", "+4", "99999999999999999999"}) {
    try {
      read(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const ValueError& error) {
      EXPECT_EQ(error.message(),
                std::string("environment variable TERN_BASE_TEST: expected an integer from -5 to "
                            "1000, got '") +
                    text + "'");
    }
  }
  ::unsetenv("TERN_BASE_TEST");
}

TEST(Environment, Choices) {
  auto read = [](const char* text) {
    ::setenv("TERN_BASE_TEST", text, 1);
    return env_choice("TERN_BASE_TEST", {"direct", "cudnn", "plain"});
  };
  EXPECT_EQ(read(""), 0u);
  EXPECT_EQ(read("direct"), 0u);
  EXPECT_EQ(read("plain"), 2u);
  try {
    read("Plain");
    ADD_FAILURE() << "accepted";
  } catch (const ValueError& error) {
    EXPECT_EQ(error.message(),
              "environment variable TERN_BASE_TEST: expected direct, cudnn or plain, got 'Plain'");
  }
  ::unsetenv("TERN_BASE_TEST");
}

struct Counted : RefCounted {
  explicit Counted(int& deaths_) : deaths(deaths_) {}
  ~Counted() { ++deaths; }
  int& deaths;
};

TEST(IntrusivePtr, CountsReferences) {
  int deaths = 0;
  {
    IntrusivePtr<Counted> a(new Counted(deaths));
    EXPECT_EQ(a->use_count(), 1);
    IntrusivePtr<Counted> b = a;
    EXPECT_EQ(a->use_count(), 2);
    EXPECT_EQ(a, b);
    IntrusivePtr<Counted> c = std::move(b);
    EXPECT_FALSE(b);
    EXPECT_EQ(c->use_count(), 2);
    c = nullptr;
    EXPECT_EQ(a->use_count(), 1);
    const IntrusivePtr<Counted>& same = a;
    a = same;
    EXPECT_EQ(a->use_count(), 1);
    EXPECT_EQ(deaths, 0);
    a = IntrusivePtr<Counted>(new Counted(deaths));
    EXPECT_EQ(deaths, 1);
  }
  EXPECT_EQ(deaths, 2);
}

}  // namespace
}  // namespace tern
