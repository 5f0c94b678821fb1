// Checkpoints on standard input and output, and what `--json` gives programs when a command fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tern/io/save.h"
#include "tern/io/serialize.h"
#include "tests/cli/checkpoint_program.h"

namespace tern::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

/// A model of which the second tensor is too large for a file that is read at once.
void write_two(const TemporaryFolder& folder) {
  save({{"epoch", 3}, {"model", StateDict{{"a.weight", one(1)}, {"a.bias", full({1 << 19}, 0.5)}}}},
       folder / "m.pt", {.sync = false});
}

/// Standard input is the file, or what `cat` sends of it.
Outcome run_from(const TemporaryFolder& folder, const std::string& file, bool pipe,
                 const std::vector<std::string>& arguments) {
  RunOptions options{.folder = folder.path().string()};
  const std::string path = (folder / file).string();
  if (pipe)
    options.launcher = {"/bin/sh", "-c", "cat '" + path + "' | \"$@\"", "sh"};
  else
    options.streams = {{0, path.c_str()}};
  return run_program(arguments, options);
}

TEST(StandardInput, IsAFileOrAPipe) {
  const TemporaryFolder folder;
  write_two(folder);
  save_safetensors({{"w", full({1 << 19}, 0.25)}}, folder / "m.safetensors", {}, {.sync = false});
  std::ofstream(folder / "words") << "Hello.\n";
  for (bool pipe : {false, true}) {
    SCOPED_TRACE(pipe ? "a pipe" : "a file");
    const auto run = [&](const std::string& file, std::vector<std::string> arguments) {
      return run_from(folder, file, pipe, arguments);
    };
    const Outcome inspected = run("m.pt", {"inspect", "-", "--json", "--values"});
    ASSERT_EQ(inspected.code, 0) << inspected.err;
    EXPECT_EQ(json_of(inspected), json_of(run_in(folder, {"inspect", "m.pt", "--json", "--values"})));
    EXPECT_THAT(run("m.pt", {"inspect", "-"}).out, StartsWith("-: PyTorch's zip format"));
    EXPECT_THAT(run("m.pt", {"inspect", "-", "--pickle"}).out, HasSubstr("STOP"));
    EXPECT_THAT(run("m.pt", {"verify", "-"}).out, HasSubstr("checksums of 7 entries are right"));
    EXPECT_THAT(run("m.safetensors", {"verify", "-"}).out, HasSubstr("safetensors, 1 tensor"));
    EXPECT_EQ(run("m.pt", {"diff", "-", "m.pt"}).code, 0);
    EXPECT_EQ(run("m.pt", {"diff", "-", "-"}).code, 0) << "what was read is kept";
    EXPECT_EQ(run("m.pt", {"convert", "-", "n.npz"}).code, 0);
    EXPECT_EQ(load(folder / "n.npz")["a.bias"].as_tensor().numel(), 1 << 19);
    expect_error(run("words", {"inspect", "-"}), "standard input: this is no checkpoint");
    expect_error(run("/dev/null", {"verify", "-"}), "standard input: this is no checkpoint");
  }
  expect_error(run_in(folder, {"eval", "--checkpoint", "-"}), "standard input: this is no checkpoint");
}

TEST(StandardOutput, TakesTheBytesAndNothingElse) {
  const TemporaryFolder folder;
  write_two(folder);
  for (const std::string format : {"pt", "legacy", "safetensors", "npz"}) {
    const Outcome outcome = run_in(folder, {"convert", "m.pt", "-", "--to", format});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("m.pt: zip, 2 tensors\n")) << "what is told elsewhere";
    const Value value = load_from_buffer(std::as_bytes(std::span(outcome.out)));
    const Value& model = value.contains("model") ? value["model"] : value;
    EXPECT_EQ(model["a.weight"].as_tensor().item<float>(), 1) << format;
  }
  save(StateDict{{"b", one(2)}}, folder / "b.pt");
  const Outcome merged = run_in(folder, {"merge", "m.pt", "b.pt", "-"});
  EXPECT_EQ(load_from_buffer(std::as_bytes(std::span(merged.out)))["b"].as_tensor().item<float>(), 2);
  expect_error(run_in(folder, {"convert", "m.pt", "-", "--shard", "1MB"}), "must be a folder or end in", 2);
  const Outcome full =
      run_program({"convert", (folder / "m.pt").string(), "-"}, {.streams = {{1, "/dev/full"}}});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("standard output cannot be written: No space left"));
  const Outcome terminal =
      run_program({"convert", "m.pt", "-"}, {.folder = folder.path().string(), .terminal_columns = 80});
  EXPECT_EQ(terminal.code, 1);
  EXPECT_THAT(terminal.out, HasSubstr("standard output is a terminal"));
}

TEST(Json, FailuresAreObjects) {
  const TemporaryFolder folder;
  save(StateDict{{"b", one(2)}}, folder / "b.pt");
  const struct {
    std::vector<std::string> arguments;
    int code;
    std::string text;
  } cases[] = {
      {{"inspect", "none.pt", "--json"}, 1, "cannot open 'none.pt': No such file"},
      {{"inspect", ".", "--json"}, 1, "the folder has neither an index"},
      {{"diff", "--json", "b.pt", "none.pt"}, 2, "cannot open 'none.pt'"},
      {{"eval", "--checkpoint", "none.pt", "--json"}, 1, "cannot open 'none.pt'"},
      {{"eval", "--checkpoint", "b.pt", "--json", "--device", "moon"}, 2, "--device: "},
      {{"predict", "--checkpoint", "none.pt", "--json", "x.png"}, 1, "cannot open 'none.pt'"},
      {{"train", "--json", "--data", "mnist:none", "--out", "run"}, 1, "none"},
      {{"inspect", "--json"}, 2, "file is required"},
      {{"inspect", "--json", "--jason", "b.pt"}, 2, "unknown option '--jason'"},
  };
  for (const auto& [arguments, code, text] : cases) {
    const Outcome outcome = run_in(folder, arguments);
    expect_error(outcome, text, code);
    const Json json = json_of(outcome);
    EXPECT_EQ(json["type"], "error");
    EXPECT_THAT(json["error"].get<std::string>(), HasSubstr(text));
  }
  // Whether a file is whole has an answer where there is none.
  const Outcome outcome = run_in(folder, {"verify", "none.pt", "--json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(json_of(outcome)["ok"], false);
  EXPECT_EQ(json_of(outcome)["faults"], Json({"cannot open 'none.pt': No such file or directory"}));
}

}  // namespace
}  // namespace tern::cli
