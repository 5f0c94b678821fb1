// The walk over the graph: iterative, one thread, latest recorded nodes first.
#include "tern/autograd/engine.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "tern/autograd/anomaly.h"
#include "tern/autograd/arithmetic.h"
#include "tern/autograd/autocast_mode.h"
#include "tern/autograd/grad_mode.h"
#include "tern/autograd/node.h"
#include "tern/autograd/record.h"
#include "tern/base/check.h"
#include "tern/device/scope.h"

namespace tern {
namespace {

/// Numbers for the nodes and leaves of one run: a hash table from addresses to positions in a list.
class Positions {
 public:
  /// The position of `key`, and whether it is new (then it is `next`).
  std::pair<uint32_t, bool> insert(const void* key, uint32_t next) {
    if ((used_ + 1) * 2 > table_.size()) grow();
    Slot& slot = find(key);
    if (slot.key) return {slot.position, false};
    slot = {key, next};
    ++used_;
    return {next, true};
  }

 private:
  struct Slot {
    const void* key = nullptr;
    uint32_t position = 0;
  };
  Slot& find(const void* key) {
    size_t mask = table_.size() - 1;
    size_t i = (reinterpret_cast<uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15u >> 20;
    while (table_[i & mask].key && table_[i & mask].key != key) ++i;
    return table_[i & mask];
  }
  void grow() {
    std::vector<Slot> old = std::exchange(table_, std::vector<Slot>(std::max<size_t>(64, table_.size() * 2)));
    for (const Slot& slot : old)
      if (slot.key) find(slot.key) = slot;
  }
  std::vector<Slot> table_;
  size_t used_ = 0;
};

/// A node or leaf in a run.
struct Task {
  Node* node = nullptr;  // null for a leaf
  TensorImpl* leaf = nullptr;
  uint32_t waits_for = 0;  // edges whose gradient has not come yet
  bool wanted = true;
  int32_t capture = -1;  // position in the inputs of grad()
  Stream stream;         // on which the gradient is used: the forward's
  Tensor grad;           // of a node that collects them: the last that came
  std::vector<Tensor> collected;

  uint64_t priority() const { return node ? node->sequence() : std::numeric_limits<uint64_t>::max(); }
};

void check_gradient(const char* op, const Tensor& grad, const Shape& shape) {
  TERN_CHECK(grad.shape() == shape, ShapeError,
             "{}: a gradient of shape {} was given for a tensor of shape {}", op, to_string(grad.shape()),
             to_string(shape));
}

/// The same with the dtype and device, for gradients that a caller gives.
void check_gradient(const char* op, const Tensor& grad, const Tensor& like) {
  check_gradient(op, grad, like.shape());
  TERN_CHECK(grad.dtype() == like.dtype(), DTypeError,
             "{}: a gradient of dtype {} was given for a tensor of dtype {}: convert it with to(dtype)", op,
             name(grad.dtype()), name(like.dtype()));
  TERN_CHECK(grad.device() == like.device(), DeviceError,
             "{}: a gradient on {} was given for a tensor on {}: move it with to(device)", op,
             grad.device().str(), like.device().str());
}

Tensor run_hooks(const GradHooks& hooks, Tensor grad) {
  const GradHooks copy = hooks;  // a hook may remove itself
  for (const auto& hook : copy) {
    Tensor replaced = hook->removed ? Tensor() : hook->call(grad);
    if (!replaced.defined()) continue;
    check_gradient("hook", replaced, grad);
    grad = std::move(replaced);
  }
  return grad;
}

/// The callbacks of the run that the thread is in; null outside of one.
constinit thread_local std::vector<std::function<void()>>* ends_of_run = nullptr;

/// Puts a gradient into a leaf, or adds it to the one that is there.
void accumulate(GradMeta& meta, Tensor grad, bool create_graph) {
  static std::mutex mutex;  // two threads may run backward on graphs that share leaves
  std::lock_guard lock(mutex);
  if (!meta.grad.defined()) {
    bool own = grad.impl_ptr()->use_count() == 1 && grad.storage()->use_count() == 1 && grad.is_contiguous();
    meta.grad = own ? std::move(grad) : copy_gradient(grad);
  } else if (create_graph) {
    meta.grad = add_gradients(meta.grad, grad);
  } else {
    check_in_place("accumulating into grad()", meta.grad);
    accumulate_into(meta.grad, grad);
  }
}

/// Runs `body` with `stream` as the current one.
template <class Body>
void on_stream(Stream stream, Body&& body) {
  if (stream.device.is_cpu()) [[likely]]
    return body();
  const StreamGuard guard(stream);
  body();
}

/// A tensor computed on the current stream of its device is about to be used on `consumer`.
void hand_over(const Tensor& tensor, Stream consumer) {
  if (tensor.device().is_cpu()) [[likely]]
    return;
  const Stream producer = current_stream(tensor.device());
  if (producer == consumer || consumer.device != tensor.device()) return;
  consumer.wait_stream(producer);
  tensor.record_stream(consumer);
}

class Run {
 public:
  Run(bool retain_graph, bool create_graph) : retain_graph_(retain_graph), create_graph_(create_graph) {}

  /// Finds everything that the roots depend on.
  void add_root(const Edge& edge, Tensor grad) {
    roots_.push_back(edge);
    uint32_t position = enter(edge);
    add_gradient(tasks_[position], std::move(grad));
    while (!unexplored_.empty()) {
      uint32_t next = unexplored_.back();
      unexplored_.pop_back();
      Node* node = tasks_[next].node;
      if (node == nullptr) continue;
      for (const Edge& input : node->inputs())
        if (input) ++tasks_[enter(input)].waits_for;
    }
  }

  /// Restricts the run to what leads to these tensors; their gradients are kept. False for one that was not
  /// found.
  std::vector<bool> capture(const std::vector<Edge>& inputs) {
    capturing_ = true;
    std::vector<bool> found;
    for (Task& task : tasks_) task.wanted = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const void* key =
          inputs[i].node ? static_cast<const void*>(inputs[i].node.get()) : inputs[i].leaf.get();
      auto [position, is_new] =
          key ? positions_.insert(key, std::numeric_limits<uint32_t>::max()) : std::pair{uint32_t{0}, true};
      found.push_back(!is_new && position != std::numeric_limits<uint32_t>::max());
      if (!found.back()) continue;
      tasks_[position].wanted = true;
      captures_.push_back({position, i});
      tasks_[position].capture = 0;
    }
    // Inputs were recorded before what uses them: in rising order of priority every input is decided first.
    std::vector<uint32_t> order(tasks_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      uint64_t x = tasks_[a].node ? tasks_[a].priority() + 1 : 0,
               y = tasks_[b].node ? tasks_[b].priority() + 1 : 0;
      return x < y;
    });
    for (uint32_t position : order) {
      Task& task = tasks_[position];
      if (task.node == nullptr) continue;
      for (const Edge& input : task.node->inputs())
        if (input && tasks_[position_of(input)].wanted) task.wanted = true;
    }
    return found;
  }

  void go() {
    for (uint32_t i = 0; i < tasks_.size(); ++i)
      if (tasks_[i].waits_for == 0) push_ready(i);
    std::vector<std::function<void()>> ends;
    run_graph(ends);
    // Whoever called goes on on the current streams.
    for (const Task& task : tasks_) {
      if (task.stream.device.is_cpu() || task.stream == current_stream(task.stream.device)) continue;
      current_stream(task.stream.device).wait_stream(task.stream);
      if (task.grad.defined()) task.grad.record_stream(current_stream(task.stream.device));
    }
    for (const auto& end : ends) end();
  }

  std::vector<Tensor> captured(size_t count) {
    std::vector<Tensor> result(count);
    for (auto [position, index] : captures_) result[index] = tasks_[position].grad;
    return result;
  }

 private:
  void run_graph(std::vector<std::function<void()>>& ends) {
    struct Scope {
      std::vector<std::function<void()>>* outer;
      ~Scope() { ends_of_run = outer; }
    } scope{std::exchange(ends_of_run, &ends)};
    GradModeGuard mode(create_graph_);
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end());
      uint32_t position = ready_.back().second;
      ready_.pop_back();
      on_stream(tasks_[position].stream, [&] { execute(position); });
    }
  }

  uint32_t enter(const Edge& edge) {
    const void* key = edge.node ? static_cast<const void*>(edge.node.get()) : edge.leaf.get();
    auto [position, is_new] = positions_.insert(key, static_cast<uint32_t>(tasks_.size()));
    if (is_new) {
      Task task;
      task.node = edge.node.get();
      task.leaf = edge.leaf.get();
      task.stream = edge.node ? edge.node->stream : current_stream(edge.leaf->storage->device());
      tasks_.push_back(std::move(task));
      unexplored_.push_back(position);
    }
    return position;
  }
  uint32_t position_of(const Edge& edge) {
    const void* key = edge.node ? static_cast<const void*>(edge.node.get()) : edge.leaf.get();
    return positions_.insert(key, 0).first;
  }

  void add_gradient(Task& task, Tensor grad, int32_t place = -1) {
    if (!grad.defined()) return;
    hand_over(grad, task.stream);
    const auto add_to = [&](Tensor& sum) {
      if (!sum.defined())
        sum = std::move(grad);
      else
        on_stream(task.stream, [&] { sum = add_gradients(sum, grad); });
    };
    if (place < 0) return add_to(task.grad);
    task.grad = grad;
    const auto i = static_cast<size_t>(place);
    if (task.collected.size() <= i) task.collected.resize(i + 1);
    add_to(task.collected[i]);
  }

  void push_ready(uint32_t position) {
    ready_.push_back({tasks_[position].priority(), position});
    std::push_heap(ready_.begin(), ready_.end());
  }

  void execute(uint32_t position) {
    Task& task = tasks_[position];
    if (task.wanted && task.grad.defined()) {
      if (task.node == nullptr) {
        auto& meta = static_cast<GradMeta&>(*task.leaf->autograd);
        check_gradient("backward", task.grad, task.leaf->shape);
        if (!meta.hooks.empty()) task.grad = run_hooks(meta.hooks, std::move(task.grad));
        if (capturing_ || !meta.requires_grad) return;  // frozen since the forward
        TERN_CHECK(!meta.grad_fn, AutogradError,
                   "backward: leaf variable has been moved into the graph interior: a tensor of shape {} was "
                   "changed in place between forward and backward: change a clone() of it",
                   to_string(task.leaf->shape));
        accumulate(meta, std::move(task.grad), create_graph_);
        const auto hooks = meta.accumulated_hooks;  // a hook may remove itself
        for (const auto& hook : hooks) hook->call(Tensor(IntrusivePtr<TensorImpl>(task.leaf)));
        return;
      }
      if (!task.node->hooks.empty()) task.grad = run_hooks(task.node->hooks, std::move(task.grad));
      if (GradKeeper* keeper = task.node->keeper.get(); keeper && keeper->meta) {
        Tensor& kept = keeper->meta->grad;
        kept = kept.defined() ? add_gradients(kept, task.grad) : copy_gradient(task.grad);
      }
    }
    if (task.node == nullptr) return;
    apply(position);
  }

  void apply(uint32_t position) {
    Node& node = *tasks_[position].node;
    const std::vector<Edge>& inputs = node.inputs();
    Tensor grad = tasks_[position].capture < 0 ? std::move(tasks_[position].grad) : tasks_[position].grad;
    results_.assign(inputs.size(), Tensor());
    bool any = false;
    SmallVector<bool, 16> wanted(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      wanted[i] = inputs[i] && tasks_[position_of(inputs[i])].wanted;
      any |= wanted[i];
    }
    if (grad.defined() && any) {
      const std::vector<Tensor> collected = std::move(tasks_[position].collected);
      GradContext context(node, wanted.data(), collected);
      const auto apply_node = [&] { node.apply(context, grad, results_.data()); };
      with_backward_context(node, [&] {
        if (!detail::observing()) [[likely]]
          return apply_node();
        const ScopeGuard scope({.backward_of = node.name(), .module_path = node.module_path.get()});
        apply_node();
      });
      if (autograd::detail::checks_nan) [[unlikely]]
        autograd::detail::check_nan(node, results_);
      if (!retain_graph_) node.release_saved();
    }
    std::vector<Tensor> results = std::move(results_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      uint32_t next = position_of(inputs[i]);
      if (wanted[i]) add_gradient(tasks_[next], std::move(results[i]), inputs[i].place);
      if (--tasks_[next].waits_for == 0) push_ready(next);
    }
    results_ = std::move(results);
  }

  template <class Body>
  static void with_backward_context(const Node& node, Body&& body) {
    try {
      body();
    } catch (AutogradError&) {
      throw;  // names the operator already
    } catch (Error& error) {
      error.add_context(std::string("backward of ") + node.name() +
                        (node.module_path ? " of the module " + *node.module_path : ""));
      throw;
    }
  }

  bool retain_graph_;
  bool create_graph_;
  bool capturing_ = false;
  std::vector<Edge> roots_;  // keeps the graph: a hook may let go of the outputs
  Positions positions_;
  std::vector<Task> tasks_;
  std::vector<uint32_t> unexplored_;
  std::vector<std::pair<uint64_t, uint32_t>> ready_;
  std::vector<std::pair<uint32_t, size_t>> captures_;
  std::vector<Tensor> results_;
};

void add_roots(Run& run, const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients) {
  TERN_CHECK(gradients.empty() || gradients.size() == outputs.size(), ValueError,
             "backward: got {} outputs and {} gradients: give one gradient for each output, undefined for 1",
             outputs.size(), gradients.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    TERN_CHECK(output.defined(), ValueError, "backward: element {} of tensors is undefined", i);
    TERN_CHECK(output.requires_grad(), AutogradError,
               "backward: element {} of tensors does not require grad and does not have a grad_fn: was it "
               "computed inside a "
               "NoGradGuard, or from tensors without requires_grad?",
               i);
    Tensor grad = gradients.empty() ? Tensor() : gradients[i];
    if (!grad.defined()) {
      TERN_CHECK(output.numel() == 1, AutogradError,
                 "backward: grad can be implicitly created only for scalar outputs: the output has shape {}; "
                 "give a gradient of that "
                 "shape, or reduce it with sum() or mean()",
                 to_string(output.shape()));
      TERN_CHECK(!is_complex(output.dtype()), AutogradError,
                 "backward: grad can be implicitly created only for real scalar outputs but got {}: give a "
                 "gradient, or take real(), imag() or abs() first",
                 name(output.dtype()));
      grad = filled(output.shape(), output.dtype(), output.device(), 1);
    }
    if (grad.dtype() != output.dtype() && is_computable(grad.dtype()) && is_computable(output.dtype()))
      grad = convert_gradient(grad, output.dtype());
    check_gradient("backward", grad, output);
    run.add_root(gradient_edge(output), std::move(grad));
  }
}

}  // namespace

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, bool retain_graph,
              bool create_graph) {
  const AutocastPause forward_chose_the_dtypes;
  Run run(retain_graph || create_graph, create_graph);
  add_roots(run, outputs, gradients);
  run.go();
}

bool is_in_backward() noexcept { return ends_of_run != nullptr; }

void when_backward_ends(std::function<void()> callback) {
  TERN_CHECK(ends_of_run != nullptr, AutogradError,
             "when_backward_ends: this thread is in no backward(): call it from a hook");
  ends_of_run->push_back(std::move(callback));
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& gradients, GradOptions options) {
  TERN_CHECK(!inputs.empty(), ValueError, "grad: `inputs` argument to `grad()` cannot be empty");
  const AutocastPause forward_chose_the_dtypes;
  Run run(options.retain_graph || options.create_graph, options.create_graph);
  add_roots(run, outputs, gradients);
  std::vector<Edge> edges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TERN_CHECK(inputs[i].requires_grad(), AutogradError,
               "grad: input {} does not require grad: call requires_grad_() on it first", i);
    edges.push_back(gradient_edge(inputs[i]));
  }
  std::vector<bool> found = run.capture(edges);
  for (size_t i = 0; i < inputs.size(); ++i)
    TERN_CHECK(found[i] || options.allow_unused, AutogradError,
               "grad: One of the differentiated Tensors appears to not have been used in the graph (input "
               "{}): set allow_unused=true "
               "if that is meant",
               i);
  run.go();
  std::vector<Tensor> result = run.captured(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    TERN_CHECK(result[i].defined() || options.allow_unused, AutogradError,
               "grad: no gradient reached input {}", i);
  return result;
}

}  // namespace tern
