// `tern train`.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "tern/base/check.h"
#include "tern/base/error.h"
#include "tern/cli/command.h"
#include "tern/cli/model_file.h"
#include "tern/cli/output.h"
#include "tern/cli/training.h"
#include "tern/cli/training_devices.h"
#include "tern/cli/usage.h"
#include "tern/train/processes.h"

namespace tern::cli {
namespace {

constexpr const char* kTrainFooter = R"(Files in DIR:
  checkpoint.pt          everything needed to go on; replaced every epoch, and when stopped
  checkpoint-STEP.pt     with --keep: the last checkpoints
  best.pt                with --keep: the checkpoint with the lowest test loss
  metrics.jsonl          one JSON object for every 50 steps and for every epoch
  events.out.tfevents.*  the same for TensorBoard (tensorboard --logdir DIR)
  MODEL.pt               the weights, for torch.load(..., weights_only=True)
  MODEL.safetensors      the weights, as safetensors

Ctrl-C stops after the step at hand and leaves a checkpoint (exit code 130); a second one stops at once.
With --resume the run goes on where it was, and ends with the same numbers as if it had never stopped. What is
left out is taken from the checkpoint.

Started by tern launch, mpirun or srun, on one machine or several, the processes share every batch: --batch-size is
that of all of them, and the numbers are those of one process up to rounding. With --device cuda each has the GPU of its
number. The first writes the files; a run can go on with another number of processes.

Examples:
  tern train
  tern train --model lenet --data mnist:mnist --epochs 5 --out run
  tern train --data images:pets --image-size 64 --optimizer sgd --lr 0.05 --schedule cosine --out pets-run
  tern train --devices all --batch-size 256
  tern launch -n 4 tern train --batch-size 256
  tern train --resume --out run)";

struct TrainArguments {
  TrainSettings settings;
  TrainingOptions training;
  CommonOptions common;
  std::string out;
  std::string devices;
};

/// A number that may be left out.
CLI::Option* add_optional(CLI::App& command, const std::string& name, std::optional<double>& value,
                          const std::string& help) {
  return command
      .add_option_function<double>(
          name, [&value](const double& given) { value = given; }, help)
      ->type_name("X");
}

void add_options(CLI::App& command, TrainArguments& a) {
  TrainSettings& s = a.settings;
  command.add_option("--model", s.model, "lenet or mlp")->type_name("NAME")->capture_default_str();
  command.add_option("--data", s.data, kDataHelp)->type_name("SET")->capture_default_str();
  command.add_option("--epochs", s.epochs, "Passes over the data")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command.add_option("--batch-size", s.batch_size, "Samples in a step")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--optimizer", s.optimizer, optimizer_choices())
      ->type_name("NAME")
      ->capture_default_str();
  add_optional(command, "--lr", s.lr,
               fmt::format("Learning rate, of onecycle the highest [{}]", default_learning_rates()))
      ->check(number_from(0, 1e6));
  add_optional(command, "--momentum", s.momentum, "For sgd [0.9] and rmsprop [0]")->check(number_from(0, 1));
  add_optional(command, "--weight-decay", s.weight_decay, "[0; 0.01 for adamw]")->check(number_from(0, 1e6));
  command
      .add_option("--schedule", s.schedule,
                  "none, step:EPOCHS[:FACTOR], exponential:FACTOR, restarts:EPOCHS[:FACTOR] (cosines that "
                  "begin anew, "
                  "each FACTOR times as long), polynomial[:POWER], cosine[:LEAST] or onecycle")
      ->type_name("S")
      ->capture_default_str();
  command
      .add_option(
          "--precision", s.precision,
          "fp32, or bf16 or fp16 for products and convolutions of 16 bits, fp16 with a gradient scaler: made "
          "for GPUs; most CPUs are slower with it")
      ->type_name("P")
      ->capture_default_str();
  command.add_option("--seed", s.seed, "Of the first weights and the order of the samples")
      ->type_name("N")
      ->check(whole_number())
      ->capture_default_str();
  command.add_option("--limit", s.limit, "Use only the first N samples of each part")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  command.add_option("--image-size", s.image_size, "Side to which images:DIR are scaled")
      ->type_name("N")
      ->check(CLI::Range(12, 1024))
      ->capture_default_str();
  command.add_option("--out", a.out, "The folder to write to [run, or run-2, run-3, ... when that is taken]")
      ->type_name("DIR");
  command.add_flag("--resume", a.training.resume, "Go on with the run in the folder given by --out");
  command.add_flag("--overwrite", a.training.overwrite,
                   "Start anew even if the folder holds a run, whose files are removed");
  a.common.add_to(command);
  command
      .add_option("--devices", a.devices,
                  "Split every batch over several GPUs: all, or cuda:0,cuda:1 and so on")
      ->type_name("LIST");
  command
      .add_option("--workers", a.training.workers,
                  "Threads that prepare batches [0, for images:DIR one for each core]")
      ->type_name("N")
      ->check(CLI::Range(0, 256));
  command.add_option("--log-every", a.training.log_every, "Steps between two lines of metrics.jsonl")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  command.add_option("--save-every", a.training.save_every, "Write checkpoints also every N steps")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  command
      .add_option("--keep", a.training.keep,
                  "Keep the last N checkpoints as checkpoint-STEP.pt, and the one with the lowest test loss")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option(
          "--micro-batches", a.training.micro_batches,
          "Compute each batch in N parts, whose gradients add up: for batches that memory does not hold")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command.add_flag(
      "--capture", a.training.capture,
      "Record the step of full batches and replay it: the same numbers without the cost of operators");
  command
      .add_option("--profile", a.training.profile,
                  "Record every kernel, copy and wait, print the operators that took most time, and write a "
                  "trace for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  command.add_flag("--json", a.training.json, "Print one JSON object a line instead of text");
  command.footer(kTrainFooter);
}

/// The device of one of several processes: as --device says, or for "cuda" the GPU of its number.
Device device_of_process(const CLI::App& command, const TrainArguments& a) {
  if (command.count("--devices"))
    throw_usage("--devices: each of the {} processes has one device", a.training.group->size());
  if (a.training.capture) throw_usage("--capture: a step of several processes cannot be recorded");
  const Device given = a.common.apply();
  return a.common.device == "cuda" ? a.training.group->device() : given;
}

/// What is in a folder is not lost unasked.
void check_free(const TrainingOptions& training, const std::string& model) {
  const bool is_first = !training.group || training.group->rank() == 0;
  if (training.resume || training.overwrite || training.out.empty() || !is_first) return;
  const std::filesystem::path path = file_in_the_way(training.out, model);
  const bool is_run = path.filename() == train::kCheckpointName;
  TERN_CHECK(path.empty(), CheckpointError,
             "'{}' is there already: {}replace it by --overwrite, or choose another folder with --out",
             path.string(), is_run ? "go on with that run by --resume, " : "");
}

/// Takes the devices that a run was on; false when they are not here.
bool take_devices(const std::string& choice, TrainingOptions& training) {
  try {
    if (choice != "cpu") training.devices = parse_training_devices(choice);
    training.device_choice = choice;
    return true;
  } catch (const DeviceError&) {
    print_error("tern",
                fmt::format("the run was on {}, which this machine does not have: it goes on on {}; --device "
                            "and --devices choose others",
                            choice, training.device_choice));
    return false;
  }
}

/// A run keeps its schedule; one over the whole run would have been another one, had the run been longer.
void check_schedule(const TrainSettings& settings, const ValueDict& saved, const std::string& path) {
  Schedule::parse(settings.schedule);
  const Value *epochs = saved.find("epochs"), *schedule = saved.find("schedule");
  if (schedule && schedule->as_str() != settings.schedule)
    throw CheckpointError(
        fmt::format("resuming '{}': the run has the schedule {}, and --schedule {} is asked for: leave "
                    "--schedule out to go on "
                    "with the run's, or start anew in another folder",
                    path, schedule->as_str(), settings.schedule));
  if (!epochs || !schedule || epochs->as_int() == settings.epochs) return;
  throw CheckpointError(fmt::format(
      "resuming '{}': its schedule, {}, is that of a run of {} epoch{}, so that --epochs cannot become {}: "
      "train longer in another folder, or there with --schedule none, step, exponential or restarts, whose "
      "runs can be given more epochs later",
      path, settings.schedule, epochs->as_int(), epochs->as_int() == 1 ? "" : "s", settings.epochs));
}

/// Takes what was not given from the checkpoint. What was given stays, so that fit() sees where it differs.
void fill_from_checkpoint(const CLI::App& command, TrainArguments& a) {
  const auto path = std::filesystem::path(a.out) / train::kCheckpointName;
  const bool is_first = !a.training.group || a.training.group->rank() == 0;
  std::error_code failed;
  if (is_first && !std::filesystem::exists(path, failed) && !failed)
    throw CheckpointError(fmt::format("nothing to resume: there is no '{}'", path.string()));
  if (std::filesystem::equivalent(path, a.training.profile, failed))
    throw_usage("--profile: '{}' is the checkpoint of the run", a.training.profile);
  const train::Checkpoint saved = train::load_checkpoint(path, a.training.group);
  auto find = [&](const char* option, const ValueDict& dict, const char* key) -> const Value* {
    const Value* value = command.count(option) ? nullptr : dict.find(key);
    return value && !value->is_none() ? value : nullptr;
  };
  TrainSettings& s = a.settings;
  std::string was_on;
  with_context(fmt::format("'{}': settings", path.string()), [&] {
    if (auto* v = find("--model", saved.settings, "model")) s.model = v->as_str();
    if (auto* v = find("--data", saved.info, "data")) s.data = v->as_str();
    if (auto* v = find("--epochs", saved.info, "epochs")) s.epochs = v->as_int();
    if (auto* v = find("--batch-size", saved.settings, "batch_size")) s.batch_size = v->as_int();
    if (auto* v = find("--optimizer", saved.settings, "optimizer")) s.optimizer = v->as_str();
    if (auto* v = find("--lr", saved.settings, "lr")) s.lr = v->as_float();
    if (auto* v = find("--momentum", saved.settings, "momentum")) s.momentum = v->as_float();
    if (auto* v = find("--weight-decay", saved.settings, "weight_decay")) s.weight_decay = v->as_float();
    if (auto* v = find("--schedule", saved.settings, "schedule")) s.schedule = v->as_str();
    if (auto* v = find("--seed", saved.settings, "seed")) s.seed = static_cast<uint64_t>(v->as_int());
    if (auto* v = find("--precision", saved.settings, "precision")) s.precision = v->as_str();
    if (auto* v = find("--limit", saved.settings, "limit")) s.limit = v->as_int();
    if (auto* v = find("--log-every", saved.info, "log_every")) a.training.log_every = v->as_int();
    if (auto* v = find("--save-every", saved.info, "save_every")) a.training.save_every = v->as_int();
    if (auto* v = find("--keep", saved.info, "keep")) a.training.keep = v->as_int();
    if (auto* v = find("--micro-batches", saved.info, "micro_batches"))
      a.training.micro_batches = v->as_int();
    if (auto* v = find("--capture", saved.info, "capture")) a.training.capture = v->as_bool();
    if (auto* v = find("--image-size", saved.settings, "image_size")) s.image_size = v->as_int();
    if (auto* v = find("--devices", saved.info, "devices")) was_on = v->as_str();
    if (auto* v = saved.info.find("pictures")) a.training.resumed = PictureFormat::from_value(*v);
  });
  check_schedule(s, saved.settings, path.string());
  const bool chosen = a.training.group || command.count("--device") || command.count("--devices");
  if (is_first && (chosen || was_on.empty() || take_devices(was_on, a.training)))
    tell_absent_devices(path.string(), a.training.devices[0]);
  // A momentum that was saved means nothing to another optimizer, which fit() will refuse.
  if (!optimizer_has_momentum(s.optimizer) && !command.count("--momentum")) s.momentum.reset();
}

int run_train(const CLI::App& command, TrainArguments& a) {
  if (a.training.resume && a.training.overwrite) throw_usage("--resume and --overwrite exclude each other");
  if (a.training.resume && a.out.empty()) throw_usage("--resume needs the folder of the run: --out DIR");
  if (command.count("--out") && a.out.empty()) throw_usage("--out: the folder's name is empty");
  if (command.count("--device") && command.count("--devices"))
    throw_usage("--device and --devices exclude each other");
  if (dist::ProcessGroup group = dist::ProcessGroup::start(); group.size() > 1) a.training.group = group;
  a.training.devices = {a.training.group ? device_of_process(command, a) : a.common.apply()};
  a.training.device_choice = a.training.devices[0].str();
  if (command.count("--devices")) {
    a.training.devices = parse_training_devices(a.devices);
    a.training.device_choice = a.devices;
    if (a.training.devices[0].is_cpu())
      print_error("tern", "--devices all: no GPU was found, so that the CPU trains; 'tern doctor' says why");
  }
  if (a.training.resume) fill_from_checkpoint(command, a);
  a.settings.complete();
  a.training.out = a.out;
  check_free(a.training, a.settings.model);
  const Training training = run_training(a.settings, a.training);
  return training.result.stopped ? 128 + training.signal : 0;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("train", "Train a network and write checkpoints, metrics and weights");
  auto arguments = std::make_shared<TrainArguments>();
  add_options(*command, *arguments);
  command->callback([command, arguments, &action] {
    action = [command, arguments] { return run_train(*command, *arguments); };
  });
}

}  // namespace tern::cli
