// The training loop and the test loop.
#include "tern/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/device/capture.h"
#include "tern/nn/functional.h"
#include "tern/ops/autocast.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/optim/clip_grad.h"
#include "tern/optim/reduce_lr_on_plateau.h"
#include "tern/train/processes.h"
#include "tern/train/run_checkpoints.h"

namespace tern::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

LossFunction loss_or_default(const LossFunction& loss) {
  if (loss) return loss;
  return [](const Tensor& output, const Tensor& target) {
    TERN_CHECK(
        target.defined(), ValueError,
        "a batch is [input, target]; this one has 1 tensor: a loss of your own may do without a target");
    return nn::cross_entropy(output, target);
  };
}

/// Where the module takes its input: the device of its first parameter or buffer, if it has one.
std::optional<Device> device_of(const nn::Module& module) {
  for (const std::vector<Tensor>& tensors : {module.parameters(), module.buffers()})
    if (!tensors.empty()) return tensors.front().device();
  return std::nullopt;
}

Tensor moved(const Tensor& tensor, std::optional<Device> device) {
  return device && tensor.defined() ? tensor.to(*device, {.non_blocking = true}) : tensor;
}

std::string count_text(const data::DataLoader& loader) {
  const std::optional<int64_t> batches = loader.known_size();
  return batches ? std::to_string(*batches) : "?";
}

/// How many samples count: none of a part of a batch that has none of its own.
int64_t own_samples(const Tensor& input, double weight) {
  if (weight == 0) return 0;
  return input.dim() > 0 ? input.size(0) : 1;
}

/// An AutocastGuard where a dtype is given, for the device that the network is on.
class MaybeAutocast {
 public:
  MaybeAutocast(std::optional<DType> dtype, std::optional<Device> device, const Tensor& input) {
    if (dtype)
      guard_.emplace(AutocastOptions{.device_type = device.value_or(input.device()).type, .dtype = dtype});
  }

 private:
  std::optional<AutocastGuard> guard_;
};

/// Which modules are in training mode, in the order of modules().
std::vector<bool> modes_of(const nn::Module& root) {
  std::vector<bool> training;
  for (const nn::Module* module : root.modules()) training.push_back(module->is_training());
  return training;
}

/// Puts the mode of each module back at its end.
class KeepModes {
 public:
  explicit KeepModes(const nn::Module& root) : modules_(root.modules()), training_(modes_of(root)) {}
  KeepModes(const KeepModes&) = delete;
  KeepModes& operator=(const KeepModes&) = delete;
  ~KeepModes() {
    // From the top down, since train() sets all below.
    for (size_t i = 0; i < modules_.size(); ++i)
      if (modules_[i]->is_training() != training_[i]) modules_[i]->train(training_[i]);
  }

 private:
  std::vector<nn::Module*> modules_;
  std::vector<bool> training_;
};

/// "seed is 2, was 1; ...", empty when there is no difference.
std::string differences(const ValueDict& now, const ValueDict& before) {
  std::string text;
  auto add = [&](const Value& key, const Value* is, const Value* was) {
    text += fmt::format("{}{} is {}, was {}", text.empty() ? "" : "; ", key.as_str(),
                        is ? is->str(100) : "not set", was ? was->str(100) : "not set");
  };
  for (const auto& [key, value] : now)
    if (const Value* was = before.find(key); !was || !(*was == value)) add(key, &value, was);
  for (const auto& [key, value] : before)
    if (!now.contains(key)) add(key, nullptr, &value);
  return text;
}

/// One call of fit().
class Run {
 public:
  Run(Network& net, optim::Optimizer& optimizer, Loaders loaders, const FitOptions& options)
      : net_(net),
        optimizer_(optimizer),
        loaders_(loaders),
        options_(options),
        loss_(loss_or_default(options.loss)),
        params_(net.module.parameters()),
        device_(device_of(net.module)),
        processes_(options.group) {}

  FitResult run() {
    open();
    while (result_.epoch < options_.epochs) {
      epoch_start_ = Clock::now();
      if (!awaits_test_ && !train_epoch()) return stopped();
      if (!finish_epoch()) return stopped();
      if (result_.epoch < options_.epochs && stop_asked()) return stopped();
    }
    return finished();
  }

 private:
  void open();
  void give_sizes();
  void start_anew();
  void resume();
  bool train_epoch();
  /// What is left of a step for the averages.
  struct Outcome {
    Tensor loss, correct;
  };
  Outcome gradients_of(const Tensor& input, const Tensor& target, double weight);
  Outcome step_on(const Tensor& input, const Tensor& target, double weight = 1);
  Outcome replay_on(const Tensor& input, const Tensor& target);
  void train_step(const data::Batch& batch, double weight);
  void report_step(double lr);
  void tell_not_finite(double loss);
  bool finish_epoch();
  void step_schedule(const EpochReport& report);
  Checkpoint checkpoint();
  void save(const EpochReport* report = nullptr);

  double metric_of(const EpochReport& report) const { return loaders_.test ? report.test_loss : report.loss; }
  optim::ReduceLROnPlateau* plateau() const {
    return dynamic_cast<optim::ReduceLROnPlateau*>(options_.scheduler);
  }
  bool steps_after_epochs() const { return options_.schedule_unit == ScheduleUnit::Epoch || plateau(); }
  bool stop_asked() { return processes_.any(options_.stop && options_.stop()); }
  bool writes() const { return !options_.out_dir.empty() && processes_.rank() == 0; }
  void notice(const std::string& text) const {
    if (options_.on_notice) options_.on_notice(text);
  }
  FitResult stopped() {
    result_.stopped = true;
    return finished();
  }
  FitResult finished() {
    if (files_) result_.best = files_->finish();
    return std::move(result_);
  }

  Network& net_;
  optim::Optimizer& optimizer_;
  Loaders loaders_;
  const FitOptions& options_;
  LossFunction loss_;
  std::vector<Tensor> params_;
  std::optional<Device> device_;
  Processes processes_;
  RunLog log_;                           ///< holds the lock of the folder
  std::optional<RunCheckpoints> files_;  ///< waits for what it writes before the lock is given up

  /// The step of batches of one shape.
  struct Recorded {
    Tensor input, target;  ///< where it reads
    Outcome outcome;       ///< where it writes
    std::vector<bool> modes;
    std::optional<CapturedStep> step = {};

    bool fits(const Tensor& other_input, const Tensor& other_target) const {
      const auto same = [](const Tensor& a, const Tensor& b) {
        return a.defined() == b.defined() &&
               (!a.defined() || (a.shape() == b.shape() && a.dtype() == b.dtype()));
      };
      return same(input, other_input) && same(target, other_target);
    }
  };
  std::optional<Recorded> recorded_;
  bool updated_ = false;  ///< the optimizer has taken a step, and so made its state

  FitResult result_;
  bool awaits_test_ = false;
  std::vector<uint8_t> random_before_test_;  ///< while a test is awaited: it begins anew when a run goes on
  Averages epoch_;
  Averages interval_;
  Clock::time_point epoch_start_{};
  Clock::time_point interval_start_{};
  int64_t interval_samples_ = 0;  ///< since interval_start_
  bool told_not_finite_ = false;
};

void Run::open() {
  TERN_CHECK(options_.epochs >= 0, ValueError, "fit: epochs must not be negative, got {}", options_.epochs);
  TERN_CHECK(options_.log_every >= 1, ValueError, "fit: log_every must be at least 1, got {}",
             options_.log_every);
  TERN_CHECK(options_.save_every >= 0, ValueError, "fit: save_every must not be negative, got {}",
             options_.save_every);
  TERN_CHECK(options_.keep >= 0 && options_.keep <= INT32_MAX, ValueError,
             "fit: keep counts checkpoints, got {}", options_.keep);
  TERN_CHECK(options_.micro_batches >= 1, ValueError, "fit: micro_batches must be at least 1, got {}",
             options_.micro_batches);
  TERN_CHECK(options_.clip_grad_norm >= 0, ValueError, "fit: clip_grad_norm must not be negative, got {}",
             options_.clip_grad_norm);
  TERN_CHECK(!options_.resume || !options_.out_dir.empty(), ValueError,
             "fit: resume needs the out_dir with the checkpoint");
  TERN_CHECK(!options_.capture || !processes_.are_many(), ValueError,
             "fit: a step with several processes cannot be recorded: leave capture out");
  processes_.check_same(fmt::format("{} epochs of {} batches, tests of {}, log_every {}, save_every {}, {}{}",
                                    options_.epochs, count_text(loaders_.train),
                                    loaders_.test ? count_text(*loaders_.test) : "0", options_.log_every,
                                    options_.save_every, options_.resume ? "resume, " : "",
                                    options_.out_dir.empty() ? "no out_dir" : "an out_dir"));
  if (writes()) {
    RunCheckpoints::check_beginning(options_.out_dir, options_.resume, options_.overwrite);
    log_ = RunLog(options_.out_dir);
    files_.emplace(options_.out_dir, options_.keep,
                   [this](const EpochReport& report) { return metric_of(report); });
  }
  if (options_.resume)
    resume();
  else
    start_anew();
  processes_.share(net_.module);
  interval_start_ = Clock::now();
}

/// Lazy layers take their sizes from the first batch before anything is saved or shared; nothing else of the
/// network or the loader changes.
void Run::give_sizes() {
  if (!net_.module.has_uninitialized_params()) return;
  const data::DataLoaderState state = loaders_.train.state();
  const KeepModes modes(net_.module);
  net_.module.eval();
  const NoGradGuard no_grad;
  if (auto batch = loaders_.train.begin(); batch != loaders_.train.end()) {
    const Tensor& input = (*batch).data;
    const MaybeAutocast autocast(options_.autocast, device_, input);
    net_.forward(moved(input, device_));
  }
  loaders_.train.load_state(state);
}

void Run::start_anew() {
  give_sizes();
  if (options_.out_dir.empty()) return;
  const Checkpoint first = checkpoint();
  if (!writes()) return;
  // What cannot be written is known before the first step. Only then is the earlier run forgotten: a process
  // that is killed meanwhile leaves one of the two runs, and no mixture.
  files_->begin(first);
  log_.start();
  if (options_.overwrite) files_->forget_earlier(options_.earlier_files);
}

void Run::resume() {
  const std::filesystem::path path = options_.out_dir / kCheckpointName;
  const Checkpoint saved = load_checkpoint(path, options_.group);
  const std::string context = fmt::format("resuming '{}'", path.string());
  const std::string changed = differences(options_.settings, saved.settings);
  TERN_CHECK(changed.empty(), CheckpointError,
             "{}: the run was started with other settings: {}. Resume with the same ones, or start anew in "
             "another folder",
             context, changed);
  TERN_CHECK(saved.epoch <= options_.epochs, CheckpointError,
             "{}: {} epochs are done already, and {} are asked for", context, saved.epoch, options_.epochs);
  TERN_CHECK(saved.scheduler.has_value() == (options_.scheduler != nullptr), CheckpointError,
             "{}: the run was started {} a schedule, and {} is asked for", context,
             saved.scheduler ? "with" : "without", options_.scheduler ? options_.scheduler->name() : "none");
  TERN_CHECK(
      !options_.scheduler || saved.scheduler_name.empty() ||
          saved.scheduler_name == options_.scheduler->name(),
      CheckpointError,
      "{}: the run was started with the schedule {}, and {} is asked for: resume with the same one, or start "
      "anew in another folder",
      context, saved.scheduler_name, options_.scheduler ? options_.scheduler->name() : "");
  TERN_CHECK(saved.grad_scaler.has_value() == (options_.grad_scaler != nullptr), CheckpointError,
             "{}: the run was started {} a gradient scaler", context, saved.grad_scaler ? "with" : "without");
  with_context(context, [&] {
    net_.module.load_state_dict(saved.model);
    optimizer_.load_state_dict(saved.optimizer);
    if (options_.scheduler) options_.scheduler->load_state_dict(*saved.scheduler);
    if (options_.grad_scaler) options_.grad_scaler->load_state_dict(*saved.grad_scaler);
    loaders_.train.load_state(saved.data);
  });
  const auto rank = static_cast<size_t>(processes_.rank());
  if (rank == 0)
    default_generator().set_bytes(saved.random);
  else if (rank <= saved.random_of_others.size())
    default_generator().set_bytes(saved.random_of_others[rank - 1]);
  random_before_test_ = default_generator().bytes();
  result_.epoch = saved.epoch;
  result_.step = result_.resumed_step = saved.step;
  const int64_t step_before = saved.history.empty() ? 0 : saved.history.back().step;
  result_.batch = saved.awaits_test ? saved.step - step_before : saved.data.batch;
  result_.history = saved.history;
  if (files_) files_->go_on(result_.history, [this](const std::string& text) { notice(text); });
  awaits_test_ = saved.awaits_test;
  if (rank == 0) {
    epoch_ = Averages(saved.epoch_sums);
    interval_ = Averages(saved.interval_sums);
  }
  if (writes() && !log_.resume(saved.log_size, saved.step))
    notice("metrics.jsonl is shorter than it was at the checkpoint: what is missing stays missing");
}

Checkpoint Run::checkpoint() {
  Checkpoint saved;
  saved.model = net_.module.state_dict();
  saved.optimizer = optimizer_.state_dict();
  if (options_.scheduler) {
    saved.scheduler = options_.scheduler->state_dict();
    saved.scheduler_name = options_.scheduler->name();
  }
  if (options_.grad_scaler) saved.grad_scaler = options_.grad_scaler->state_dict();
  saved.epoch = result_.epoch;
  saved.step = result_.step;
  saved.awaits_test = awaits_test_;
  saved.data = loaders_.train.state();
  saved.random = awaits_test_ ? random_before_test_ : default_generator().bytes();
  saved.random_of_others = processes_.of_others(saved.random);
  saved.settings = options_.settings;
  saved.info = options_.info;
  saved.epoch_sums = processes_.total(epoch_.sums());
  saved.interval_sums = processes_.total(interval_.sums());
  saved.history = result_.history;
  return saved;
}

void Run::save(const EpochReport* report) {
  if (options_.out_dir.empty()) return;
  Checkpoint saved = checkpoint();
  if (!writes()) return;
  saved.log_size = log_.sync();
  files_->write(saved, report);
}

bool Run::train_epoch() {
  // What is in evaluation mode below a network in training mode, such as frozen statistics, stays there.
  if (!net_.module.is_training()) net_.module.train();
  if (recorded_ && recorded_->modes != modes_of(net_.module)) recorded_.reset();
  const auto batches = loaders_.train.known_size();
  auto batch = loaders_.train.begin();
  while (batch != loaders_.train.end()) {
    train_step(*batch, batch.weight());
    // The last batch is part of the epoch's end; a stream without a size tells later which one it was.
    if (++result_.batch != batches) {
      if (stop_asked()) {
        save();
        return false;
      }
      if (options_.save_every > 0 && result_.step % options_.save_every == 0) save();
    }
    ++batch;
  }
  static_cast<void>(
      processes_.begin_forward(net_.module));  // the same buffers for the test and the checkpoint
  awaits_test_ = true;
  random_before_test_ = default_generator().bytes();
  if (loaders_.test) save();  // a process that is killed in a long test has not trained for nothing
  return true;
}

/// Adds `weight` times the gradients of the mean loss.
Run::Outcome Run::gradients_of(const Tensor& input, const Tensor& target, double weight) {
  Tensor output, wanted, loss;
  {
    const dist::GroupGuard in_group = processes_.begin_forward(net_.module);
    const MaybeAutocast autocast(options_.autocast, device_, input);
    output = net_.forward(moved(input, device_));
    wanted = moved(target, output.device());
    loss = loss_(output, wanted);
  }
  optim::GradScaler* scaler = options_.grad_scaler;
  const Tensor weighed = weight == 1 ? loss : loss * weight;
  (scaler ? scaler->scale(weighed) : weighed).backward();
  return {loss.detach(), count_correct(output, wanted)};
}

Run::Outcome Run::step_on(const Tensor& input, const Tensor& target, double weight) {
  optimizer_.zero_grad();
  const int64_t size = input.dim() > 0 ? input.size(0) : 1;
  const int64_t parts = std::clamp<int64_t>(options_.micro_batches, 1, std::max<int64_t>(size, 1));
  Outcome outcome;
  for (int64_t p = 0; p < parts; ++p) {
    processes_.set_synchronizes(p + 1 == parts);
    const int64_t begin = size * p / parts, length = size * (p + 1) / parts - begin;
    const double share = static_cast<double>(length) / static_cast<double>(size);
    const auto part_of = [&](const Tensor& whole) {
      return parts == 1 || !whole.defined() ? whole : whole.narrow(0, begin, length);
    };
    const Outcome part = gradients_of(part_of(input), part_of(target), parts == 1 ? weight : weight * share);
    if (p == 0) {
      outcome = part;
      if (parts > 1) outcome.loss = part.loss * share;
    } else {
      outcome.loss += part.loss * share;
      if (part.correct.defined()) outcome.correct += part.correct;
    }
  }
  optim::GradScaler* scaler = options_.grad_scaler;
  if (options_.clip_grad_norm > 0) {
    if (scaler) scaler->unscale_(optimizer_);
    optim::clip_grad_norm_(params_, options_.clip_grad_norm);
  }
  if (scaler) {
    updated_ |= scaler->step(optimizer_);
    scaler->update();
  } else {
    optimizer_.step();
    updated_ = true;
  }
  return outcome;
}

Run::Outcome Run::replay_on(const Tensor& input, const Tensor& target) {
  if (!recorded_) {
    const auto place_for = [&](const Tensor& given) {
      return given.defined() ? empty_like(moved(given, device_)) : given;
    };
    recorded_.emplace(Recorded{place_for(input), place_for(target), {}, modes_of(net_.module)});
    return step_on(input, target);
  }
  Recorded& r = *recorded_;
  if (!r.fits(input, target) || !updated_) return step_on(input, target);
  r.input.copy_(input);
  if (target.defined()) r.target.copy_(target);
  if (r.step)
    r.step->replay();
  else
    r.step = tern::capture([&] { r.outcome = step_on(r.input, r.target); }, {.warmup = 0});
  const Tensor& correct = r.outcome.correct;
  return {r.outcome.loss.clone(), correct.defined() ? correct.clone() : correct};
}

void Run::train_step(const data::Batch& batch, double weight) {
  const double lr = optimizer_.lr();
  const auto [loss, correct] =
      options_.capture ? replay_on(batch.data, batch.target) : step_on(batch.data, batch.target, weight);
  if (options_.scheduler && !steps_after_epochs()) options_.scheduler->step();
  const int64_t count = own_samples(batch.data, weight);
  epoch_.add(loss, correct, count);
  interval_.add(loss, correct, count);
  interval_samples_ += count;
  ++result_.step;
  if (result_.step % options_.log_every == 0) report_step(lr);
  if (options_.on_batch)
    options_.on_batch({result_.epoch + 1, options_.epochs, result_.batch + 1, loaders_.train.known_size(),
                       result_.step, epoch_});
}

/// Once in a run.
void Run::tell_not_finite(double loss) {
  if (std::isfinite(loss) || std::exchange(told_not_finite_, true)) return;
  notice(fmt::format("the loss is {} at step {}: a smaller learning rate may help", loss, result_.step));
}

void Run::report_step(double lr) {
  StepReport report;
  report.epoch = result_.epoch + 1;
  report.step = result_.step;
  Averages all(processes_.total(interval_.sums()));
  report.loss = all.loss();
  report.accuracy = all.accuracy();
  report.lr = lr;
  const double samples = static_cast<double>(processes_.total({.count = interval_samples_}).count);
  const double seconds = seconds_since(interval_start_);
  report.samples_per_second = seconds > 0 ? samples / seconds : 0;
  epoch_.sums();  // so that its tensors do not pile up
  interval_.reset();
  interval_samples_ = 0;
  interval_start_ = Clock::now();
  tell_not_finite(report.loss);
  log_.write(report);
  if (options_.on_step) options_.on_step(report);
}

bool Run::finish_epoch() {
  EpochReport report;
  report.epoch = result_.epoch + 1;
  report.step = result_.step;
  Averages all(processes_.total(epoch_.sums()));
  report.loss = all.loss();
  report.accuracy = all.accuracy();
  report.lr = optimizer_.lr();
  if (all.count() > 0)
    tell_not_finite(report.loss);
  else
    notice(fmt::format("epoch {} has no samples to train on", report.epoch));
  if (loaders_.test) {
    loaders_.test->set_epoch(result_.epoch);
    const Clock::time_point test_start = Clock::now();
    auto on_batch = [&](const Position& at) {
      if (options_.on_test_batch)
        options_.on_test_batch(
            {report.epoch, options_.epochs, at.batch, at.batches, result_.step, at.averages});
    };
    const Evaluation test = evaluate(net_, *loaders_.test,
                                     {.loss = loss_,
                                      .autocast = options_.autocast,
                                      .stop = [this] { return stop_asked(); },
                                      .on_batch = on_batch});
    if (test.stopped) {
      save();
      return false;
    }
    Averages tested(processes_.total(test.sums));
    report.test_loss = tested.loss();
    report.test_accuracy = tested.accuracy();
    interval_start_ += Clock::now() - test_start;  // the test is not part of the training's speed
  }
  report.seconds = seconds_since(epoch_start_);
  if (options_.scheduler && steps_after_epochs()) step_schedule(report);
  ++result_.epoch;
  result_.batch = 0;
  awaits_test_ = false;
  epoch_.reset();
  result_.history.push_back(report);
  log_.write(report);
  save(&report);
  if (options_.on_epoch) options_.on_epoch(report);
  return true;
}

void Run::step_schedule(const EpochReport& report) {
  if (auto* schedule = plateau())
    schedule->step(metric_of(report));
  else
    options_.scheduler->step();
}

}  // namespace

FitResult fit(Network net, optim::Optimizer& optimizer, Loaders loaders, const FitOptions& options) {
  return Run(net, optimizer, loaders, options).run();
}

Evaluation evaluate(Network net, data::DataLoader& loader, const EvaluateOptions& options) {
  const LossFunction loss = loss_or_default(options.loss);
  const KeepModes keep_modes(net.module);
  net.module.eval();
  NoGradGuard no_grad;
  const std::optional<Device> device = device_of(net.module);
  Evaluation result;
  Averages averages;
  int64_t done = 0;
  for (auto batch = loader.begin(); batch != loader.end(); ++batch) {
    const Tensor &input = batch->data, &wanted = batch->target;
    if (options.stop && options.stop()) {
      result.stopped = true;
      break;
    }
    Tensor output, target, batch_loss;
    {
      const MaybeAutocast autocast(options.autocast, device, input);
      output = net.forward(moved(input, device));
      target = moved(wanted, output.device());
      batch_loss = loss(output, target);
    }
    averages.add(batch_loss, count_correct(output, target), own_samples(input, batch.weight()));
    if (options.on_output) options.on_output(output, target);
    if (options.confusion && batch.weight() > 0 && is_classification(output, target))
      result.confusion.add(output, target);
    if (++done % 64 == 0) averages.sums();  // so that its tensors do not pile up
    if (options.on_batch) options.on_batch({1, 1, done, loader.known_size(), 0, averages});
  }
  result.sums = averages.sums();
  result.loss = averages.loss();
  result.accuracy = averages.accuracy();
  result.count = averages.count();
  return result;
}

}  // namespace tern::train
