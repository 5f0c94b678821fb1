// The numbers and devices that are told of sparse tensors, and of programs what they are. Dense values are
// those of PyTorch's to_dense().
#include "tern/io/sparse_numbers.h"

#include "io_testing.h"
#include "tern/io/file.h"
#include "tern/io/summary.h"
#include "tern/io/zip_writer.h"

namespace tern {
namespace {

using io::FoundTensor;
using io::Number;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FoundTensor sparse_of(const char* layout, std::vector<int64_t> shape, std::vector<Tensor> parts) {
  FoundTensor found;
  ValueObject object;
  object.args = Value::tuple({Value::layout(layout)});
  found.value = Value(std::move(object));
  found.kind = io::TensorKind::Sparse;
  found.shape = std::move(shape);
  found.parts = std::move(parts);
  return found;
}

/// Numbers that rise by one.
Tensor counted(IntArrayRef shape, float first = 1) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = first++;
  return tensor_of(values, shape);
}
Tensor whole(const std::vector<int64_t>& values) {
  return tensor_of(values, {static_cast<int64_t>(values.size())});
}

std::vector<double> first_of(const FoundTensor& sparse) {
  const auto summary = io::summarize_sparse(sparse);
  std::vector<double> first;
  if (summary)
    for (const Number& number : summary->first) first.push_back(std::get<double>(number));
  return first;
}

TEST(SparseNumbers, FirstElementsOfEveryLayout) {
  // [[0, 1, 0, 2], [3, 0, 0, 0], ...] in one row of 2 x 2 blocks, the second block below and right of it.
  const Tensor blocks = tensor_of<float>({0, 1, 3, 0, 0, 2, 0, 0, 9, 9, 9, 9}, {3, 2, 2});
  EXPECT_THAT(first_of(sparse_of("torch.sparse_bsr", {4, 4}, {whole({0, 2, 3}), whole({0, 1, 1}), blocks})),
              ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(first_of(sparse_of("torch.sparse_bsc", {4, 4}, {whole({0, 1, 3}), whole({0, 0, 1}), blocks})),
              ElementsAre(0, 1, 0, 2));
  // Blocks of several rows, which the first four elements reach: a 3 x 1 matrix of one block.
  EXPECT_THAT(
      first_of(sparse_of("torch.sparse_bsr", {3, 1}, {whole({0, 1}), whole({0}), counted({1, 3, 1})})),
      ElementsAre(1, 2, 3));
  // Two matrices [1, 3], of which the second gives the fourth element.
  EXPECT_THAT(first_of(sparse_of("torch.sparse_csr", {2, 1, 3},
                                 {tensor_of<int64_t>({0, 1, 0, 1}, {2, 2}),
                                  tensor_of<int64_t>({2, 0}, {2, 1}), tensor_of<float>({5, 7}, {2, 1})})),
              ElementsAre(0, 0, 5, 7));
  // Dense dimensions: elements [row, column, 0 to 2].
  EXPECT_THAT(
      first_of(sparse_of("torch.sparse_csr", {2, 2, 3}, {whole({0, 1, 2}), whole({1, 0}), counted({2, 3})})),
      ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(
      first_of(sparse_of("torch.sparse_csc", {2, 2, 3}, {whole({0, 1, 2}), whole({0, 0}), counted({2, 3})})),
      ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(first_of(sparse_of(
                  "torch.sparse_bsc", {2, 1, 2},
                  {tensor_of<int32_t>({0, 1}, {2}), tensor_of<int32_t>({0}, {1}), counted({1, 2, 1, 2})})),
              ElementsAre(1, 2, 3, 4));
  // A hybrid COO tensor, one place of it twice.
  EXPECT_THAT(first_of(sparse_of("torch.sparse_coo", {3, 3},
                                 {tensor_of<int64_t>({1, 0, 1}, {1, 3}), counted({3, 3})})),
              ElementsAre(4, 5, 6, 1 + 7));
  EXPECT_THAT(
      first_of(sparse_of("torch.sparse_coo", {2, 0}, {tensor_of<int64_t>({1}, {1, 1}), counted({1, 0})})),
      IsEmpty());
  EXPECT_THAT(first_of(sparse_of("torch.sparse_coo", {2, 1},
                                 {tensor_of<int64_t>({}, {2, 0}), tensor_of<float>({}, {0})})),
              ElementsAre(0, 0));
}

TEST(SparseNumbers, PlacesBeyondSixtyFourBitsAreFar) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_THAT(first_of(sparse_of("torch.sparse_coo", {large, large},
                                 {tensor_of<int64_t>({large - 1, 0, large - 1, 3}, {2, 2}), counted({2})})),
              ElementsAre(0, 0, 0, 2));
}

TEST(SparseNumbers, PartsThatDoNotFitGiveNoElements) {
  const FoundTensor rows[] = {
      sparse_of("torch.sparse_coo", {2, 2}, {tensor_of<int64_t>({0, 2}, {2, 1}), counted({1})}),
      sparse_of("torch.sparse_coo", {2, 2}, {tensor_of<int64_t>({0, -1}, {2, 1}), counted({1})}),
      sparse_of("torch.sparse_coo", {2, 2}, {tensor_of<int64_t>({0, 1}, {2, 1}), counted({2})}),
      sparse_of("torch.sparse_coo", {2}, {tensor_of<int64_t>({0, 1}, {2, 1}), counted({1})}),
      sparse_of("torch.sparse_coo", {1, 3}, {tensor_of<int64_t>({0}, {1, 1}), counted({1, 2})}),
      sparse_of("torch.sparse_coo", {2}, {tensor_of<float>({1}, {1, 1}), counted({1})}),
      sparse_of("torch.sparse_csr", {2, 2}, {whole({0, 1, 3}), whole({0, 1}), counted({2})}),
      sparse_of("torch.sparse_csr", {2, 2}, {whole({0, 2, 1}), whole({0, 1}), counted({2})}),
      sparse_of("torch.sparse_csr", {2, 2}, {whole({-1, 1, 2}), whole({0, 1}), counted({2})}),
      sparse_of("torch.sparse_csr", {2, 2}, {whole({0, 1, 2}), whole({0, 2}), counted({2})}),
      sparse_of("torch.sparse_csr", {3, 2}, {whole({0, 1, 2}), whole({0, 1}), counted({2})}),
      sparse_of("torch.sparse_csr", {2, 2, 3}, {whole({0, 1, 2}), whole({0, 1}), counted({2, 2})}),
      sparse_of("torch.sparse_bsr", {4, 4}, {whole({0, 1, 2}), whole({0, 1}), counted({2, 3, 2})}),
      sparse_of("torch.sparse_bsr", {4, 4}, {whole({0, 1, 2}), whole({0, 1}), counted({2, 0, 2})}),
      sparse_of("torch.strided", {2, 2}, {whole({0, 1, 2}), whole({0, 1}), counted({2})}),
  };
  for (const FoundTensor& row : rows) {
    const auto summary = io::summarize_sparse(row);
    ASSERT_TRUE(summary);
    EXPECT_THAT(summary->first, IsEmpty()) << &row - rows;
  }
}

TEST(SparseNumbers, EqualPlacesOfBoolsAreOred) {
  const auto bools = [](const std::vector<uint8_t>& values, IntArrayRef shape) {
    return io::tensor_from_bytes(std::as_bytes(std::span(values)), DType::Bool, shape);
  };
  // (0, 2) twice, (1, 0) once.
  auto summary = io::summarize_sparse(sparse_of(
      "torch.sparse_coo", {2, 3}, {tensor_of<int64_t>({0, 1, 0, 2, 0, 2}, {2, 3}), bools({1, 1, 1}, {3})}));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->sum, 2.0);
  EXPECT_THAT(summary->first, ElementsAre(Number(false), Number(false), Number(true), Number(true)));
  // Row 1 twice: [1, 0] and [1, 1] make [1, 1].
  summary = io::summarize_sparse(
      sparse_of("torch.sparse_coo", {3, 2},
                {tensor_of<int64_t>({1, 2, 1}, {1, 3}), bools({1, 0, 0, 1, 1, 1}, {3, 2})}));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->sum, 3.0);
  EXPECT_THAT(summary->first, ElementsAre(Number(false), Number(false), Number(true), Number(true)));
  // Without sparse dimensions all values have one place.
  summary = io::summarize_sparse(
      sparse_of("torch.sparse_coo", {}, {tensor_of<int64_t>({}, {0, 3}), bools({1, 0, 1}, {3})}));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->sum, 1.0);
  EXPECT_THAT(summary->first, ElementsAre(Number(true)));
}

TEST(SparseNumbers, WholeNumbersStayWholeAndWrap) {
  const auto summary = io::summarize_sparse(sparse_of(
      "torch.sparse_coo", {2}, {tensor_of<int64_t>({1, 1}, {1, 2}), tensor_of<int8_t>({100, 100}, {2})}));
  ASSERT_TRUE(summary);
  EXPECT_THAT(summary->first, ElementsAre(Number(int64_t{0}), Number(int64_t{-56})));
}

/// A pickle of a sparse tensor whose parts were on a device: [[0, 1], [0, 0]].
std::string sparse_pickle(const std::string& layout, const std::string& location, bool compressed) {
  const auto byte = [](int64_t number) { return std::string("K") + static_cast<char>(number); };
  const auto text = [](const std::string& s) {
    return "X" + std::string(1, char(s.size())) + std::string(3, '\0') + s;
  };
  const auto tensor = [&](const std::string& storage, const char* key, const std::vector<int64_t>& sizes) {
    std::string size = "(", stride = "(";
    int64_t numel = 1;
    for (int64_t each : sizes) {
      numel *= each;
      size += byte(each);
      stride += byte(1);
    }
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + storage + "\n" +
           text(key) + text(location) + byte(numel) + "tQ" + byte(0) + size + "t" + stride +
           "t\x89"
           "ccollections\nOrderedDict\n)RtR";
  };
  const std::string size = "(" + byte(2) + byte(2) + "t";
  std::string pickle =
      "\x80\x02"
      "ctorch._utils\n";
  pickle += compressed ? "_rebuild_sparse_csr_tensor\n" : "_rebuild_sparse_tensor\n";
  pickle += "(ctorch.serialization\n_get_layout\n(" + text(layout) + "tR(";
  if (compressed)
    pickle += tensor("LongStorage", "0", {3}) + tensor("LongStorage", "1", {1});
  else
    pickle += tensor("LongStorage", "1", {2, 1});
  return pickle + tensor("FloatStorage", "2", {1}) + size + "ttR.";
}

TEST(SparseNumbers, DeviceIsThatOfTheParts) {
  const TemporaryFolder folder;
  for (bool compressed : {false, true}) {
    io::MemorySink sink;
    io::ZipWriter zip(sink);
    const std::string layout = compressed ? "torch.sparse_csr" : "torch.sparse_coo";
    zip.add("archive/data.pkl", sparse_pickle(layout, "cuda:1", compressed));
    const int64_t starts[] = {0, 1, 1}, positions[] = {compressed ? 1 : 0, 1};
    const float value = 1;
    zip.add("archive/data/0", std::string_view(reinterpret_cast<const char*>(starts), sizeof(starts)));
    zip.add("archive/data/1",
            std::string_view(reinterpret_cast<const char*>(positions), compressed ? 8 : sizeof(positions)));
    zip.add("archive/data/2", std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
    zip.add("archive/version", "3\n");
    zip.finish();
    const std::filesystem::path path = folder.path() / "sparse.pt";
    write_text(path,
               std::string_view(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()));
    const io::Summary summary = io::summarize_file(path, {.values = true});
    ASSERT_EQ(summary.tensors.size(), 1u);
    EXPECT_EQ(summary.tensors[0].kind, io::TensorKind::Sparse);
    EXPECT_EQ(summary.tensors[0].device, "cuda:1") << layout;
    EXPECT_THAT(first_of(summary.tensors[0]), ElementsAre(0, 1, 0, 0)) << layout;
  }
}

TEST(SparseNumbers, ExportedProgramsAreNamed) {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> archives = {
      {"net/data/weights/weight_0", "net/data/sample_inputs/model.pt", "net/archive_format"},
      {"serialized_exported_program.json", "serialized_state_dict.pt", "version"}};
  for (const auto& names : archives) {
    io::MemorySink sink;
    io::ZipWriter zip(sink);
    for (const std::string& name : names) zip.add(name, "pt2");
    zip.finish();
    const std::filesystem::path path = folder.path() / "net.pt2";
    write_text(path,
               std::string_view(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()));
    const std::string message = error_of<CheckpointError>([&] { load(path); });
    EXPECT_THAT(message, HasSubstr("a program exported by torch.export"));
    EXPECT_THAT(message, HasSubstr("torch.save(program.state_dict"));
  }
}

}  // namespace
}  // namespace tern
