// The parts of the extension module, each in the file of its name.
#pragma once

#include "casters.h"

namespace tern::python {

using TensorClass = py::class_<TensorImpl, TensorHolder>;

void bind_errors(py::module_& m);                      ///< exceptions
void bind_types(py::module_& m);                       ///< dtypes, devices, sizes, generators
TensorClass bind_tensor(py::module_& m);               ///< the class Tensor: what is not an operator
void bind_indexing(TensorClass& tensor);               ///< x[...] and x[...] = y
void bind_methods(TensorClass& tensor);                ///< generated from the declarations of core/
void bind_operators(py::module_& m);                   ///< generated from the declarations of ops/
void bind_creation(py::module_& m);                    ///< tensor(), zeros() and their kin, random numbers
void bind_numpy(py::module_& m, TensorClass& tensor);  ///< arrays and buffers
void bind_functional(py::module_& m);                  ///< operators with many options
void bind_autograd(py::module_& m);                    ///< backward, grad, grad modes
void bind_functions(py::module_& m);                   ///< autograd.Function, checkpoint
void bind_devices(py::module_& m);                     ///< tern.cuda
void bind_modules(py::module_& m);                     ///< nn.Module and containers
void bind_init(py::module_& m);                        ///< nn.init
void bind_layers(py::module_& m);                      ///< the layers of nn
void bind_losses(py::module_& m);
void bind_optimizers(py::module_& m);
void bind_schedulers(py::module_& m);
void bind_files(py::module_& m);        ///< save and load
void bind_data(py::module_& m);         ///< datasets, samplers, DataLoader
void bind_transforms(py::module_& m);   ///< transforms of pictures
void bind_datasets(py::module_& m);     ///< sets of pictures, and reading of pictures
void bind_events(py::module_& m);       ///< TensorBoard's files
void bind_checks(py::module_& m);       ///< gradcheck and the profiler
void bind_parallel(py::module_& m);     ///< DataParallel
void bind_distributed(py::module_& m);  ///< groups of processes
void bind_fully_shard(py::module_& m);  ///< parameters that are divided over them

}  // namespace tern::python
