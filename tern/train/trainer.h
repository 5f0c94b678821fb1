// fit and evaluate: the loops that train and test a network, with metrics, checkpoints and exact resumption.
// What they write is in run_log.h and checkpoint.h; the progress bar is for the caller to draw (progress.h).
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/data_loader.h"
#include "tern/nn/any_module.h"
#include "tern/nn/module.h"
#include "tern/optim/grad_scaler.h"
#include "tern/optim/lr_scheduler.h"
#include "tern/optim/optimizer.h"
#include "tern/parallel/process_group.h"
#include "tern/train/checkpoint.h"
#include "tern/train/metrics.h"
#include "tern/train/run_checkpoints.h"
#include "tern/train/run_log.h"

namespace tern::train {

/// The mean loss of a batch from the network's output and the batch's targets: one element.
using LossFunction = std::function<Tensor(const Tensor& output, const Tensor& target)>;

/// A module and how it is called, whatever its type.
struct Network {
  nn::Module& module;
  std::function<Tensor(const Tensor& input)> forward;

  template <class M>
  requires std::derived_from<M, nn::Module> Network(M& net)
      : module(net), forward([&net](const Tensor& x) -> Tensor { return net(x); }) {}
  Network(nn::AnyModule& net) : module(net.get()), forward([&net](const Tensor& x) { return net(x); }) {}
};

/// Where the data come from. Without `test` nothing is tested.
struct Loaders {
  data::DataLoader& train;
  data::DataLoader* test = nullptr;
};

/// Where a run stands, for on_batch and on_test_batch.
struct Position {
  int64_t epoch = 0;                    ///< from 1 on
  int64_t epochs = 0;                   ///< of the whole run
  int64_t batch = 0;                    ///< batches done in this epoch or test
  std::optional<int64_t> batches = {};  ///< in an epoch, or a test; none for a stream without a size
  int64_t step = 0;                     ///< steps since the beginning of the run
  Averages& averages;                   ///< of this epoch or test so far; reading them waits for the device
};

/// When the schedule moves on.
enum class ScheduleUnit { Epoch, Step };

struct FitOptions {
  int64_t epochs = 1;
  LossFunction loss = {};  ///< by default cross entropy

  /// ReduceLROnPlateau is given the test's loss, or without a test the training's, and moves on after epochs
  /// only.
  optim::LRScheduler* scheduler = nullptr;
  ScheduleUnit schedule_unit = ScheduleUnit::Epoch;
  double clip_grad_norm = 0;  ///< 0: no clipping
  /// Each batch is computed in so many parts of equal length up to one sample, one after the other, whose
  /// gradients add up to those of the batch: for batches whose forward does not fit into memory. What looks
  /// at a whole batch, such as BatchNorm, sees a part of it. A batch of fewer samples has a part for each.
  int64_t micro_batches = 1;
  /// bfloat16 or float16: the network and the loss, of tests too, are computed under autocast to it
  /// (ops/autocast.h).
  std::optional<DType> autocast = {};
  /// For float16. Its state is saved with the checkpoint. It asks the device after every step whether
  /// gradients were finite.
  optim::GradScaler* grad_scaler = nullptr;
  /// Records the second step of a batch's shape (the first after one that a gradient scaler did not skip) and
  /// replays it from then on (device/capture.h), with the same numbers. Other batches, such as the last one
  /// of an epoch, go the usual way. Between epochs, modules whose mode has changed make it record anew. A
  /// network whose step cannot be recorded throws CaptureError.
  bool capture = false;

  /// The processes that train together, each with a network of its own, which start as that of rank 0 and
  /// whose gradients are means. Their loaders either share every batch (DataLoaderOptions::part), for the
  /// numbers of one process up to rounding, or have parts of the data (data::DistributedSampler). All are
  /// given the same options; files are written by rank 0, which alone needs to see a checkpoint to resume.
  /// Reports are over all of them. Not together with `capture`.
  std::optional<dist::ProcessGroup> group = {};

  /// The folder for metrics.jsonl, event files and checkpoint.pt; made if it is not there. Empty: nothing is
  /// written.
  std::filesystem::path out_dir = {};
  bool resume = false;  ///< go on from out_dir/checkpoint.pt
  bool overwrite =
      false;  ///< start anew even if there is one, or a part of one; remove the earlier run's files
  /// With `overwrite`: what else an earlier run wrote. Removed with its checkpoints; may be absent.
  std::vector<std::filesystem::path> earlier_files = {};
  ValueDict settings = {};  ///< saved with the checkpoint; resuming with others is an error
  ValueDict info = {};      ///< saved with the checkpoint, and free to change
  int64_t log_every = 50;   ///< steps between two step reports
  int64_t save_every = 0;   ///< steps between two checkpoints inside an epoch; 0: only after epochs
  /// Above 0: the last so many checkpoints stay as checkpoint-STEP.pt, and the one with the lowest loss in
  /// the test after its epoch (without a test, in training), which best.pt is another name of. checkpoint.pt
  /// is another name of the newest.
  int64_t keep = 0;

  /// Asked after every batch. True: save a checkpoint and return; with a group, where one process says so,
  /// all do after the next batch.
  std::function<bool()> stop = {};
  std::function<void(const Position&)> on_batch = {};       ///< after every training step
  std::function<void(const Position&)> on_test_batch = {};  ///< after every batch of a test
  std::function<void(const StepReport&)> on_step = {};      ///< every `log_every` steps
  std::function<void(const EpochReport&)> on_epoch = {};
  std::function<void(const std::string&)> on_notice = {};  ///< something that the user should know
};

struct FitResult {
  bool stopped = false;  ///< `stop` said so before the end
  int64_t epoch = 0;     ///< finished epochs
  int64_t step = 0;
  int64_t batch = 0;                 ///< batches done in an unfinished epoch
  int64_t resumed_step = -1;         ///< the step from which the run went on; -1: from the beginning
  std::vector<EpochReport> history;  ///< of the whole run, also from before it was resumed
  std::filesystem::path best;        ///< with `keep`: the best checkpoint; empty when there is none
};

/// Trains `net`:
///
///     data::DataLoader train(train_set, {.batch_size = 64, .shuffle = true}), test(test_set, {.batch_size =
///     500}); optim::Adam optimizer(net.parameters(), {.lr = 1e-3}); train::fit(net, optimizer, {train,
///     &test}, {.epochs = 5, .out_dir = "run"});
///
/// A batch is [input, target]: the input is moved to the device of the module's first parameter, the target
/// to that of the output. A loader may read a stream that does not know its size (data::IterableDataset): an
/// epoch is what it gives until it ends, and resuming in the middle of one reads it again up to there. One
/// without an end is trained on until `stop` says so. An epoch without batches has a loss of NaN, and a
/// notice says so. A checkpoint is written before the first step, before the test of every epoch and after
/// it, every `save_every` steps and when `stop` says so. Training goes on meanwhile (AsyncSaver), which takes
/// memory for a copy of the state; when fit() returns or throws, all are on the disk. A process that is
/// killed at any moment leaves the last good one. With `resume` the run goes on from it, with the same
/// module, optimizer, loaders and schedule made anew, and gives the same numbers to the bit as a run that was
/// never stopped (on the same machine, with the same number of threads).
///
/// With a group the run can be resumed with another number of processes. Each draws random numbers of its
/// own, which are resumed too; give them different seeds.
///
/// A network in evaluation mode is put in training mode before an epoch; of one in training mode, the modules
/// below keep their modes (a BatchNorm that is to keep its statistics). Modes are not in checkpoints.
///
/// Throws ValueError for options out of range, and for batches of one tensor without a `loss`;
/// DistributedError where processes differ; CheckpointError when there is nothing to resume, when settings
/// differ or when out_dir has a checkpoint and neither `resume` nor `overwrite` is set; IoError when
/// something cannot be written, for a checkpoint at the latest when the next one is due or at the end, which
/// leaves the last checkpoint as it was; and what the module, the loss and the dataset throw. `stop` and
/// callbacks are called on this thread.
FitResult fit(Network net, optim::Optimizer& optimizer, Loaders loaders, const FitOptions& options);

struct EvaluateOptions {
  LossFunction loss = {};              ///< by default cross entropy
  std::optional<DType> autocast = {};  ///< as in FitOptions
  bool confusion = false;  ///< fill in Evaluation::confusion; waits for the device after every batch
  std::function<bool()> stop = {};
  std::function<void(const Position&)> on_batch = {};
  std::function<void(const Tensor& output, const Tensor& target)> on_output = {};  ///< of every batch
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  ///< a fraction; NaN where the answers are not classes
  int64_t count = 0;    ///< samples
  Averages::Sums sums;  ///< of which the three above are made
  bool stopped = false;
  Confusion confusion;
};

/// Tests `net` on a loader, in evaluation mode and without gradients; each module's mode is put back
/// afterwards. Batches are moved as by fit().
Evaluation evaluate(Network net, data::DataLoader& loader, const EvaluateOptions& options = {});

}  // namespace tern::train
