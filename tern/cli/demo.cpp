// `tern demo`: the whole story on generated digits, from training to the loaded file.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/cli/command.h"
#include "tern/cli/model_file.h"
#include "tern/cli/picture.h"
#include "tern/cli/training.h"
#include "tern/cli/usage.h"
#include "tern/data/digits.h"
#include "tern/data/resize.h"
#include "tern/data/transforms.h"
#include "tern/device/registry.h"
#include "tern/train/checkpoint.h"

namespace tern::cli {
namespace {

constexpr const char* kDemoFooter =
    R"(Trains LeNet on 20,000 generated digits, tests it on 4,000 others, writes lenet.pt and lenet.safetensors, loads
both again, and draws a few digits with the answers.

Examples:
  tern demo
  tern demo --epochs 1 --out /tmp/demo)";

struct DemoArguments {
  std::string out = "tern-demo";
  int64_t epochs = 3;
  CommonOptions common;
};

void heading(const std::string& text) {
  const train::Style style(train::Terminal::of(1));
  fmt::print("{}{}{}{}\n", style.bold, style.cyan, text, style.reset);
}

void show_devices() {
  heading("Devices");
  for (const Device& device : available_devices()) {
    const DeviceProperties p = backend_of(device.type).properties(device.index);
    fmt::print("  {}: {}, {} {}{}\n", device.str(), p.name, p.processors,
               device.is_cpu() ? "cores" : "multiprocessors", p.simulated ? " (simulated)" : "");
  }
}

/// Tests the network of a file on the digits that it has not seen.
double test_file(const std::string& path, Device device) {
  TrainedModel model = load_model(path, {.device = device});
  const DataSets sets = open_data(DataSource::parse("digits"), {.train = false});
  data::DataLoader loader(*sets.test, {.batch_size = 256, .device = device});
  return train::evaluate(model.net, loader).accuracy;
}

constexpr int kThumbnail = 14;

/// The middle of a picture, where the ink is, made so small that several fit in a row.
data::Image thumbnail(const Tensor& picture) {
  const Tensor middle = picture.narrow(1, 4, 20).narrow(2, 4, 20).contiguous();
  return data::resize(data::tensor_to_image(middle), kThumbnail, kThumbnail, data::Interpolation::kArea);
}

/// Some digits with the answers, a few of them wrong ones if there are any.
void show_answers(const std::string& path, Device device) {
  constexpr int64_t kRow = 5, kRows = 2, kSearched = 500, kGap = 2;
  const train::Terminal terminal = train::Terminal::of(1);
  const train::Style style(terminal);
  TrainedModel model = load_model(path, {.device = device});
  const data::Digits digits({.train = false, .size = kSearched, .image = {.normalize = true}});
  std::vector<int64_t> all(static_cast<size_t>(kSearched));
  for (int64_t i = 0; i < kSearched; ++i) all[static_cast<size_t>(i)] = i;
  NoGradGuard no_grad;
  const data::Batch batch = digits.get_batch(all);
  const Tensor p = model.net(batch.data.to(device)).softmax(/*dim=*/1).to(kCPU);
  const auto best = p.max(/*dim=*/1);
  const auto answers = best.second.to_vector<int64_t>(), targets = batch.target.to_vector<int64_t>();
  const auto probabilities = best.first.to_vector<double>();
  // One of each digit, but a wrong answer rather than a right one for the first two that have some.
  std::vector<int64_t> shown;
  int wrong = 0;
  for (int64_t digit = 0; digit < kRow * kRows; ++digit) {
    auto at = [&](int64_t i) { return static_cast<size_t>(i); };
    int64_t chosen = digit;
    for (int64_t i = digit; i < kSearched && wrong < 2; i += 10) {
      if (answers[at(i)] == targets[at(i)]) continue;
      chosen = i;
      ++wrong;
      break;
    }
    shown.push_back(chosen);
  }
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<std::vector<std::string>> blocks;
    std::string captions;
    for (int64_t i = 0; i < kRow; ++i) {
      const auto index = static_cast<size_t>(shown[static_cast<size_t>(row * kRow + i)]);
      blocks.push_back(draw(thumbnail(digits.images()[static_cast<int64_t>(index)]), terminal));
      const bool right = answers[index] == targets[index];
      const std::string text = right
                                   ? fmt::format("{} ({:.1f} %)", answers[index], probabilities[index] * 100)
                                   : fmt::format("{}, not {}", answers[index], targets[index]);
      captions += fmt::format("{}{:<{}}{}", right ? style.green : style.red, text, 14 + kGap, style.reset);
    }
    fmt::print("{}{}\n", side_by_side(blocks, std::vector<int>(kRow, 14), kGap), captions);
    if (row + 1 < kRows) fmt::print("\n");
  }
}

/// Throws CheckpointError when the folder holds files that the demo would replace and that are not of a demo.
void check_replaceable(const std::filesystem::path& folder, const std::string& model) {
  const std::filesystem::path path = file_in_the_way(folder, model);
  if (path.empty()) return;
  bool is_demo = false;
  if (path.filename() == train::kCheckpointName) {
    const train::Checkpoint before = train::Checkpoint::load(path);
    const Value* mark = before.info.find("demo");
    is_demo = mark && mark->as_bool();
  }
  TERN_CHECK(is_demo, CheckpointError, "'{}' is not from a demo: choose another folder with --out",
             path.string());
}

int run_demo(const DemoArguments& a) {
  const auto start = std::chrono::steady_clock::now();
  TrainSettings settings;
  settings.epochs = a.epochs;
  settings.complete();
  TrainingOptions options;
  options.out = a.out;
  check_replaceable(options.out, settings.model);
  options.overwrite = options.is_demo = true;
  options.devices = {a.common.apply()};
  options.device_choice = options.devices[0].str();
  show_devices();
  heading("Training");
  std::fflush(stdout);
  const Training training = run_training(settings, options);
  if (training.result.stopped) return 128 + training.signal;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  heading("Loading again");
  const double trained = training.result.history.back().test_accuracy;
  for (const auto& path : {training.weights.pt, training.weights.safetensors}) {
    const double loaded = test_file(path.string(), options.devices[0]);
    TERN_CHECK(loaded == trained, CheckpointError,
               "'{}' gives a test accuracy of {}, the trained network had {}", path.string(), loaded,
               trained);
    fmt::print("  {}: {} bytes, test accuracy {:.2f} %, the same as before\n", path.string(),
               train::with_commas(static_cast<long long>(std::filesystem::file_size(path))), loaded * 100);
  }
  heading("Digits that it has never seen, and what it takes them for");
  show_answers(training.weights.pt.string(), options.devices[0]);
  fmt::print("\nTrained in {:.1f} s. Next: tern predict --checkpoint {} picture.png\n", seconds,
             training.weights.pt.string());
  return 0;
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("demo", "Train on generated digits and show the whole story");
  auto a = std::make_shared<DemoArguments>();
  command->add_option("--out", a->out, "The folder to write to; an earlier demo in it is replaced")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--epochs", a->epochs, "Passes over the data")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  a->common.add_to(*command);
  command->footer(kDemoFooter);
  command->callback([a, &action] { action = [a] { return run_demo(*a); }; });
}

}  // namespace tern::cli
