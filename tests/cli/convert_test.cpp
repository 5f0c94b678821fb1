// `tern convert`: which tensors are taken, what of the file stays, and what is refused. What PyTorch makes of
// the files is in convert_torch.py; formats and names are in checkpoint_commands_test.cpp and
// checkpoint_names_test.cpp.
#include "tern/io/save.h"
#include "tern/io/serialize.h"
#include "tern/ops/creation.h"
#include "tests/cli/checkpoint_program.h"

namespace tern::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> keys_of(const Value& dict) {
  std::vector<std::string> names;
  for (const auto& [key, value] : dict.as_dict()) names.push_back(key.as_str());
  return names;
}

Outcome convert(const TemporaryFolder& folder, const std::string& out,
                const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {"convert", "in.pt", out};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_in(folder, arguments);
}

TEST(Convert, NoTensorIsLeftWithoutAWord) {
  const TemporaryFolder folder;
  const Value pair = Value::list({Value({{"w", one(1)}}), Value({{"w", one(2)}})});
  struct Row {
    Value root;
    std::vector<std::string> names;  ///< in the safetensors file; none: it is refused
    std::string text;
    std::string key = {};
  };
  const std::vector<Row> rows = {
      {{{"epoch", one(3)}, {"layers", pair}}, {"epoch", "layers.0.w", "layers.1.w"}, "3 tensors"},
      {{{"encoder", {{"l1", {{"w", one(1)}}}, {"b", one(2)}}}, {"top", one(3)}},
       {"encoder.b", "encoder.l1.w", "top"},
       "3 tensors"},
      {{{"model", {{"l", {{"w", one(1)}}}, {"b", one(2)}}}, {"ema", one(3)}},
       {"b", "l.w"},
       "left out: ema (1 tensor)"},
      {{{"epoch", one(3)}, {"layers", pair}, {"lr", 0.1}},
       {},
       "has 1 tensor in the file itself and 2 deeper, in 'layers': nothing tells which are the model; 'tern "
       "convert --key KEY' takes those of one dict, '--key .' all"},
      {{{"epoch", one(3)}, {"layers", pair}, {"lr", 0.1}},
       {"epoch", "layers.0.w", "layers.1.w"},
       "left out: lr",
       "."},
      {{{"a", {{"b", {{"w", one(1)}}}}}, {"n", one(2)}}, {"b.w"}, "left out: n (1 tensor)", "a"},
      {{{"w", one(1)}, {"optimizer", {{"m", one(2)}, {"lr", 0.1}}}}, {"w"}, "left out: optimizer (1 tensor)"},
      {7, {}, "'in.pt' has no tensors"},
      {Value::dict(), {}, "'in.pt' has no tensors"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    save(row.root, folder / "in.pt");
    for (const std::string out : {"out.npz", "out.safetensors"}) {
      std::filesystem::remove(folder / out);
      const Outcome outcome =
          convert(folder, out,
                  row.key.empty() ? std::vector<std::string>{} : std::vector{std::string("--key"), row.key});
      if (row.names.empty()) {
        expect_error(outcome, row.text);
        EXPECT_FALSE(std::filesystem::exists(folder / out));
        continue;
      }
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr(row.text));
      EXPECT_THAT(keys_of(load(folder / out)), ::testing::UnorderedElementsAreArray(row.names));
    }
    EXPECT_EQ(convert(folder, "out.pt").code, 0);
    EXPECT_EQ(load(folder / "out.pt").str(), row.root.str());
  }
}

TEST(Convert, WhatIsNotTheModelKeepsItsPlace) {
  const TemporaryFolder folder;
  save({{"epoch", 1}, {"w", one(1)}, {"lr", 0.5}, {"b.c", one(2)}, {"ema", {{"w", one(3)}}}},
       folder / "in.pt");
  const Outcome outcome = convert(folder, "out.pt", {"--rename", "^w=v", "--dtype", "fp16"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("kept beside the model, as it was: 1 tensor"));
  const Value root = load(folder / "out.pt");
  EXPECT_EQ(keys_of(root), (std::vector<std::string>{"epoch", "v", "lr", "b.c", "ema"}));
  EXPECT_FALSE(root.as_dict().is_ordered_dict());
  EXPECT_EQ(root["v"].as_tensor().dtype(), DType::Float16);
  EXPECT_EQ(root["ema"]["w"].as_tensor().dtype(), DType::Float32);
  // New names are those of one flat dict.
  save({{"a", {{"b", one(1)}, {"c", Value::list({one(2)})}}}}, folder / "in.pt");
  ASSERT_EQ(convert(folder, "flat.pt", {"--add-prefix", "x."}).code, 0);
  EXPECT_EQ(keys_of(Value(load(folder / "flat.pt")["a"])), (std::vector<std::string>{"x.b", "x.c.0"}));
}

TEST(Convert, AnEmptyNameIsForPyTorchOnly) {
  const TemporaryFolder folder;
  save({{"", one(1)}, {"w", one(2)}}, folder / "in.pt");
  EXPECT_EQ(convert(folder, "out.pt", {"--rename", "w=v"}).code, 0);
  EXPECT_EQ(keys_of(load(folder / "out.pt")), (std::vector<std::string>{"", "v"}));
  expect_error(convert(folder, "out.npz"), "--add-prefix NAME gives it one");
}

TEST(Convert, NamesOfForeignFormatsAreRefused) {
  const TemporaryFolder folder;
  save({{"w", one(1)}}, folder / "in.pt");
  for (const char* out : {"m.onnx", "m.H5", "m.gguf", "m.json", "m.safetensors.index.json"}) {
    expect_error(convert(folder, out), "files are not written; give a .pt, .safetensors or .npz", 2);
    EXPECT_FALSE(std::filesystem::exists(folder / out));
    EXPECT_EQ(convert(folder, out, {"--to", "pt"}).code, 0);
    EXPECT_EQ(load(folder / out).length(), 1u);
  }
  for (const auto& [out, format] : {std::pair("m.SafeTensors", "safetensors"), std::pair("m.NPZ", "npz"),
                                    std::pair("m.model", "zip"), std::pair("m", "zip")}) {
    EXPECT_EQ(convert(folder, out).code, 0);
    EXPECT_EQ(json_of(run_in(folder, {"inspect", out, "--json"}))["format"], format);
  }
  expect_error(convert(folder, "m.SAFETENSORS", {"--to", "pt"}), "must be safetensors, as its name says", 2);
}

TEST(Convert, ErrorsSayWhatTheProgramCanDo) {
  const TemporaryFolder folder;
  struct Row {
    Value root;
    std::string out;
    std::vector<std::string> options;
    std::string error;
    int code = 1;
  };
  for (const Row& row :
       {Row{one(1), "m.pt", {"--dtype", "float8_e4m3fn"}, "converting to float8_e4m3fn is not supported", 2},
        Row{one(1), "m.pt", {"--add-prefix", "\xff"}, "the name '\\xff', which is not UTF-8"},
        Row{{{"w", one(1).to(bfloat16)}},
            "m.npz",
            {},
            "'w' has the dtype bfloat16, which npz lacks; --dtype float32 converts it, --to pt"},
        Row{{{"w", Tensor::from_storage(allocate_storage(16, kCPU), DType::Complex128, {1})}},
            "m.safetensors",
            {},
            "'w' has the dtype complex128, which safetensors lacks; --to pt writes it"}}) {
    save(row.root, folder / "in.pt");
    expect_error(convert(folder, row.out, row.options), row.error, row.code);
    EXPECT_FALSE(std::filesystem::exists(folder / row.out));
  }
}

TEST(Convert, CompactLeavesUnusedStorageOut) {
  const TemporaryFolder folder;
  const Tensor large = full({100'000}, 2.0);
  save({{"w", large.slice(0, 0, 3)}}, folder / "in.pt");
  for (const char* format : {"pt", "legacy"}) {
    ASSERT_EQ(convert(folder, "out.pt", {"--to", format, "--compact"}).code, 0);
    EXPECT_LT(std::filesystem::file_size(folder / "out.pt"), 2000u);
    EXPECT_EQ(load(folder / "out.pt")["w"].as_tensor().to_vector<float>(), (std::vector<float>{2, 2, 2}));
    ASSERT_EQ(convert(folder, "out.pt", {"--to", format}).code, 0);
    EXPECT_GT(std::filesystem::file_size(folder / "out.pt"), 400'000u);
  }
}

TEST(Convert, PatternsTakeLinearTime) {
  const TemporaryFolder folder;
  const std::string hostile = std::string(40, 'a') + "b", longest(5000, 'a');
  save({{hostile, one(1)}, {longest, one(2)}, {"w\\1", one(3)}}, folder / "in.pt");
  ASSERT_EQ(convert(folder, "out.pt", {"--rename", "^(a+)+$=<$1>$$&", "--rename", "^(w)\\\\=$&\\1$1"}).code,
            0);
  EXPECT_EQ(keys_of(load(folder / "out.pt")),
            (std::vector<std::string>{hostile, "<" + longest + ">$&", "w\\\\1w1"}));
  ASSERT_EQ(convert(folder, "only.pt", {"--only", "^(a+)+$"}).code, 0);
  EXPECT_EQ(load(folder / "only.pt").length(), 1u);
  expect_error(convert(folder, "no.pt", {"--rename", "w=$1"}), "the pattern has no such group", 2);
  expect_error(convert(folder, "no.pt", {"--only", "(?=w)"}),
               "'(?=w)' is no regular expression: invalid perl", 2);
}

TEST(Convert, OnlyTakesOnePatternAtATime) {
  const TemporaryFolder folder;
  save({{"weight", one(1)}, {"bias", one(2)}, {"steps", one(3)}}, folder / "in.pt");
  ASSERT_EQ(run_in(folder, {"convert", "--only", "weight", "--only", "bias", "in.pt", "out.pt"}).code, 0);
  EXPECT_EQ(keys_of(load(folder / "out.pt")), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(run_in(folder, {"convert", "--only", "weight", "bias", "in.pt", "two.pt"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "two.pt"));
}

}  // namespace
}  // namespace tern::cli
