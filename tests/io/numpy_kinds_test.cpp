// What NumPy has beside plain arrays of numbers: orders of axes, text, records, wide floats, objects, in
// pickles and in .npz. Small files made here, byte by byte.
#include <fmt/core.h>

#include "io_testing.h"
#include "tern/io/byte_order.h"
#include "tern/io/find_tensors.h"
#include "tern/io/npy.h"
#include "tern/io/zip_writer.h"

namespace tern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A literal with the NUL bytes in it.
template <size_t N>
std::string raw_bytes(const char (&literal)[N]) {
  return std::string(literal, N - 1);
}
Value load_arrays(std::string_view bytes) {
  return load_from_buffer(bytes_of(bytes), {.weights_only = false});
}
std::string array_error(std::string_view bytes) {
  return error_of<CheckpointError>([&] { load_arrays(bytes); });
}

/// Every array below `value` as "path dtype[sizes]".
std::vector<std::string> listing(const Value& value) {
  std::vector<std::string> lines;
  for (const io::FoundTensor& found : io::find_tensors(value, 1000))
    lines.push_back(fmt::format("{} {}{}", found.path, found.dtype, to_string(IntArrayRef(found.shape))));
  return lines;
}

// ---- pickles

std::string text(std::string_view value) {
  return "X" + std::string(1, static_cast<char>(value.size())) + raw_bytes("\0\0\0") + std::string(value);
}
std::string bytes(std::string_view value) {
  return "C" + std::string(1, static_cast<char>(value.size())) + std::string(value);
}
std::string number(int value) { return "K" + std::string(1, static_cast<char>(value)); }
std::string tuple(const std::vector<std::string>& items) {
  std::string result = "(";
  for (const std::string& item : items) result += item;
  return result + "t";
}
std::string sizes(const std::vector<int>& values) {
  std::vector<std::string> items;
  for (int value : values) items.push_back(number(value));
  return tuple(items);
}
std::string call(std::string_view module, std::string_view function, const std::string& args) {
  return fmt::format("c{}\n{}\n{}R", module, function, args);
}
std::string dtype(std::string_view code, std::string_view order = "<") {
  return call("numpy", "dtype", tuple({text(code), "\x89", "\x88"})) +
         tuple({number(3), text(order), "N", "N", "N", "J\xff\xff\xff\xff", "J\xff\xff\xff\xff", number(0)}) +
         "b";
}
std::string pickle(const std::string& body) { return "\x80\5" + body + "."; }
std::string from_buffer(const std::vector<std::string>& args) {
  return pickle(call("numpy._core.numeric", "_frombuffer", tuple(args)));
}
/// The array as _reconstruct and its state.
std::string reconstructed(const std::string& type, const std::string& shape, const std::string& data,
                          std::string_view array_class = "numpy\nndarray") {
  return pickle(call("numpy._core.multiarray", "_reconstruct",
                     tuple({fmt::format("c{}\n", array_class), sizes({0}), bytes("b")})) +
                tuple({number(1), shape, type, "\x89", data}) + "b");
}

TEST(NumpyBuffer, ArraysOfTheSameBytesAreCountedEach) {
  const std::string length = raw_bytes("\0\0\x10\0");  // 2^20
  auto array = [&](const std::string& data) {
    return call("numpy._core.numeric", "_frombuffer",
                tuple({data, dtype("u1", "|"), tuple({"J" + length}), text("C")}));
  };
  std::string arrays = array("B" + length + std::string(1 << 20, 'x') + "\x94");
  for (int i = 0; i < 400; ++i) arrays += array(raw_bytes("h\0"));
  EXPECT_THAT(array_error(pickle("](" + arrays + "e")),
              HasSubstr("more values than a file of its size may hold"));
}

TEST(NumpyBuffer, OrderOfAxes) {
  const std::string data =
      bytes(raw_bytes("\0\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe\xf\x10\x11\x12\x13\x14\x15\x16\x17"));
  auto array = [&](const std::string& order, const std::string& axes) {
    return from_buffer({data, dtype("u1", "|"), sizes({2, 3, 4}), text(order), axes});
  };
  const Tensor tensor = load_arrays(array("K", sizes({1, 0, 2}))).as_object().payload.as_tensor();
  EXPECT_EQ(tensor.shape(), IntArrayRef({3, 2, 4}));
  EXPECT_EQ(elements<uint8_t>(tensor), (std::vector<uint8_t>{0,  1,  2,  3, 12, 13, 14, 15, 4,  5,  6, 7, 16,
                                                             17, 18, 19, 8, 9,  10, 11, 20, 21, 22, 23}));
  const Tensor turned = load_arrays(array("K", sizes({2, 0, 1}))).as_object().payload.as_tensor();
  EXPECT_EQ(turned.shape(), IntArrayRef({4, 2, 3}));
  EXPECT_EQ(turned.strides(), IntArrayRef({1, 12, 4}));
  EXPECT_EQ(load_arrays(array("F", "N")).as_object().payload.as_tensor().strides(), IntArrayRef({1, 2, 6}));
  EXPECT_EQ(load_arrays(array("C", "N")).as_object().payload.as_tensor().strides(), IntArrayRef({12, 4, 1}));

  for (const std::string& axes :
       {sizes({0, 1}), sizes({0, 1, 2, 2}), sizes({0, 0, 2}), sizes({0, 1, 3}),
        tuple({number(0), number(1), "J\xff\xff\xff\xff"}), tuple({"\x89", "\x88", "N"})})
    EXPECT_THAT(array_error(array("K", axes)), HasSubstr("no permutation of its 3 axes"));
  EXPECT_THAT(array_error(array("K", number(1))), HasSubstr("axis order is"));
  EXPECT_THAT(array_error(array("K", "N")), HasSubstr("axis order is"));
  EXPECT_THAT(array_error(array("C", sizes({0, 1, 2}))), HasSubstr("order 'C'"));
  EXPECT_THAT(array_error(array("A", "N")), HasSubstr("order 'A'"));
  EXPECT_THAT(array_error(from_buffer({data, dtype("u1", "|"), sizes({2, 3, 4}), text("K")})),
              HasSubstr("order 'K'"));
}

/// Both protocols give the same object for an array without numbers.
TEST(NumpyBuffer, TextIsAsInOlderProtocols) {
  const std::string two = bytes(raw_bytes("a\0\0\0b\0\0\0")), grid = bytes("aabbccddeeff");
  const Value old = load_arrays(reconstructed(dtype("U1"), sizes({2}), two));
  const Value array = load_arrays(from_buffer({two, dtype("U1"), sizes({2}), text("C")}));
  EXPECT_THAT(listing(array), ElementsAre(" str32[2]"));
  EXPECT_EQ(listing(array), listing(old));
  EXPECT_EQ(array.as_object().state.str(), old.as_object().state.str());
  EXPECT_EQ(array.as_object().args.str(), old.as_object().args.str());

  const Value columns = load_arrays(from_buffer({grid, dtype("S2", "|"), sizes({2, 3}), text("F")}));
  EXPECT_THAT(listing(columns), ElementsAre(" bytes16[2, 3]"));
  EXPECT_TRUE(columns.as_object().state.as_tuple()[3].as_bool());
  const Value turned =
      load_arrays(from_buffer({grid, dtype("S2", "|"), sizes({2, 3}), text("K"), sizes({1, 0})}));
  EXPECT_THAT(listing(turned), ElementsAre(" bytes16[3, 2]"));
  EXPECT_EQ(turned.as_object().state.as_tuple()[4].as_bytes(), "aaddbbeeccff");
  EXPECT_THAT(listing(load_arrays(from_buffer({bytes(""), dtype("V8"), sizes({0, 3}), text("C")}))),
              ElementsAre(" void64[0, 3]"));
  EXPECT_THAT(array_error(from_buffer({grid, dtype("S2", "|"), sizes({5}), text("C")})),
              HasSubstr("12 bytes"));
  EXPECT_THAT(array_error(from_buffer({grid, dtype("S2", "|"), sizes({0}), text("C")})),
              HasSubstr("12 bytes"));
}

TEST(NumpyPickle, OddDtypesAreOpaque) {
  const std::string record = call("numpy", "dtype", tuple({"cnumpy\nrecord\n", "\x89", "\x88"}));
  const std::string string =
      call("numpy._core._internal", "_convert_to_stringdtype_kwargs", tuple({number(1)}));
  EXPECT_THAT(listing(load_arrays(reconstructed(dtype("f16"), sizes({1}), bytes("0123456789abcdef")))),
              ElementsAre(" float128[1]"));
  EXPECT_THAT(listing(load_arrays(reconstructed(dtype("c32"), sizes({0, 2}), bytes("")))),
              ElementsAre(" complex256[0, 2]"));
  EXPECT_THAT(
      listing(load_arrays(reconstructed(record, sizes({1}), bytes("01234567"), "numpy.rec\nrecarray"))),
      ElementsAre(HasSubstr("[1]")));
  EXPECT_THAT(listing(load_arrays(reconstructed(string, sizes({2}), "]"))),
              ElementsAre(" StringDType128[2]"));
  // Their scalars are no tensors.
  for (const std::string& type : {dtype("f16"), record})
    EXPECT_THAT(listing(load_arrays(pickle(
                    call("numpy._core.multiarray", "scalar", tuple({type, bytes("0123456789abcdef")}))))),
                ElementsAre());
  // What NumPy has no dtype for.
  for (std::string_view code : {"f17", "c33", "Q", "U3x", "V8[ns]", "M8[", "M8[]", ""})
    EXPECT_THAT(array_error(reconstructed(dtype(code), sizes({1}), bytes("01234567"))),
                HasSubstr(fmt::format("'{}' is unknown", code)));
  EXPECT_THAT(array_error(reconstructed(call("numpy", "dtype", tuple({number(1)})), sizes({1}), bytes("0"))),
              HasSubstr("no code"));
}

TEST(NumpyPickle, MaskedArrays) {
  auto masked = [](std::string_view mask) {
    return pickle(
        call("numpy.ma.core", "_mareconstruct",
             tuple({"cnumpy.ma\nMaskedArray\n", "cnumpy\nndarray\n", sizes({0}), bytes("b")})) +
        tuple({number(1), sizes({3}), dtype("u1", "|"), "\x89", bytes("\1\2\3"), bytes(mask), "N"}) + "b");
  };
  const Value array = load_arrays(masked(raw_bytes("\0\1\0")));
  EXPECT_THAT(listing(array), ElementsAre(" uint8[3]"));
  EXPECT_EQ(elements<uint8_t>(array.as_tensor()), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(array.as_object().state.as_tuple()[5].as_bytes(), raw_bytes("\0\1\0"));
  EXPECT_THAT(array_error(masked("1")), HasSubstr("the mask of an array of shape (3,) has 1 bytes"));
}

TEST(NumpyPickle, TensorsInArraysOfObjects) {
  const std::string inner =
      call("numpy._core.multiarray", "_reconstruct", tuple({"cnumpy\nndarray\n", sizes({0}), bytes("b")})) +
      tuple({number(1), sizes({1}), dtype("u1", "|"), "\x89", bytes("x")}) + "b";
  EXPECT_THAT(listing(load_arrays(reconstructed(dtype("O8", "|"), sizes({2}), "](N" + inner + "e"))),
              ElementsAre(" object[2]", "1 uint8[1]"));
}

// ---- .npz

struct Entry {
  std::string descr, shape, data;
};
std::string npy(const Entry& entry) {
  const std::string header =
      fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", entry.descr, entry.shape);
  std::string result = raw_bytes("\x93NUMPY\1\0");
  io::append_le(result, static_cast<uint16_t>(header.size()));
  return result + header + entry.data;
}
std::filesystem::path npz(const TemporaryFolder& folder, const Entry& entry) {
  const std::filesystem::path path = folder.path() / "a.npz";
  io::MemorySink sink;
  io::ZipWriter zip(sink);
  zip.add("x.npy", bytes_of(npy({"'<f8'", "(1,)", raw_bytes("\0\0\0\0\0\0\x8\x40")})));
  zip.add("odd.npy", bytes_of(npy(entry)));
  zip.finish();
  write_text(path, {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()});
  return path;
}

TEST(Npz, ArraysWithoutNumbersStayBesideTheOthers) {
  const struct {
    Entry entry;
    std::string listed;
  } rows[] = {
      {{"'<U1'", "(2,)", "a...b..."}, "odd str32[2]"},
      {{"'>U1'", "(2,)", "...a...b"}, "odd str32[2]"},
      {{"'|S3'", "(1, 2)", "abcdef"}, "odd bytes24[1, 2]"},
      {{"'<M8[ns]'", "(1,)", "01234567"}, "odd datetime64[1]"},
      {{"'<m8[25us]'", "()", "01234567"}, "odd timedelta64[]"},
      {{"[('a', '<i4'), ('b', '<f4', (2,))]", "(2,)", std::string(24, '.')}, "odd void96[2]"},
      {{"[('a', [('b', '|u1')])]", "(0,)", ""}, "odd void8[0]"},
  };
  for (const auto& [entry, listed] : rows) {
    SCOPED_TRACE(entry.descr);
    TemporaryFolder folder;
    const std::filesystem::path path = npz(folder, entry);
    const Value dict = load(path);
    EXPECT_THAT(listing(dict), ElementsAre("x float64[1]", listed));
    EXPECT_EQ(dict["x"].as_tensor().item<double>(), 3);
    EXPECT_EQ(dict["odd"].as_object().state.as_tuple()[4].as_bytes(), entry.data);
    EXPECT_THAT(listing(load_arrays(npy(entry))), ElementsAre(listed.substr(3)));
    // There is no tensor for it.
    EXPECT_THAT(error_of<CheckpointError>([&] { load_npz(path); }),
                HasSubstr("array 'odd' holds no numbers"));
    write_text(folder / "odd.npy", npy(entry));
    EXPECT_THAT(error_of<CheckpointError>([&] { load_npy(folder / "odd.npy"); }), HasSubstr("not supported"));
  }
}

TEST(Npz, StructuresKeepTheirFields) {
  const Value array =
      load_arrays(npy({"[('a', '|u1'), ('', '|V3'), (('Title', 'b'), [('x', '<f4', (2,)), ('y', '|S4')]), "
                       "('c', ('<i2', (2,)))]",
                       "(1,)", std::string(20, '.')}));
  const Value dtype = array.as_object().state.as_tuple()[2];
  EXPECT_EQ(
      dtype.as_object().args.str(),
      "({'names': ['a', 'b', 'c'], 'formats': ['|u1', {'names': ['x', 'y'], 'formats': [('<f4', (2,)), "
      "'|S4'], 'offsets': [0, 8], 'titles': [None, None], 'itemsize': 12}, ('<i2', (2,))], 'offsets': [0, "
      "4, 16], 'titles': [None, 'Title', None], 'itemsize': 20}, False, True)");
  EXPECT_THAT(listing(array), ElementsAre(" void160[1]"));
  const Value again = load_from_buffer(save_to_buffer(array), {.weights_only = false});
  EXPECT_EQ(again.as_object().state.as_tuple()[2].as_object().args, dtype.as_object().args);
}

TEST(Npz, BrokenArraysWithoutNumbers) {
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "[('a', ";
  const struct {
    Entry entry;
    std::string error;
  } rows[] = {
      {{"'<U1'", "(3,)", "a...b..."}, "needs 12 bytes"},
      {{"'<U1'", "(1,)", "a...b..."}, "4 more follow"},
      {{"'<U1'", "(4294967296, 4294967296)", ""}, "2\\^64"},
      {{"'|O'", "(2,)", "\x80\4cos\nsystem\n."}, "Python objects"},
      {{"[('a', '|O'), ('b', '<f4')]", "(2,)", "cos\nsystem\n."}, "structured|Python objects"},
      {{"'<U99999999999999999999'", "(0,)", ""}, "too many bytes"},
      {{"'<U1x'", "(1,)", "...."}, "'<U1x'"},
      {{"'<'", "(1,)", "...."}, "'<'"},
      {{"[('a', '<i4')]", "(3,)", "...."}, "needs 12 bytes"},
      {{"[('a', '<f4', (1099511627776, 1099511627776))]", "(0,)", ""}, "too many bytes"},
      {{"[('a', '<x4')]", "(1,)", "...."}, "'<x4'"},
      {{"[('a', '<i4')", "(1,)", "...."}, "header"},
      {{"[('a', '<i4')) ", "(1,)", "...."}, "header"},
      {{"[('a', exit())]", "(1,)", "...."}, "no text"},
      {{deep, "(1,)", "...."}, "too many levels"},
  };
  for (const auto& [entry, error] : rows) {
    TemporaryFolder folder;
    const std::filesystem::path path = npz(folder, entry);
    EXPECT_THAT(error_of<CheckpointError>([&] { load(path); }), testing::ContainsRegex(error)) << entry.descr;
  }
}

}  // namespace
}  // namespace tern
