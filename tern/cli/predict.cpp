// `tern predict`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/cli/command.h"
#include "tern/cli/model_file.h"
#include "tern/cli/output.h"
#include "tern/cli/picture.h"
#include "tern/cli/usage.h"
#include "tern/data/image.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPredictFooter =
    R"(Pictures are PNG or JPEG of any size, grey or colour. For a network of digits they are turned into light ink on a dark
ground (by looking at the border), and the ink is scaled and centred as in MNIST; on a terminal what the network
sees is drawn. A picture that cannot be read is reported, the others are still told; the exit code is then 1.

Examples:
  tern predict --checkpoint run/checkpoint.pt seven.png photo.jpg
  tern predict --checkpoint run/lenet.safetensors --top 3 --json *.png)";

struct PredictArguments {
  std::string checkpoint;
  std::vector<std::string> images;
  std::string kind;
  std::string model;
  int top = 1;
  bool json = false;
  CommonOptions common;
};

struct Answer {
  std::string name;
  int64_t index;
  double probability;
};

/// The classes with the highest probabilities, the highest first.
std::vector<Answer> best(const Tensor& output, const std::vector<std::string>& classes, int count) {
  const std::vector<double> p = output.softmax(/*dim=*/1).to_vector<double>();
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(count)));
  std::vector<Answer> answers;
  for (size_t i : order) answers.push_back({classes[i], static_cast<int64_t>(i), p[i]});
  return answers;
}

void print_json(const std::string& path, const std::vector<Answer>& answers) {
  Json top = Json::array();
  for (const Answer& each : answers)
    top.push_back({{"class", each.name}, {"index", each.index}, {"probability", each.probability}});
  fmt::print("{}", json_text({{"image", path},
                              {"class", answers[0].name},
                              {"index", answers[0].index},
                              {"probability", answers[0].probability},
                              {"top", top}}));
}

void print_text(const std::string& path, const std::vector<Answer>& answers, const Seen& seen,
                const train::Terminal& terminal) {
  std::string text;
  for (const Answer& each : answers)
    text +=
        fmt::format("{}{} ({:.1f} %)", text.empty() ? "" : "  ", shown(each.name), each.probability * 100);
  fmt::print("{}: {}\n", shown(path), text);
  if (!terminal.is_terminal || seen.image.width > terminal.columns) return;
  for (const std::string& line : draw(seen.image, terminal)) fmt::print("{}\n", line);
}

int run_predict(const PredictArguments& a) {
  const Device device = a.common.apply();
  TrainedModel model = load_model(a.checkpoint, {.model = a.model, .kind = a.kind, .device = device});
  if (!model.format_known)
    print_error(
        "tern",
        fmt::format("'{}' does not say what pictures it is for; taken to be for {} (--data tells otherwise)",
                    a.checkpoint, model.format.kind));
  const train::Terminal terminal = train::Terminal::of(1);
  NoGradGuard no_grad;
  int failures = 0;
  for (const std::string& path : a.images) {
    try {
      const Seen seen = prepare_picture(data::read_image(path, {.background = 255}), model.format);
      const Tensor output = model.net(seen.input.to(device));
      const auto answers = best(output, model.format.classes, a.top);
      TERN_CHECK(!std::isnan(answers[0].probability), ValueError,
                 "'{}': what the network says of it is not a number; 'tern verify' looks for such weights",
                 path);
      if (a.json)
        print_json(path, answers);
      else
        print_text(path, answers, seen, terminal);
    } catch (const Error& error) {
      if (a.json) fmt::print("{}", json_text({{"image", path}, {"error", error.what()}}));
      std::fflush(stdout);
      print_error("tern", error.what());
      ++failures;
    }
  }
  return failures ? 1 : 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("predict", "Tell what pictures show");
  auto a = std::make_shared<PredictArguments>();
  command->add_option("--checkpoint", a->checkpoint, "The file with the weights, as for 'tern eval'")
      ->type_name("FILE")
      ->required();
  command->add_option("images", a->images, "PNG or JPEG files")
      ->type_name("IMAGE")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--top", a->top, "Tell the K most probable classes")
      ->type_name("K")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--data", a->kind, "What the network was trained on, where the file does not say")
      ->type_name("KIND")
      ->check(CLI::IsMember({"digits", "mnist", "fashion", "cifar10", "images"}));
  command->add_option("--model", a->model, "lenet or mlp, to insist on one")->type_name("NAME");
  a->common.add_to(*command);
  command->add_flag("--json", a->json, "Print one JSON object a line for each picture");
  command->footer(kPredictFooter);
  command->callback([a, &action] { action = [a] { return run_predict(*a); }; });
}

}  // namespace tern::cli
