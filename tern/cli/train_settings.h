// What a training run is made of, as the command line says it and as the checkpoint remembers it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tern/cli/data_source.h"
#include "tern/io/value.h"
#include "tern/optim/lr_scheduler.h"
#include "tern/optim/optimizer.h"

namespace tern::cli {

/// The value of --schedule.
struct Schedule {
  std::string kind = "none";  ///< none, step, exponential, restarts, polynomial, cosine or onecycle
  int64_t step_size = 0;      ///< epochs
  int64_t growth = 1;         ///< of the time from one restart to the next
  double gamma = 0.1;
  double eta_min = 0;
  double power = 1;

  /// Throws UsageError.
  static Schedule parse(const std::string& text);
  /// Moves with every step instead of every epoch, over the whole of the run, whose length is thereby fixed.
  bool spans_run() const { return kind == "cosine" || kind == "onecycle" || kind == "polynomial"; }
  /// Null for none. `total_steps` is the length of the whole run.
  std::unique_ptr<optim::LRScheduler> make(optim::Optimizer& optimizer, double lr, int64_t total_steps) const;
};

/// The values of --optimizer: "sgd, adam, ... or radam".
std::string optimizer_choices();
/// Their learning rates when --lr is not given: "sgd 0.05, adam 0.003, ...".
std::string default_learning_rates();
bool optimizer_has_momentum(const std::string& optimizer);

/// Everything that decides the numbers of a run.
struct TrainSettings {
  std::string model = "lenet";
  std::string data = "digits";
  int64_t epochs = 5;
  int64_t batch_size = 64;
  std::string optimizer = "adam";
  std::optional<double> lr;            ///< by default what suits the optimizer
  std::optional<double> momentum;      ///< of sgd (0.9 by default) and rmsprop (0)
  std::optional<double> weight_decay;  ///< by default 0; 0.01 for adamw
  std::string schedule = "onecycle";
  uint64_t seed = 0;
  int64_t limit = 0;
  int64_t image_size = 32;
  std::string precision = "fp32";  ///< fp32, bf16 or fp16

  /// The dtype of autocast; nothing for fp32.
  std::optional<DType> autocast() const;

  /// Fills in what depends on the optimizer and checks the rest. Throws UsageError.
  void complete();
  /// What must be the same when a run is resumed.
  ValueDict fixed() const;
  /// What may change: the folder of the data, and the epochs where the schedule does not depend on them.
  ValueDict free(const PictureFormat& format) const;
  std::unique_ptr<optim::Optimizer> make_optimizer(std::vector<Tensor> params) const;
};

}  // namespace tern::cli
