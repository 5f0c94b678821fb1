// Which tensors the commands on checkpoint files take for the model, and what they call them: names that are
// there twice, other things beside the model, narrow terminals, characters that nobody sees.
#include <fstream>

#include "tern/io/save.h"
#include "tern/io/serialize.h"
#include "tern/nn/linear.h"
#include "tern/nn/state_prefix.h"
#include "tern/ops/creation.h"
#include "tern/train/module_file.h"
#include "tests/cli/checkpoint_program.h"

namespace tern::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

/// Of two layers, with names as modules give them.
Value weights(double number) {
  return Value(StateDict{{"fc.weight", full({2, 3}, number)}, {"fc.bias", full({2}, number)}});
}

std::vector<std::string> names_of(const std::filesystem::path& file) {
  std::vector<std::string> names;
  for (const auto& [key, value] : load(file).as_dict()) names.push_back(key.as_str());
  return names;
}

TEST(Diff, EveryTensorIsComparedWhateverItsName) {
  const TemporaryFolder folder;
  const auto file = [](Value first, Value second, double number) {
    Value root = Value::dict();
    root[std::move(first)] = one(1);
    root[std::move(second)] = one(number);
    return root;
  };
  struct Row {
    Value a, b;
    std::string different;  ///< the only tensor that differs
    bool ignore_prefix = false;
  };
  const std::vector<Row> rows = {
      {{{"a.b", one(1)}, {"a", {{"b", one(1)}}}}, {{"a.b", one(1)}, {"a", {{"b", one(0)}}}}, "a.b (2)"},
      {{{"a.b", one(1)}, {"a", {{"b", one(1)}}}}, {{"a.b", one(0)}, {"a", {{"b", one(1)}}}}, "a.b"},
      {file(0, "0", 1), file(0, "0", 2), "0 (2)"},
      {{{"a.b (2)", one(1)}, {"a.b", one(1)}, {"a", {{"b", one(1)}}}},
       {{"a.b (2)", one(1)}, {"a.b", one(1)}, {"a", {{"b", one(0)}}}},
       "a.b (3)"},
      {{{"generator", weights(1)}, {"discriminator", weights(1)}},
       {{"generator", weights(1)},
        {"discriminator", {{"fc.weight", full({2, 3}, 1.0)}, {"fc.bias", full({2}, 0.0)}}}},
       "discriminator.fc.bias",
       true},
      {{{"model", weights(1)}, {"ema", {{"fc.weight", one(1)}}}},
       {{"model", weights(1)}, {"ema", {{"fc.weight", one(2)}}}},
       "ema.fc.weight",
       true},
      {{{"model", {{"w.a", one(1)}}}, {"w", {{"a", one(1)}}}},
       {{"model", {{"w.a", one(1)}}}, {"w", {{"a", one(2)}}}},
       "w.a (2)",
       true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.different);
    save(row.a, folder / "a.pt");
    save(row.b, folder / "b.pt");
    std::vector<std::string> arguments = {"diff", "a.pt", "b.pt", "--json"};
    if (row.ignore_prefix) arguments.push_back("--ignore-prefix");
    const Outcome outcome = run_in(folder, arguments);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    const Json json = json_of(outcome);
    EXPECT_EQ(json["equal"], false);
    EXPECT_EQ(json["only_in_a"], Json::array());
    EXPECT_EQ(json["only_in_b"], Json::array());
    ASSERT_THAT(json["differences"], SizeIs(1));
    EXPECT_EQ(json["differences"][0]["name"], row.different);
    for (const char* same : {"a.pt", "b.pt"}) {
      arguments[1] = arguments[2] = same;
      EXPECT_EQ(json_of(run_in(folder, arguments))["equal"], true) << same;
    }
  }
}

TEST(Diff, PrefixesOfTheModelAreIgnoredNothingElse) {
  const TemporaryFolder folder;
  const StateDict bare = weights(1).as_state_dict(), wrapped = nn::add_prefix(bare, "module.");
  nn::Linear net(3, 2);
  for (Tensor* parameter : {&net.weight, &net.bias}) *parameter = full(parameter->shape(), 1.0);
  save(bare, folder / "bare.pt");
  save(wrapped, folder / "wrapped.pt");
  save({{"epoch", 3}, {"state_dict", wrapped}}, folder / "run.pt");
  save({{"checkpoint", {{"model", wrapped}}}}, folder / "deep.pt");
  save({{"net", wrapped}, {"loss", one(0.5)}}, folder / "loss.pt");
  save(nn::strip_prefix(bare, "fc."), folder / "linear.pt");
  save({{"model", module_to_value(net)}, {"loss", one(0.5)}}, folder / "module.pt");
  struct Row {
    const char *a, *b;
    Json only_in_a;
  };
  const Json none = Json::array();
  for (const Row& row :
       {Row{"bare.pt", "wrapped.pt", none}, Row{"bare.pt", "run.pt", none}, Row{"run.pt", "deep.pt", none},
        Row{"loss.pt", "run.pt", {"loss"}}, Row{"module.pt", "linear.pt", {"loss"}}}) {
    SCOPED_TRACE(std::string(row.a) + " " + row.b);
    const Outcome outcome = run_in(folder, {"diff", row.a, row.b, "--ignore-prefix", "--json"});
    const Json json = json_of(outcome);
    EXPECT_EQ(outcome.code, row.only_in_a.empty() ? 0 : 1) << outcome.out;
    EXPECT_EQ(json["compared"], 2);
    EXPECT_EQ(json["only_in_a"], row.only_in_a);
    EXPECT_EQ(json["only_in_b"], none);
    EXPECT_EQ(json["differences"], none);
  }
}

TEST(Convert, TheModelAmongOtherThings) {
  const TemporaryFolder folder;
  const Value side = {{"mean", one(0)}, {"std", one(1)}};
  const auto beside = [](Value key, Value entry) {
    Value root = weights(1);
    root[std::move(key)] = std::move(entry);
    root["epoch"] = 3;
    return root;
  };
  struct Row {
    Value root;
    std::string left_out;
    Json wrapper = nullptr;
  };
  const std::vector<Row> rows = {
      {beside("stats", side), "stats, epoch (2 tensors)"},
      {beside("losses", Value::list({one(1), one(2)})), "losses, epoch (2 tensors)"},
      {beside("cfg", Value::dict()), "cfg, epoch"},
      {beside("ema", weights(2)), "ema, epoch (2 tensors)"},
      {beside(7, 8), "7, epoch"},
      {beside(7, one(8)), "7, epoch (1 tensor)"},
      {{{"model", weights(1)}, {"ema", weights(2)}, {"loss", one(1)}}, "ema, loss (3 tensors)", "model"},
      {{{"mine", weights(1)}, {"stats", side}, {"loss", one(1)}}, "stats, loss (3 tensors)", "mine"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.left_out);
    save(row.root, folder / "m.pt");
    const Outcome outcome = run_in(folder, {"convert", "m.pt", "m.safetensors"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("m.pt: zip, 2 tensors\n  left out: " + row.left_out + "\n"));
    const StateDict tensors = load_safetensors(folder / "m.safetensors").tensors;
    EXPECT_EQ(tensors.size(), 2u);
    EXPECT_EQ(tensors.at("fc.weight").sum().item<double>(), 6);
    EXPECT_EQ(tensors.at("fc.bias").sum().item<double>(), 2);
    EXPECT_EQ(json_of(run_in(folder, {"inspect", "m.pt", "--json"}))["wrapper"], row.wrapper);
    // PyTorch's formats keep the rest.
    ASSERT_EQ(run_in(folder, {"convert", "m.pt", "copy.pt"}).code, 0);
    EXPECT_EQ(run_in(folder, {"diff", "m.pt", "copy.pt"}).code, 0);
    EXPECT_EQ(load(folder / "copy.pt").length(), row.root.length());
  }
}

TEST(Convert, OfSeveralModelsOneIsChosen) {
  const TemporaryFolder folder;
  save({{"generator", weights(1)}, {"discriminator", weights(2)}, {"epoch", 3}}, folder / "gan.pt");
  const std::string error =
      "'gan.pt' has several dicts that may be the model: 'generator', 'discriminator'; 'tern convert --key "
      "generator' takes that one";
  expect_error(run_in(folder, {"convert", "gan.pt", "m.safetensors"}), error);
  expect_error(run_in(folder, {"convert", "gan.pt", "m.pt", "--add-prefix", "a."}), error);
  expect_error(run_in(folder, {"merge", "gan.pt", "gan.pt", "m.pt", "--override"}), error);
  expect_error(run_in(folder, {"average", "gan.pt", "gan.pt", "m.pt"}), error);
  expect_error(run_in(folder, {"convert", "gan.pt", "m.pt", "--key", "net"}),
               "has no dict under the key 'net'");
  EXPECT_FALSE(std::filesystem::exists(folder / "m.pt"));
  EXPECT_FALSE(std::filesystem::exists(folder / "m.safetensors"));

  ASSERT_EQ(run_in(folder, {"convert", "gan.pt", "copy.pt"}).code, 0) << "no choice is needed";
  EXPECT_EQ(run_in(folder, {"diff", "gan.pt", "copy.pt"}).code, 0);
  const Outcome chosen = run_in(folder, {"convert", "gan.pt", "m.safetensors", "--key", "discriminator"});
  EXPECT_THAT(chosen.out, HasSubstr("left out: generator, epoch")) << chosen.err;
  EXPECT_EQ(load_safetensors(folder / "m.safetensors").tensors.at("fc.bias").sum().item<double>(), 4);
  ASSERT_EQ(run_in(folder, {"convert", "gan.pt", "all.safetensors", "--key", "."}).code, 0);
  EXPECT_THAT(names_of(folder / "all.safetensors"),
              ElementsAre("discriminator.fc.bias", "discriminator.fc.weight", "generator.fc.bias",
                          "generator.fc.weight"));
  ASSERT_EQ(
      run_in(folder, {"convert", "gan.pt", "p.pt", "--key", "discriminator", "--add-prefix", "a."}).code, 0);
  const Value file = load(folder / "p.pt");
  EXPECT_EQ(file["discriminator"]["a.fc.bias"].as_tensor().sum().item<double>(), 4);
  EXPECT_EQ(file["generator"]["fc.bias"].as_tensor().sum().item<double>(), 2);
  EXPECT_EQ(file["epoch"].as_int(), 3);

  save({{"net.a", {{"b", {{"w", one(1)}}}}}, {"net", {{"v", one(2)}}}}, folder / "deep.pt");
  ASSERT_EQ(run_in(folder, {"convert", "deep.pt", "d.safetensors", "--key", "net.a.b"}).code, 0);
  EXPECT_THAT(names_of(folder / "d.safetensors"), ElementsAre("w"));
  ASSERT_EQ(run_in(folder, {"convert", "deep.pt", "d.safetensors", "--key", "net.a"}).code, 0);
  EXPECT_THAT(names_of(folder / "d.safetensors"), ElementsAre("b.w"));
}

TEST(Convert, ModulesExtraStatesAreRenamed) {
  const TemporaryFolder folder;
  Value dict = Value::ordered_dict();
  dict["module.0.weight"] = one(1);
  dict["module.0._extra_state"] = Value({{"scale", 2}});
  dict["module.bias"] = one(3);
  dict["epoch"] = 4;
  for (const bool nested : {false, true}) {
    SCOPED_TRACE(nested);
    save(nested ? Value({{"state_dict", dict}, {"best", 0.5}}) : dict, folder / "m.pt");
    struct Row {
      std::vector<std::string> options, names;
    };
    for (const Row& row :
         {Row{{"--strip-prefix", "auto"}, {"0.weight", "0._extra_state", "bias", "epoch"}},
          Row{{"--strip-prefix", "module.", "--add-prefix", "net."},
              {"net.0.weight", "net.0._extra_state", "net.bias", "epoch"}},
          Row{{"--rename", "^module\\.0=a"}, {"a.weight", "a._extra_state", "module.bias", "epoch"}},
          Row{{"--dtype", "bf16"}, {"module.0.weight", "module.0._extra_state", "module.bias", "epoch"}}}) {
      std::vector<std::string> arguments = {"convert", "m.pt", "out.pt"};
      arguments.insert(arguments.end(), row.options.begin(), row.options.end());
      const Outcome outcome = run_in(folder, arguments);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_THAT(outcome.out, Not(HasSubstr("left out")));
      const Value file = load(folder / "out.pt"), saved = nested ? Value(file["state_dict"]) : file;
      std::vector<std::string> names;
      for (const auto& [key, value] : saved.as_dict()) names.push_back(key.as_str());
      EXPECT_EQ(names, row.names);
      EXPECT_EQ(saved[names[1]]["scale"].as_int(), 2);
      EXPECT_EQ(saved["epoch"].as_int(), 4);
    }
    EXPECT_THAT(run_in(folder, {"convert", "m.pt", "out.safetensors"}).out,
                HasSubstr("left out: module.0._extra_state, epoch"));
    expect_error(run_in(folder, {"convert", "m.pt", "no.pt", "--rename", "module.bias=epoch"}),
                 "a tensor would have the name 'epoch' of another entry");
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();  // of a terminal
  }
  return lines;
}

TEST(Inspect, NamesAreWholeOnNarrowTerminals) {
  const TemporaryFolder folder;
  StateDict a, b;
  std::vector<std::string> names;
  for (int layer = 0; layer < 30; ++layer)
    for (const char* part : {"q", "k", "v"}) {
      names.push_back("model.encoder.layers." + std::to_string(layer) + ".self_attention." + part +
                      "_projection.weight");
      a.insert(names.back(), zeros({48, 48}));
      b.insert(names.back(), ones({48, 48}));
    }
  names.push_back("tied");
  a.insert("tied", a.at(names[0]));
  b.insert("tied", ones({48, 48}));
  save(a, folder / "a.pt");
  save(b, folder / "b.pt");
  for (const int columns : {80, 30, 200}) {
    const auto run = [&](const std::vector<std::string>& arguments) {
      return lines_of(run_program(arguments, {.environment = {{"NO_COLOR", "1"}, {"TERM", "xterm"}},
                                              .folder = folder.path().string(),
                                              .terminal_columns = columns})
                          .out);
    };
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"inspect", "a.pt", "--all"}, {"diff", "a.pt", "b.pt", "--all"}}) {
      SCOPED_TRACE(arguments[0] + " " + std::to_string(columns));
      const std::vector<std::string> lines = run(arguments);
      for (const std::string& name : names)
        EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                                [&](const std::string& line) {
                                  return line == name || line == "~ " + name ||
                                         line.starts_with(name + "  ") ||
                                         line.starts_with("~ " + name + "  ");
                                }),
                  1)
            << name;
      for (const std::string& line : lines) {
        const bool several_cells = line.find("  ", 2) != std::string::npos;
        EXPECT_LE(line.size(), static_cast<size_t>(several_cells ? columns : 100)) << line;
      }
    }
    const std::vector<std::string> lines = run({"inspect", "a.pt"});
    EXPECT_THAT(lines, testing::Contains("... 31 more (--all shows them)"));
    const size_t rows = 60 + 2;  // with the header, and what is left out
    EXPECT_THAT(lines, SizeIs(columns == 200  ? 4 + rows
                              : columns == 80 ? 4 + 2 * (rows - 1) + 1 + 1
                                              : 4 + 3 * (rows - 1) + 1 + 1));
  }
}

TEST(Inspect, NamesAreWholeInPipes) {
  const TemporaryFolder folder;
  const std::string name = std::string(150, 'a') + ".weight";
  save({{name, zeros({4, 4})}}, folder / "m.pt");
  EXPECT_THAT(run_in(folder, {"inspect", "m.pt"}).out,
              HasSubstr(name + "  float32  [4, 4]  cpu        64\n"));
}

TEST(Inspect, EmptyNamesAndOneTensor) {
  const TemporaryFolder folder;
  save({{"", one(1)}, {"b ", full({2400}, 1.0)}}, folder / "dict.pt");
  save({{"", one(2)}, {"b ", full({2400}, 2.0)}}, folder / "other.pt");
  save(one(1), folder / "tensor.pt");
  save(one(2), folder / "second.pt");
  const std::string dict = run_in(folder, {"inspect", "dict.pt"}).out;
  EXPECT_THAT(dict, HasSubstr("\n''    float32  "));
  EXPECT_THAT(dict, HasSubstr("\n'b '  float32  "));
  EXPECT_THAT(run_in(folder, {"inspect", "tensor.pt"}).out, HasSubstr("\n(the file itself)  float32  "));
  EXPECT_THAT(run_in(folder, {"diff", "dict.pt", "other.pt"}).out,
              HasSubstr("~ ''    1 of 1 element by up to 1\n~ 'b '  2,400 of 2,400 elements by up to 1\n"));
  EXPECT_THAT(run_in(folder, {"diff", "tensor.pt", "second.pt"}).out,
              HasSubstr("~ (the file itself)  1 of 1 element by up to 1\n"));
}

TEST(Inspect, TextOfFilesIsFitForTerminals) {
  const TemporaryFolder folder;
  struct Row {
    const char *text, *shown;
  };
  for (const Row& row : {Row{"\x1b[31m", "\\x1b[31m"},
                         {"\n", "\\x0a"},
                         {"\x7f", "\\x7f"},
                         {"\xc2\x9b", "\\xc2\\x9b"},           // C1
                         {"\xc2\xad", "\\xc2\\xad"},           // soft hyphen
                         {"\xd8\x9c", "\\xd8\\x9c"},           // Arabic letter mark
                         {"\xe1\x85\x9f", "\\xe1\\x85\\x9f"},  // Hangul filler
                         {"\xe2\x80\x8b", "\\xe2\\x80\\x8b"},  // zero-width space
                         {"\xe2\x80\x8f", "\\xe2\\x80\\x8f"},  // right-to-left mark
                         {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},  // line separator
                         {"\xe2\x80\xae", "\\xe2\\x80\\xae"},  // right-to-left override
                         {"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},  // isolates
                         {"\xe2\x81\xa9", "\\xe2\\x81\\xa9"},
                         {"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},           // byte order mark
                         {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"},  // tags
                         {"\xc3\xa9", "\xc3\xa9"},
                         {"\xe2\x80\x90", "\xe2\x80\x90"},  // hyphen
                         {"\xe6\x9d\xb1", "\xe6\x9d\xb1"},
                         {"\xf0\x9f\x99\x82", "\xf0\x9f\x99\x82"}}) {
    const std::string name = std::string("a") + row.text + "b", shown = std::string("a") + row.shown + "b";
    save({{name, one(1)}, {"text", name}}, folder / "m.pt");
    save({{"other", one(1)}}, folder / "other.pt");
    EXPECT_THAT(run_in(folder, {"inspect", "m.pt"}).out, HasSubstr("\n" + shown + "  "));
    EXPECT_THAT(run_in(folder, {"inspect", "m.pt", "--tree"}).out, HasSubstr(shown));
    EXPECT_THAT(run_in(folder, {"diff", "m.pt", "other.pt"}).out, HasSubstr("- " + shown + "  "));
    if (*row.text != '\n')
      expect_error(run_in(folder, {"inspect", name + ".pt"}), "cannot open '" + shown + ".pt'");
  }
  expect_error(run_in(folder, {"inspect", "\xff\x1b.pt"}), "'\\xff\\x1b.pt'");
}

}  // namespace
}  // namespace tern::cli
