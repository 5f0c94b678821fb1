// Rows: gathered before forward, gathered again in backward, gradients added up and divided.
#include "tern/parallel/sharded_unit.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/autograd/saved_hooks.h"
#include "tern/base/check.h"
#include "tern/nn/lazy.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"
#include "tern/parallel/gradient_pieces.h"

namespace tern::dist {
namespace {

constexpr int64_t kLineBytes = 64;

/// The units of all members.
struct Divided {
  std::mutex mutex;
  std::unordered_map<const TensorImpl*, ShardedUnit*> units;
};
Divided& divided() {
  static auto* const all = new Divided;  // outlives units of any life
  return *all;
}

/// So many sums of gradients are under way at a time, which is what their memory costs.
constexpr size_t kMostSums = 1;

/// The fields that hold the parameters of a unit: those of its head and of the modules below that are no
/// heads.
void visit_fields(nn::Module& module, const std::function<void(nn::Parameter&)>& visit, bool is_head = true) {
  if (!is_head && unit_of(module)) return;
  const nn::Fields fields = module.fields();
  for (const auto& [name, parameter] : fields.parameters) visit(*parameter);
  for (const auto& [name, child] : fields.modules) visit_fields(*child, visit, /*is_head=*/false);
}

}  // namespace

/// The gradients of a row, on their way to what those of all processes come to.
struct ShardedUnit::Sum {
  Tensor rows;  ///< until it is known
  std::shared_future<void> done;
  int rank;
  Tensor mine = {};  ///< this process' part of it

  void finish() {
    if (!rows.defined()) return;
    std::exchange(done, {}).get();  // what it did holds the rows too
    mine = std::exchange(rows, {})[rank].clone();
  }
};

/// What forward and backward of divided modules know of each other, on one thread.
struct ShardedUnit::Work {
  int forwards = 0;                   ///< under way, one inside of the other
  std::weak_ptr<ShardedUnit> last;    ///< that came to work
  std::weak_ptr<ShardedUnit> called;  ///< whose rows were sent for early
  std::deque<std::shared_ptr<Sum>> sums;

  static Work& here() {
    static thread_local Work work;
    return work;
  }
  /// Rows that were sent for early are of no use but to this unit.
  void call_off(const ShardedUnit* except = nullptr) {
    const auto unit = std::exchange(called, {}).lock();
    if (unit && unit.get() != except) unit->release();
  }
};

/// Awaits the sum of a row's gradients, when backward has nothing else to do.
class ShardedUnit::Arrival final : public Node {
 public:
  Arrival(std::shared_ptr<ShardedUnit> unit, size_t row)
      : Node("fully_shard", kLast), unit_(std::move(unit)), row_(row) {
    stream = current_stream(unit_->rows_[row].local.device());
  }
  void expect(std::shared_ptr<Sum> sum) { sum_ = std::move(sum); }
  void apply(GradContext&, const Tensor&, Tensor* results) override {
    unit_->take_gradients(row_, *std::exchange(sum_, nullptr), results);
  }
  void release_saved() override {}

 private:
  std::shared_ptr<ShardedUnit> unit_;
  size_t row_;
  std::shared_ptr<Sum> sum_;
};

/// What is recorded of one gathered row.
class ShardedUnit::Gradients final : public parallel::GradientPieces {
 public:
  Gradients(std::shared_ptr<ShardedUnit> unit, size_t row, std::vector<parallel::Piece> pieces)
      : GradientPieces(unit->rows_[row].whole.shape(), 0, unit->rows_[row].whole.dtype(),
                       unit->rows_[row].whole.device(), std::move(pieces)),
        unit_(std::move(unit)),
        row_(row),
        arrival_(new Arrival(unit_, row)) {}

  /// `inputs`: where the gradients of the members go.
  void record(const std::vector<Tensor>& outputs, std::vector<Edge> inputs) {
    arrival_->set_inputs(std::move(inputs));
    GradientPieces::record("fully_shard", outputs, {Edge{arrival_, {}}});
  }

 private:
  void finish(const Tensor& whole, Tensor* results) override {
    std::shared_ptr<Sum> sum = unit_->send_gradients(row_, whole);
    if (!sum) return;
    static_cast<Arrival&>(*arrival_).expect(std::move(sum));
    results[0] = empty({0}, {.dtype = whole.dtype(), .device = whole.device()});  // that there is something
  }

  std::shared_ptr<ShardedUnit> unit_;
  size_t row_;
  IntrusivePtr<Node> arrival_;
};

/// One forward: the fields hold whole parameters, and what is saved of those is gathered again in backward.
class ShardedUnit::Scope {
 public:
  Scope(std::shared_ptr<ShardedUnit> unit, nn::Module& module)
      : unit_(std::move(unit)), swap_(module, *unit_, unit_->views()), hooks_(pack(unit_)) {
    unit_->is_inside_ = true;
    ++Work::here().forwards;
  }
  ~Scope() {
    unit_->is_inside_ = false;
    const bool is_outermost = --Work::here().forwards == 0;
    if (is_outermost) Work::here().call_off();
    if (!is_grad_enabled() || unit_->options_.reshard_after_forward.value_or(!is_outermost)) unit_->release();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  static autograd::SavedTensorsHooks::Pack pack(const std::shared_ptr<ShardedUnit>& unit) {
    return [unit](const Tensor& x) -> autograd::SavedTensorsHooks::Unpack {
      for (size_t r = 0; r < unit->rows_.size(); ++r) {
        const Row& row = unit->rows_[r];
        if (!row.whole.defined() || row.whole.storage() != x.storage()) continue;
        return [unit, r, version = row.local.version(), dtype = x.dtype(), shape = x.shape(),
                strides = x.strides(), offset = x.storage_offset()] {
          return Tensor::view_of(unit->gather_for_backward(r, version).storage(), dtype, shape, strides,
                                 offset);
        };
      }
      return {};
    };
  }

  std::shared_ptr<ShardedUnit> unit_;
  Swap swap_;
  autograd::SavedTensorsHooks hooks_;
};

ShardedUnit::Swap::Swap(nn::Module& module, const ShardedUnit& unit, std::vector<Tensor> tensors)
    : module_(module), unit_(unit), tensors_(std::move(tensors)) {
  for (size_t i = 0; i < tensors_.size(); ++i) numbers_[tensors_[i].impl_ptr().get()] = i;
  std::vector<char> found(tensors_.size(), 0);
  visit_fields(module, [&](nn::Parameter& field) {
    const size_t i = unit.find(field);
    if (i == tensors_.size()) return;
    found[i] = 1;
    static_cast<Tensor&>(field) = tensors_[i];
  });
  if (std::find(found.begin(), found.end(), 0) == found.end()) return;
  restore();
  TERN_THROW(ValueError,
             "fully_shard: this {} does not have the parameters that were divided: it is a copy, its "
             "parameters were replaced, or a module below it was divided after it (divide from the inside "
             "out)",
             module.class_name());
}

void ShardedUnit::Swap::restore() noexcept {
  visit_fields(module_, [&](nn::Parameter& field) {
    if (const auto number = numbers_.find(field.impl_ptr().get()); number != numbers_.end())
      static_cast<Tensor&>(field) = unit_.members_[number->second].shard;
  });
}

ShardedUnit::Swap::~Swap() { restore(); }

ShardedUnit::ShardedUnit(const std::vector<Tensor>& parameters, const ProcessGroup& group,
                         const FullyShardOptions& options)
    : group_(group), options_(options) {
  const NoGradGuard no_grad;
  std::vector<Tensor> wholes;
  for (const Tensor& parameter : parameters) {
    members_.push_back({.shard = parameter, .shape = parameter.shape(), .numel = parameter.numel()});
    numbers_[parameter.impl_ptr().get()] = members_.size() - 1;
    wholes.push_back(parameter.detach());
  }
  for (parallel::Packing& packing :
       parallel::pack_by_dtype(wholes, /*aligned=*/true, [](size_t) { return true; })) {
    const int64_t line = kLineBytes / static_cast<int64_t>(itemsize(packing.dtype)), n = group.size();
    Row& row = rows_.emplace_back();
    row.width = ((packing.numel + n - 1) / n + line - 1) / line * line;
    row.local = zeros({row.width}, {.dtype = packing.dtype, .device = wholes[packing.members[0]].device()});
    row.packing = packing;
    for (size_t m = 0; m < packing.members.size(); ++m) {
      Member& member = members_[packing.members[m]];
      member.row = rows_.size() - 1;
      member.offset = packing.offsets[m];
      const Span mine = span(member, group.rank());
      Tensor piece = place(row.local, member);
      piece.copy_(wholes[packing.members[m]].flatten().narrow(0, mine.start, mine.length));
      nn::detail::set_data(member.shard, piece);
    }
    if (options.param_dtype && is_floating_point(packing.dtype)) row.packing.dtype = *options.param_dtype;
  }
  const std::lock_guard lock(divided().mutex);
  for (const Member& member : members_) divided().units[member.shard.impl_ptr().get()] = this;
}

ShardedUnit::~ShardedUnit() {
  const std::lock_guard lock(divided().mutex);
  for (const Member& member : members_) divided().units.erase(member.shard.impl_ptr().get());
}

ShardedUnit* unit_holding(const Tensor& parameter) {
  const std::lock_guard lock(divided().mutex);
  const auto found = divided().units.find(parameter.impl_ptr().get());
  return found == divided().units.end() ? nullptr : found->second;
}

size_t ShardedUnit::find(const Tensor& tensor) const {
  const auto found = numbers_.find(tensor.impl_ptr().get());
  return found == numbers_.end() ? members_.size() : found->second;
}

ShardedUnit::Span ShardedUnit::span(const Member& member, int rank) const {
  const int64_t width = rows_[member.row].width, begin = width * rank;
  const int64_t start = std::clamp<int64_t>(begin - member.offset, 0, member.numel);
  const int64_t end = std::clamp<int64_t>(begin + width - member.offset, 0, member.numel);
  return {start, end - start};
}

Tensor ShardedUnit::place(const Tensor& part, const Member& member) const {
  const Span mine = span(member, group_.rank());
  const int64_t start = member.offset + mine.start - rows_[member.row].width * group_.rank();
  return part.narrow(0, mine.length == 0 ? 0 : start, mine.length);
}

void ShardedUnit::collect_shards() {
  const NoGradGuard no_grad;
  for (Row& row : rows_) {
    const auto is_elsewhere = [&](size_t i) { return members_[i].shard.storage() != row.local.storage(); };
    const std::vector<size_t>& members = row.packing.members;
    if (std::none_of(members.begin(), members.end(), is_elsewhere)) continue;
    const Tensor& first = members_[members[0]].shard;
    const Tensor local = zeros({row.width}, {.dtype = first.dtype(), .device = first.device()});
    for (const size_t i : members) {
      const Member& member = members_[i];
      TERN_CHECK(member.shard.numel() == span(member, group_.rank()).length, ValueError,
                 "fully_shard: a parameter's piece has now {} elements in place of {}", member.shard.numel(),
                 span(member, group_.rank()).length);
      TERN_CHECK(member.shard.device() == first.device() && member.shard.dtype() == first.dtype(),
                 DeviceError, "fully_shard: parameters of one module are now {} on {} and {} on {}",
                 name(first.dtype()), first.device().str(), name(member.shard.dtype()),
                 member.shard.device().str());
      Tensor piece = place(local, member);
      piece.copy_(member.shard.detach().flatten());
      nn::detail::set_data(member.shard, piece);
    }
    if (row.packing.dtype == row.local.dtype()) row.packing.dtype = local.dtype();
    row.local = local;
  }
}

void ShardedUnit::start_gather() {
  const NoGradGuard no_grad;
  for (Row& row : rows_) {
    if (row.whole.defined() || row.coming.defined()) continue;
    const Tensor rows =
        empty({group_.size(), row.width}, {.dtype = row.packing.dtype, .device = row.local.device()});
    rows[group_.rank()].copy_(row.local);
    row.arrival = group_.all_gather_async(rows);
    row.coming = rows.view({-1});
  }
}

void ShardedUnit::gather() {
  start_gather();
  for (Row& row : rows_) {
    if (row.whole.defined()) continue;
    std::exchange(row.arrival, {}).get();
    row.whole = std::exchange(row.coming, {});
  }
}

void ShardedUnit::release() {
  for (Row& row : rows_) {
    row.whole = row.coming = Tensor();
    row.arrival = {};
  }
  goes_with_backward_ = false;
}

void ShardedUnit::go_with_backward() {
  if (std::exchange(goes_with_backward_, true)) return;
  when_backward_ends([self = weak_from_this()] {
    if (const auto unit = self.lock(); unit && unit->goes_with_backward_) unit->release();
  });
}

const Tensor& ShardedUnit::gather_for_backward(size_t row, uint32_t version) {
  TERN_CHECK(rows_[row].local.version() == version, AutogradError,
             "fully_shard: parameters that backward needs were changed since the forward");
  const bool was_there = rows_[row].whole.defined();
  go_with_backward();
  gather();
  if (const auto next = before_.lock(); next && !was_there && next.get() != this) {
    next->go_with_backward();
    next->start_gather();
  }
  return rows_[row].whole;
}

std::vector<Tensor> ShardedUnit::views() {
  std::vector<Tensor> all(members_.size());
  for (size_t r = 0; r < rows_.size(); ++r) {
    const parallel::Packing& packing = rows_[r].packing;
    std::vector<Tensor> outputs;
    std::vector<Edge> inputs;
    std::vector<parallel::Piece> pieces;
    for (size_t m = 0; m < packing.members.size(); ++m) {
      const Member& member = members_[packing.members[m]];
      const Tensor view = all[packing.members[m]] = packing.view(rows_[r].whole, m);
      const bool is_learned = is_grad_enabled() && member.shard.requires_grad();
      outputs.push_back(is_learned ? view : Tensor());
      inputs.push_back(is_learned ? gradient_edge(member.shard) : Edge());
      pieces.push_back({member.offset, member.numel, member.shape});
    }
    if (std::any_of(outputs.begin(), outputs.end(), [](const Tensor& x) { return x.defined(); }))
      std::make_shared<Gradients>(shared_from_this(), r, std::move(pieces))
          ->record(outputs, std::move(inputs));
  }
  return all;
}

std::shared_ptr<ShardedUnit::Sum> ShardedUnit::send_gradients(size_t r, const Tensor& whole) {
  TERN_CHECK(!is_grad_enabled(), AutogradError,
             "fully_shard: gradients of gradients are not there for divided parameters");
  Row& row = rows_[r];
  if (goes_with_backward_) row.whole = Tensor();
  if (row.waiting.defined()) whole.detach().add_(std::exchange(row.waiting, {}));
  if (!sync_) {
    row.waiting = whole;
    return nullptr;
  }
  std::deque<std::shared_ptr<Sum>>& sums = Work::here().sums;
  while (sums.size() >= kMostSums) {
    const std::shared_ptr<Sum> first = std::move(sums.front());
    sums.pop_front();
    first->finish();
  }
  const Tensor rows =
      whole.detach().view({group_.size(), row.width}).to(options_.reduce_dtype.value_or(whole.dtype()));
  sums.push_back(
      std::make_shared<Sum>(Sum{rows, group_.reduce_scatter_async(rows, ReduceOp::Avg), group_.rank()}));
  return sums.back();
}

void ShardedUnit::take_gradients(size_t r, Sum& sum, Tensor* results) {
  sum.finish();
  const Row& row = rows_[r];
  const Tensor mine = std::exchange(sum.mine, {}).to(row.local.dtype());
  for (size_t m = 0; m < row.packing.members.size(); ++m) {
    const Member& member = members_[row.packing.members[m]];
    if (member.shard.requires_grad()) results[m] = place(mine, member);
  }
}

std::shared_ptr<void> ShardedUnit::begin(nn::Module& module) {
  if (is_inside_) return nullptr;
  Work& work = Work::here();
  const bool was_called = work.called.lock().get() == this;
  work.call_off(this);
  if (!was_called) {
    release();
    collect_shards();
  }
  gather();
  // What backward computes again has an order of its own.
  if (!is_in_backward()) come_to_work(work);
  return std::make_shared<Scope>(shared_from_this(), module);
}

void ShardedUnit::come_to_work(Work& work) {
  if (work.forwards == 0) {
    work.last.reset();
    work.sums.clear();  // of a backward that ended with an exception
  }
  before_ = work.last;
  if (const auto last = work.last.lock()) last->after_ = weak_from_this();
  work.last = weak_from_this();
  const auto next = after_.lock();
  if (!next || next->is_inside_ || next.get() == this) return;
  next->release();
  next->collect_shards();
  next->start_gather();
  work.called = next;
}

std::vector<Tensor> ShardedUnit::gather_members() {
  const NoGradGuard no_grad;
  collect_shards();
  gather();
  std::vector<Tensor> all = views();
  if (!is_inside_) release();
  return all;
}

void ShardedUnit::put(const Member& member, const Tensor& whole) const {
  const NoGradGuard no_grad;
  const Span mine = span(member, group_.rank());
  member.shard.detach().copy_(whole.detach().flatten().narrow(0, mine.start, mine.length));
}

ShardedUnit* unit_of(const nn::Module& module) {
  return module.hooks() ? dynamic_cast<ShardedUnit*>(module.hooks()->surrounding.get()) : nullptr;
}

std::vector<std::pair<nn::Module*, ShardedUnit*>> units_in(const nn::Module& module) {
  std::vector<std::pair<nn::Module*, ShardedUnit*>> units;
  for (nn::Module* each : module.modules())
    if (ShardedUnit* unit = unit_of(*each)) units.emplace_back(each, unit);
  return units;
}

}  // namespace tern::dist
