// Groups of processes, and what DistributedDataParallel does for modules that are written in Python. The
// arguments that PyTorch has are in python/tern/distributed.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "distributed.h"
#include "tern/parallel/collectives.h"
#include "tern/parallel/launch.h"

namespace tern::python {

namespace {

using dist::ProcessGroup;
using dist::ReduceOp;
using Seconds = std::chrono::duration<double>;

std::chrono::milliseconds milliseconds_of(double seconds) {
  // More than any process lives; clocks can tell it.
  return std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(std::clamp(seconds, 0.0, 1e9)));
}

/// What goes on by itself.
class Work {
 public:
  explicit Work(std::shared_future<void> result, std::function<void()> at_end = {})
      : result_(std::move(result)), at_end_(std::move(at_end)) {}

  bool is_completed() const { return result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  bool wait(std::optional<double> timeout_s) {
    if (timeout_s)
      TERN_CHECK(result_.wait_for(milliseconds_of(*timeout_s)) == std::future_status::ready, DistributedError,
                 "wait: after {} s the others have not come to it", *timeout_s);
    result_.get();
    if (at_end_) std::exchange(at_end_, nullptr)();
    return true;
  }

 private:
  std::shared_future<void> result_;
  std::function<void()> at_end_;
};

Work all_reduce_async(const Group& group, const Tensor& tensor, ReduceOp op) {
  const Tensor dense = tensor.detach().contiguous();
  return Work(group->all_reduce_async(dense, op), [tensor, dense] { dist::put_back(tensor, dense); });
}

/// The processes' module, called with the group set for the layers in it.
class Engine {
 public:
  Engine(nn::Module& module, const Group& group, double bucket_cap_mb, bool broadcast_buffers)
      : module_(std::make_shared<dist::detail::DistributedModule>(
            module, *group,
            dist::DistributedDataParallelOptions{.bucket_cap_mb = bucket_cap_mb,
                                                 .broadcast_buffers = broadcast_buffers})) {}

  py::object operator()(const py::object& module, const py::args& args, const py::kwargs& kwargs) {
    std::unique_ptr<dist::GroupGuard> in_group;
    auto& fields = module.cast<nn::Module&>();
    {
      const py::gil_scoped_release no_gil;
      in_group.reset(new dist::GroupGuard(module_->begin_forward(fields)));
    }
    return module(*args, **kwargs);
  }
  bool synchronizes() const { return module_->synchronizes(); }
  void set_synchronizes(bool on) { module_->set_synchronizes(on); }

 private:
  std::shared_ptr<dist::detail::DistributedModule> module_;
};

void bind_group(py::module_& m) {
  m.def("_is_mpi_available", &dist::is_mpi_available,
        "Whether processes that MPI starts can speak with each other.");
  py::enum_<ReduceOp>(m, "_ReduceOp")
      .value("SUM", ReduceOp::Sum)
      .value("AVG", ReduceOp::Avg)
      .value("PRODUCT", ReduceOp::Product)
      .value("MIN", ReduceOp::Min)
      .value("MAX", ReduceOp::Max);
  py::class_<Work>(m, "_Work")
      .def("is_completed", &Work::is_completed)
      .def("wait", &Work::wait, py::arg("timeout") = py::none(), ReleaseGil());
  py::class_<Group, std::shared_ptr<Group>>(m, "_ProcessGroup")
      .def_static(
          "start",
          [](const std::string& init_method, int rank, int world_size, double timeout_s) {
            return std::make_shared<Group>(ProcessGroup::start({.timeout = milliseconds_of(timeout_s),
                                                                .init_method = init_method,
                                                                .rank = rank,
                                                                .world_size = world_size}));
          },
          ReleaseGil())
      .def_static(
          "simulate",
          [](int size, double timeout_s) {
            std::vector<std::shared_ptr<Group>> groups;
            for (auto& group : ProcessGroup::simulate(size, {.timeout = milliseconds_of(timeout_s)}))
              groups.push_back(std::make_shared<Group>(std::move(group)));
            return groups;
          },
          ReleaseGil())
      .def("close", &Group::close)
      .def("abandon", [](const Group& group) { group->abandon(); })
      .def_property_readonly("rank", [](const Group& group) { return group->rank(); })
      .def_property_readonly("size", [](const Group& group) { return group->size(); })
      .def_property_readonly("local_rank", [](const Group& group) { return group->local_rank(); })
      .def_property_readonly("device", [](const Group& group) { return group->device(); })
      .def_property_readonly("gpu_route", [](const Group& group) { return group->gpu_route(); })
      .def(
          "new_group",
          [](const Group& group, std::vector<int> ranks) {
            auto made = group->new_group(std::move(ranks));
            return made ? std::make_shared<Group>(std::move(*made)) : nullptr;
          },
          ReleaseGil())
      .def(
          "barrier", [](const Group& group) { group->barrier(); }, ReleaseGil())
      .def(
          "all_reduce", [](const Group& group, const Tensor& x, ReduceOp op) { group->all_reduce(x, op); },
          ReleaseGil())
      .def("all_reduce_async", &all_reduce_async, ReleaseGil())
      .def(
          "all_reduce_with_gradient",
          [](const Group& group, const Tensor& x) { return dist::all_reduce(x, *group); }, ReleaseGil())
      .def(
          "reduce",
          [](const Group& group, const Tensor& x, int destination, ReduceOp op) {
            group->reduce(x, destination, op);
          },
          ReleaseGil())
      .def(
          "reduce_scatter",
          [](const Group& group, const Tensors& tensors, ReduceOp op) {
            return group->reduce_scatter(tensors, op);
          },
          ReleaseGil())
      .def(
          "broadcast", [](const Group& group, const Tensor& x, int source) { group->broadcast(x, source); },
          ReleaseGil())
      .def(
          "all_gather", [](const Group& group, const Tensor& x) { return group->all_gather_into_tensor(x); },
          ReleaseGil())
      .def(
          "gather",
          [](const Group& group, const Tensor& x, int destination) { return group->gather(x, destination); },
          ReleaseGil())
      .def(
          "scatter",
          [](const Group& group, const Tensor& x, const Tensors& parts, int source) {
            group->scatter(x, parts, source);
          },
          ReleaseGil())
      .def(
          "all_to_all", [](const Group& group, const Tensors& tensors) { return group->all_to_all(tensors); },
          ReleaseGil())
      .def(
          "send", [](const Group& group, const Tensor& x, int destination) { group->send(x, destination); },
          ReleaseGil())
      .def(
          "irecv",
          [](const Group& group, const Tensor& x, int source) { return Work(group->irecv(x, source)); },
          ReleaseGil())
      .def("all_gather_bytes",
           [](const Group& group, const py::bytes& bytes) {
             std::vector<std::string> all;
             const std::string mine = bytes;
             {
               const py::gil_scoped_release no_gil;
               all = group->all_gather(mine);
             }
             return std::vector<py::bytes>(all.begin(), all.end());
           })
      .def("broadcast_bytes", [](const Group& group, const py::bytes& bytes, int source) {
        std::string text = bytes;
        {
          const py::gil_scoped_release no_gil;
          text = group->broadcast(std::move(text), source);
        }
        return py::bytes(text);
      });
}

}  // namespace

void bind_distributed(py::module_& m) {
  bind_group(m);
  bind_fully_shard(m);
  py::class_<Engine>(m, "_DistributedModule")
      .def(py::init([](nn::Module& module, const Group& group, double bucket_cap_mb, bool broadcast_buffers) {
        // Here alone: what registers the object needs the lock.
        const py::gil_scoped_release no_gil;
        return std::make_unique<Engine>(module, group, bucket_cap_mb, broadcast_buffers);
      }))
      .def("__call__", &Engine::operator())
      .def_property("synchronizes", &Engine::synchronizes, &Engine::set_synchronizes);
  m.def(
      "_launch",
      [](const std::vector<std::string>& command, int nproc_per_node, int nnodes, int node_rank,
         const std::string& master_addr, uint16_t master_port, bool tag_output, double grace_s) {
        const dist::LaunchResult result = dist::launch(command, {.nproc_per_node = nproc_per_node,
                                                                 .nnodes = nnodes,
                                                                 .node_rank = node_rank,
                                                                 .master_addr = master_addr,
                                                                 .master_port = master_port,
                                                                 .tag_output = tag_output,
                                                                 .grace = milliseconds_of(grace_s)});
        return std::pair(result.exit_code, result.reason);
      },
      ReleaseGil());
}

}  // namespace tern::python
