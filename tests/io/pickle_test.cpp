// The pickle machine: opcodes of all protocols, limits, and what must be refused.
#include "tern/io/pickle_reader.h"
#include "tern/io/pickle_writer.h"

#include "io_testing.h"

namespace tern::io {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

class NoFile final : public PickleHost {
 public:
  Value persistent_load(const Value& id) override { return Value::tuple({"persistent", id}); }
  void check_later(std::function<void()> check) override { check(); }
  Device device_for(const std::string&) override { return kCPU; }
  Value load_nested(const std::string&) override { throw CheckpointError("nested"); }
};

Value read(const std::string& pickle, const PickleOptions& options = {}) {
  NoFile host;
  return read_pickle(bytes_of(pickle), host, options).root;
}
std::string text(const std::string& pickle) { return read(pickle).str(); }
std::string inert(const std::string& pickle) {
  PickleOptions options;
  options.weights_only = false;
  return read(pickle, options).str();
}
std::string error(const std::string& pickle) {
  return error_of<CheckpointError>([&] { read(pickle); });
}

TEST(PickleReader, Numbers) {
  EXPECT_EQ(text("K\x05."), "5");
  EXPECT_EQ(text("M\x34\x12."), "4660");
  EXPECT_EQ(text("J\xff\xff\xff\xff."), "-1");
  EXPECT_EQ(text("I01\n."), "True");
  EXPECT_EQ(text("I00\n."), "False");
  EXPECT_EQ(text("I-7\n."), "-7");
  EXPECT_EQ(text("L12345678901234567890123L\n."), "12345678901234567890123");
  EXPECT_EQ(text("\x8a\0."s), "0");
  EXPECT_EQ(text("\x8a\x02\x00\xff."s), "-256");
  EXPECT_EQ(text("\x8b\x01\0\0\0\x7f."s), "127");
  EXPECT_EQ(text("F0.1\n."), "0.1");
  EXPECT_EQ(text("F-inf\n."), "-inf");
  EXPECT_EQ(text("G\x3f\xb9\x99\x99\x99\x99\x99\x9a."), "0.1");
  EXPECT_EQ(text("N."), "None");
  EXPECT_EQ(text("\x88."), "True");
}

TEST(PickleReader, Strings) {
  EXPECT_EQ(text("X\x02\0\0\0hi."s), "'hi'");
  EXPECT_EQ(text("\x8c\x02hi."), "'hi'");
  EXPECT_EQ(text("\x8d\x02\0\0\0\0\0\0\0hi."s), "'hi'");
  EXPECT_EQ(text("U\x02hi."), "'hi'");
  EXPECT_EQ(text("U\x01\xff."), "b'\\xff'");
  EXPECT_EQ(text("T\x02\0\0\0hi."s), "'hi'");
  EXPECT_EQ(text("S'a\\'\\x41\\n\\101'\n."), "\"a'A\\nA\"");
  EXPECT_EQ(text("Va\\u00e4\\U0001f600\xe4\n."), "'a\u00e4\U0001f600\u00e4'");
  EXPECT_EQ(text("C\x02\xff\xfe."), "b'\\xff\\xfe'");
  EXPECT_EQ(text("B\x01\0\0\0x."s), "b'x'");
  EXPECT_EQ(text("\x96\x01\0\0\0\0\0\0\0x."s), "bytearray(b'x')");
  EXPECT_EQ(read("X\x03\0\0\0\xed\xa0\x80."s).as_str(), "\xed\xa0\x80");  // a lone surrogate
}

TEST(PickleReader, Containers) {
  EXPECT_EQ(text("(K\x01K\x02t."), "(1, 2)");
  EXPECT_EQ(text("(K\x01K\x02l."), "[1, 2]");
  EXPECT_EQ(text("(K\x01K\x02"
                 "d."),
            "{1: 2}");
  EXPECT_EQ(text("K\x01\x85."), "(1,)");
  EXPECT_EQ(text("K\x01K\x02\x86."), "(1, 2)");
  EXPECT_EQ(text("K\x01K\x02K\x03\x87."), "(1, 2, 3)");
  EXPECT_EQ(text("]K\x01"
                 "a(K\x02K\x03"
                 "e."),
            "[1, 2, 3]");
  EXPECT_EQ(text("}K\x01K\x02s(K\x03K\x04K\x01K\x05u."), "{1: 5, 3: 4}");
  EXPECT_EQ(text("\x8f(K\x01K\x01\x90."), "{1}");
  EXPECT_EQ(text("(K\x01\x91."), "frozenset({1})");
  EXPECT_EQ(text(")0]."), "[]");
  EXPECT_EQ(text("](K\x01K\x02"
                 "1."),
            "[]");
  EXPECT_EQ(text("K\x07"
                 "2\x86."),
            "(7, 7)");
}

TEST(PickleReader, MemoInAllForms) {
  EXPECT_EQ(text("]q\x05h\x05\x86."), "([], [])");
  EXPECT_EQ(text("]p300\ng300\n\x86."), "([], [])");
  EXPECT_EQ(text("]r\xff\xff\xff\xffj\xff\xff\xff\xff\x86."), "([], [])");
  EXPECT_EQ(text("]\x94}\x94h\x01h\x00\x87."s), "({}, {}, [])");
  Value twice = read("]q\0h\0\x86."s);
  EXPECT_TRUE(twice[0].resolve().is_same(twice[1].resolve()));
}

TEST(PickleReader, Classes) {
  EXPECT_EQ(text("ccollections\nOrderedDict\n)R."), "OrderedDict({})");
  EXPECT_EQ(text("ccollections\nOrderedDict\n](U\x01"
                 "aK\x01la\x85R."),
            "OrderedDict({'a': 1})");
  EXPECT_EQ(text("\x8c\x0b"
                 "collections\x8c\x0bOrderedDict\x93)\x81."),
            "OrderedDict({})");
  EXPECT_EQ(text("c__builtin__\nset\n](K\x01K\x02"
                 "e\x85R."),
            "{1, 2}");
  EXPECT_EQ(text("cbuiltins\ncomplex\nG?\xf0\0\0\0\0\0\0K\x02\x86R."s), "(1.0+2.0j)");
  EXPECT_EQ(text("c_codecs\nencode\nX\x02\0\0\0\xc3\xbfX\x06\0\0\0latin1\x86R."s), "b'\\xff'");
  EXPECT_EQ(text("c__builtin__\nslice\nK\x01NN\x87R."), "slice(1, None, None)");
  EXPECT_EQ(text("c__builtin__\nxrange\nK\0K\x03K\x01\x87R."s), "range(0, 3)");
  EXPECT_EQ(text("ctorch\nSize\nK\x02K\x03\x86\x85R."), "torch.Size([2, 3])");
  EXPECT_EQ(text("ctorch\nfloat16\n."), "torch.float16");
  EXPECT_EQ(text("ctorch\ndevice\nU\x04"
                 "cudaK\x01\x86R."),
            "device('cuda:1')");
  EXPECT_EQ(text("ctorch.serialization\n_get_layout\nU\x0dtorch.strided\x85R."), "torch.strided");
  EXPECT_EQ(text("U\x02idQ."), "('persistent', 'id')");
}

TEST(PickleReader, UnknownClassesAreRefusedOrInert) {
  std::string pickle = "cmy.pkg\nThing\nK\x01\x85\x81}U\x01xK\x02sb.";
  EXPECT_THAT(error(pickle),
              HasSubstr("the file names my.pkg.Thing, which is no plain data (nothing was run)"));
  EXPECT_THAT(error(pickle), HasSubstr("weights_only = false"));
  PickleOptions options;
  options.weights_only = false;
  Value thing = read(pickle, options);
  EXPECT_EQ(thing.as_object().class_name(), "my.pkg.Thing");
  EXPECT_EQ(thing["x"].as_int(), 2);
  EXPECT_EQ(thing.as_object().args.str(), "(1,)");
  EXPECT_EQ(inert("cos\nsystem\nU\x04true\x85R."), "<os.system object>");
  EXPECT_EQ(inert("(ios\nsystem\n."), "<os.system object>");
  EXPECT_EQ(inert("(cos\nsystem\no."), "<os.system object>");
  EXPECT_EQ(inert("cos\nsystem\n)}\x92."), "<os.system object>");
}

TEST(PickleReader, RefusesNonsense) {
  EXPECT_THAT(error(""), HasSubstr("no STOP"));
  EXPECT_THAT(error("."), HasSubstr("needs 1 values"));
  EXPECT_THAT(error("a."), HasSubstr("needs 1 values"));
  EXPECT_THAT(error("]}s."), HasSubstr("needs 3 values"));
  EXPECT_THAT(error("h\x01."), HasSubstr("place 1 of the memo is empty"));
  EXPECT_THAT(error("X\xff\xff\xff\xffhi."),
              HasSubstr("4294967295 bytes are announced, but only 3 are left"));
  EXPECT_THAT(error("K\x01)R."), HasSubstr("what is called is an int"));
  EXPECT_THAT(error("ccollections\nOrderedDict\nK\x01R."),
              HasSubstr("called with an int instead of a tuple"));
  EXPECT_THAT(error("K\x01K\x02"
                    "b."),
              HasSubstr("an int cannot be given a state"));
  EXPECT_THAT(error("}K\x01"
                    "b."),
              HasSubstr("a dict cannot be given a state"));
  EXPECT_THAT(error("K\x01K\x02"
                    "a."),
              HasSubstr("cannot be appended to an int"));
  EXPECT_THAT(error("}(K\x01u."), HasSubstr("a key has no value"));
  EXPECT_THAT(error("}]K\x01s."), HasSubstr("a list cannot be a key"));
  EXPECT_THAT(error("\x80\x06."), HasSubstr("protocol 6 is unknown"));
  EXPECT_THAT(error("\x82\x01."), HasSubstr("extension codes"));
  EXPECT_THAT(error("\x97."), HasSubstr("out-of-band"));
  EXPECT_THAT(error("\xfe."), HasSubstr("0xfe is no pickle opcode"));
  EXPECT_THAT(error("Pabc\n."), HasSubstr("protocol 0"));
  EXPECT_THAT(error("(K\x01"
                    "0"
                    "0"
                    "0."),
              HasSubstr("needs 1 values"));
}

TEST(PickleReader, ErrorsNameThePlace) {
  EXPECT_THAT(error("}(U\x05modelK\x01U\x05state}(U\x01wcos\nsystem\nuu."), HasSubstr("in ['state']['w']"));
  EXPECT_THAT(error("](K\x01K\x02h\x09."), HasSubstr("in [2]"));
}

TEST(PickleReader, Limits) {
  EXPECT_THAT(error(std::string(5000, ']') + std::string(4999, 'a') + "."),
              HasSubstr("nested deeper than 1000"));
  EXPECT_THAT(error("]" + std::string(5000, '\x85') + "."), HasSubstr("nested deeper than 1000"));
  EXPECT_THAT(error("I" + std::string(20000, '9') + "\n."), HasSubstr("20000 decimal digits"));
  std::string dicts(8 << 20, '}');
  EXPECT_THAT(error(dicts += '.'), HasSubstr("more values than a file of its size may hold"));
  // One text made into bytes again and again.
  for (const std::string& name : {"c_codecs\nencode\n"s, "c__builtin__\nbytearray\n"s}) {
    const auto encoded = [&](int times) {
      std::string pickle =
          "](" + name + "q\0X\0\0\x10\0"s + std::string(1 << 20, 'x') + "q\x01U\x06latin1q\x02\x86R"s;
      for (int i = 1; i < times; ++i) pickle += "h\0h\x01h\x02\x86R"s;
      return pickle + "e.";
    };
    EXPECT_EQ(read(encoded(50)).length(), 50u);
    EXPECT_THAT(error(encoded(500)), HasSubstr("(limits.value_bytes)"));
  }
  EXPECT_EQ(read("\x8b\x00\x10\x00\x00"s + std::string(4096, 'x') + ".").integer_bytes(),
            std::string(4096, 'x'));
  EXPECT_EQ(text("I-" + std::string(5000, '9') + "\n."), "-" + std::string(1000, '9').substr(1) + "...");
}

TEST(PickleReader, CyclesNeitherLeakNorHang) {
  Value list = read(
      "]q\0K\x01"
      "ah\0"
      "a."s);
  EXPECT_EQ(list[0].as_int(), 1);
  EXPECT_TRUE(list[1].resolve().is_same(list));
  // A cycle that is not part of the result, and one in a pickle that fails.
  EXPECT_EQ(text("]q\0h\0"
                 "a0K\x05."s),
            "5");
  EXPECT_THAT(error("]q\0h\0"
                    "a\xfe"s),
              HasSubstr("no pickle opcode"));
  // Cycles that neither stack nor memo know at the end: LeakSanitizer tells whether they are freed.
  EXPECT_EQ(text("]2a0K\x05."s), "5");
  EXPECT_EQ(text("]q\0h\0"
                 "a0K\x05q\0h\0."s),
            "5");
}

TEST(PickleReader, StopsAtStop) {
  NoFile host;
  EXPECT_EQ(read_pickle(bytes_of("K\x01.trailing"), host).consumed, 3u);
}

StorageReference refer(const Storage&, DType, ElementRange range) { return {"0", "cpu", range}; }

TEST(PickleWriter, WritesWhatTheReaderReads) {
  Value shared = Value::list({1, 2});
  Value value = {
      {"none", {}},
      {"numbers", Value::list({0, 255, 256, 65535, 65536, -1, INT64_MIN, 0.5, true})},
      {"big", Value::integer_from_decimal("123456789012345678901234567890")},
      {"text", "\u00e4\n"},
      {"bytes", Value::tuple({Value::bytes(""), Value::bytes("a\xff"), Value::byte_array("x")})},
      {"sets", Value::list({Value::set({1}), Value::frozen_set({"a"})})},
      {"other", Value::tuple({Value::slice(1, 2, {}), RangeValue{0, 9, 3}, Value::size({2}), DType::Int8,
                              Device("cuda:2"), Value::layout("torch.strided"), std::complex<double>(1, 2)})},
      {"shared", Value::list({shared, shared})},
      {Value::tuple({1, "k"}), Value::tuple()}};
  Value back = read(write_pickle(value, refer));
  EXPECT_EQ(back.str(5000), value.str(5000));
  EXPECT_TRUE(back["shared"][0].resolve().is_same(back["shared"][1].resolve()));
}

TEST(PickleWriter, CyclesComeBack) {
  Value list = Value::list({1});
  list.as_list().push_back(Value::tuple({list, 2, 3, 4}));
  list.break_cycles();
  Value back = read(write_pickle(list, refer));
  EXPECT_TRUE(back[1][0].resolve().is_same(back));
  Value tuple = list[1];
  Value again = read(write_pickle(tuple, refer));
  EXPECT_EQ(again.kind(), ValueKind::Tuple);
  EXPECT_TRUE(again[0][1].resolve().is_same(again));
}

TEST(PickleWriter, ObjectsComeBack) {
  PickleOptions options;
  options.weights_only = false;
  for (std::string pickle : {"cmy\nThing\nK\x01\x85\x81}U\x01xK\x02sb."s,
                             "cmy\nList\n)R(K\x01K\x02"
                             "e."s,
                             "cmy\nDict\n)\x81K\x01K\x02s."s}) {
    Value object = read(pickle, options);
    Value back = read(write_pickle(object, refer), options);
    EXPECT_EQ(back.as_object().class_name(), object.as_object().class_name());
    EXPECT_EQ(back.as_object().state, object.as_object().state);
    EXPECT_EQ(back.as_object().items.size(), object.as_object().items.size());
    EXPECT_EQ(back.as_object().entries.size(), object.as_object().entries.size());
  }
}

TEST(PickleWriter, TextIsUtf8AsReadersNeedIt) {
  EXPECT_EQ(error_of<ValueError>([] {
              write_pickle({{"classes", Value::list({"cat", "caf\xe9"})}}, refer);
            }),
            "the value['classes'][1] cannot be saved: b'caf\\xe9' is not UTF-8, which a str must be; "
            "Value::bytes() holds any bytes");
  EXPECT_THAT(error_of<ValueError>([] {
                write_pickle({{"\xff", 1}}, refer);
              }),
              HasSubstr("b'\\xff' is not UTF-8"));
  const std::string surrogate = "\xed\xa0\x80";  // Python reads and writes it
  EXPECT_EQ(read(write_pickle(surrogate, refer)).as_str(), surrogate);
}

TEST(PickleWriter, ErrorsNameThePlace) {
  EXPECT_EQ(error_of<ValueError>([] {
              write_pickle({{"model", {{"w", Tensor()}}}}, refer);
            }),
            "the value['model']['w'] cannot be saved: it is an undefined tensor");
  Value deep = Value::list();
  for (int i = 0; i < 2000; ++i) deep = Value::list({deep});
  std::string ends;
  for (int i = 0; i < 10; ++i) ends += "[0]";
  EXPECT_EQ(
      error_of<ValueError>([&] { write_pickle(deep, refer); }),
      "the value" + ends + "[... 981 more ...]" + ends + " cannot be saved: it is nested deeper than 1000");
}

}  // namespace
}  // namespace tern::io
