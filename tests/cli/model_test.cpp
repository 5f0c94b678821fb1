// `tern eval`, `tern predict` and `tern demo` on a network that is trained first.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tern/data/digits.h"
#include "tern/data/image.h"
#include "tern/data/resize.h"
#include "tern/data/transforms.h"
#include "tern/io/serialize.h"
#include "tern/nn/models.h"
#include "tern/nn/state_prefix.h"
#include "tern/ops/compare.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/train/module_file.h"
#include "tests/cli/program.h"
#include "tests/support/temporary_folder.h"

namespace tern::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ModelTest : public testing::Test {
 protected:
  static const fs::path& trained() {
    static const TemporaryFolder folder;
    static const fs::path out = [] {
      const fs::path path = folder.path() / "run";
      const Outcome outcome = run_program({"train", "--limit", "3000", "--epochs", "2", "--batch-size", "50",
                                           "--seed", "1", "--out", path.string()});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      return path;
    }();
    return out;
  }
  /// A digit of the test part as a file, after `change`.
  template <class Change>
  std::string write_digit(const std::string& name, int64_t index, Change&& change) {
    const data::Digits digits({.train = false, .size = 20});
    const fs::path path = folder_.path() / name;
    data::write_png(path.string(), change(data::tensor_to_image(digits.images()[index])));
    return path.string();
  }
  TemporaryFolder folder_;
};

TEST_F(ModelTest, EvalOfEveryKindOfFile) {
  std::vector<double> accuracies;
  for (const char* name : {"checkpoint.pt", "lenet.pt", "lenet.safetensors"}) {
    const Outcome outcome = run_program({"eval", "--checkpoint", (trained() / name).string(), "--data",
                                         "digits", "--limit", "1000", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["model"], "lenet");
    EXPECT_EQ(json["samples"], 1000);
    EXPECT_EQ(json["classes"].size(), 10u);
    int64_t sum = 0;
    for (const Json& row : json["confusion"])
      for (const Json& count : row) sum += count.get<int64_t>();
    EXPECT_EQ(sum, 1000);
    accuracies.push_back(json["accuracy"]);
  }
  EXPECT_GT(accuracies[0], 0.8);
  EXPECT_EQ(accuracies[0], accuracies[1]);
  EXPECT_EQ(accuracies[0], accuracies[2]);
}

TEST_F(ModelTest, EvalSavesOutputs) {
  const std::string file = (folder_.path() / "outputs.pt").string();
  const Outcome outcome = run_program({"eval", "--checkpoint", (trained() / "lenet.pt").string(), "--limit",
                                       "300", "--save-outputs", file, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Value saved = load(file);
  const Tensor outputs = saved["outputs"].as_tensor(), targets = saved["targets"].as_tensor();
  EXPECT_EQ(outputs.shape(), Shape({300, 10}));
  const double right = eq(argmax(outputs, 1), targets).sum().item<double>();
  EXPECT_DOUBLE_EQ(right / 300, Json::parse(outcome.out)["accuracy"]);
}

TEST_F(ModelTest, EvalAsText) {
  const Outcome outcome =
      run_program({"eval", "--checkpoint", (trained() / "lenet.pt").string(), "--limit", "200"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* text : {"accuracy", "loss", "class", "samples"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos);
}

TEST_F(ModelTest, EvalRefusesWhatDoesNotFit) {
  const Outcome other =
      run_program({"eval", "--checkpoint", (trained() / "lenet.pt").string(), "--model", "mlp"});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("'lenet', not 'mlp'"), std::string::npos) << other.err;
  const fs::path alien = folder_.path() / "alien.pt";
  save(StateDict{{"encoder.weight",
                  Tensor::from_storage(load(trained() / "lenet.pt")["fc3.bias"].as_tensor().storage(),
                                       float32, IntArrayRef{10})}},
       alien);
  const Outcome unknown = run_program({"eval", "--checkpoint", alien.string()});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("encoder.weight"), std::string::npos) << unknown.err;
}

TERN_REGISTER_MODULE("__main__.LeNet", nn::LeNet);

TEST_F(ModelTest, EvalOfWhatTrainingProgramsSave) {
  const StateDict weights = load(trained() / "lenet.pt").as_state_dict();
  nn::LeNet net;
  net.load_state_dict(weights);
  save(nn::add_prefix(weights, "module."), folder_ / "parallel.pt");
  save({{"epoch", 3}, {"model_state_dict", nn::add_prefix(weights, "module.")}}, folder_ / "state.pt");
  save({{"net", weights}}, folder_ / "net.pt");
  save({{"mine", nn::add_prefix(weights, "net._orig_mod.")}, {"epoch", 3}}, folder_ / "mine.pt");
  save_safetensors(nn::add_prefix(weights, "model."), folder_ / "lightning.safetensors");
  save_module(net, folder_ / "whole.pt");
  save({{"model", module_to_value(net)}, {"epoch", 3}}, folder_ / "entry.pt");
  const auto eval = [](const fs::path& file) {
    const Outcome outcome = run_program({"eval", "--checkpoint", file.string(), "--limit", "200", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out)["loss"] : Json();
  };
  const Json loss = eval(trained() / "lenet.pt");
  for (const char* name :
       {"parallel.pt", "state.pt", "net.pt", "mine.pt", "lightning.safetensors", "whole.pt", "entry.pt"})
    EXPECT_EQ(eval(folder_ / name), loss) << name;
  save({{"a", weights}, {"b", weights}}, folder_ / "two.pt");
  const Outcome two = run_program({"eval", "--checkpoint", (folder_ / "two.pt").string()});
  EXPECT_EQ(two.code, 1);
  EXPECT_NE(two.err.find("its tensors are a.conv1.weight, "), std::string::npos) << two.err;
}

TEST_F(ModelTest, TheCheckpointIsNotReplacedByOutputs) {
  const fs::path file = folder_ / "lenet.pt", link = folder_ / "link.pt";
  fs::copy(trained() / "lenet.pt", file);
  fs::create_hard_link(file, link);
  const Outcome outcome =
      run_program({"eval", "--checkpoint", file.string(), "--limit", "10", "--save-outputs", link.string()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("is the checkpoint: give another file"), std::string::npos) << outcome.err;
  EXPECT_TRUE(load(file)["conv1.weight"].exists());
}

TEST_F(ModelTest, NamesOfClassesAreFitForTerminals) {
  Value checkpoint = load(trained() / "checkpoint.pt");
  for (int i = 0; i < 10; ++i) checkpoint["info"]["pictures"]["classes"][i] = "\x1b[2J" + std::to_string(i);
  save(checkpoint, folder_ / "m.pt");
  const std::string file = (folder_ / "m.pt").string();
  const std::string picture = write_digit("p.png", 0, [](const data::Image& image) { return image; });
  const Outcome predicted = run_program({"predict", "--checkpoint", file, picture});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_EQ(predicted.out.find('\x1b'), std::string::npos);
  EXPECT_NE(predicted.out.find("\\x1b[2J"), std::string::npos) << predicted.out;
}

TEST_F(ModelTest, AnAnswerThatIsNoNumberIsAFailure) {
  StateDict weights = load(trained() / "lenet.pt").as_state_dict();
  weights["fc3.bias"] = weights["fc3.bias"] * NAN;
  save(weights, folder_ / "nan.pt");
  const std::string picture = write_digit("p.png", 0, [](const data::Image& image) { return image; });
  const Outcome outcome = run_program({"predict", "--checkpoint", (folder_ / "nan.pt").string(), picture});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("p.png': what the network says of it is not a number"), std::string::npos)
      << outcome.err;
}

TEST_F(ModelTest, PredictsPicturesOfAllKinds) {
  const std::string model = (trained() / "lenet.pt").string();
  int right = 0, all = 0;
  for (int64_t digit : {0, 1, 4, 7}) {
    const std::vector<std::string> pictures = {
        write_digit("plain.png", digit, [](const data::Image& image) { return image; }),
        write_digit("inverted.png", digit, [](const data::Image& image) { return data::invert(image); }),
        write_digit("large.png", digit,
                    [](const data::Image& image) { return data::resize(image, 280, 280); }),
        write_digit("colour.png", digit, [](const data::Image& image) {
          return data::to_rgb(data::invert(data::resize(image, 100, 140)));
        })};
    std::vector<std::string> arguments = {"predict", "--checkpoint", model, "--json", "--top", "3"};
    arguments.insert(arguments.end(), pictures.begin(), pictures.end());
    const Outcome outcome = run_program(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::istringstream stream(outcome.out);
    size_t lines = 0;
    for (std::string line; std::getline(stream, line); ++lines) {
      const Json json = Json::parse(line);
      EXPECT_EQ(json["image"], pictures.at(lines));
      EXPECT_EQ(json["top"].size(), 3u);
      EXPECT_EQ(json["class"], json["top"][0]["class"]);
      ++all;
      right += json["index"] == digit;
    }
    EXPECT_EQ(lines, pictures.size());
  }
  EXPECT_GE(right, all - 2);
}

TEST_F(ModelTest, PredictGoesOnAfterABadPicture) {
  const std::string good = write_digit("good.png", 3, [](const data::Image& image) { return image; });
  const fs::path bad = folder_.path() / "bad.png";
  std::ofstream(bad) << "no picture";
  const Outcome outcome = run_program(
      {"predict", "--checkpoint", (trained() / "lenet.safetensors").string(), bad.string(), good});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("bad.png"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("good.png: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" %)"), std::string::npos) << outcome.out;
}

TEST_F(ModelTest, PredictDrawsOnATerminal) {
  const std::string picture = write_digit("digit.png", 0, [](const data::Image& image) { return image; });
  RunOptions options;
  options.terminal_columns = 80;
  options.environment = {{"LC_ALL", "C.UTF-8"}, {"TERM", "xterm-256color"}, {"NO_COLOR", ""}};
  const Outcome drawn =
      run_program({"predict", "--checkpoint", (trained() / "lenet.pt").string(), picture}, options);
  EXPECT_NE(drawn.out.find("▀"), std::string::npos);
  EXPECT_NE(drawn.out.find("\033[38;5;"), std::string::npos);
  options.environment = {{"LC_ALL", "C"}, {"TERM", "xterm"}, {"NO_COLOR", "1"}};
  const Outcome ascii =
      run_program({"predict", "--checkpoint", (trained() / "lenet.pt").string(), picture}, options);
  EXPECT_EQ(ascii.out.find('\033'), std::string::npos);
  EXPECT_NE(ascii.out.find("#"), std::string::npos) << ascii.out;
}

TEST_F(ModelTest, DemoTellsTheStory) {
  const char* sanitized = std::getenv("TERN_SANITIZE");
  if (sanitized && *sanitized) GTEST_SKIP() << "too slow with sanitizers";
  const fs::path out = folder_.path() / "demo";
  const Outcome outcome = run_program({"demo", "--epochs", "1", "--out", out.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* text :
       {"Devices", "cpu", "epoch 1/1", "lenet.pt", "lenet.safetensors", "the same as before"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  EXPECT_EQ(run_program({"demo", "--out", trained().string()}).code, 1)
      << "a run that is no demo is not replaced";
}

}  // namespace
}  // namespace tern::cli
