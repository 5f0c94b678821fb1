// Tern's exceptions in Python: classes of their names, which are also what Python's own users expect
// (ValueError, OSError, ...).
#pragma once

#include <functional>

#include "casters.h"

namespace tern::python {

/// Changes the message of a Python exception that is one of Tern's, as `edit` says; leaves any other as it
/// is.
void edit_message(py::error_already_set& error, const std::function<void(Error&)>& edit);
/// nn::utils::detail::Enough, where that came through Python.
void rethrow_enough(const py::error_already_set& error);

/// After all functions and classes are there: calls with wrong arguments raise PyTorch's short TypeErrors.
void shorten_call_errors(py::module_& m);

}  // namespace tern::python
