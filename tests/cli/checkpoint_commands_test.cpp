// `tern inspect`, `convert`, `diff`, `verify`, `merge` and `average` on files that the test writes. What they
// say of the files in ../shared/checkpoints is in checkpoint_corpus_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tern/io/save.h"
#include "tern/io/serialize.h"
#include "tern/io/shards_writer.h"
#include "tern/ops/creation.h"
#include "tests/cli/checkpoint_program.h"

namespace tern::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

Tensor numbers(std::vector<float> values, std::vector<int64_t> shape) {
  return tensor(std::move(values)).reshape(shape);
}

/// Two layers; the names have a wrapper's prefix, and `tied` shares the memory of the first weight.
StateDict wrapped_weights() {
  const Tensor weight = numbers({1, 2, 3, 4, 5, 6}, {2, 3});
  return {{"module.a.weight", weight},
          {"module.a.bias", numbers({0.5f, -0.5f}, {2})},
          {"module.steps", tensor({int64_t{7}})},
          {"module.tied", weight.t()}};
}

void write_checkpoint(const TemporaryFolder& folder) {
  save({{"epoch", 3}, {"state_dict", wrapped_weights()}}, folder / "run.pt");
}

/// The pickle of a call: `module.name(argument)`.
void write_call(const std::filesystem::path& path, const std::string& module, const std::string& name,
                const std::string& argument) {
  std::string pickle =
      "\x80\x02"
      "c" +
      module + "\n" + name + "\nX";
  pickle += static_cast<char>(argument.size());
  pickle += std::string(3, '\0') + argument + "\x85R.";
  std::ofstream(path, std::ios::binary) << pickle;
}

TEST(Inspect, JsonWithValuesHasExactlyTheFieldsAsked) {
  const TemporaryFolder folder;
  write_checkpoint(folder);
  const Outcome outcome = run_in(folder, {"inspect", "run.pt", "--json", "--values"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = json_of(outcome);
  EXPECT_EQ(json.size(), 4u);
  EXPECT_EQ(json["format"], "zip");
  EXPECT_EQ(json["wrapper"], "state_dict.module.");
  EXPECT_EQ(json["safe"], true);
  ASSERT_EQ(json["tensors"].size(), 4u);
  EXPECT_EQ(json["tensors"][0], Json({{"name", "state_dict.module.a.weight"},
                                      {"dtype", "float32"},
                                      {"shape", {2, 3}},
                                      {"device", "cpu"},
                                      {"sum", 21.0},
                                      {"first", {1.0, 2.0, 3.0, 4.0}}}));
  EXPECT_EQ(json["tensors"][2]["first"], Json({7}));
  EXPECT_EQ(json["tensors"][3]["shape"], Json({3, 2}));
  EXPECT_EQ(json["tensors"][3]["first"], Json({1.0, 4.0, 2.0, 5.0})) << "row-major order of the tensor";
}

TEST(Inspect, ValuesOfLargeFilesTakeLittleMemory) {
  const TemporaryFolder folder;
  StateDict state;
  for (int i = 0; i < 4; ++i) state.insert("w" + std::to_string(i), full({8 << 20}, 0.5));
  save({{"epoch", 3}, {"model", state}}, folder / "a.pt", {.sync = false});
  save_safetensors(state, folder / "a.safetensors", {}, {.sync = false});
  std::filesystem::create_directory(folder / "shards");
  io::save_safetensors_shards(state, folder / "shards/a.safetensors", 64 << 20);
  std::ofstream(folder / "shards/README.md") << "# A model\n";
  const long least = run_in(folder, {"version"}).peak_kib;
  for (const char* name : {"a.pt", "a.safetensors", "shards", "shards/a.safetensors.index.json"}) {
    const Outcome outcome = run_in(folder, {"inspect", name, "--json", "--values"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_LT(outcome.peak_kib - least, 40 << 10) << name;  // of 128 MiB
    const Json json = json_of(outcome);
    ASSERT_EQ(json["tensors"].size(), 4u);
    for (const Json& tensor : json["tensors"]) EXPECT_EQ(tensor["sum"], 4 << 20);
    EXPECT_LT(run_in(folder, {"inspect", name, "--json"}).peak_kib - least, 16 << 10) << name;
    const Outcome verified = run_in(folder, {"verify", name});
    EXPECT_EQ(verified.code, 0) << verified.err;
    EXPECT_LT(verified.peak_kib - least, 40 << 10) << name;
  }
  EXPECT_EQ(json_of(run_in(folder, {"inspect", "shards", "--json"}))["file_bytes"],
            json_of(run_in(folder, {"inspect", "shards/a.safetensors.index.json", "--json"}))["file_bytes"]);

  // Damage is found although nothing is loaded.
  std::fstream file(folder / "a.pt", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(40 << 20);
  file.put('x');
  file.close();
  expect_error(run_in(folder, {"inspect", "a.pt", "--values"}), "/data/1' is damaged: its CRC is ");
  expect_error(run_in(folder, {"verify", "a.pt"}), "/data/1' is damaged: its CRC is ");
}

TEST(Inspect, NumbersThatAreNoneAreText) {
  const TemporaryFolder folder;
  const float inf = std::numeric_limits<float>::infinity();
  save({{"nan", tensor({1.0f, NAN})}, {"inf", tensor({1.0f, inf})}, {"minus", tensor({-inf, 2.0f})}},
       folder / "m.pt");
  const Json json = json_of(run_in(folder, {"inspect", "m.pt", "--json", "--values"}));
  EXPECT_EQ(json["tensors"][0]["sum"], "nan");
  EXPECT_EQ(json["tensors"][0]["first"], Json({1.0, "nan"}));
  EXPECT_EQ(json["tensors"][1]["sum"], "inf");
  EXPECT_EQ(json["tensors"][2]["first"], Json({"-inf", 2.0}));
}

TEST(Inspect, JsonSaysWhereThingsAre) {
  const TemporaryFolder folder;
  write_checkpoint(folder);
  const Json json = json_of(run_in(folder, {"inspect", "run.pt", "--json"}));
  EXPECT_EQ(json["verdict"], "plain data");
  EXPECT_EQ(json["tensor_count"], 4);
  EXPECT_EQ(json["elements"], 6 + 2 + 1 + 6);
  EXPECT_EQ(json["storages"], 3);
  EXPECT_EQ(json["storage_bytes"], 24 + 8 + 8);
  EXPECT_EQ(json["tensors"][3]["shared_with"], "state_dict.module.a.weight");
  EXPECT_EQ(json["tensors"][3]["stride"], Json({1, 3}));
  EXPECT_EQ(json["tensors"][3]["storage"], json["tensors"][0]["storage"]);
  EXPECT_EQ(json["tensors"][0]["shared_with"], nullptr);
}

TEST(Inspect, TreeShowsSharedContainersOnce) {
  const TemporaryFolder folder;
  const Value shared = Value::list({1, 2.5});
  save({{"first", shared}, {"second", shared}, {"text", "a\x1b[31mb"}}, folder / "m.pt");
  const Outcome outcome = run_in(folder, {"inspect", "m.pt", "--tree"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr(".  dict, 3 entries\n|-- first  list, 2 entries\n|   |-- 0  1\n|   `-- 1  2.5\n"
                        "|-- second  the same as first\n`-- text  'a\\x1b[31mb'\n"));
}

TEST(Inspect, PickleListsOpcodesAndJudgesNames) {
  const TemporaryFolder folder;
  save(numbers({1, 2}, {2}), folder / "m.pt");
  const Outcome outcome = run_in(folder, {"inspect", "m.pt", "--pickle"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("0: PROTO            2\n"));
  EXPECT_THAT(outcome.out, HasSubstr("GLOBAL           'torch._utils _rebuild_tensor_v2'"));
  EXPECT_THAT(outcome.out, HasSubstr("plain data      torch.FloatStorage"));
}

TEST(Inspect, WhatWouldRunCodeIsShownAndRefused) {
  const TemporaryFolder folder;
  write_call(folder / "evil.pkl", "os", "system", "touch pwned");
  const Outcome outcome = run_in(folder, {"inspect", "evil.pkl"});
  expect_error(outcome, "would run code");
  EXPECT_THAT(outcome.err, StartsWith("tern inspect: 'evil.pkl'"));
  EXPECT_THAT(outcome.out, HasSubstr("would run code: os.system (byte 2)"));
  EXPECT_FALSE(std::filesystem::exists(folder / "pwned"));
  const Outcome json = run_in(folder, {"inspect", "evil.pkl", "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json_of(json)["safe"], false);
  expect_error(run_in(folder, {"convert", "evil.pkl", "other.pt"}), "Python would run code");
  expect_error(run_in(folder, {"diff", "evil.pkl", "evil.pkl"}), "Python would run code", 2);
  expect_error(run_in(folder, {"verify", "evil.pkl"}), "Python would run code");
  EXPECT_FALSE(std::filesystem::exists(folder / "other.pt"));
}

TEST(Inspect, UnknownClassesAreNamed) {
  const TemporaryFolder folder;
  write_call(folder / "m.pkl", "my.package", "Config", "text");
  const Outcome outcome = run_in(folder, {"inspect", "m.pkl"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("needs classes: my.package.Config (byte 2)"));
  // Names that only look harmless.
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"builtins", "eval"},
                                                        {"torch", "os.system"},
                                                        {"torch._utils", "_rebuild_tensor_v2.__globals__"},
                                                        {"torch.hub", "load"},
                                                        {"numpy", "load"},
                                                        {"io", "open"},
                                                        {"_io", "open"},
                                                        {"io", "open_code"},
                                                        {"_io", "FileIO"},
                                                        {"io", "BytesIO.getvalue"},
                                                        {"my.package", "__dict__"},
                                                        {"functools", "reduce"}}) {
    write_call(folder / "m.pkl", module, name, "text");
    EXPECT_EQ(run_in(folder, {"inspect", "m.pkl"}).code, 1) << module << " " << name;
  }
}

TEST(Inspect, HarmlessNamesOfOtherwiseDangerousModules) {
  const TemporaryFolder folder;
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"types", "SimpleNamespace"},
                                                        {"_operator", "or_"},
                                                        {"functools", "partial"},
                                                        {"_io", "BytesIO"},
                                                        {"io", "StringIO"},
                                                        {"numpy.random._pickle", "__randomstate_ctor"}}) {
    write_call(folder / "m.pkl", module, name, "text");
    const Outcome outcome = run_in(folder, {"inspect", "m.pkl"});
    EXPECT_EQ(outcome.code, 0) << module << " " << name;
    EXPECT_THAT(outcome.out, HasSubstr("needs classes: " + module + "." + name));
    EXPECT_EQ(run_in(folder, {"diff", "m.pkl", "m.pkl"}).code, 0) << module << " " << name;
  }
  // What a partial function gives is another matter: partial(f)(x).
  std::ofstream(folder / "m.pkl", std::ios::binary) << "\x80\x02"
                                                       "cfunctools\npartial\ncmy\nf\n\x85RU\x01x\x85R.";
  expect_error(run_in(folder, {"inspect", "m.pkl"}), "would run code");
}

TEST(Inspect, ClassesInClassesAreNoCode) {
  const TemporaryFolder folder;
  auto code_of = [&](const std::string& callee) {
    std::ofstream(folder / "m.pkl", std::ios::binary) << "\x80\x02" << callee << "U\x01x\x85R.";
    return run_in(folder, {"inspect", "m.pkl"}).code;
  };
  auto attribute = [](const std::string& of, const std::string& name) {
    return "c__builtin__\ngetattr\n" + of + "U" + static_cast<char>(name.size()) + name + "\x86R";
  };
  const std::string outer = "cmy\nOuter\n";
  EXPECT_EQ(code_of(attribute(outer, "Mode")), 0);
  EXPECT_EQ(code_of(attribute(attribute(outer, "_Inner"), "Mode")), 0);
  EXPECT_EQ(code_of("cmy\nOuter.Mode\n"), 0);
  // A method that is named only: torch.channels_last of protocol 4.
  EXPECT_EQ(code_of("cmy\nf\nctorch._utils\ntorch.channels_last\n0"), 0);
  for (const std::string& callee :
       {attribute(outer, "method"), attribute(outer, "__subclasses__"), attribute("cmy\nf\n)R", "Mode"),
        attribute(attribute("ctorch\nserialization\n", "os"), "system"), attribute("ctorch\nOs\n", "system"),
        attribute("cos\nsystem\n", "Mode"), attribute("U\x01x", "Mode"),
        std::string("cnumpy\nndarray.tofile\n"), std::string("cmy\nOuter.method\n")})
    EXPECT_EQ(code_of(callee), 1) << callee;
}

TEST(Inspect, ErrorsAreOneLine) {
  const TemporaryFolder folder;
  std::ofstream(folder / "page.pt") << "<!DOCTYPE html>\n<html>404\n</html>";
  expect_error(run_in(folder, {"inspect", "page.pt"}), "tern inspect: 'page.pt'");
  expect_error(run_in(folder, {"inspect", "absent.pt"}), "No such file");
  expect_error(run_in(folder, {"inspect"}), "file is required", 2);
  expect_error(run_in(folder, {"inspect", "page.pt", "--json", "--tree"}), "--json goes with --values only",
               2);
}

TEST(Convert, OneTensorWithoutAName) {
  const TemporaryFolder folder;
  save(numbers({1, 2}, {2}), folder / "t.pt");
  EXPECT_EQ(run_in(folder, {"convert", "t.pt", "legacy.pt", "--to", "legacy"}).code, 0);
  EXPECT_EQ(load(folder / "legacy.pt").as_tensor().shape(), Shape({2}));
  expect_error(run_in(folder, {"convert", "t.pt", "t.safetensors"}), "--add-prefix NAME gives it one");
  EXPECT_EQ(run_in(folder, {"convert", "t.pt", "t.safetensors", "--add-prefix", "w"}).code, 0);
  EXPECT_EQ(load(folder / "t.safetensors")["w"].as_tensor().shape(), Shape({2}));
}

TEST(Convert, StripsPrefixesAndKeepsTheRest) {
  const TemporaryFolder folder;
  write_checkpoint(folder);
  const Outcome outcome = run_in(folder, {"convert", "run.pt", "out.pt", "--strip-prefix", "module."});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("took 'module.' from 4 names"));
  const Value file = load(folder / "out.pt");
  EXPECT_EQ(file["epoch"].as_int(), 3);
  const StateDict weights = file["state_dict"].as_state_dict();
  EXPECT_EQ(weights.at("a.weight").storage(), weights.at("tied").storage()) << "still shared";
  EXPECT_EQ(weights.at("a.bias").to_vector<float>(), (std::vector<float>{0.5f, -0.5f}));
}

TEST(Convert, FormatsHoldTheSame) {
  const TemporaryFolder folder;
  write_checkpoint(folder);
  for (const std::string out : {"m.safetensors", "m.npz", "m.pt"}) {
    const Outcome outcome = run_in(folder, {"convert", "run.pt", out});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find("left out: epoch") == std::string::npos, out == "m.pt") << outcome.out;
    EXPECT_EQ(run_in(folder, {"diff", "run.pt", out, "--ignore-prefix"}).code, 0) << out;
  }
  const Outcome legacy = run_in(folder, {"convert", "run.pt", "old.pt", "--to", "legacy"});
  ASSERT_EQ(legacy.code, 0) << legacy.err;
  EXPECT_EQ(json_of(run_in(folder, {"inspect", "old.pt", "--json"}))["format"], "legacy");
  EXPECT_EQ(run_in(folder, {"diff", "run.pt", "old.pt"}).code, 0);
}

TEST(Convert, NamesDtypesAndParts) {
  const TemporaryFolder folder;
  write_checkpoint(folder);
  const Outcome outcome = run_in(
      folder, {"convert", "run.pt", "m.safetensors", "--strip-prefix", "auto", "--rename",
               "^a\\.(.*)$=layer.$1", "--rename", "bias=shift", "--add-prefix", "net.", "--dtype", "bf16"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const StateDict tensors = load_safetensors(folder / "m.safetensors").tensors;
  EXPECT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors.at("net.layer.weight").dtype(), DType::BFloat16);
  EXPECT_EQ(tensors.at("net.layer.shift").to_vector<float>(), (std::vector<float>{0.5f, -0.5f}));
  EXPECT_EQ(tensors.at("net.steps").dtype(), DType::Int64);
  EXPECT_THAT(outcome.out, HasSubstr("no floating-point tensors, left as they are: net.steps"));

  ASSERT_EQ(run_in(folder, {"convert", "run.pt", "part.pt", "--only", "bias", "--only", "steps"}).code, 0);
  EXPECT_EQ(load(folder / "part.pt").as_state_dict().size(), 2u);
}

TEST(Convert, NoNamePromisesAnotherFormat) {
  const TemporaryFolder folder;
  write_checkpoint(folder);
  struct Row {
    const char *out, *to, *error;
  };
  for (const Row& row :
       {Row{"m.safetensors", "pt", "'m.safetensors' must be safetensors, as its name says"},
        Row{"m.safetensors", "legacy", "must be safetensors"},
        Row{"m.safetensors", "npz", "must be safetensors"},
        Row{"m.npz", "safetensors", "'m.npz' must be npz"}, Row{"m.npz", "pt", "'m.npz' must be npz"},
        Row{"m.npy", "", "'m.npy': .npy files hold one array without a name; give a .npz"},
        Row{"m.npy", "pt", ".npy files hold one array"}}) {
    std::vector<std::string> arguments = {"convert", "run.pt", row.out};
    if (*row.to) arguments.insert(arguments.end(), {"--to", row.to});
    expect_error(run_in(folder, arguments), row.error, 2);
    EXPECT_FALSE(std::filesystem::exists(folder / row.out));
  }
  expect_error(run_in(folder, {"merge", "run.pt", "run.pt", "m.safetensors", "--to", "pt"}),
               "as its name says", 2);
  for (const char* out : {"m.bin", "m"}) {
    EXPECT_EQ(run_in(folder, {"convert", "run.pt", out, "--to", "safetensors"}).code, 0);
    EXPECT_EQ(load_safetensors(folder / out).tensors.size(), 4u);
  }
}

TEST(Convert, TooLargeNumbersAreReported) {
  const TemporaryFolder folder;
  save({{"w", tensor({1e6f, 1.0f})}}, folder / "m.pt");
  const Outcome outcome = run_in(folder, {"convert", "m.pt", "half.pt", "--dtype", "float16"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 tensor got infinities"));
}

TEST(Convert, ShardsHaveAnIndex) {
  const TemporaryFolder folder;
  StateDict weights;
  for (int i = 0; i < 5; ++i) weights.insert("w" + std::to_string(i), full({256}, static_cast<float>(i)));
  save(weights, folder / "m.pt");
  std::filesystem::create_directory(folder / "shards");
  const Outcome outcome = run_in(folder, {"convert", "m.pt", "shards", "--shard", "2KiB"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::ifstream file(folder / "shards/model.safetensors.index.json");
  const Json index = Json::parse(file);
  EXPECT_EQ(index["metadata"]["total_size"], 5 * 1024);
  EXPECT_EQ(index["weight_map"]["w1"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["w4"], "model-00003-of-00003.safetensors");
  EXPECT_EQ(run_in(folder, {"diff", "m.pt", "shards"}).code, 0);
  for (const char* size : {"2kib", "2 KIB", "2048", "2048b", "2.1kb"}) {
    const std::string name = std::string(size) + ".SAFETENSORS";
    EXPECT_EQ(run_in(folder, {"convert", "m.pt", name, "--shard", size}).code, 0) << size;
    EXPECT_TRUE(std::filesystem::exists(folder / (std::string(size) + "-00003-of-00003.safetensors")))
        << size;
    EXPECT_EQ(run_in(folder, {"diff", "m.pt", name + ".index.json"}).code, 0) << size;
  }
  // All in one: no index.
  ASSERT_EQ(run_in(folder, {"convert", "m.pt", "one.safetensors", "--shard", "1GiB"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "one.safetensors.index.json"));
}

TEST(Convert, RefusesWhatMakesNoSense) {
  const TemporaryFolder folder;
  write_checkpoint(folder);
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--strip-prefix", "other."}),
               "no name begins with");
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--rename", ".*=same"}),
               "two tensors would have");
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--rename", "absent=x"}), "changes no name");
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--only", "absent"}), "--only: none of 4 names");
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--rename", "("}), "PATTERN=NEW", 2);
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--only", "("}), "regular expression", 2);
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--to", "onnx"}), "possible are pt, legacy", 2);
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--dtype", "int8"}), "floating-point", 2);
  expect_error(run_in(folder, {"convert", "run.pt", "m.pt", "--shard", "2GiB"}), "end in .safetensors", 2);
  for (const char* size : {"99999999999999999999GB", "5000000TiB"})
    expect_error(run_in(folder, {"convert", "run.pt", "m.safetensors", "--shard", size}),
                 "--shard is too large: at most 4194304TiB", 2);
  expect_error(run_in(folder, {"convert", "run.pt", "m.safetensors", "--shard", "0GB"}), "from 1 byte on", 2);
  expect_error(run_in(folder, {"convert", "run.pt", "m.safetensors", "--shard", "2G"}),
               "unknown unit 'G': KiB", 2);
  expect_error(run_in(folder, {"convert", "run.pt", "/dev/stdout"}),
               "'/dev/stdout': it is not a regular file");
  EXPECT_FALSE(std::filesystem::exists(folder / "m.pt"));
}

TEST(Diff, SaysWhatDiffers) {
  const TemporaryFolder folder;
  save({{"same", tensor({1.0f})},
        {"value", tensor({1.0f, 2.0f, 3.0f})},
        {"shape", zeros({2})},
        {"gone", zeros({1})}},
       folder / "a.pt");
  save({{"same", tensor({1.0f})},
        {"value", tensor({1.0f, 2.5f, 3.0f})},
        {"shape", zeros({3})},
        {"new", zeros({1})}},
       folder / "b.pt");
  const Outcome text = run_in(folder, {"diff", "a.pt", "b.pt"});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, HasSubstr("1 of 3 elements by up to 0.5"));
  const Json json = json_of(run_in(folder, {"diff", "a.pt", "b.pt", "--json"}));
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["compared"], 3);
  EXPECT_EQ(json["only_in_a"], Json({"gone"}));
  EXPECT_EQ(json["only_in_b"], Json({"new"}));
  ASSERT_EQ(json["differences"].size(), 2u);
  EXPECT_EQ(json["differences"][0],
            Json({{"name", "value"}, {"what", "values"}, {"largest", 0.5}, {"different", 1}}));
  EXPECT_EQ(json["differences"][1]["what"], "shape");
}

TEST(Diff, ToleranceDtypesAndNan) {
  const TemporaryFolder folder;
  save({{"w", tensor({1.0f, NAN})}}, folder / "a.pt");
  save({{"w", tensor({1.001f, NAN})}}, folder / "b.pt");
  save({{"w", tensor({1.0f, NAN}).to(float64)}}, folder / "double.pt");
  save({{"w", tensor({1.0f, 2.0f})}}, folder / "number.pt");
  EXPECT_EQ(run_in(folder, {"diff", "a.pt", "a.pt"}).code, 0) << "NaN equals NaN";
  EXPECT_EQ(run_in(folder, {"diff", "a.pt", "b.pt"}).code, 1);
  EXPECT_EQ(run_in(folder, {"diff", "a.pt", "b.pt", "--tolerance", "0.01"}).code, 0);
  EXPECT_EQ(run_in(folder, {"diff", "a.pt", "double.pt"}).code, 1);
  EXPECT_EQ(run_in(folder, {"diff", "a.pt", "double.pt", "--ignore-dtype"}).code, 0);
  const Json json = json_of(run_in(folder, {"diff", "a.pt", "number.pt", "--tolerance", "9", "--json"}));
  EXPECT_EQ(json["differences"][0]["largest"], "inf");
  expect_error(run_in(folder, {"diff", "a.pt", "absent.pt"}), "tern diff: ", 2);
  expect_error(run_in(folder, {"diff", "a.pt"}), "b is required", 2);
  const RunOptions full{.folder = folder.path().string(), .streams = {{1, "/dev/full"}}};
  expect_error(run_program({"diff", "a.pt", "a.pt"}, full), "standard output cannot be written", 2);
}

TEST(Diff, WholeNumbersAreExact) {
  const TemporaryFolder folder;
  save({{"n", tensor({(int64_t{1} << 62) + 1})}}, folder / "a.pt");
  save({{"n", tensor({int64_t{1} << 62})}}, folder / "b.pt");
  const Json json = json_of(run_in(folder, {"diff", "a.pt", "b.pt", "--json"}));
  EXPECT_EQ(json["differences"][0]["largest"], 1.0);
}

TEST(Verify, FindsDamageAndNumbersThatAreNone) {
  const TemporaryFolder folder;
  write_checkpoint(folder);
  const Outcome good = run_in(folder, {"verify", "run.pt"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("no NaN, no Inf"));

  save({{"w", tensor({1.0f, NAN, NAN})}}, folder / "nan.pt");
  expect_error(run_in(folder, {"verify", "nan.pt"}), "1 tensor has NaN or Inf: w (2 NaN)");
  EXPECT_EQ(run_in(folder, {"verify", "nan.pt", "--allow-nonfinite"}).code, 0);
  EXPECT_EQ(json_of(run_in(folder, {"verify", "nan.pt", "--json"}))["nan"], 2);

  std::fstream file(folder / "run.pt", std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const float six = 6;
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&six), sizeof six));
  ASSERT_NE(at, std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at + 1));
  file.put('\x42');
  file.close();
  expect_error(run_in(folder, {"verify", "run.pt"}), "CRC");
  const Outcome json = run_in(folder, {"verify", "run.pt", "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json_of(json)["ok"], false);
  EXPECT_EQ(json_of(json)["faults"].size(), 1u);
}

TEST(Merge, DisjointNamesOrTheLaterWins) {
  const TemporaryFolder folder;
  save({{"a", tensor({1.0f})}, {"both", tensor({1.0f})}}, folder / "1.pt");
  save({{"b", tensor({2.0f})}}, folder / "2.pt");
  save({{"both", tensor({3.0f})}}, folder / "3.pt");
  ASSERT_EQ(run_in(folder, {"merge", "1.pt", "2.pt", "m.safetensors"}).code, 0);
  EXPECT_EQ(load_safetensors(folder / "m.safetensors").tensors.size(), 3u);
  expect_error(run_in(folder, {"merge", "1.pt", "2.pt", "3.pt", "x.pt"}), "in '1.pt' and in '3.pt': 'both'");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.pt"));
  ASSERT_EQ(run_in(folder, {"merge", "1.pt", "2.pt", "3.pt", "x.pt", "--override"}).code, 0);
  const StateDict merged = load(folder / "x.pt").as_state_dict();
  EXPECT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged.at("both").item<float>(), 3);
}

TEST(Merge, NoFileIsReplacedByItself) {
  const TemporaryFolder folder;
  for (const char* file : {"1.pt", "2.pt"}) save({{file, tensor({1.0f, 2.0f})}}, folder / file);
  expect_error(run_in(folder, {"merge", "1.pt"}), "at least 3 files", 2);
  expect_error(run_in(folder, {"merge", "1.pt", "2.pt"}), "at least 3 files", 2);
  expect_error(run_in(folder, {"average", "1.pt", "2.pt"}), "at least 3 files", 2);
  for (const char* file : {"1.pt", "2.pt"})
    EXPECT_TRUE(load(folder / file)[file].as_tensor().defined()) << file;
  // All are read before one of them is replaced.
  ASSERT_EQ(run_in(folder, {"merge", "1.pt", "2.pt", "1.pt"}).code, 0);
  EXPECT_EQ(load(folder / "1.pt")["2.pt"].as_tensor().to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Average, FloatsAreAveragedOthersMustAgree) {
  const TemporaryFolder folder;
  save({{"w", tensor({1.0f, 2.0f})}, {"n", tensor({int64_t{5}})}, {"same", tensor({int64_t{1}})}},
       folder / "1.pt");
  save({{"w", tensor({3.0f, 4.0f})}, {"n", tensor({int64_t{9}})}, {"same", tensor({int64_t{1}})}},
       folder / "2.pt");
  const Outcome outcome = run_in(folder, {"average", "1.pt", "2.pt", "m.pt"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("taken from the last: 'n'"));
  StateDict mean = load(folder / "m.pt").as_state_dict();
  EXPECT_EQ(mean.at("w").to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(mean.at("w").dtype(), DType::Float32);
  EXPECT_EQ(mean.at("n").item<int64_t>(), 9);
  ASSERT_EQ(run_in(folder, {"average", "1.pt", "2.pt", "m.pt", "--weights", "1,3"}).code, 0);
  EXPECT_EQ(load(folder / "m.pt").as_state_dict().at("w").to_vector<float>(),
            (std::vector<float>{2.5f, 3.5f}));

  expect_error(run_in(folder, {"average", "1.pt", "2.pt", "m.pt", "--weights", "1"}), "1 numbers for 2 files",
               2);
  expect_error(run_in(folder, {"average", "1.pt", "2.pt", "m.pt", "--weights", "1e308,1e308"}), "the sum inf",
               2);
  save({{"w", tensor({1.0f})}, {"n", tensor({int64_t{5}})}, {"same", tensor({int64_t{1}})}}, folder / "3.pt");
  expect_error(run_in(folder, {"average", "1.pt", "3.pt", "m.pt"}), "'w' has shape [2]");
  save({{"w", tensor({1.0f, 2.0f})}}, folder / "4.pt");
  expect_error(run_in(folder, {"average", "1.pt", "4.pt", "m.pt"}), "'4.pt' has no 'n', 'same'");
}

}  // namespace
}  // namespace tern::cli
