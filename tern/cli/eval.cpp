// `tern eval`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/cli/command.h"
#include "tern/cli/model_file.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/serialize.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"
#include "tern/train/progress.h"
#include "tern/train/trainer.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kEvalFooter =
    R"(FILE may be a checkpoint.pt of a run, a state dict that torch.save wrote, or a safetensors file; which network it
holds is found from the names of its tensors. '-' is standard input.

Examples:
  tern eval --checkpoint run/checkpoint.pt --data mnist:mnist
  tern eval --checkpoint run/lenet.safetensors --data digits --json)";

struct EvalArguments {
  std::string checkpoint;
  std::string data = "digits";
  std::string model;
  std::string split = "test";
  int64_t limit = 0;
  int64_t batch_size = 256;
  std::string save_outputs;
  bool json = false;
  CommonOptions common;
};

Json to_json(const EvalArguments& a, const TrainedModel& model, const train::Evaluation& result) {
  Json classes = Json::array(), table = Json::array();
  const train::Confusion& confusion = result.confusion;
  for (int64_t target = 0; target < confusion.classes(); ++target) {
    Json row = Json::array();
    for (int64_t answer = 0; answer < confusion.classes(); ++answer)
      row.push_back(confusion.at(target, answer));
    table.push_back(row);
    const double accuracy = confusion.accuracy(target);
    classes.push_back({{"name", model.format.classes[static_cast<size_t>(target)]},
                       {"samples", confusion.total(target)},
                       {"accuracy", std::isnan(accuracy) ? Json() : Json(accuracy)}});
  }
  return {{"checkpoint", a.checkpoint},
          {"model", model.name},
          {"data", a.data},
          {"split", a.split},
          {"samples", result.count},
          {"loss", result.loss},
          {"accuracy", result.accuracy},
          {"classes", classes},
          {"confusion", table}};
}

void print_table(const TrainedModel& model, const train::Confusion& confusion) {
  constexpr int64_t kMostColumns = 20;
  const train::Style style(train::Terminal::of(1));
  std::vector<std::string> names;
  for (const std::string& name : model.format.classes) names.push_back(shown(name));
  const int64_t count = confusion.classes();
  size_t width = 5;
  for (const std::string& name : names) width = std::max(width, name.size());
  const bool with_counts = count <= kMostColumns;
  fmt::print("\n{}{:<{}}  samples  accuracy{}", style.bold, "class", width, with_counts ? "   answers:" : "");
  if (with_counts)
    for (int64_t i = 0; i < count; ++i) fmt::print("{:>6.5}", names[static_cast<size_t>(i)]);
  fmt::print("{}\n", style.reset);
  for (int64_t target = 0; target < count; ++target) {
    const double accuracy = confusion.accuracy(target);
    fmt::print("{:<{}}  {:>7}  {:>8}", names[static_cast<size_t>(target)], width, confusion.total(target),
               std::isnan(accuracy) ? "-" : fmt::format("{:.2f} %", accuracy * 100));
    if (with_counts) {
      fmt::print("{:>11}", "");
      for (int64_t answer = 0; answer < count; ++answer) {
        const int64_t times = confusion.at(target, answer);
        const std::string& color = times == 0 ? style.dim : target == answer ? style.green : style.red;
        fmt::print("{}{:>6}{}", color, times == 0 ? "." : std::to_string(times), style.reset);
      }
    }
    fmt::print("\n");
  }
}

/// Classes that are called 0, 1, 2 and so on have no names.
bool are_numbers(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

/// For each class of the data the network's number: that of the class with its name or, where one of the two
/// has no names, its own. A network without names gets those of the data.
std::vector<int64_t> match_classes(const EvalArguments& a, const std::vector<std::string>& has,
                                   std::vector<std::string>& knows) {
  std::vector<int64_t> numbers;
  const std::string* unknown = nullptr;
  for (const std::string& name : has) {
    const auto found = std::find(knows.begin(), knows.end(), name);
    if (found == knows.end()) unknown = unknown ? unknown : &name;
    numbers.push_back(found - knows.begin());
  }
  if (!unknown) return numbers;
  TERN_CHECK(are_numbers(has) || are_numbers(knows), DataError,
             "'{}' has the class '{}', which '{}' does not know; it tells {} apart", a.data, *unknown,
             a.checkpoint, quoted_names(knows));
  TERN_CHECK(has.size() <= knows.size(), DataError, "'{}' tells {} classes apart, '{}' has {}", a.checkpoint,
             knows.size(), a.data, has.size());
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  if (are_numbers(knows)) std::copy(has.begin(), has.end(), knows.begin());
  return numbers;
}

/// A data set whose labels become the network's numbers.
class Relabelled : public data::Dataset {
 public:
  Relabelled(data::DatasetHandle dataset, const std::vector<int64_t>& numbers)
      : dataset_(std::move(dataset)), numbers_(tensor(numbers, {.device = kCPU})) {}

  int64_t size() const override { return dataset_->size(); }
  data::Example get(int64_t index) const override { return relabelled(dataset_->get(index)); }
  data::Batch get_batch(IntArrayRef indices, const data::RandomKey& key) const override {
    return relabelled(dataset_->get_batch(indices, key));
  }

 private:
  data::Example relabelled(data::Example example) const {
    example.target = numbers_[example.target];
    return example;
  }

  data::DatasetHandle dataset_;
  Tensor numbers_;
};

int run_eval(const EvalArguments& a) {
  std::error_code ignored;
  if (std::filesystem::equivalent(a.checkpoint, a.save_outputs, ignored))
    throw_usage("--save-outputs: '{}' is the checkpoint: give another file", a.save_outputs);
  const DataSource source = DataSource::parse(a.data);
  const Device device = a.common.apply();
  TrainedModel model = load_model(a.checkpoint, {.model = a.model, .kind = source.kind, .device = device});
  const bool train_part = a.split == "train";
  const DataSets sets = open_data(
      source,
      {.train = train_part, .test = !train_part, .limit = a.limit, .image_size = model.format.height});
  const PictureFormat &takes = model.format, &has = sets.format;
  TERN_CHECK(takes.channels == has.channels && takes.height == has.height && takes.width == has.width,
             DataError, "'{}' takes pictures of {}x{}x{}, '{}' has {}x{}x{} (channels, height, width)",
             a.checkpoint, takes.channels, takes.height, takes.width, a.data, has.channels, has.height,
             has.width);
  const std::vector<int64_t> numbers = match_classes(a, has.classes, model.format.classes);
  if (!sets.note.empty()) print_error("tern", sets.note);
  data::DataLoader loader(Relabelled(train_part ? *sets.train : *sets.test, numbers),
                          {.batch_size = a.batch_size, .device = device});
  train::ProgressBar bar;
  bar.start("testing", loader.dataset_size());
  auto on_batch = [&](const train::Position& at) {
    if (bar.is_due())
      bar.draw(at.averages.count(), fmt::format("acc {:.2f} %", at.averages.accuracy() * 100));
  };
  std::vector<Tensor> outputs, targets;
  train::EvaluateOptions options{.confusion = true, .on_batch = on_batch};
  if (!a.save_outputs.empty()) {
    options.on_output = [&](const Tensor& output, const Tensor& target) {
      outputs.push_back(output.to(kCPU));
      targets.push_back(target.to(kCPU));
    };
  }
  const train::Evaluation result = train::evaluate(model.net, loader, options);
  bar.clear();
  if (!a.save_outputs.empty())
    save(StateDict{{"outputs", cat(outputs)}, {"targets", cat(targets)}}, a.save_outputs);
  if (a.json) {
    fmt::print("{}", json_text(to_json(a, model, result)));
    return 0;
  }
  fmt::print("{} on {} samples of {} ({})\n", shown(a.checkpoint), train::with_commas(result.count),
             shown(a.data), a.split);
  fmt::print("loss {:.4f}  accuracy {:.2f} %\n", result.loss, result.accuracy * 100);
  print_table(model, result.confusion);
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("eval", "Test a trained network: loss, accuracy, accuracy of each class");
  auto a = std::make_shared<EvalArguments>();
  command->add_option("--checkpoint", a->checkpoint, "The file with the weights")
      ->type_name("FILE")
      ->required();
  command->add_option("--data", a->data, kDataHelp)->type_name("SET")->capture_default_str();
  command->add_option("--split", a->split, "The part to test on: test or train")
      ->type_name("PART")
      ->check(CLI::IsMember({"test", "train"}))
      ->capture_default_str();
  command->add_option("--model", a->model, "lenet or mlp, to insist on one")->type_name("NAME");
  command->add_option("--limit", a->limit, "Use only the first N samples")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  command->add_option("--batch-size", a->batch_size, "Samples at a time")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--save-outputs", a->save_outputs, "Write {'outputs', 'targets'}, which torch.load opens")
      ->type_name("FILE");
  a->common.add_to(*command);
  command->add_flag("--json", a->json, "Print one JSON object instead of text");
  command->footer(kEvalFooter);
  command->callback([a, &action] { action = [a] { return run_eval(*a); }; });
}

}  // namespace tern::cli
