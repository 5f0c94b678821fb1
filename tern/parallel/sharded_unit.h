// Parameters that are divided over the processes of a group and are whole only while they are used. Internal
// to parallel: its user is parallel/fully_shard.h.
#pragma once

#include <future>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/nn/module.h"
#include "tern/nn/module_call.h"
#include "tern/parallel/fully_shard.h"
#include "tern/parallel/packing.h"

namespace tern::dist {

/// The parameters of one module, and of those below it that have no unit of their own. They lie one after the
/// other in rows of elements, of which each process keeps an equal part. A parameter is, outside of forward,
/// the piece of it that lies in this process' part, in one dimension: a view of that part, so that what an
/// optimizer does to it is there at once. In forward the modules' fields hold views of the whole rows,
/// results of a recorded operator whose backward adds the gradients of all processes and leaves each its
/// part.
class ShardedUnit final : public nn::detail::Surrounding, public std::enable_shared_from_this<ShardedUnit> {
 public:
  /// A parameter and where its piece lies.
  struct Member {
    Tensor shard;  ///< the parameter itself
    Shape shape;   ///< of the whole
    size_t row = 0;
    int64_t offset = 0;  ///< of the whole in its row, in elements
    int64_t numel = 0;   ///< of the whole
  };
  /// What the process of a rank has of a whole parameter, in elements.
  struct Span {
    int64_t start = 0, length = 0;
  };

  /// Divides the parameters, which are the same on all processes.
  ShardedUnit(const std::vector<Tensor>& parameters, const ProcessGroup& group,
              const FullyShardOptions& options);
  ~ShardedUnit() override;

  std::shared_ptr<void> begin(nn::Module& module) override;

  const ProcessGroup& group() const noexcept { return group_; }
  const std::vector<Member>& members() const noexcept { return members_; }
  /// The number of the member that this tensor is; members().size() when it is none.
  size_t find(const Tensor& tensor) const;
  Span span(const Member& member, int rank) const;
  /// The whole parameters, gathered for this; all processes call it. No history.
  std::vector<Tensor> gather_members();
  /// Takes this process' piece of what the whole parameter is to be.
  void put(const Member& member, const Tensor& whole) const;

  /// Whether backward adds the gradients of all processes; else they grow here until it does.
  void set_sync(bool on) noexcept { sync_ = on; }

  /// Puts tensors, one for each member, in the place of the parameters in the module's fields.
  class Swap;

 private:
  class Gradients;
  class Arrival;
  class Scope;
  struct Sum;
  struct Work;
  struct Row {
    parallel::Packing packing;
    int64_t width = 0;   ///< of each process' part
    Tensor local;        ///< this process' part
    Tensor coming = {};  ///< the whole, on its way
    std::shared_future<void> arrival = {};
    Tensor whole = {};    ///< while it is gathered, in one dimension
    Tensor waiting = {};  ///< gradients of earlier backwards that were not added up
  };

  /// Sends for the rows that are neither there nor on their way.
  void start_gather();
  /// The same, and waits for them.
  void gather();
  void release();
  /// A row that backward needs; all of them go at its end.
  const Tensor& gather_for_backward(size_t row, uint32_t version);
  void go_with_backward();
  /// Notes the order of units, and sends for the rows of the next one.
  void come_to_work(Work& work);
  /// The members as views of the whole rows, with a history where gradients are recorded.
  std::vector<Tensor> views();
  /// A member of a module that was moved or converted since, or whose memory was replaced, back into the row.
  void collect_shards();
  /// The member's piece in this process' part of its row, or in what is like that.
  Tensor place(const Tensor& part, const Member& member) const;
  /// Sends the gradients of a row to be added; nothing when they grow here.
  std::shared_ptr<Sum> send_gradients(size_t row, const Tensor& whole);
  /// The gradients of the row's members from what they came to.
  void take_gradients(size_t row, Sum& sum, Tensor* results);

  ProcessGroup group_;
  FullyShardOptions options_;
  std::vector<Row> rows_;
  std::vector<Member> members_;
  std::unordered_map<const TensorImpl*, size_t> numbers_;  ///< of the members
  bool sync_ = true;
  bool is_inside_ = false;           ///< of a forward
  bool goes_with_backward_ = false;  ///< the rows that are gathered now
  /// Those that were at work before and after this one in the last forward of the outermost.
  std::weak_ptr<ShardedUnit> before_, after_;
};

class ShardedUnit::Swap {
 public:
  /// Until it goes, which must be before the module does. Throws ValueError where the module's fields do not
  /// hold all of the members.
  Swap(nn::Module& module, const ShardedUnit& unit, std::vector<Tensor> tensors);
  ~Swap();
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

 private:
  // Fields are looked for anew at the end: the module may have got others since.
  void restore() noexcept;

  nn::Module& module_;
  const ShardedUnit& unit_;
  std::vector<Tensor> tensors_;
  std::unordered_map<const TensorImpl*, size_t> numbers_;  ///< of those
};

/// The unit that a tensor is a member of; null when it is of none.
ShardedUnit* unit_holding(const Tensor& parameter);
/// The unit that this module is the head of; null when it is of none.
ShardedUnit* unit_of(const nn::Module& module);
/// Those of this module and all below it.
std::vector<std::pair<nn::Module*, ShardedUnit*>> units_in(const nn::Module& module);

}  // namespace tern::dist
