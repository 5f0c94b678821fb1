// The tree of values: making, reading by path, Python's equality, cycles, depth.
#include "tern/io/value.h"

#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "io_testing.h"

namespace tern {
namespace {

using testing::HasSubstr;

TEST(Value, KindsFromCpp) {
  EXPECT_EQ(Value().kind(), ValueKind::None);
  EXPECT_EQ(Value(true).kind(), ValueKind::Bool);
  EXPECT_EQ(Value(3).kind(), ValueKind::Int);
  EXPECT_EQ(Value(uint8_t{3}).as_int(), 3);
  EXPECT_EQ(Value(size_t{3}).as_int(), 3);
  EXPECT_EQ(Value(0.5f).as_float(), 0.5);
  EXPECT_EQ(Value("text").as_str(), "text");
  EXPECT_EQ(Value(std::string_view("text")).as_str(), "text");
  EXPECT_EQ(Value(DType::Float16).as_dtype(), DType::Float16);
  EXPECT_EQ(Value(Device("cuda:1")).as_device(), Device("cuda:1"));
  EXPECT_EQ(Value(std::complex<double>(1, -2)).as_complex().imag(), -2);
  EXPECT_EQ(Value(std::vector<int>{1, 2}).as_list().size(), 2u);
  EXPECT_EQ(Value::size({2, 3}).as_size(), (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(Value(floats({1, 2})).is_tensor());
  EXPECT_EQ(Value(Shape{2, 3}).as_size(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Value(std::optional<int>(7)).as_int(), 7);
  EXPECT_TRUE(Value(std::optional<int>()).is_none());
  EXPECT_EQ(Value(GlobalName{"m", "n"}).as_global().full(), "m.n");
}

/// Whether inner braces are taken for a value: of these, none has one meaning.
template <class V>
constexpr bool kPairOfInts = requires {
  V({{"a", {1, 2}}});
};
template <class V>
constexpr bool kPairOfTexts = requires {
  V({{"a", {"b", "c"}}});
};
template <class V>
constexpr bool kThreeTexts = requires {
  V({{"a", {"b", "c", "d"}}});
};
static_assert(!kPairOfInts<Value> && !kPairOfTexts<Value> && !kThreeTexts<Value>);

TEST(Value, ListsOfTensorsInBracesAreNoDict) {
  const Tensor x = floats({1}), y = floats({2});
  EXPECT_THROW((Value{{x, y}, {y, x}}), TypeError);
}

TEST(Value, DictFromBracesAndReadByPath) {
  Value checkpoint = {
      {"epoch", 3}, {"model", {{"w", floats({1, 2})}}}, {"history", Value::list({0.5, 0.25})}};
  EXPECT_EQ(checkpoint["epoch"].as_int(), 3);
  EXPECT_EQ(elements<float>(checkpoint["model"]["w"].as_tensor()), (std::vector<float>{1, 2}));
  EXPECT_EQ(checkpoint["history"][1].as_float(), 0.25);
  EXPECT_EQ(checkpoint["history"][-1].as_float(), 0.25);
  EXPECT_TRUE(checkpoint.contains("model"));
  EXPECT_FALSE(checkpoint["optimizer"].exists());
}

TEST(Value, EntriesAreSetThroughTheIndex) {
  Value dict = Value::dict();
  dict["a"] = 1;
  dict["b"] = Value::dict();
  dict["b"]["c"] = "deep";
  dict["a"] = 2;
  EXPECT_EQ(dict.str(), "{'a': 2, 'b': {'c': 'deep'}}");
  Value list = Value::list({1, 2});
  list[1] = "two";
  EXPECT_EQ(list.str(), "[1, 'two']");
  EXPECT_THAT(error_of<IndexError>([&] { list[2] = 3; }),
              HasSubstr("value[2]: no such position; the list has 2 items"));
}

TEST(Value, ListsGrowThroughTheIndex) {
  Value run = {{"losses", Value::list({0.5})}};
  const Value shared = run["losses"];
  run["losses"].push_back(0.25);
  shared.push_back("end");
  EXPECT_EQ(run.str(), "{'losses': [0.5, 0.25, 'end']}");
  EXPECT_EQ(error_of<TypeError>([&] { run.push_back(1); }), "the value is a dict, not a list");
  EXPECT_THAT(error_of<IndexError>([&] { run["loses"].push_back(1); }), HasSubstr("value['loses']"));
}

TEST(Value, ErrorsNameThePath) {
  Value value = {{"model", {{"epoch", "three"}}}, {"list", Value::list({1})}};
  EXPECT_EQ(error_of<TypeError>([&] { value["model"]["epoch"].as_int(); }),
            "value['model']['epoch'] is a str, not an int");
  EXPECT_EQ(error_of<IndexError>([&] { value["model"]["step"].as_int(); }),
            "value['model']['step']: there is no such key; the dict's 1 keys are 'epoch'");
  EXPECT_EQ(error_of<IndexError>([&] { value["list"][4].as_int(); }),
            "value['list'][4]: no such position; the list has 1 items");
  EXPECT_EQ(error_of<TypeError>([&] { value["model"]["epoch"]["x"].as_int(); }),
            "value['model']['epoch']['x']: what is to be indexed is a str, not a dict, list or tuple");
  EXPECT_EQ(error_of<TypeError>([&] { value.as_tensor(); }), "the value is a dict, not a tensor");
}

TEST(Value, NumbersConvertAsInPython) {
  EXPECT_EQ(Value(true).as_int(), 1);
  EXPECT_EQ(Value(2).as_float(), 2.0);
  EXPECT_EQ(Value(floats({2.5})).as_float(), 2.5);
  EXPECT_EQ(Value(tensor_of<int64_t>({(int64_t{1} << 62) + 1}, {1})).as_int(), (int64_t{1} << 62) + 1);
  EXPECT_EQ(Value(tensor_of<uint8_t>({200}, {})).as_int(), 200);
  EXPECT_THROW(Value(2.0).as_int(), TypeError);
  EXPECT_THROW(Value(floats({2})).as_int(), TypeError);
  EXPECT_THROW(Value(tensor_of<int64_t>({1, 2}, {2})).as_int(), TypeError);
  EXPECT_THROW(Value(1).as_bool(), TypeError);
  EXPECT_THROW(Value(floats({1, 2})).as_float(), TypeError);
}

TEST(Value, LongIntegers) {
  Value big = Value::integer_from_decimal("-170141183460469231731687303715884105729");
  EXPECT_EQ(big.kind(), ValueKind::BigInt);
  EXPECT_EQ(big.str(), "-170141183460469231731687303715884105729");
  EXPECT_EQ(Value::integer(big.integer_bytes()), big);
  EXPECT_EQ(Value::integer_from_decimal("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(Value::integer_from_decimal("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_EQ(Value::integer_from_decimal("9223372036854775808").kind(), ValueKind::BigInt);
  EXPECT_EQ(Value(UINT64_MAX).str(), "18446744073709551615");
  EXPECT_EQ(Value(uint64_t{5}).kind(), ValueKind::Int);
  EXPECT_DOUBLE_EQ(Value::integer_from_decimal("-1000000000000000000000").as_float(), -1e21);
  EXPECT_THROW(big.as_int(), TypeError);
  EXPECT_THROW(Value::integer_from_decimal("12a"), ValueError);
  EXPECT_EQ(Value(-1).integer_bytes(), "\xff");
  EXPECT_EQ(Value(128).integer_bytes(), std::string("\x80\0", 2));
}

TEST(Value, EqualityIsPythons) {
  EXPECT_EQ(Value(1), Value(true));
  EXPECT_EQ(Value(1), Value(1.0));
  EXPECT_EQ(Value(1), Value(std::complex<double>(1, 0)));
  EXPECT_NE(Value(1), Value("1"));
  EXPECT_NE(Value(INT64_MAX), Value(9223372036854775808.0));
  EXPECT_NE(Value(std::nan("")), Value(std::nan("")));
  EXPECT_EQ(Value::tuple({1, 2}), Value::size({1, 2}));
  EXPECT_NE(Value::tuple({1, 2}), Value::list({1, 2}));
  EXPECT_EQ(Value::set({1, 2}), Value::frozen_set({2, 1}));
  EXPECT_EQ(Value::bytes("ab"), Value::byte_array("ab"));
  EXPECT_EQ(Value({{"a", 1}, {"b", 2}}), Value({{"b", 2}, {"a", 1}}));
  Tensor t = floats({1});
  EXPECT_EQ(Value(t), Value(t));
  EXPECT_NE(Value(t), Value(floats({1})));
}

TEST(Value, EqualKeysAreOneKey) {
  Value dict = Value::dict();
  dict[1] = "int";
  dict[true] = "bool";
  dict[1.0] = "float";
  EXPECT_EQ(dict.str(), "{1: 'float'}");
  dict[Value::tuple({1, 2})] = "tuple";
  EXPECT_EQ(dict[Value::tuple({1.0, 2})].as_str(), "tuple");
  dict[std::nan("")] = 1;
  dict[std::nan("")] = 2;
  EXPECT_EQ(dict.length(), 4u);
  EXPECT_THAT(error_of<TypeError>([&] { dict[Value::list()] = 1; }), HasSubstr("a list cannot be a key"));
  EXPECT_THAT(error_of<TypeError>([&] { dict[Value::dict()] = 1; }), HasSubstr("a dict cannot be a key"));
}

TEST(Value, TensorsAreKeysByIdentity) {
  const Tensor one = floats({1}), equal = floats({1});
  Value dict = Value::dict();
  dict[one] = "first";
  dict[equal] = "second";
  dict[one] = "again";
  EXPECT_EQ(dict.length(), 2u);
  EXPECT_EQ(dict[one].as_str(), "again");
  EXPECT_EQ(Value::set({one, equal, one}).length(), 2u);
  EXPECT_EQ(Value::set({Value::slice(1, 2, {}), Value::slice(1, 2, {})}).length(), 1u);
}

TEST(Value, DictKeepsOrderWhenLargeAndAfterErase) {
  ValueDict dict;
  for (int i = 0; i < 1000; ++i) dict.set(i * 7, i);
  for (int i = 0; i < 1000; i += 2) EXPECT_TRUE(dict.erase(i * 7));
  EXPECT_FALSE(dict.erase(0));
  EXPECT_EQ(dict.size(), 500u);
  for (size_t i = 0; i < 500; ++i) {
    EXPECT_EQ(dict.entry(i).value.as_int(), static_cast<int64_t>(2 * i + 1));
    ASSERT_TRUE(dict.contains(dict.entry(i).key));
  }
}

TEST(Value, CopiesShareContainers) {
  Value list = Value::list({1});
  Value both = Value::list({list, list});
  list.as_list().push_back(2);
  EXPECT_EQ(both.str(), "[[1, 2], [1, 2]]");
  EXPECT_TRUE(both[0].resolve().is_same(both[1].resolve()));
}

TEST(Value, TextIsPythons) {
  EXPECT_EQ(Value::tuple({1}).str(), "(1,)");
  EXPECT_EQ(Value::list({0.1, 1e-5, 1e16, 1.0, -0.0, INFINITY}).str(), "[0.1, 1e-05, 1e+16, 1.0, -0.0, inf]");
  EXPECT_EQ(Value("it's\n\"\\").str(), "'it\\'s\\n\"\\\\'");
  EXPECT_EQ(Value("it's").str(), "\"it's\"");
  EXPECT_EQ(Value::bytes("a\xff").str(), "b'a\\xff'");
  EXPECT_EQ(Value::set().str(), "set()");
  EXPECT_EQ(Value::slice(1, {}, 2).str(), "slice(1, None, 2)");
  EXPECT_EQ(Value(DType::Float32).str(), "torch.float32");
  EXPECT_EQ(Value(floats({1, 2})).str(), "tensor(float32, [2])");
  EXPECT_LE(Value(std::vector<int>(100000, 7)).str(100).size(), 104u);
}

TEST(Value, DeepTreesAreFreedAndWalkedWithoutRecursion) {
  Value deep = Value::list();
  for (int i = 0; i < 300'000; ++i) {
    if (i % 3 == 0)
      deep = Value::tuple({deep});
    else if (i % 3 == 1)
      deep = Value({{"x", deep}});
    else
      deep = Value::list({deep});
  }
  EXPECT_THAT(error_of<CheckpointError>([&] { deep.break_cycles(); }), HasSubstr("nested deeper than 1000"));
  EXPECT_EQ(deep.break_cycles(SIZE_MAX), 0u);
  deep = Value();
  Value a = Value::list(), b = Value::list();
  for (int i = 0; i < 2000; ++i) {
    a = Value::list({a});
    b = Value::list({b});
  }
  EXPECT_THAT(error_of<ValueError>([&] { static_cast<void>(a == b); }), HasSubstr("nested deeper than 1000"));
}

TEST(Value, CyclesAreBrokenOnce) {
  Value list = Value::list({1});
  list.as_list().push_back(Value({{"back", list}}));
  EXPECT_EQ(list.break_cycles(), 1u);
  EXPECT_EQ(list.break_cycles(), 0u);
  EXPECT_EQ(list[1]["back"][0].as_int(), 1);
  EXPECT_TRUE(list[1]["back"].resolve().is_same(list));
  Value inner = list[1];
  list = Value();
  EXPECT_THAT(error_of<ValueError>([&] { inner["back"][0].as_int(); }), HasSubstr("keep the root alive"));
}

TEST(Value, WhatClosedACycleOfAFreedTreeIsNoNone) {
  Value list = Value::list({Value::dict()});
  list[0]["parent"] = list;
  list.break_cycles();
  const Value inner = list[0], none = {{"parent", Value()}};
  list = Value();
  const Value gone = inner["parent"].resolve();
  const std::function<void()> uses[] = {[&] { inner.str(); }, [&] { save_to_buffer(inner); },
                                        [&] { gone.hash(); }, [&] { static_cast<void>(inner == none); },
                                        [&] { static_cast<void>(none == inner); }};
  for (const auto& use : uses) EXPECT_THAT(error_of<ValueError>(use), HasSubstr("keep the root alive"));
}

TEST(Value, LongIntegersAndFloats) {
  const auto whole = [](const char* digits) { return Value::integer_from_decimal(digits); };
  struct Row {
    const char* digits;
    double nearest;
    bool equal;
  };
  const Row rows[] = {
      {"18446744073709551616", 0x1p64, true},
      {"18446744073709551617", 0x1p64, false},
      {"18446744073709551615", 0x1p64, false},
      {"9223372036854775808", 0x1p63, true},
      {"-9223372036854775809", -0x1p63, false},
      {"-18446744073709551616", -0x1p64, true},
      {"-36893488147419103232", -0x1p65, true},
      {"18446744073709553664", 0x1p64, false},                // half way, to even
      {"18446744073709553665", 0x1.0000000000001p64, false},  // just above
      {"18446744073709557760", 0x1.0000000000002p64, false},  // half way, to even
      {"-18446744073709553665", -0x1.0000000000001p64, false},
      {"340282366920938463463374607431768211456", 0x1p128, true},
      {"9007199254740993000000000000000000000", 9007199254740993e21, false},
  };
  for (const Row& row : rows) {
    const Value number = whole(row.digits);
    EXPECT_EQ(number.as_float(), row.nearest) << row.digits;
    EXPECT_EQ(number == Value(row.nearest), row.equal) << row.digits;
    EXPECT_EQ(Value(row.nearest) == number, row.equal) << row.digits;
    EXPECT_EQ(number.hash() == Value(row.nearest).hash(), row.equal) << row.digits;
    EXPECT_EQ(number.str(), row.digits);
  }
  const Value huge = whole(("1" + std::string(400, '0')).c_str());
  EXPECT_EQ(huge.as_float(), std::numeric_limits<double>::infinity());
  EXPECT_NE(huge, Value(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(Value::integer(std::string(100000, '\x7f')).str(), "<int of 100000 bytes>");
}

TEST(Value, ThreadsLookUpOneTuple) {  // for the thread sanitizer
  const Value key = Value::tuple({1, "x"});
  Value dict = Value::dict();
  dict[Value::tuple({1, "x"})] = 5;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { EXPECT_TRUE(dict.contains(key)); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Value, SharedStructureIsComparedWithinABudget) {
  Value a = Value::tuple({1, 2}), b = Value::tuple({1, 2});
  for (int i = 0; i < 60; ++i) {
    a = Value::tuple({a, a});
    b = Value::tuple({b, b});
  }
  EXPECT_EQ(a.hash(), b.hash());  // linear, by the hash that each tuple keeps
  EXPECT_THAT(error_of<ValueError>([&] { static_cast<void>(a == b); }), HasSubstr("10000000 parts"));
}

TEST(Value, StateDictsKeepOrderAndVersions) {
  StateDict state{{"b.weight", floats({1})}, {"a.bias", floats({2})}};
  state.set_version("", 1);
  state.set_version("b", 2);
  Value value = state;
  EXPECT_TRUE(value.as_dict().is_ordered_dict());
  StateDict back = value.as_state_dict();
  EXPECT_EQ(back.begin()->first, "b.weight");
  EXPECT_EQ(back.version("b"), 2);
  EXPECT_EQ(back.version("c"), std::nullopt);
  value["epoch"] = 1;
  EXPECT_EQ(error_of<TypeError>([&] { value.as_state_dict(); }),
            "the value['epoch'] is an int, not a tensor: this is no state dict");
}

TEST(StateDict, OnlyAVariableGrowsWhenRead) {
  StateDict dict{{"conv1.weight", floats({1})}, {"conv1.bias", floats({2})}};
  const StateDict& same = dict;
  const auto copy = [&] { return dict; };
  for (const auto& read : std::initializer_list<std::function<void()>>{
           [&] { dict.at("conv1.wieght"); }, [&] { same["conv1.wieght"]; }, [&] { copy()["conv1.wieght"]; },
           [&] { copy().at("conv1.wieght"); }})
    EXPECT_EQ(
        error_of<IndexError>(read),
        "state dict: there is no tensor 'conv1.wieght' among its 2 names (did you mean 'conv1.weight'?)");
  const Tensor& outlives = copy()["conv1.bias"];
  EXPECT_EQ(elements<float>(outlives), std::vector<float>{2});
  EXPECT_EQ(dict.size(), 2u);
  EXPECT_FALSE(dict["conv1.wieght"].defined());
  EXPECT_EQ(dict.size(), 3u);
  EXPECT_EQ(error_of<IndexError>([] { StateDict().at("x"); }),
            "state dict: there is no tensor 'x' among its 0 names");
}

TEST(StateDict, FindsInsertsErases) {
  StateDict dict{{"a", floats({1})}, {"b", floats({2})}, {"c", floats({3})}};
  EXPECT_TRUE(dict.erase("b"));
  EXPECT_FALSE(dict.erase("b"));
  dict.insert("a", floats({4}));
  EXPECT_EQ(elements<float>(dict.at("a")), std::vector<float>{4});
  EXPECT_EQ(elements<float>(dict["c"]), std::vector<float>{3});
  EXPECT_EQ(dict.find("b"), nullptr);
  EXPECT_EQ(error_of<IndexError>([&] { dict.at("b"); }),
            "state dict: there is no tensor 'b' among its 2 names (the first is 'a')");
  StateDict copy = dict;
  copy.erase("a");
  EXPECT_TRUE(dict.contains("a"));
}

}  // namespace
}  // namespace tern
