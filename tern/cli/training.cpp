// Running and reporting.
#include "tern/cli/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/cli/output.h"
#include "tern/cli/training_devices.h"
#include "tern/io/serialize.h"
#include "tern/kernels/profiler.h"
#include "tern/ops/creation.h"
#include "tern/train/interrupt.h"
#include "tern/train/models.h"
#include "tern/train/progress.h"

namespace tern::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using train::with_commas;

/// Pause between two plain lines inside an epoch, where there is no progress bar.
constexpr auto kPlainInterval = std::chrono::seconds(10);

std::string title_of(const std::string& model) { return model == "lenet" ? "LeNet" : "MLP"; }

int64_t count_elements(const std::vector<Tensor>& tensors) {
  int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.numel();
  return count;
}

std::string percent(double fraction) { return fmt::format("{:.2f} %", fraction * 100); }

/// What the user sees of a run.
class Reporter {
 public:
  /// The first of several processes tells what happens, without colours: mpirun gives it a terminal of its
  /// own, wherever its output goes.
  Reporter(bool json, int rank, int processes)
      : json_(json), silent_(rank != 0), style_(processes > 1 ? train::Terminal() : train::Terminal::of(1)) {}

  bool json() const { return json_; }
  void line(const std::string& text) { write(text + "\n"); }
  void object(const Json& json) { write(json_text(json)); }
  void notice(const std::string& text) {
    if (silent_) return;
    bar_.clear();
    print_error("tern", text);
  }
  void batch(const train::Position& at, const char* phase, int64_t batch_size) {
    if (silent_) return;
    if (phase != phase_ || at.epoch != epoch_) {
      phase_ = phase;
      epoch_ = at.epoch;
      const std::optional<int64_t> total =
          at.batches ? std::optional(*at.batches * batch_size) : std::nullopt;
      bar_.start(fmt::format("{} {}/{}", phase, at.epoch, at.epochs), total, (at.batch - 1) * batch_size,
                 last_batch_);
    }
    if (bar_.is_due()) {
      std::string tail = fmt::format("loss {:.4f}", at.averages.loss());
      if (const double accuracy = at.averages.accuracy(); !std::isnan(accuracy))
        tail += fmt::format("  acc {}", percent(accuracy));
      bar_.draw(at.batch * batch_size, tail);
    }
    last_batch_ = Clock::now();
  }
  void step(const train::StepReport& report) {
    if (json_) return line(train::to_json(report));
    if (bar_.is_shown() || Clock::now() - last_line_ < kPlainInterval) return;
    last_line_ = Clock::now();
    line(fmt::format("  step {}  loss {:.4f}  acc {}  {} samples/s", report.step, report.loss,
                     percent(report.accuracy), with_commas(std::llround(report.samples_per_second))));
  }
  void epoch(const train::EpochReport& report, int64_t epochs) {
    last_line_ = Clock::now();
    work_begins();
    if (json_) return line(train::to_json(report));
    line(fmt::format("epoch {}/{}  loss {:.4f}  acc {}  {}test loss {:.4f}  test acc {}{}  {}", report.epoch,
                     epochs, report.loss, percent(report.accuracy), style_.bold, report.test_loss,
                     percent(report.test_accuracy), style_.reset, train::duration_text(report.seconds)));
  }
  /// That of an epoch; a test's begins with the last batch before it.
  void work_begins() { last_batch_ = Clock::now(); }
  void clear() { bar_.clear(); }

 private:
  /// A run goes on when its lines cannot be written; main() tells that at the end.
  void write(const std::string& text) {
    if (silent_) return;
    bar_.clear();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  bool json_, silent_;
  train::Style style_;
  train::ProgressBar bar_;
  const char* phase_ = nullptr;
  int64_t epoch_ = 0;
  Clock::time_point last_batch_ = Clock::now();
  Clock::time_point last_line_ = Clock::now();
};

/// The devices of all processes.
std::vector<std::string> all_devices(const TrainingOptions& options) {
  std::vector<std::string> devices;
  for (const Device& device : options.devices) devices.push_back(device.str());
  return options.group ? options.group->all_gather(devices.at(0)) : devices;
}

/// How the gradients of processes that compute on GPUs travel; empty where none do.
std::string gradient_route(const TrainingOptions& options) {
  if (!options.group || options.devices[0].is_cpu()) return "";
  options.group->broadcast(
      zeros({1}, {.device = options.devices[0]}));  // the first that travels opens the way
  return options.group->gpu_route();
}

void report_start(Reporter& reporter, const TrainSettings& settings, const TrainingOptions& options,
                  const DataSets& sets, int64_t parameters, int64_t steps_per_epoch) {
  const int64_t train_size = (*sets.train)->size(), test_size = (*sets.test)->size();
  const std::vector<std::string> devices = all_devices(options);
  const int processes = options.group ? options.group->size() : 1;
  const std::string route = gradient_route(options);
  if (reporter.json()) {
    reporter.object({{"type", "start"},
                     {"model", settings.model},
                     {"parameters", parameters},
                     {"device", options.devices[0].str()},
                     {"devices", devices},
                     {"processes", processes},
                     {"gradients_by", route},
                     {"threads", num_threads()},
                     {"data", settings.data},
                     {"train_samples", train_size},
                     {"test_samples", test_size},
                     {"epochs", settings.epochs},
                     {"steps_per_epoch", steps_per_epoch},
                     {"batch_size", settings.batch_size},
                     {"optimizer", settings.optimizer},
                     {"lr", *settings.lr},
                     {"schedule", settings.schedule},
                     {"precision", settings.precision},
                     {"seed", settings.seed},
                     {"out", options.out.string()},
                     {"resume", options.resume}});
    return;
  }
  const int threads = num_threads();
  reporter.line(fmt::format(
      "{} with {} parameters on {}{}{}", title_of(settings.model), with_commas(parameters),
      options.devices[0].is_cpu() ? "cpu" : fmt::format("{}", fmt::join(devices, ", ")),
      options.devices[0].is_cpu() ? fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s") : "",
      processes == 1 ? "" : fmt::format(", in {} processes", processes)));
  if (!route.empty()) reporter.line("gradients by " + route);
  reporter.line(fmt::format("{}: {} samples for training, {} for testing", settings.data,
                            with_commas(train_size), with_commas(test_size)));
  reporter.line(fmt::format(
      "{}, learning rate {}, schedule {}{}; batches of {}, {} step{} an epoch", settings.optimizer,
      *settings.lr, settings.schedule, settings.precision == "fp32" ? "" : ", " + settings.precision,
      settings.batch_size, with_commas(steps_per_epoch), steps_per_epoch == 1 ? "" : "s"));
}

/// "'cat' is missing, 'ant' is new".
std::string class_changes(const std::vector<std::string>& now, const std::vector<std::string>& before) {
  std::string text;
  auto add = [&](const std::vector<std::string>& names, const std::vector<std::string>& others,
                 const char* what) {
    std::vector<std::string> only;
    for (const std::string& name : names)
      if (std::find(others.begin(), others.end(), name) == others.end()) only.push_back(name);
    if (only.empty()) return;
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", quoted_names(only),
                        only.size() == 1 ? "is" : "are", what);
  };
  add(before, now, "missing");
  add(now, before, "new");
  return text.empty() ? "their order is another" : text;
}

/// What the outputs of the network stand for stays the same when a run goes on. (fit() refuses another kind
/// of data.)
void check_classes(const PictureFormat& now, const TrainSettings& settings, const TrainingOptions& options) {
  if (!options.resumed || options.resumed->kind != now.kind) return;
  const std::vector<std::string>& before = options.resumed->classes;
  TERN_CHECK(now.classes == before, CheckpointError,
             "resuming '{}': '{}' has other classes than the run began with: {}. Resume with the same ones, "
             "or start anew in another folder",
             (options.out / train::kCheckpointName).string(), settings.data,
             class_changes(now.classes, before));
}

void save_model(Training& training, const TrainSettings& settings) {
  nn::Module& net = training.net.get();
  net.zero_grad();
  net.cpu();
  const StateDict dict = net.state_dict();
  tern::save(dict, training.weights.pt);
  save_safetensors(dict, training.weights.safetensors, safetensors_metadata(settings.model, training.format));
}

void report_profile(Reporter& reporter, const Profiler& profiler, const std::string& path) {
  profiler.export_chrome_trace(path);
  if (!reporter.json()) {
    reporter.line(profiler.table() +
                  fmt::format("wrote {}: open it in ui.perfetto.dev or chrome://tracing", path));
    return;
  }
  Json rows = Json::array();
  for (const ProfileRow& row : profiler.averages())
    rows.push_back({{"operator", row.name},
                    {"calls", row.calls},
                    {"seconds", row.seconds},
                    {"bytes", row.bytes},
                    {"flops", row.flops}});
  reporter.object(
      {{"type", "profile"}, {"trace", path}, {"dropped", profiler.dropped()}, {"operators", rows}});
}

void report_end(Reporter& reporter, const TrainSettings& settings, const TrainingOptions& options,
                const Training& training) {
  const train::FitResult& result = training.result;
  const std::string checkpoint = (options.out / train::kCheckpointName).string();
  if (reporter.json()) {
    Json json{{"type", result.stopped ? "stopped" : "end"}, {"epoch", result.epoch}, {"step", result.step}};
    if (!result.history.empty()) json["test_accuracy"] = result.history.back().test_accuracy;
    json["checkpoint"] = checkpoint;
    if (!result.best.empty()) json["best_checkpoint"] = result.best.string();
    if (!result.stopped) {
      json["model_pt"] = training.weights.pt.string();
      json["model_safetensors"] = training.weights.safetensors.string();
    }
    reporter.object(json);
  } else if (result.stopped) {
    reporter.line(fmt::format("stopped in epoch {} after step {}; go on with: tern train --resume --out {}",
                              std::min(result.epoch + 1, settings.epochs), result.step,
                              shell_word(options.out.string())));
  } else {
    reporter.line(fmt::format("wrote {}, {} and {}", training.weights.pt.string(),
                              training.weights.safetensors.string(), checkpoint));
    if (!result.best.empty())
      reporter.line(fmt::format("the best checkpoint is {}, also {}", result.best.string(),
                                (options.out / train::kBestName).string()));
  }
}

}  // namespace

std::map<std::string, std::string> safetensors_metadata(const std::string& model,
                                                        const PictureFormat& format) {
  const Json pictures{{"kind", format.kind},      {"channels", format.channels}, {"height", format.height},
                      {"width", format.width},    {"mean", format.mean},         {"std", format.std},
                      {"classes", format.classes}};
  return {{"format", "pt"}, {"tern.model", model}, {"tern.pictures", pictures.dump()}};
}

Training run_training(const TrainSettings& settings, TrainingOptions options) {
  std::signal(SIGPIPE, SIG_IGN);  // a run goes on when nobody reads its lines
  const int rank = options.group ? options.group->rank() : 0,
            processes = options.group ? options.group->size() : 1;
  Reporter reporter(options.json, rank, processes);
  const DataSource source = DataSource::parse(settings.data);
  const DataSets sets =
      open_data(source, {.limit = settings.limit, .image_size = settings.image_size, .seed = settings.seed});
  const PictureFormat& format = sets.format;
  check_classes(format, settings, options);
  if (!sets.note.empty()) reporter.notice(sets.note);
  std::optional<RunFolder> folder;
  if (rank == 0) options.out = folder.emplace(options.out).path();
  if (processes > 1) options.out = options.group->broadcast(options.out.string());

  manual_seed(settings.seed);
  Training training{.net = train::make_model(settings.model, {format.channels, format.height, format.width,
                                                              static_cast<int64_t>(format.classes.size())}),
                    .format = format,
                    .result = {},
                    .weights = WeightFiles(options.out, settings.model)};
  if (rank != 0) manual_seed(settings.seed + static_cast<uint64_t>(rank));
  PlacedNetwork placed(training.net, options.devices);
  const Device device = options.devices[0];
  const int64_t workers = options.workers >= 0      ? options.workers
                          : source.kind == "images" ? num_threads()
                                                    : 0;
  data::DataLoader train_loader(*sets.train, {.batch_size = settings.batch_size,
                                              .shuffle = true,
                                              .num_workers = workers,
                                              .part = {rank, processes},
                                              .seed = settings.seed,
                                              .device = device});
  const int64_t test_batch = std::max<int64_t>(settings.batch_size, 256);
  data::DataLoader test_loader(*sets.test, {.batch_size = test_batch,
                                            .num_workers = workers,
                                            .part = {rank, processes},
                                            .seed = settings.seed,
                                            .device = device});

  const std::vector<Tensor> params = training.net->parameters();
  const auto optimizer = settings.make_optimizer(params);
  const Schedule schedule = Schedule::parse(settings.schedule);
  const auto scheduler = schedule.make(*optimizer, *settings.lr, settings.epochs * train_loader.size());
  report_start(reporter, settings, options, sets, count_elements(params), train_loader.size());

  optim::GradScaler scaler;
  train::FitOptions fit;
  fit.autocast = settings.autocast();
  if (settings.precision == "fp16") fit.grad_scaler = &scaler;
  fit.epochs = settings.epochs;
  fit.scheduler = scheduler.get();
  fit.schedule_unit = schedule.spans_run() ? train::ScheduleUnit::Step : train::ScheduleUnit::Epoch;
  fit.group = options.group;
  fit.out_dir = options.out;
  fit.resume = options.resume;
  fit.overwrite = options.overwrite;
  if (options.overwrite && rank == 0) fit.earlier_files = weights_of_run_in(options.out);
  fit.settings = settings.fixed();
  fit.info = settings.free(format);
  fit.info.set("log_every", options.log_every);
  fit.info.set("save_every", options.save_every);
  fit.info.set("keep", options.keep);
  fit.info.set("micro_batches", options.micro_batches);
  fit.info.set("capture", options.capture);
  fit.info.set("devices", options.device_choice);
  fit.info.set("demo", options.is_demo);
  fit.log_every = options.log_every;
  fit.save_every = options.save_every;
  fit.keep = options.keep;
  fit.micro_batches = options.micro_batches;
  fit.capture = options.capture;
  fit.on_batch = [&](const train::Position& at) { reporter.batch(at, "epoch", settings.batch_size); };
  fit.on_test_batch = [&](const train::Position& at) { reporter.batch(at, "test", test_batch); };
  fit.on_step = [&](const train::StepReport& report) { reporter.step(report); };
  fit.on_epoch = [&](const train::EpochReport& report) { reporter.epoch(report, settings.epochs); };
  fit.on_notice = [&](const std::string& text) { reporter.notice(text); };
  Profiler profiler;
  if (rank != 0) options.profile.clear();
  if (!options.profile.empty()) {
    profiler.export_chrome_trace(options.profile);  // a path that can not be written is an error now
    profiler.start();
  }
  {
    train::Interrupt interrupt;
    fit.stop = [&] { return interrupt.requested(); };
    reporter.work_begins();
    training.result = train::fit(placed.for_training(), *optimizer, {train_loader, &test_loader}, fit);
    reporter.clear();
    profiler.stop();
    if (training.result.stopped)
      training.signal = interrupt.requested() ? interrupt.signal() : SIGTERM;  // of another process
    else if (rank == 0)
      save_model(training, settings);
  }
  if (!options.profile.empty()) report_profile(reporter, profiler, options.profile);
  report_end(reporter, settings, options, training);
  return training;
}

}  // namespace tern::cli
