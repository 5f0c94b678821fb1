// Parameters that are divided over processes, and checkpoints that processes write together. What PyTorch's
// fsdp has around it is in python/tern/distributed/fsdp and checkpoint.
#include "tern/parallel/fully_shard.h"
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "distributed.h"
#include "modules.h"
#include "tern/io/distributed_reader.h"
#include "tern/io/distributed_writer.h"
#include "tern/parallel/full_state.h"
#include "values.h"

namespace tern::python {

namespace {

/// What Python has in a `with` block.
template <class T>
struct Guarded {
  std::optional<T> held;
  template <class... Args>
  explicit Guarded(Args&&... args) : held(std::in_place, std::forward<Args>(args)...) {}
};
template <class T>
py::class_<Guarded<T>> guard(py::module_& m, const char* name) {
  return py::class_<Guarded<T>>(m, name)
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](Guarded<T>& self, py::args) {
        const py::gil_scoped_release no_gil;
        self.held.reset();
      });
}

/// A tuple of (name, start, length, shape).
using Request = std::tuple<std::string, int64_t, std::optional<int64_t>, std::optional<Shape>>;

void bind_distributed_checkpoints(py::module_& m) {
  // `pieces` are of the tensors of these names: (shape of the whole, first element).
  m.def("_write_distributed", [](const Group& group, const std::string& folder, py::handle tree,
                                 const std::map<std::string, std::pair<Shape, int64_t>>& pieces) {
    std::map<std::string, io::DistributedPiece> named;
    for (const auto& [name, piece] : pieces)
      named.emplace(name, io::DistributedPiece{piece.first, piece.second});
    const std::vector<io::DistributedEntry> entries = io::distributed_entries(value_from_python(tree), named);
    const py::gil_scoped_release no_gil;
    io::write_distributed(folder, entries, group->rank(), group->size(),
                          [&](const std::string& text) { return group->all_gather(text); });
  });
  m.def("_read_distributed", [](const std::string& folder, const std::vector<Request>& wanted) {
    std::vector<io::DistributedRequest> requests;
    for (const auto& [name, start, length, shape] : wanted) requests.push_back({name, start, length, shape});
    std::vector<Value> values;
    {
      const py::gil_scoped_release no_gil;
      values = io::DistributedFolder(folder).parts(requests);
    }
    py::list objects;
    for (const Value& value : values) objects.append(value_to_python(value));
    return objects;
  });
  m.def("_distributed_names", [](const std::string& folder) {
    py::dict names;
    for (const auto& [name, path] : io::DistributedFolder(folder).names())
      names[py::str(name)] = value_to_python(Value::tuple(path));
    return names;
  });
}

}  // namespace

void bind_fully_shard(py::module_& m) {
  bind_distributed_checkpoints(m);
  m.def(
      "_fully_shard",
      [](nn::Module& module, const Group& group, std::optional<bool> reshard_after_forward,
         std::optional<DType> param_dtype, std::optional<DType> reduce_dtype) {
        dist::fully_shard(module, *group,
                          {.reshard_after_forward = reshard_after_forward,
                           .param_dtype = param_dtype,
                           .reduce_dtype = reduce_dtype});
      },
      ReleaseGil());
  m.def("_is_fully_sharded", &dist::is_fully_sharded);
  m.def("_set_requires_gradient_sync", &dist::set_requires_gradient_sync);
  m.def("_is_divided", &dist::is_divided);
  m.def("_piece_of", [](const Tensor& parameter) {
    const auto piece = dist::piece_of(parameter);
    return piece ? std::optional(std::pair(piece->whole, piece->start)) : std::nullopt;
  });
  m.def("_is_like_parameter", &dist::is_like_parameter);
  m.def("_rank_of_shards", &dist::rank_of_shards);
  using Whole = Guarded<dist::FullParameters>;
  guard<dist::FullParameters>(m, "_FullParameters")
      .def(py::init([](const nn::Module& module, bool rank0_only, bool offload_to_cpu) {
             const py::gil_scoped_release no_gil;
             return std::make_unique<Whole>(
                 module,
                 dist::FullParametersOptions{.rank0_only = rank0_only, .offload_to_cpu = offload_to_cpu});
           }),
           py::keep_alive<1, 2>())
      .def(
          "broadcast", [](const Whole& whole) { whole.held->broadcast(); }, ReleaseGil())
      .def(
          "write_back", [](const Whole& whole) { whole.held->write_back(); }, ReleaseGil());
  guard<std::shared_ptr<void>>(m, "_Surrounded")
      .def(py::init([](nn::Module& module) {
             const py::gil_scoped_release no_gil;
             return std::make_unique<Guarded<std::shared_ptr<void>>>(
                 module.hooks() ? module.hooks()->begin(module) : nullptr);
           }),
           py::keep_alive<1, 2>());
  m.def("_full_optimizer_state",
        [](const nn::Module& module, const optim::Optimizer& optimizer, bool cpu_offload) {
          optim::OptimizerState state;
          {
            const py::gil_scoped_release no_gil;
            state = dist::full_optimizer_state_dict(module, optimizer, {.cpu_offload = cpu_offload});
          }
          return state_to_python(state);
        });
  m.def("_load_full_optimizer_state", [](const nn::Module& module, optim::Optimizer& optimizer,
                                         py::handle state) {
    dist::load_full_optimizer_state_dict(module, optimizer, state_from_python<optim::OptimizerState>(state));
  });
}

}  // namespace tern::python
